//! What users write: three sets, one in each kind of placement group, and one on spot capacity.

use serde_json::{Value, json};

/// The cluster's name in the cloud.
pub(crate) const CLUSTER: &str = fleetwright_world::simulation::CLUSTER;
/// Where Machines live.
pub(crate) const NAMESPACE: &str = fleetwright_api::names::MACHINE_NAMESPACE;

/// What instances boot.
const IMAGE: &str = "ami-0f1ee70000000001a";

/// A MachineSet and its placement group, if it has one, which has the same name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Set {
    /// Name of both.
    pub(crate) name: &'static str,
    /// As the AWSPlacementGroup says it; empty without a group.
    pub(crate) strategy: &'static str,
    /// Where.
    pub(crate) zone: &'static str,
    /// How many Machines there are at first.
    pub(crate) replicas: u32,
    /// How many there are at most.
    pub(crate) most: u32,
    /// The partition that all are asked to be in.
    pub(crate) partition: Option<u32>,
    /// Whether the cloud may take its instances back.
    pub(crate) spot: bool,
}

/// All of them.
pub(crate) const SETS: [Set; 4] = [
    Set {
        name: "gang",
        strategy: "Cluster",
        zone: "us-east-1a",
        replicas: 3,
        most: 5,
        partition: None,
        spot: false,
    },
    Set {
        name: "spread",
        strategy: "Spread",
        zone: "us-east-1b",
        replicas: 2,
        most: 7,
        partition: None,
        spot: false,
    },
    Set {
        name: "shards",
        strategy: "Partition",
        zone: "us-east-1c",
        replicas: 2,
        most: 4,
        partition: Some(2),
        spot: false,
    },
    Set {
        name: "spot",
        strategy: "",
        zone: "us-east-1a",
        replicas: 4,
        most: 6,
        partition: None,
        spot: true,
    },
];

/// Whether a set is on spot capacity.
pub(crate) fn is_spot(name: &str) -> bool {
    SETS.iter().any(|set| set.spot && set.name == name)
}

/// The name of the users' check.
pub(crate) const CHECK: &str = "launches";

/// A check that replaces the Machines of spot sets that cannot be launched. One with a limit is the
/// only check of its world, and replaces those that the cloud takes back as well.
pub(crate) fn health_check(max_unhealthy: Option<u32>) -> Value {
    let mut conditions = vec![json!({"type": "Ready", "status": "Unknown", "timeout": "10m"})];
    if max_unhealthy.is_some() {
        conditions.push(json!({"type": "Terminating", "status": "True", "timeout": "0s"}));
    }
    let limit = max_unhealthy.map_or(json!("100%"), |limit| json!(limit));
    let spot: Vec<&str> = SETS.iter().filter(|set| set.spot).map(|set| set.name).collect();
    json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "MachineHealthCheck",
        "metadata": {"name": CHECK, "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchExpressions": [{
                "key": "machine.openshift.io/cluster-api-machineset", "operator": "In",
                "values": spot,
            }]},
            "nodeStartupTimeout": "0",
            "maxUnhealthy": limit,
            "unhealthyConditions": conditions,
        },
    })
}

impl Set {
    /// Whether it has a placement group.
    pub(crate) fn is_grouped(&self) -> bool {
        !self.strategy.is_empty()
    }

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
        });
        if self.is_grouped() {
            placement["group"] = json!({"name": self.name});
        }
        if let Some(partition) = self.partition {
            placement["partitionNumber"] = json!(partition);
        }
        let spot = if self.spot { json!({}) } else { Value::Null };
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
                        "spotMarketOptions": spot,
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

/// All but one of these pods must be there at any time.
pub(crate) fn budget(replicas: u32) -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "work", "namespace": "default"},
        "spec": {
            "minAvailable": replicas.saturating_sub(1),
            "selector": {"matchLabels": {"app": "work"}},
        },
    })
}
