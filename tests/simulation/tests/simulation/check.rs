//! What must hold at every revision of the API and every change of the cloud.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use fleetwright_apiserver::Server;
use fleetwright_cloud::MACHINE_UID_TAG;
use fleetwright_simcloud::aws::model::{
    Change, Event,
    instance::{Instance, InstanceState},
};
use tokio::time::Instant;

use crate::{
    mirror::{Machine, Mirror, News},
    repairs::Repairs,
    scenario::{SETS, is_spot},
    traffic::Request,
};

/// A set may have as many Machines as it had to have within this time: deletions take a while.
const MEMORY: Duration = Duration::from_mins(2);
/// EC2 allows this many instances of a spread group in one zone.
const SPREAD: usize = 7;

/// An instance, and whose it is.
struct Known {
    uid: Option<String>,
    instance: Arc<Instance>,
}

/// What is known, and what went wrong.
pub(crate) struct Checker {
    pub(crate) mirror: Mirror,
    instances: BTreeMap<String, Known>,
    by_uid: BTreeMap<String, BTreeSet<String>>,
    /// Who was to be launched under a token as which of how many.
    intents: BTreeMap<(String, u32), String>,
    /// Instances that somebody else ended.
    struck: BTreeSet<String>,
    /// What each set had to have, and until when.
    wanted: BTreeMap<String, Vec<(u32, Option<Instant>)>>,
    /// Creations of Machines whose outcome their sender may not know.
    excused: u32,
    leader: Option<String>,
    changes_of_leader: Vec<Instant>,
    repairs: Repairs,
    groups: BTreeSet<String>,
    volumes: BTreeSet<String>,
    violations: Vec<String>,
    start: Instant,
}

impl Checker {
    pub(crate) fn new(server: &Server) -> Self {
        Self {
            mirror: Mirror::new(server),
            instances: BTreeMap::new(),
            by_uid: BTreeMap::new(),
            intents: BTreeMap::new(),
            struck: BTreeSet::new(),
            wanted: BTreeMap::new(),
            excused: 0,
            leader: None,
            changes_of_leader: Vec::new(),
            repairs: Repairs::default(),
            groups: BTreeSet::new(),
            volumes: BTreeSet::new(),
            violations: Vec::new(),
            start: Instant::now(),
        }
    }

    /// Something that must not be.
    pub(crate) fn violated(&mut self, what: &str) {
        // One of a kind is enough.
        if self.violations.len() < 20 {
            let at = self.start.elapsed().as_secs_f64();
            self.violations.push(format!("{at:.3} {what}"));
        }
    }

    pub(crate) fn violations(&self) -> &[String] {
        &self.violations
    }

    /// A request whose sender may not learn its outcome.
    pub(crate) fn excuse(&mut self, request: &Request) {
        if request.text.contains("POST") && request.text.ends_with("/machines") {
            self.excused += 1;
        }
    }

    /// Somebody else ends an instance.
    pub(crate) fn strike(&mut self, id: &str) {
        self.struck.insert(id.to_owned());
    }

    /// A process writes: only the leader may.
    pub(crate) fn acted(&mut self, replica: usize, request: &Request) {
        self.look();
        let Some(leader) = self.leader.clone().filter(|leader| !leader.is_empty()) else { return };
        if !leader.starts_with(&format!("{replica}.")) {
            self.violated(&format!(
                "L3 replica {replica} acts while {leader} leads: {}",
                request.text
            ));
        }
    }

    /// When leadership changed hands.
    pub(crate) fn changes_of_leader(&self) -> &[Instant] {
        &self.changes_of_leader
    }

    /// Who leads.
    pub(crate) fn leader(&self) -> Option<usize> {
        self.leader.as_ref()?.split('.').next()?.parse().ok()
    }

    /// Checks every new revision.
    pub(crate) fn look(&mut self) {
        while let Some(news) = self.mirror.step() {
            match news {
                News::Other => {}
                News::Machine(uid) => self.machine_changed(&uid),
                News::MachineGone(machine) => self.machine_gone(&machine),
                News::Set(name, replicas) => self.set_changed(&name, replicas),
                News::Lease(holder) => {
                    if !holder.is_empty() && self.leader.as_ref() != Some(&holder) {
                        self.changes_of_leader.push(Instant::now());
                    }
                    self.leader = Some(holder);
                }
                News::Check(name, rules) => self.repairs.check(&name, rules),
            }
            self.repairs.look(&self.mirror, Instant::now());
        }
    }

    /// A request arrives, now or later.
    pub(crate) fn sent(&mut self, request: &Request) {
        let Some(path) = request.text.strip_prefix("machinehealthcheck DELETE ") else { return };
        let Some((kind, name)) = path.rsplit_once('/') else { return };
        if kind.ends_with("/machines") {
            self.look();
            if let Some(what) = self.repairs.asks(name, &self.mirror, Instant::now()) {
                self.violated(&what);
            }
        }
    }

    fn machine_changed(&mut self, uid: &str) {
        let machine = self.mirror.machines[uid].clone();
        if let Some(intent) = machine.intent.clone() {
            let holder = self.intents.entry(intent.clone()).or_insert_with(|| uid.to_owned());
            if holder != uid {
                let holder = holder.clone();
                self.violated(&format!("S2 {intent:?} belongs to {holder} and to {uid}"));
            }
        }
        if !machine.finalizer
            && let Some(id) = self.alive(uid)
        {
            self.violated(&format!("S8 {} has {id} and no finalizer", machine.name));
        }
        if let Some(id) = &machine.instance
            && let Some(made) = self.by_uid.get(uid)
            && !made.contains(id)
        {
            self.violated(&format!("S2 {} claims {id}, but its own is {made:?}", machine.name));
        }
        if let Some(what) = self.repairs.goes(&machine, &self.mirror) {
            self.violated(&what);
        }
        self.surplus(&machine.set);
    }

    fn machine_gone(&mut self, machine: &Machine) {
        if let Some(id) = self.alive(&machine.uid) {
            self.violated(&format!("S1 {} is gone, and its instance {id} lives", machine.name));
        }
    }

    fn set_changed(&mut self, name: &str, replicas: u32) {
        let now = Instant::now();
        let wanted = self.wanted.entry(name.to_owned()).or_default();
        if wanted.last().is_some_and(|(last, _)| *last == replicas) {
            return;
        }
        if let Some((_, until)) = wanted.last_mut() {
            *until = Some(now + MEMORY);
        }
        wanted.push((replicas, None));
    }

    /// S4: never more Machines than were asked for lately.
    fn surplus(&mut self, set: &str) {
        let now = Instant::now();
        let staying = u32::try_from(self.mirror.staying(set).count()).unwrap_or(u32::MAX);
        let wanted = self.wanted.get(set).into_iter().flatten();
        let most = wanted
            .filter(|(_, until)| until.is_none_or(|until| until > now))
            .map(|(replicas, _)| *replicas)
            .max()
            .unwrap_or_default();
        if staying > most + self.excused {
            let excused = self.excused;
            self.violated(&format!("S4 {set} has {staying} of {most} ({excused} excused)"));
        }
    }

    /// The instance of a Machine that runs, or could.
    fn alive(&self, uid: &str) -> Option<String> {
        let ids = self.by_uid.get(uid)?;
        ids.iter().find(|id| self.instances.get(*id).is_some_and(lives)).cloned()
    }

    /// Checks a change in the cloud.
    pub(crate) fn changed(&mut self, event: &Event) {
        self.look();
        match &event.change {
            Change::InstanceLaunched(instance) => self.launched(instance),
            Change::InstanceState { instance, from } => self.moved(instance, *from),
            Change::Tags { resource, tags } => {
                if let Some(uid) = tags.get(MACHINE_UID_TAG)
                    && let Some(known) = self.instances.get(resource)
                    && known.uid.as_ref() != Some(uid)
                {
                    let whose = known.uid.clone();
                    self.violated(&format!("S2 {resource} is tagged for {uid}, it is {whose:?}'s"));
                }
            }
            Change::GroupCreated(group) => drop(self.groups.insert(group.name.clone())),
            Change::GroupDeleted(group) => drop(self.groups.remove(&group.name)),
            Change::VolumeCreated(volume) => drop(self.volumes.insert(volume.id.clone())),
            Change::VolumeDeleted(volume) => drop(self.volumes.remove(volume)),
            _ => {}
        }
    }

    fn launched(&mut self, instance: &Arc<Instance>) {
        let id = instance.id.clone();
        let token = instance.with.reservation.token.clone().unwrap_or_default();
        let intended = self.intents.get(&(token, instance.launch_index)).cloned();
        let uid = instance.tags.get(MACHINE_UID_TAG).cloned().or_else(|| intended.clone());
        if intended.is_none() || intended != uid {
            self.violated(&format!("S2 {id} is launched, and {uid:?} has not written it down"));
        }
        self.instances.insert(id.clone(), Known { uid: uid.clone(), instance: instance.clone() });
        let Some(uid) = uid else { return };
        let ids = self.by_uid.entry(uid.clone()).or_default();
        ids.insert(id.clone());
        if ids.len() > 1 {
            let ids = ids.clone();
            self.violated(&format!("S2 {uid} has more than one instance: {ids:?}"));
        }
        let Some(machine) = self.mirror.machines.get(&uid).cloned() else {
            return self.violated(&format!("S1 {id} is launched for {uid}, which is gone"));
        };
        if !machine.finalizer {
            self.violated(&format!("S8 {id} is launched for {}, without finalizer", machine.name));
        }
        if machine.phase == "Failed" {
            self.violated(&format!("S2 {id} is launched for {}, which Failed", machine.name));
        }
        self.placed(&machine, instance);
    }

    /// S6: where it was asked to be.
    fn placed(&mut self, machine: &Machine, instance: &Instance) {
        let group = instance.group.as_ref().map(|(_, name)| name.clone());
        if group != machine.group {
            self.violated(&format!("S6 {} asks for {:?}: {group:?}", machine.name, machine.group));
        }
        if machine.partition.is_some() && instance.partition != machine.partition {
            let (asked, got) = (machine.partition, instance.partition);
            self.violated(&format!("S6 {} asks for partition {asked:?}: {got:?}", machine.name));
        }
        let spread = SETS.iter().find(|set| set.strategy == "Spread").map(|set| set.name);
        let in_spread = self.instances.values().filter(|known| {
            known.instance.state.occupies()
                && known.instance.zone == instance.zone
                && known.instance.group.as_ref().map(|(_, name)| name.as_str()) == spread
        });
        if in_spread.count() > SPREAD {
            self.violated("S6 more than seven of a spread group in one zone");
        }
    }

    fn moved(&mut self, instance: &Arc<Instance>, from: InstanceState) {
        let id = &instance.id;
        let Some(known) = self.instances.get_mut(id) else { return };
        known.instance = instance.clone();
        let uid = known.uid.clone();
        let ends =
            matches!(instance.state, InstanceState::ShuttingDown | InstanceState::Terminated);
        let lived = !matches!(from, InstanceState::ShuttingDown | InstanceState::Terminated);
        if !ends || !lived || self.struck.contains(id) {
            return;
        }
        let machine = uid.and_then(|uid| self.mirror.machines.get(&uid).cloned());
        let Some(machine) = machine else { return };
        if !machine.deleting {
            self.violated(&format!("S3 {id} of {} is ended, which stays", machine.name));
        }
        // S7: nobody works there any more.
        let Some(node) = machine.node.as_ref().filter(|node| self.mirror.nodes.contains_key(*node))
        else {
            return;
        };
        let left = self.mirror.pods.values().filter(|pod| pod.to_move && pod.node == *node).count();
        if left > 0 {
            self.violated(&format!("S7 {id} of {} is ended with {left} pods", machine.name));
        }
    }

    /// What keeps the world from being as users want it; none when it is.
    pub(crate) fn unsettled(&mut self) -> Option<String> {
        self.look();
        for (name, replicas) in &self.mirror.sets {
            let Some(replicas) = replicas else { return Some(format!("{name} is being deleted")) };
            let staying = self.mirror.staying(name).count();
            if staying != usize::try_from(*replicas).unwrap_or_default() {
                return Some(format!("{name} has {staying} of {replicas}"));
            }
        }
        for machine in self.mirror.machines.values() {
            let Machine { name, phase, error, node, .. } = machine;
            if machine.deleting {
                return Some(format!("{name} is being deleted"));
            }
            let ids = self.by_uid.get(&machine.uid);
            let struck = ids.is_some_and(|ids| ids.iter().any(|id| self.struck.contains(id)));
            // Nobody replaces it, unless a health check looks at it.
            if struck && phase == "Failed" && !is_spot(&machine.set) {
                continue;
            }
            let runs = ids.into_iter().flatten().any(|id| {
                self.instances[id].instance.state == InstanceState::Running
                    && machine.instance.as_ref() == Some(id)
            });
            if !(runs && phase == "Running" && node.is_some()) {
                let runs = if runs { "runs" } else { "does not run" };
                return Some(format!("{name} is {phase}, its instance {runs} {node:?} {error}"));
            }
        }
        for (name, ready) in &self.mirror.groups {
            if !ready || !self.groups.contains(name) {
                return Some(format!("group {name} is not ready"));
            }
        }
        None
    }

    /// What is left; none when nothing is.
    pub(crate) fn left(&mut self) -> Option<String> {
        self.look();
        let mirror = &self.mirror;
        let machines = mirror.machines.values().map(|machine| format!("machine {}", machine.name));
        let sets = mirror.sets.keys().map(|name| format!("set {name}"));
        let groups = mirror.groups.keys().map(|name| format!("group {name}"));
        let nodes = mirror.nodes.keys().map(|name| format!("node {name}"));
        let instances = self.instances.iter().filter(|(_, known)| lives(known));
        let instances = instances.map(|(id, _)| format!("instance {id}"));
        let clouds = self.groups.iter().map(|name| format!("placement group {name}"));
        let volumes = self.volumes.iter().map(|id| format!("volume {id}"));
        let left: Vec<String> = machines
            .chain(sets)
            .chain(groups)
            .chain(nodes)
            .chain(instances)
            .chain(clouds)
            .chain(volumes)
            .collect();
        (!left.is_empty()).then(|| left.join(", "))
    }

    /// The instances that run, in order of their launch.
    pub(crate) fn running(&self) -> Vec<String> {
        self.those(|_| true)
    }

    /// The same of those that the cloud may take back, and has not said that it does.
    pub(crate) fn interruptible(&self) -> Vec<String> {
        self.those(|instance| instance.with.spot.is_some() && !self.struck.contains(&instance.id))
    }

    fn those(&self, wanted: impl Fn(&Instance) -> bool) -> Vec<String> {
        let all = self.instances.values().filter(|known| lives(known));
        let mut running: Vec<&Known> = all.filter(|known| wanted(&known.instance)).collect();
        running.sort_by_key(|known| known.instance.sequence);
        running.into_iter().map(|known| known.instance.id.clone()).collect()
    }

    /// How many Machines there ever were with an instance.
    pub(crate) fn launches(&self) -> usize {
        self.instances.len()
    }
}

fn lives(known: &Known) -> bool {
    !matches!(known.instance.state, InstanceState::ShuttingDown | InstanceState::Terminated)
}
