//! What users write: three sets, one in each kind of placement group.

use serde_json::{Value, json};

/// The cluster's name in the cloud.
pub(crate) const CLUSTER: &str = fleetwright_world::simulation::CLUSTER;
/// Where Machines live.
pub(crate) const NAMESPACE: &str = fleetwright_api::names::MACHINE_NAMESPACE;

/// What instances boot.
const IMAGE: &str = "ami-0f1ee70000000001a";

/// A MachineSet and its placement group, which has the same name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Set {
    /// Name of both.
    pub(crate) name: &'static str,
    /// As the AWSPlacementGroup says it.
    pub(crate) strategy: &'static str,
    /// Where.
    pub(crate) zone: &'static str,
    /// How many Machines there are at first.
    pub(crate) replicas: u32,
    /// How many there are at most.
    pub(crate) most: u32,
    /// The partition that all are asked to be in.
    pub(crate) partition: Option<u32>,
}

/// All of them.
pub(crate) const SETS: [Set; 3] = [
    Set {
        name: "gang",
        strategy: "Cluster",
        zone: "us-east-1a",
        replicas: 3,
        most: 5,
        partition: None,
    },
    Set {
        name: "spread",
        strategy: "Spread",
        zone: "us-east-1b",
        replicas: 2,
        most: 7,
        partition: None,
    },
    Set {
        name: "shards",
        strategy: "Partition",
        zone: "us-east-1c",
        replicas: 2,
        most: 4,
        partition: Some(2),
    },
];

impl Set {
    /// Its AWSPlacementGroup.
    pub(crate) fn group(&self) -> Value {
        let mut managed = json!({"groupType": self.strategy});
        if self.strategy == "Partition" {
            managed["partition"] = json!({"count": 3});
        }
        json!({
            "apiVersion": "machine.openshift.io/v1",
            "kind": "AWSPlacementGroup",
            "metadata": {"name": self.name, "namespace": NAMESPACE},
            "spec": {
                "credentialsSecret": {"name": "aws-cloud-credentials"},
                "managementSpec": {"managementState": "Managed", "managed": managed},
            },
        })
    }

    /// Its MachineSet.
    pub(crate) fn machine_set(&self) -> Value {
        let labels = json!({
            "machine.openshift.io/cluster-api-cluster": CLUSTER,
            "machine.openshift.io/cluster-api-machineset": self.name,
        });
        let mut placement = json!({
            "region": "us-east-1",
            "availabilityZone": self.zone,
            "group": {"name": self.name},
        });
        if let Some(partition) = self.partition {
            placement["partitionNumber"] = json!(partition);
        }
        let filter = |name: String| json!([{"name": "tag:Name", "values": [name]}]);
        json!({
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "MachineSet",
            "metadata": {"name": self.name, "namespace": NAMESPACE, "labels": labels},
            "spec": {
                "replicas": self.replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"providerSpec": {"value": {
                        "apiVersion": "machine.openshift.io/v1beta1",
                        "kind": "AWSMachineProviderConfig",
                        "ami": {"id": IMAGE},
                        "instanceType": "c5.large",
                        "placement": placement,
                        "subnet": {"filters": filter(format!("{CLUSTER}-subnet-private-{}", self.zone))},
                        "securityGroups": [{"filters": filter(format!("{CLUSTER}-node"))}],
                        "iamInstanceProfile": {"id": format!("{CLUSTER}-worker-profile")},
                        "userDataSecret": {"name": "worker-user-data"},
                        "credentialsSecret": {"name": "aws-cloud-credentials"},
                    }}},
                },
            },
        })
    }
}

/// Pods that must be moved away before a Machine goes.
pub(crate) fn deployment(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "work", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "work"}},
            "template": {
                "metadata": {"labels": {"app": "work"}},
                "spec": {"containers": [{"name": "work", "image": "example.com/work:1"}]},
            },
        },
    })
}
