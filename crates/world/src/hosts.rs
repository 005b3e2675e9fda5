//! Instances that run become hosts of simulated nodes.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use fleetwright_simcloud::aws::{
    Aws,
    model::{
        Change, Event,
        instance::{Instance, InstanceState},
    },
};
use fleetwright_simnode::{Host, Hosts};
use k8s_openapi::api::core::v1::NodeAddress;
use tokio::sync::mpsc;

/// Tells simulated nodes of instances that start, stop and go.
pub(crate) struct Bridge {
    hosts: Hosts,
    region: String,
    boot_delay: Duration,
    /// A terminated instance has no name any more.
    names: BTreeMap<String, String>,
    events: mpsc::UnboundedReceiver<Arc<Event>>,
}

impl Bridge {
    /// A bridge from a cloud. Instances that run already become hosts at once.
    pub(crate) fn new(aws: &Aws, hosts: Hosts, boot_delay: Duration) -> Self {
        let events = aws.subscribe();
        let (region, there) = aws.with(|region, _| {
            (region.settings.region.clone(), region.instances().cloned().collect::<Vec<_>>())
        });
        let mut bridge = Self { hosts, region, boot_delay, names: BTreeMap::new(), events };
        for instance in there {
            bridge.tell(&instance);
            if aws.with(|region, _| region.is_frozen(&instance.id)) {
                bridge.freeze(&instance, true);
            }
        }
        bridge
    }

    /// Passes on what happens, until the cloud is gone.
    pub(crate) async fn run(mut self) {
        while let Some(event) = self.events.recv().await {
            match &event.change {
                Change::InstanceState { instance, .. } => self.tell(instance),
                Change::InstanceFrozen { instance, frozen } => self.freeze(instance, *frozen),
                _ => {}
            }
        }
    }

    /// The cloud takes an instance that hangs for one that runs.
    fn freeze(&self, instance: &Instance, frozen: bool) {
        match self.names.get(&instance.id) {
            Some(name) if frozen => self.hosts.stopped(name),
            Some(name) => self.hosts.restarted(name),
            None => {}
        }
    }

    fn tell(&mut self, instance: &Instance) {
        match instance.state {
            InstanceState::Pending => {}
            InstanceState::Running => {
                let host = host(instance, &self.region, self.boot_delay);
                self.names.insert(instance.id.clone(), host.name.clone());
                self.hosts.started(host);
            }
            // What shuts down is silent; its Node is there until somebody removes it.
            InstanceState::Stopping | InstanceState::Stopped | InstanceState::ShuttingDown => {
                if let Some(name) = self.names.get(&instance.id) {
                    self.hosts.stopped(name);
                }
            }
            InstanceState::Terminated => {
                if let Some(name) = self.names.remove(&instance.id) {
                    self.hosts.gone(&name);
                }
            }
        }
    }
}

/// What a kubelet finds on an instance.
fn host(instance: &Instance, region: &str, boot_delay: Duration) -> Host {
    let kind = instance.with.instance_type;
    let name = instance.private_dns().to_owned();
    let address = |type_: &str, address: String| NodeAddress { type_: type_.to_owned(), address };
    let mut addresses: Vec<NodeAddress> = Vec::new();
    addresses.extend(instance.private_ip().map(|ip| address("InternalIP", ip.to_string())));
    addresses.extend(instance.public_ip.map(|ip| address("ExternalIP", ip.to_string())));
    addresses.push(address("InternalDNS", name.clone()));
    addresses.push(address("Hostname", name.clone()));
    Host {
        name,
        provider_id: format!("aws:///{}/{}", instance.zone, instance.id),
        addresses,
        instance_type: kind.name.to_owned(),
        zone: instance.zone.clone(),
        region: region.to_owned(),
        architecture: match instance.with.architecture.as_str() {
            "x86_64" => "amd64".to_owned(),
            other => other.to_owned(),
        },
        cpu: kind.vcpus,
        memory: kind.memory_mib << 20,
        gpus: kind.gpu.map_or(0, |gpu| gpu.count),
        boot_delay,
        ..Host::default()
    }
}
