// Written by `cargo xtask generate` from the public service model; do not edit.
// Selection: a442c0b0bf7ea49fac694ffcb643e50977569cbd264de1b02dbac52883de9021

//! Elastic Load Balancing.

use super::{Kind, Operation, Service, operation, request, response};

/// The service.
pub const SERVICE: Service = Service {
    name: "elbv2",
    endpoint: "elasticloadbalancing",
    version: "2015-12-01",
};

/// The operations that we call.
pub const OPERATIONS: &[&str] = &[
    "DeregisterTargets",
    "DescribeLoadBalancers",
    "DescribeTargetGroups",
    "RegisterTargets",
];

operation! { DeregisterTargets, Kind::Repeatable, Some("DeregisterTargetsResult"), requests::DeregisterTargetsInput => responses::DeregisterTargetsOutput }

operation! { DescribeLoadBalancers, Kind::Read, Some("DescribeLoadBalancersResult"), requests::DescribeLoadBalancersInput => responses::DescribeLoadBalancersOutput }

operation! { DescribeTargetGroups, Kind::Read, Some("DescribeTargetGroupsResult"), requests::DescribeTargetGroupsInput => responses::DescribeTargetGroupsOutput }

operation! { RegisterTargets, Kind::Repeatable, Some("RegisterTargetsResult"), requests::RegisterTargetsInput => responses::RegisterTargetsOutput }

/// What is sent.
pub mod requests {
    use super::request;

    request! {
        DeregisterTargetsInput {
            target_group_arn: Option<String> = "TargetGroupArn",
            targets: Vec<TargetDescription> = "Targets.member",
        }
    }

    request! {
        DescribeLoadBalancersInput {
            names: Vec<String> = "Names.member",
        }
    }

    request! {
        DescribeTargetGroupsInput {
            load_balancer_arn: Option<String> = "LoadBalancerArn",
        }
    }

    request! {
        RegisterTargetsInput {
            target_group_arn: Option<String> = "TargetGroupArn",
            targets: Vec<TargetDescription> = "Targets.member",
        }
    }

    request! {
        TargetDescription {
            id: Option<String> = "Id",
        }
    }
}

/// What is answered.
pub mod responses {
    use super::response;

    response! { DeregisterTargetsOutput {} }

    response! {
        DescribeLoadBalancersOutput {
            load_balancers: Vec<LoadBalancer> = "LoadBalancers",
        }
    }

    response! {
        DescribeTargetGroupsOutput {
            target_groups: Vec<TargetGroup> = "TargetGroups",
        }
    }

    response! {
        LoadBalancer {
            load_balancer_arn: Option<String> = "LoadBalancerArn",
        }
    }

    response! { RegisterTargetsOutput {} }

    response! {
        TargetGroup {
            target_group_arn: Option<String> = "TargetGroupArn",
            target_type: Option<String> = "TargetType",
        }
    }
}
