// Written by `cargo xtask generate` from the public service model; do not edit.
// Selection: a442c0b0bf7ea49fac694ffcb643e50977569cbd264de1b02dbac52883de9021

//! Elastic Load Balancing.

use super::{Kind, Operation, Service, operation, request, response};

/// The service.
pub const SERVICE: Service = Service {
    name: "elb",
    endpoint: "elasticloadbalancing",
    version: "2012-06-01",
};

/// The operations that we call.
pub const OPERATIONS: &[&str] = &[
    "RegisterInstancesWithLoadBalancer",
];

operation! { RegisterInstancesWithLoadBalancer, Kind::Repeatable, Some("RegisterInstancesWithLoadBalancerResult"), requests::RegisterEndPointsInput => responses::RegisterEndPointsOutput }

/// What is sent.
pub mod requests {
    use super::request;

    request! {
        Instance {
            instance_id: Option<String> = "InstanceId",
        }
    }

    request! {
        RegisterEndPointsInput {
            instances: Vec<Instance> = "Instances.member",
            load_balancer_name: Option<String> = "LoadBalancerName",
        }
    }
}

/// What is answered.
pub mod responses {
    use super::response;

    response! { RegisterEndPointsOutput {} }
}
