//! What users and kubelets write: MachineSets, and Nodes for the instances of a cloud.

use fleetwright_api::names::{MACHINE_NAMESPACE, label};
use fleetwright_simcloud::aws::model::instance::Instance;
use fleetwright_world::simulation::CLUSTER;
use serde_json::{Value, json};

/// What instances boot.
const IMAGE: &str = "rhcos-202610010000-0-x86_64";
/// The zones of the simulated region.
const ZONES: [&str; 3] = ["us-east-1a", "us-east-1b", "us-east-1c"];
/// Machines in a set; a larger fleet has more sets.
pub(crate) const SET_SIZE: usize = 1000;
/// Images that a kubelet reports. It reports up to 50; most nodes have fewer.
const IMAGES: usize = 20;

/// Sets that together have so many Machines.
pub(crate) fn machine_sets(machines: usize) -> Vec<Value> {
    let sets = machines.div_ceil(SET_SIZE);
    (0..sets)
        .map(|number| {
            let replicas = SET_SIZE.min(machines - number * SET_SIZE);
            machine_set(&format!("workers-{number}"), ZONES[number % ZONES.len()], replicas)
        })
        .collect()
}

/// A MachineSet as an installer writes it.
pub(crate) fn machine_set(name: &str, zone: &str, replicas: usize) -> Value {
    let labels = json!({
        label::CLUSTER: CLUSTER,
        "machine.openshift.io/cluster-api-machineset": name,
    });
    let role = json!({
        label::CLUSTER: CLUSTER,
        "machine.openshift.io/cluster-api-machineset": name,
        "machine.openshift.io/cluster-api-machine-role": "worker",
        "machine.openshift.io/cluster-api-machine-type": "worker",
    });
    let filter = |name: String| json!([{"name": "tag:Name", "values": [name]}]);
    json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "MachineSet",
        "metadata": {"name": name, "namespace": MACHINE_NAMESPACE, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": role},
                "spec": {
                    "metadata": {"labels": {"node-role.kubernetes.io/worker": ""}},
                    "providerSpec": {"value": {
                        "apiVersion": "machine.openshift.io/v1beta1",
                        "kind": "AWSMachineProviderConfig",
                        "ami": {"filters": [{"name": "name", "values": [IMAGE]}]},
                        "instanceType": "m5.large",
                        "blockDevices": [{"ebs": {"volumeSize": 120, "volumeType": "gp3", "encrypted": true}}],
                        "placement": {"region": "us-east-1", "availabilityZone": zone},
                        "subnet": {"filters": filter(format!("{CLUSTER}-subnet-private-{zone}"))},
                        "securityGroups": [{"filters": filter(format!("{CLUSTER}-node"))}],
                        "iamInstanceProfile": {"id": format!("{CLUSTER}-worker-profile")},
                        "tags": [{"name": format!("kubernetes.io/cluster/{CLUSTER}"), "value": "owned"}],
                        "userDataSecret": {"name": "worker-user-data"},
                        "credentialsSecret": {"name": "aws-cloud-credentials"},
                        "metadataServiceOptions": {"authentication": "Required"},
                    }},
                },
            },
        },
    })
}

/// The Node that an instance becomes, as large as a kubelet makes it.
pub(crate) fn node(instance: &Instance) -> Value {
    let name = instance.private_dns();
    let zone = &instance.zone;
    let address = instance.private_ip().map(|ip| ip.to_string()).unwrap_or_default();
    let conditions: Vec<Value> = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]
        .iter()
        .map(|kind| {
            let ready = *kind == "Ready";
            json!({
                "type": kind,
                "status": if ready { "True" } else { "False" },
                "reason": if ready { "KubeletReady".to_owned() } else { format!("KubeletHasNo{kind}") },
                "message": if ready { "kubelet is posting ready status" } else { "kubelet has sufficient resources" },
                "lastHeartbeatTime": "2026-11-15T12:00:00Z",
                "lastTransitionTime": "2026-11-15T12:00:00Z",
            })
        })
        .collect();
    let images: Vec<Value> = (0..IMAGES)
        .map(|number| {
            json!({
                "names": [format!("quay.example/release/component-{number}@sha256:{number:064x}")],
                "sizeBytes": 100_000_000 + number,
            })
        })
        .collect();
    let resources = json!({
        "cpu": "2", "memory": "7941384Ki", "ephemeral-storage": "125277164Ki", "pods": "250",
        "hugepages-1Gi": "0", "hugepages-2Mi": "0", "attachable-volumes-aws-ebs": "25",
    });
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/instance-type": "m5.large",
                "beta.kubernetes.io/os": "linux",
                "failure-domain.beta.kubernetes.io/region": "us-east-1",
                "failure-domain.beta.kubernetes.io/zone": zone,
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": "m5.large",
                "topology.ebs.csi.aws.com/zone": zone,
                "topology.kubernetes.io/region": "us-east-1",
                "topology.kubernetes.io/zone": zone,
            },
            "annotations": {
                "csi.volume.kubernetes.io/nodeid": json!({"ebs.csi.aws.com": instance.id}).to_string(),
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
        },
        "spec": {"providerID": format!("aws:///{zone}/{}", instance.id)},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "InternalDNS", "address": name},
                {"type": "Hostname", "address": name},
            ],
            "allocatable": resources,
            "capacity": resources,
            "conditions": conditions,
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "images": images,
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "5d4a7c8e-2d3a-4f0f-9f57-0b1a2f4a8c11",
                "containerRuntimeVersion": "cri-o://1.37.0",
                "kernelVersion": "6.12.0-124.el10.x86_64",
                "kubeProxyVersion": "v1.37.1",
                "kubeletVersion": "v1.37.1",
                "machineID": instance.id,
                "operatingSystem": "linux",
                "osImage": "Red Hat Enterprise Linux CoreOS 420.94",
                "systemUUID": instance.id,
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_together_have_the_machines() {
        let replicas = |machines: usize| -> Vec<u64> {
            let sets = machine_sets(machines);
            sets.iter().map(|set| set["spec"]["replicas"].as_u64().unwrap()).collect()
        };
        assert_eq!(replicas(20), [20]);
        assert_eq!(replicas(1000), [1000]);
        assert_eq!(replicas(2500), [1000, 1000, 500]);
    }
}
