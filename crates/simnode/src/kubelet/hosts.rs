//! Which hosts there are, and what their kubelets have done so far.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use fleetwright_clock::{Clock, Random};
use fleetwright_runtime::{ObjectKey, WorkQueue};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::{
    Work,
    host::Host,
    node::{self, NETWORKS},
    pod::Surroundings,
};
use crate::{
    cluster::{after, until},
    facts,
    settings::KubeletSettings,
};

/// Tells the simulation what happens to machines. Clones are the same handle. Nothing waits:
/// kubelets and controllers react in their own time.
#[derive(Clone)]
pub struct Hosts {
    shared: Arc<Mutex<Shared>>,
    queue: WorkQueue<Work>,
    clock: Clock,
    random: Random,
    /// Told the names of machines that were switched on or off.
    changed: mpsc::UnboundedSender<String>,
}

#[derive(Default)]
struct Shared {
    hosts: BTreeMap<String, State>,
    /// Machines that are gone for ever and whose Nodes may still be there.
    gone: BTreeSet<String>,
    networks: BTreeSet<u16>,
}

struct State {
    host: Arc<Host>,
    power: Power,
    boot_id: String,
    /// When this boot's kubelet registered.
    registered: Option<Timestamp>,
    renewed: Option<Timestamp>,
    posted: Option<Timestamp>,
    network: Option<u16>,
    /// The last part of the addresses of pods, by UID.
    addresses: BTreeMap<String, u8>,
}

#[derive(Clone, Copy, PartialEq)]
enum Power {
    Off,
    /// The kubelet runs from then on.
    On(Timestamp),
}

/// What the kubelet of a host is to do now.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Duties {
    pub(super) host: Arc<Host>,
    pub(super) boot_id: String,
    pub(super) up_since: Timestamp,
    pub(super) register: bool,
    /// Report the status, with this readiness.
    pub(super) post: Option<bool>,
    pub(super) renew: bool,
}

/// What to do about a host.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Plan {
    /// Nothing until somebody says something.
    Rest,
    /// Nothing yet.
    Wait(Duration),
    /// This, now.
    Act(Box<Duties>),
}

/// What has been done, to be noted.
pub(super) enum Done {
    Registered,
    Posted,
    Renewed,
}

impl Hosts {
    pub(super) fn new(
        queue: WorkQueue<Work>,
        clock: Clock,
        random: Random,
        changed: mpsc::UnboundedSender<String>,
    ) -> Self {
        Self { shared: Arc::default(), queue, clock, random, changed }
    }

    /// A machine was switched on: its kubelet runs after the boot delay.
    pub fn started(&self, host: Host) {
        let name = host.name.clone();
        let up = after(self.clock.now(), host.boot_delay);
        let boot_id = self.random.uuid().to_string();
        let mut shared = self.shared.lock();
        shared.gone.remove(&name);
        let known = shared.hosts.remove(&name);
        let (network, addresses) =
            known.map_or((None, BTreeMap::new()), |known| (known.network, known.addresses));
        let state = State {
            host: Arc::new(host),
            power: Power::On(up),
            boot_id,
            registered: None,
            renewed: None,
            posted: None,
            network,
            addresses,
        };
        shared.hosts.insert(name.clone(), state);
        drop(shared);
        self.tell(&name);
        self.queue.add(Work::Node(name));
    }

    /// Nobody listens where no agent runs.
    fn tell(&self, name: &str) {
        let _ = self.changed.send(name.to_owned());
    }

    /// A machine was switched off, or froze: its kubelet is silent.
    pub fn stopped(&self, name: &str) {
        if let Some(state) = self.shared.lock().hosts.get_mut(name) {
            state.power = Power::Off;
        }
        self.tell(name);
    }

    /// A machine was switched off and on again.
    pub fn restarted(&self, name: &str) {
        let host = self.shared.lock().hosts.get(name).map(|state| Host::clone(&state.host));
        if let Some(host) = host {
            self.started(host);
        }
    }

    /// A machine is gone for ever. Its Node goes when somebody removes it, or when the cloud's
    /// node controller finds the machine gone.
    pub fn gone(&self, name: &str) {
        let mut shared = self.shared.lock();
        if let Some(state) = shared.hosts.remove(name)
            && let Some(network) = state.network
        {
            shared.networks.remove(&network);
        }
        shared.gone.insert(name.to_owned());
        drop(shared);
        self.tell(name);
        self.queue.add(Work::Gone(name.to_owned()));
    }

    /// How many machines are known, switched on or not.
    pub fn len(&self) -> usize {
        self.shared.lock().hosts.len()
    }

    /// Whether there are no machines.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The machine and its boot, if its kubelet has registered and runs.
    pub(super) fn running(&self, name: &str) -> Option<(Arc<Host>, String)> {
        let shared = self.shared.lock();
        let state = shared.hosts.get(name)?;
        let runs = state.power != Power::Off && state.registered.is_some();
        runs.then(|| (Arc::clone(&state.host), state.boot_id.clone()))
    }

    pub(super) fn is_gone(&self, name: &str) -> bool {
        self.shared.lock().gone.contains(name)
    }

    /// The Node of a machine is gone too.
    pub(super) fn forget(&self, name: &str) {
        self.shared.lock().gone.remove(name);
    }

    pub(super) fn plan(&self, name: &str, node: Option<&Node>, settings: &KubeletSettings) -> Plan {
        let now = self.clock.now();
        let shared = self.shared.lock();
        let Some(state) = shared.hosts.get(name) else { return Plan::Rest };
        let Power::On(up) = state.power else { return Plan::Rest };
        if now < up {
            return Plan::Wait(until(now, up));
        }
        state.plan(node, up, settings, now)
    }

    /// Notes what was done, unless the machine has been switched off and on since.
    pub(super) fn note(&self, name: &str, boot_id: &str, done: &Done) {
        let now = self.clock.now();
        let mut shared = self.shared.lock();
        let Some(state) = shared.hosts.get_mut(name).filter(|state| state.boot_id == boot_id)
        else {
            return;
        };
        match done {
            Done::Registered => {
                state.registered = Some(now);
                self.tell(name);
            }
            Done::Posted => state.posted = Some(now),
            Done::Renewed => state.renewed = Some(now),
        }
    }

    /// The network for the pods of a host: what its Node has, or the first that is free.
    pub(super) fn network(&self, name: &str, node: Option<&Node>) -> Option<u16> {
        let mut shared = self.shared.lock();
        let known = shared.hosts.get(name)?.network;
        let cidr = node.and_then(|node| node.spec.as_ref()?.pod_cidr.as_deref());
        let network = cidr
            .and_then(node::network_of)
            .or(known)
            .or_else(|| (0..NETWORKS).find(|network| !shared.networks.contains(network)))?;
        shared.networks.insert(network);
        if let Some(state) = shared.hosts.get_mut(name) {
            state.network = Some(network);
        }
        Some(network)
    }

    /// A Node that exists keeps its network to itself.
    pub(super) fn occupy(&self, node: &Node) {
        let cidr = node.spec.as_ref().and_then(|spec| spec.pod_cidr.as_deref());
        if let Some(network) = cidr.and_then(node::network_of) {
            self.shared.lock().networks.insert(network);
        }
    }

    /// What a pod sees of its host; `None` while no kubelet runs there.
    pub(super) fn surroundings(&self, pod: &Pod) -> Option<Surroundings> {
        let now = self.clock.now();
        let name = facts::pod::node_name(pod)?;
        let mut shared = self.shared.lock();
        let state = shared.hosts.get_mut(name)?;
        let Power::On(up_since) = state.power else { return None };
        if now < up_since || state.registered.is_none() {
            return None;
        }
        Some(Surroundings {
            up_since,
            host_ip: state.host.address("InternalIP").map(ToOwned::to_owned),
            pod_ip: state.address_of(pod),
        })
    }

    /// A pod is gone: its address is free.
    pub(super) fn release(&self, pod: &Pod) {
        let Some(name) = facts::pod::node_name(pod) else { return };
        if let Some(state) = self.shared.lock().hosts.get_mut(name) {
            state.addresses.remove(facts::uid(&pod.metadata));
        }
    }

    /// Looks at a pod soon.
    pub(super) fn look_at(&self, pod: &Pod) {
        self.queue.add(Work::Pod(ObjectKey::of(pod)));
    }
}

impl State {
    fn plan(
        &self,
        node: Option<&Node>,
        up_since: Timestamp,
        settings: &KubeletSettings,
        now: Timestamp,
    ) -> Plan {
        let mut duties = Duties {
            host: Arc::clone(&self.host),
            boot_id: self.boot_id.clone(),
            up_since,
            register: false,
            post: None,
            renew: false,
        };
        let Some(registered) = self.registered else {
            duties.register = true;
            return Plan::Act(Box::new(duties));
        };
        // A kubelet registers once. When its Node is deleted it has nothing to report to.
        if node.is_none() {
            return Plan::Wait(settings.lease_interval);
        }
        let due = |last: Option<Timestamp>, every| last.map(|last| after(last, every));
        let ready_at = after(registered, settings.ready_delay);
        let ready = now >= ready_at;
        let posted_ready = node.is_some_and(is_ready) == ready;
        let next_post = due(self.posted, settings.status_interval).unwrap_or(now);
        let next_renewal = due(self.renewed, settings.lease_interval).unwrap_or(now);
        if !posted_ready || now >= next_post {
            duties.post = Some(ready);
        }
        duties.renew = now >= next_renewal;
        if duties.renew || duties.post.is_some() {
            return Plan::Act(Box::new(duties));
        }
        let pending = (!ready).then_some(ready_at);
        let next = [next_post, next_renewal].into_iter().chain(pending).min().unwrap_or(now);
        Plan::Wait(until(now, next))
    }

    fn address_of(&mut self, pod: &Pod) -> Option<String> {
        let network = self.network?;
        let known = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref());
        let known = known.and_then(|ip| {
            let number = ip.rsplit('.').next()?.parse().ok()?;
            (node::pod_address(network, number) == ip).then_some(number)
        });
        let uid = facts::uid(&pod.metadata);
        let number = match (self.addresses.get(uid), known) {
            (Some(number), _) => *number,
            (None, Some(number)) => number,
            (None, None) => {
                let taken: BTreeSet<u8> = self.addresses.values().copied().collect();
                (1..=254).find(|number| !taken.contains(number))?
            }
        };
        self.addresses.insert(uid.to_owned(), number);
        Some(node::pod_address(network, number))
    }
}

/// Whether a Node says that it is ready.
pub(crate) fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|known| known.type_ == node::READY && known.status == "True")
}
