//! Who owns whom, as far as it has been seen, and what follows from a change.
//!
//! The graph is a cache: it says what deserves a look. Whether an owner exists is asked of the
//! store when something is about to be deleted, unless the owner was seen to go: a UID never comes
//! back, but its kind may be gone with it and then there is nothing to ask.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fleetwright_kstore::Key;

use super::references::Family;
use crate::storage::{Deletion, Owner};

/// A UID.
pub(super) type Uid = Arc<str>;

/// An object as the graph knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// Where it is stored.
    pub key: Key,
    /// Its kind.
    pub kind: Arc<str>,
    /// Its owner references.
    pub owners: Vec<Owner>,
    /// Whether its deletion was asked for, and what its finalizers say about its dependents.
    pub deletion: Deletion,
}

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Task {
    /// Whether an object is garbage, or done waiting for its dependents.
    Collect(Uid),
    /// The dependents of an object are to be freed of it.
    Orphan(Uid),
}

/// A dependent of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dependent {
    /// Its UID.
    pub uid: Uid,
    /// Where it is stored.
    pub key: Key,
}

/// What is to be done about an object, as far as the graph can tell.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Nothing: every owner is there, or it is being deleted already.
    Nothing,
    /// Its dependents are gone: it may go.
    Release,
    /// These dependents go first.
    Await(Vec<Uid>),
    /// Its owners must be looked up.
    Verify {
        /// What there is below it.
        family: Family,
        /// The owners that were seen to go.
        gone: BTreeSet<Uid>,
    },
}

/// Who refers to an owner.
#[derive(Debug, Default)]
struct Dependents {
    uids: BTreeSet<Uid>,
    /// Whether the owner was seen to go.
    owner_is_gone: bool,
}

/// Objects by UID, and their dependents.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: BTreeMap<Uid, Node>,
    /// Kept for owners that have not been seen, too.
    dependents: BTreeMap<Uid, Dependents>,
}

impl Graph {
    /// An object as the graph knows it.
    pub(super) fn get(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// The objects of a resource.
    pub(super) fn of_resource(&self, resource: &str) -> BTreeSet<Uid> {
        let of = |node: &Node| *node.key.resource == *resource;
        self.nodes.iter().filter(|(_, node)| of(node)).map(|(uid, _)| uid.clone()).collect()
    }

    /// An object was seen, new or changed.
    pub(super) fn observe(&mut self, uid: &Uid, node: Node) -> Vec<Task> {
        let mut tasks = Vec::new();
        let old = self.nodes.remove(uid);
        let (old_owners, old_deletion) =
            old.map_or((Vec::new(), Deletion::None), |old| (old.owners, old.deletion));
        if old_owners != node.owners {
            self.unblock(&old_owners, &node.owners, &mut tasks);
            self.unlink(uid, &old_owners);
            for owner in &node.owners {
                self.dependents.entry(uid_of(owner)).or_default().uids.insert(uid.clone());
            }
            let doubtful =
                |owner: &Owner| !old_owners.contains(owner) && !self.vouches(owner, &node);
            if node.owners.iter().any(doubtful) {
                tasks.push(Task::Collect(uid.clone()));
            }
        }
        match node.deletion {
            same if same == old_deletion => {}
            Deletion::Orphan => tasks.push(Task::Orphan(uid.clone())),
            Deletion::Foreground => {
                tasks.extend(self.dependents_of(uid).map(|d| Task::Collect(d.clone())));
                tasks.push(Task::Collect(uid.clone()));
            }
            Deletion::None | Deletion::Plain => {}
        }
        self.nodes.insert(uid.clone(), node);
        tasks
    }

    /// An object is gone.
    pub(super) fn remove(&mut self, uid: &str) -> Vec<Task> {
        if let Some(dependents) = self.dependents.get_mut(uid) {
            dependents.owner_is_gone = true;
        }
        self.forget(uid)
    }

    /// An object is not followed any more.
    pub(super) fn forget(&mut self, uid: &str) -> Vec<Task> {
        let Some(node) = self.nodes.remove(uid) else { return Vec::new() };
        self.unlink(uid, &node.owners);
        let mut tasks: Vec<Task> =
            self.dependents_of(uid).map(|d| Task::Collect(d.clone())).collect();
        let waiting = node.owners.iter().filter(|owner| {
            self.get(&owner.uid).is_some_and(|node| node.deletion == Deletion::Foreground)
        });
        tasks.extend(waiting.map(|owner| Task::Collect(uid_of(owner))));
        tasks
    }

    /// What is to be done about an object; `None` if it is not known.
    pub(super) fn plan(&self, uid: &str) -> Option<Plan> {
        let node = self.get(uid)?;
        Some(match node.deletion {
            Deletion::Plain | Deletion::Orphan => Plan::Nothing,
            Deletion::Foreground => {
                let blocking: Vec<Uid> = self.blocking_dependents(uid).collect();
                if blocking.is_empty() { Plan::Release } else { Plan::Await(blocking) }
            }
            Deletion::None if node.owners.iter().all(|owner| self.vouches(owner, node)) => {
                Plan::Nothing
            }
            Deletion::None => Plan::Verify {
                family: self.family(uid),
                gone: node.owners.iter().map(uid_of).filter(|owner| self.saw_end(owner)).collect(),
            },
        })
    }

    /// The dependents of an object, as far as they have been seen.
    pub(super) fn dependents(&self, uid: &str) -> Vec<Dependent> {
        self.dependents_of(uid)
            .filter_map(|uid| Some(Dependent { uid: uid.clone(), key: self.get(uid)?.key.clone() }))
            .collect()
    }

    fn dependents_of(&self, uid: &str) -> impl Iterator<Item = &Uid> {
        self.dependents.get(uid).into_iter().flat_map(|dependents| &dependents.uids)
    }

    fn family(&self, uid: &str) -> Family {
        let waits =
            |uid: &Uid| self.get(uid).is_some_and(|node| node.deletion == Deletion::Foreground);
        if self.dependents_of(uid).any(waits) {
            Family::PerhapsCircle
        } else if self.dependents_of(uid).next().is_some() {
            Family::Parent
        } else {
            Family::Childless
        }
    }

    fn saw_end(&self, owner: &str) -> bool {
        self.dependents.get(owner).is_some_and(|dependents| dependents.owner_is_gone)
    }

    /// Dependents that hold up a foreground deletion.
    fn blocking_dependents(&self, uid: &str) -> impl Iterator<Item = Uid> {
        self.dependents_of(uid)
            .filter(move |dependent| {
                let owners = self.get(dependent).map_or(&[][..], |node| &node.owners);
                owners.iter().any(|owner| *owner.uid == *uid && owner.block_owner_deletion)
            })
            .cloned()
    }

    /// Whether an owner has been seen where the reference says, and stays. When it goes, that is
    /// seen as well, so there is no need to look it up.
    fn vouches(&self, owner: &Owner, dependent: &Node) -> bool {
        self.get(&owner.uid).is_some_and(|node| {
            node.deletion != Deletion::Foreground
                && *node.kind == *owner.kind
                && *node.key.name == *owner.name
                && group_of(&owner.api_version) == resource_group(&node.key)
                && (node.key.namespace.is_empty() || node.key.namespace == dependent.key.namespace)
        })
    }

    /// Owners that a dependent no longer holds up may be done waiting.
    fn unblock(&self, old: &[Owner], new: &[Owner], tasks: &mut Vec<Task>) {
        for owner in old.iter().filter(|owner| owner.block_owner_deletion) {
            let blocks = new.iter().any(|o| o.uid == owner.uid && o.block_owner_deletion);
            if !blocks && self.nodes.contains_key(&*owner.uid) {
                tasks.push(Task::Collect(uid_of(owner)));
            }
        }
    }

    fn unlink(&mut self, uid: &str, owners: &[Owner]) {
        for owner in owners {
            let Some(dependents) = self.dependents.get_mut(&*owner.uid) else { continue };
            dependents.uids.remove(uid);
            if dependents.uids.is_empty() {
                self.dependents.remove(&*owner.uid);
            }
        }
    }
}

fn uid_of(owner: &Owner) -> Uid {
    Uid::from(&*owner.uid)
}

fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

fn resource_group(key: &Key) -> &str {
    key.resource.split_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(uid: &str, blocks: bool) -> Owner {
        Owner {
            api_version: "apps/v1".into(),
            kind: "ReplicaSet".into(),
            name: format!("name-{uid}").into(),
            uid: uid.into(),
            block_owner_deletion: blocks,
        }
    }

    fn set(uid: &str, deletion: Deletion) -> (Uid, Node) {
        let node = Node {
            key: Key::new("apps/replicasets", "n", format!("name-{uid}")),
            kind: "ReplicaSet".into(),
            owners: Vec::new(),
            deletion,
        };
        (uid.into(), node)
    }

    fn pod(uid: &str, owners: Vec<Owner>) -> (Uid, Node) {
        let node = Node {
            key: Key::new("/pods", "n", format!("name-{uid}")),
            kind: "Pod".into(),
            owners,
            deletion: Deletion::None,
        };
        (uid.into(), node)
    }

    fn see(graph: &mut Graph, (uid, node): (Uid, Node)) -> Vec<Task> {
        graph.observe(&uid, node)
    }

    fn collect(uids: &[&str]) -> Vec<Task> {
        uids.iter().map(|uid| Task::Collect((*uid).into())).collect()
    }

    #[test]
    fn an_owner_that_was_seen_needs_no_look() {
        let mut graph = Graph::default();
        assert_eq!(see(&mut graph, set("s", Deletion::None)), []);
        assert_eq!(see(&mut graph, pod("p", vec![owner("s", true)])), []);
        assert_eq!(graph.plan("p"), Some(Plan::Nothing));
        assert_eq!(graph.remove("s"), collect(&["p"]));
        let gone = BTreeSet::from(["s".into()]);
        assert_eq!(graph.plan("p"), Some(Plan::Verify { family: Family::Childless, gone }));
    }

    #[test]
    fn an_owner_that_was_not_seen_is_looked_up_until_it_is_seen() {
        let mut graph = Graph::default();
        assert_eq!(see(&mut graph, pod("p", vec![owner("s", true)])), collect(&["p"]));
        assert_eq!(see(&mut graph, set("s", Deletion::None)), []);
        assert_eq!(graph.plan("p"), Some(Plan::Nothing));
    }

    #[test]
    fn references_that_do_not_fit_are_doubted() {
        for wrong in [
            Owner { name: "other".into(), ..owner("s", false) },
            Owner { kind: "StatefulSet".into(), ..owner("s", false) },
            Owner { api_version: "v1".into(), ..owner("s", false) },
            Owner { uid: "t".into(), ..owner("s", false) },
        ] {
            let mut graph = Graph::default();
            see(&mut graph, set("s", Deletion::None));
            assert_eq!(see(&mut graph, pod("p", vec![wrong])), collect(&["p"]));
        }
        let mut graph = Graph::default();
        see(&mut graph, set("s", Deletion::None));
        let (uid, mut elsewhere) = pod("p", vec![owner("s", false)]);
        elsewhere.key.namespace = "m".into();
        assert_eq!(graph.observe(&uid, elsewhere), collect(&["p"]));
    }

    #[test]
    fn another_served_version_of_the_owner_is_the_same_owner() {
        let mut graph = Graph::default();
        see(&mut graph, set("s", Deletion::None));
        let old = Owner { api_version: "apps/v1beta2".into(), ..owner("s", false) };
        assert_eq!(see(&mut graph, pod("p", vec![old])), []);
    }

    #[test]
    fn foreground_deletion_waits_for_those_who_block_it() {
        let mut graph = Graph::default();
        see(&mut graph, set("s", Deletion::None));
        see(&mut graph, pod("p", vec![owner("s", true)]));
        see(&mut graph, pod("q", vec![owner("s", false)]));
        assert_eq!(see(&mut graph, set("s", Deletion::Foreground)), collect(&["p", "q", "s"]));
        assert_eq!(graph.plan("s"), Some(Plan::Await(vec!["p".into()])));
        let gone = BTreeSet::new();
        let verify = Plan::Verify { family: Family::Childless, gone };
        assert_eq!(graph.plan("q"), Some(verify), "its owner is on its way out");
        assert_eq!(see(&mut graph, set("s", Deletion::Foreground)), [], "nothing new");
        assert_eq!(graph.remove("p"), collect(&["s"]));
        assert_eq!(graph.plan("s"), Some(Plan::Release));
    }

    #[test]
    fn a_dependent_may_let_its_owner_go() {
        for changed in [vec![], vec![owner("s", false)]] {
            let mut graph = Graph::default();
            see(&mut graph, set("s", Deletion::Foreground));
            see(&mut graph, pod("p", vec![owner("s", true)]));
            assert!(see(&mut graph, pod("p", changed)).contains(&Task::Collect("s".into())));
            assert_eq!(graph.plan("s"), Some(Plan::Release));
        }
    }

    #[test]
    fn orphaning_begins_once_and_knows_the_dependents() {
        let mut graph = Graph::default();
        see(&mut graph, set("s", Deletion::None));
        let (uid, node) = pod("p", vec![owner("s", true)]);
        let key = node.key.clone();
        graph.observe(&uid, node);
        assert_eq!(see(&mut graph, set("s", Deletion::Orphan)), [Task::Orphan("s".into())]);
        assert_eq!(see(&mut graph, set("s", Deletion::Orphan)), []);
        assert_eq!(graph.dependents("s"), [Dependent { uid, key }]);
        assert_eq!(graph.plan("s"), Some(Plan::Nothing));
    }

    #[test]
    fn circles_of_foreground_deletions_are_seen() {
        let mut graph = Graph::default();
        let (a, mut first) = set("a", Deletion::None);
        first.owners = vec![owner("b", true)];
        let (b, mut second) = set("b", Deletion::Foreground);
        second.owners = vec![owner("a", true)];
        graph.observe(&b, second);
        graph.observe(&a, first);
        assert_eq!(
            graph.plan("a"),
            Some(Plan::Verify { family: Family::PerhapsCircle, gone: BTreeSet::new() })
        );
    }

    #[test]
    fn the_end_of_an_owner_is_remembered_while_somebody_refers_to_it() {
        let mut graph = Graph::default();
        see(&mut graph, set("s", Deletion::None));
        see(&mut graph, pod("p", vec![owner("s", true)]));
        graph.remove("s");
        assert!(graph.saw_end("s"));
        graph.remove("p");
        assert!(!graph.saw_end("s"));
        see(&mut graph, set("t", Deletion::None));
        see(&mut graph, pod("q", vec![owner("t", true)]));
        assert_eq!(graph.forget("t"), collect(&["q"]));
        assert!(!graph.saw_end("t"), "it is only out of sight");
    }

    #[test]
    fn nothing_is_left_of_what_is_gone() {
        let mut graph = Graph::default();
        see(&mut graph, set("s", Deletion::None));
        see(&mut graph, pod("p", vec![owner("s", true)]));
        assert_eq!(graph.of_resource("/pods"), BTreeSet::from(["p".into()]));
        graph.remove("p");
        graph.remove("s");
        assert!(graph.nodes.is_empty() && graph.dependents.is_empty());
    }
}
