//! What the API holds, read from its store without a request: every revision, in order.

use std::collections::BTreeMap;

use fleetwright_api::names::{annotation, finalizer, label};
use fleetwright_apiserver::{Server, storage::Meta};
use fleetwright_kstore::{EventKind, Scope, Watch};
use fleetwright_lifecycle::{health::limit::Limit, selector::Selector};
use fleetwright_machines::health::rules::{self, is_paused};
use serde_json::Value;

/// A Machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) uid: String,
    /// Its MachineSet.
    pub(crate) set: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) deleting: bool,
    pub(crate) finalizer: bool,
    pub(crate) phase: String,
    pub(crate) error: String,
    /// Its Node.
    pub(crate) node: Option<String>,
    /// The instance that it says it has.
    pub(crate) instance: Option<String>,
    /// Token and index of the launch that it is part of.
    pub(crate) intent: Option<(String, u32)>,
    /// The group that it asks for.
    pub(crate) group: Option<String>,
    /// The partition that it asks for.
    pub(crate) partition: Option<u32>,
}

/// A pod.
#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) node: String,
    /// It must be moved away before its Node goes.
    pub(crate) to_move: bool,
}

/// What changed, for checks of each revision.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// A Machine is new or different.
    Machine(String),
    /// A Machine is gone: its last state.
    MachineGone(Box<Machine>),
    /// A set has this many replicas now.
    Set(String, u32),
    /// A lease has this holder now.
    Lease(String),
    /// A health check is new or different; none while it does nothing.
    Check(String, Option<(Selector, Limit)>),
    /// Something else, which nothing is checked about by itself.
    Other,
}

const MACHINES: &str = "machine.openshift.io/machines";
const SETS: &str = "machine.openshift.io/machinesets";
const GROUPS: &str = "machine.openshift.io/awsplacementgroups";
const CHECKS: &str = "machine.openshift.io/machinehealthchecks";
const PODS: &str = "/pods";
const NODES: &str = "/nodes";
const LEASES: &str = "coordination.k8s.io/leases";

/// The copy.
pub(crate) struct Mirror {
    watches: Vec<(&'static str, Watch<Meta>)>,
    /// By UID.
    pub(crate) machines: BTreeMap<String, Machine>,
    /// Replicas by name; none while it is being deleted.
    pub(crate) sets: BTreeMap<String, Option<u32>>,
    /// Whether each is ready.
    pub(crate) groups: BTreeMap<String, bool>,
    pub(crate) pods: BTreeMap<String, Pod>,
    /// Whether nothing speaks against each, by name.
    pub(crate) nodes: BTreeMap<String, bool>,
}

impl Mirror {
    /// A copy of an empty API.
    pub(crate) fn new(server: &Server) -> Self {
        let watches = [LEASES, SETS, CHECKS, MACHINES, GROUPS, PODS, NODES].map(|resource| {
            let storage = server.storage();
            let watch = storage.watch(&Scope::all(resource), storage.revision());
            (resource, watch.unwrap_or_else(|_| unreachable!("a watch from now on")))
        });
        Self { watches: watches.into(), ..Self::empty() }
    }

    /// A copy of nothing.
    pub(crate) fn empty() -> Self {
        Self {
            watches: Vec::new(),
            machines: BTreeMap::new(),
            sets: BTreeMap::new(),
            groups: BTreeMap::new(),
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
        }
    }

    /// The next revision.
    pub(crate) fn step(&mut self) -> Option<News> {
        for place in 0..self.watches.len() {
            let (resource, watch) = &mut self.watches[place];
            let resource = *resource;
            if let Some(event) = watch.try_next().unwrap() {
                let object: Value = serde_json::from_slice(&event.object.json).unwrap();
                let gone = event.kind == EventKind::Deleted;
                return Some(self.take(resource, &object, gone).unwrap_or(News::Other));
            }
        }
        None
    }

    fn take(&mut self, resource: &str, object: &Value, gone: bool) -> Option<News> {
        let metadata = &object["metadata"];
        let name = text(&metadata["name"]);
        let deleting = !metadata["deletionTimestamp"].is_null();
        match resource {
            MACHINES => {
                let machine = machine(object);
                if gone {
                    self.machines.remove(&machine.uid);
                    return Some(News::MachineGone(Box::new(machine)));
                }
                let uid = machine.uid.clone();
                self.machines.insert(uid.clone(), machine);
                Some(News::Machine(uid))
            }
            SETS if gone => {
                self.sets.remove(&name);
                None
            }
            SETS => {
                let replicas = number(&object["spec"]["replicas"]).unwrap_or(1);
                self.sets.insert(name.clone(), (!deleting).then_some(replicas));
                Some(News::Set(name, replicas))
            }
            CHECKS => {
                let check = serde_json::from_value(object.clone()).ok().filter(|_| !gone);
                let rules = check.filter(|check| !is_paused(check));
                let rules = rules.and_then(|check| rules::rules(&check).ok());
                Some(News::Check(name, rules.map(|rules| (rules.selector, rules.limit))))
            }
            GROUPS => {
                let conditions = object["status"]["conditions"].as_array().cloned();
                let ready = conditions
                    .unwrap_or_default()
                    .iter()
                    .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
                if gone {
                    self.groups.remove(&name)
                } else {
                    self.groups.insert(name, ready)
                };
                None
            }
            PODS => {
                let owner = text(&metadata["ownerReferences"][0]["kind"]);
                let pod = Pod {
                    node: text(&object["spec"]["nodeName"]),
                    to_move: !deleting && owner != "DaemonSet",
                };
                let uid = text(&metadata["uid"]);
                if gone {
                    self.pods.remove(&uid)
                } else {
                    self.pods.insert(uid, pod)
                };
                None
            }
            NODES => {
                if gone {
                    self.nodes.remove(&name)
                } else {
                    self.nodes.insert(name, sound(object))
                };
                None
            }
            _ if name == "fleetwright" => {
                Some(News::Lease(text(&object["spec"]["holderIdentity"])))
            }
            _ => None,
        }
    }

    /// The Machines of a set that stay.
    pub(crate) fn staying<'a>(&'a self, set: &'a str) -> impl Iterator<Item = &'a Machine> {
        self.machines.values().filter(move |machine| machine.set == set && !machine.deleting)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn number(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok())
}

/// Whether nothing speaks against a Node: it is not taken back, and nobody lost sight of it.
fn sound(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let says = |kind: &str, status: &str| {
        conditions.into_iter().flatten().any(|it| it["type"] == kind && it["status"] == status)
    };
    !says("Terminating", "True") && !says("Ready", "Unknown")
}

fn machine(object: &Value) -> Machine {
    let metadata = &object["metadata"];
    let status = &object["status"];
    let placement = &object["spec"]["providerSpec"]["value"]["placement"];
    let finalizers = metadata["finalizers"].as_array().cloned().unwrap_or_default();
    let intent = metadata["annotations"][annotation::INTENT].as_str().map(|text| {
        let intent: Value = serde_json::from_str(text).unwrap();
        (self::text(&intent["token"]), number(&intent["index"]).unwrap_or_default())
    });
    Machine {
        name: text(&metadata["name"]),
        uid: text(&metadata["uid"]),
        set: text(&metadata["labels"][label::MACHINE_SET]),
        labels: serde_json::from_value(metadata["labels"].clone()).unwrap_or_default(),
        deleting: !metadata["deletionTimestamp"].is_null(),
        finalizer: finalizers.iter().any(|name| name == finalizer::MACHINE),
        phase: text(&status["phase"]),
        error: text(&status["errorMessage"]),
        node: status["nodeRef"]["name"].as_str().map(str::to_owned),
        instance: status["providerStatus"]["instanceId"].as_str().map(str::to_owned),
        intent,
        group: placement["group"]["name"].as_str().map(str::to_owned),
        partition: number(&placement["partitionNumber"]),
    }
}
