//! Whose place a new Machine takes, and since when that one goes.
//!
//! It is written on the new Machine, so that the time until there is a working one again can be
//! told by whoever leads then, and without a search.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright_api::{machine::Machine, names::annotation};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use super::decide::{controller_of, node_name};
use crate::machine::notice;

/// A place that a Machine leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vacancy {
    /// When its end began: when the cloud told of it, else when it was deleted.
    pub since: Timestamp,
    /// Its name.
    pub name: String,
}

impl Vacancy {
    /// The annotations of the Machine that takes the place.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            (annotation::REPLACES.to_owned(), self.name.clone()),
            (annotation::REPLACES_SINCE.to_owned(), self.since.to_string()),
        ])
    }
}

/// The places that Machines of a set leave and that no other takes yet, the oldest first. `node`
/// finds the Node of a Machine.
pub fn vacancies<N: AsRef<Node>>(
    uid: &str,
    machines: &[&Machine],
    node: impl Fn(&Machine) -> Option<N>,
) -> Vec<Vacancy> {
    let of_set = |machine: &&&Machine| controller_of(machine).is_some_and(|owner| owner.uid == uid);
    let mut left: Vec<Vacancy> =
        machines.iter().filter(of_set).filter_map(|machine| vacancy(machine, &node)).collect();
    if left.is_empty() {
        return left;
    }
    let taken: BTreeSet<&str> = machines
        .iter()
        .filter_map(|machine| machine.annotations().get(annotation::REPLACES))
        .map(String::as_str)
        .collect();
    left.retain(|vacancy| !taken.contains(vacancy.name.as_str()));
    left.sort_by(|one, other| (one.since, &one.name).cmp(&(other.since, &other.name)));
    left
}

/// The place that a Machine leaves. One that never worked leaves that which it was to take.
fn vacancy<N: AsRef<Node>>(
    machine: &Machine,
    node: impl Fn(&Machine) -> Option<N>,
) -> Option<Vacancy> {
    let deleted = machine.metadata.deletion_timestamp.as_ref()?.0;
    let since = if node_name(machine).is_some() {
        let told = node(machine).and_then(|node| notice::of(node.as_ref()));
        told.map_or(deleted, |notice| notice.written.min(deleted))
    } else {
        since(machine)?
    };
    Some(Vacancy { since, name: machine.name_any() })
}

/// Since when the place that a Machine takes is empty.
pub fn since(machine: &Machine) -> Option<Timestamp> {
    machine.annotations().get(annotation::REPLACES_SINCE)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    fn machine(name: &str, deleted: Option<&str>, node: bool, annotations: &Value) -> Machine {
        let node = if node { json!({"name": format!("node-{name}")}) } else { Value::Null };
        serde_json::from_value(json!({
            "metadata": {
                "name": name, "deletionTimestamp": deleted, "annotations": annotations,
                "ownerReferences": [{"apiVersion": "machine.openshift.io/v1beta1", "controller": true,
                    "kind": "MachineSet", "name": "s", "uid": "s"}],
            },
            "status": {"nodeRef": node},
        }))
        .unwrap()
    }

    fn told() -> Arc<Node> {
        let node = json!({"metadata": {"name": "n"}, "status": {"conditions": [{
            "type": "Terminating", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]}});
        Arc::new(serde_json::from_value(node).unwrap())
    }

    fn found(machines: &[Machine]) -> Vec<(String, String)> {
        let machines: Vec<&Machine> = machines.iter().collect();
        let node = |machine: &Machine| (machine.name_any() == "told").then(told);
        let left = vacancies("s", &machines, node);
        left.into_iter().map(|left| (left.name, left.since.to_string())).collect()
    }

    #[test]
    fn places_are_left_by_those_that_worked_and_go() {
        let none = json!({});
        let deleted = Some("2026-01-01T00:00:05Z");
        let left = found(&[
            machine("stays", None, true, &none),
            machine("deleted", deleted, true, &none),
            machine("told", deleted, true, &none),
            machine("never-worked", deleted, false, &none),
        ]);
        let pair = |name: &str, since: &str| (name.to_owned(), since.to_owned());
        assert_eq!(
            left,
            [pair("told", "2026-01-01T00:00:00Z"), pair("deleted", "2026-01-01T00:00:05Z")]
        );
    }

    #[test]
    fn a_place_is_taken_once_and_handed_on_by_those_that_fail() {
        let deleted = Some("2026-01-01T00:00:05Z");
        let old = machine("old", deleted, true, &json!({}));
        let left = found(std::slice::from_ref(&old));
        let vacancy = Vacancy { name: left[0].0.clone(), since: left[0].1.parse().unwrap() };
        let taken = json!(vacancy.annotations());
        assert!(found(&[old.clone(), machine("new", None, false, &taken)]).is_empty());
        // The new one fails: the next is waited for since the first began to go.
        let failed = machine("new", Some("2026-01-01T00:09:00Z"), false, &taken);
        let left = found(&[old, failed]);
        assert_eq!(left, [("new".to_owned(), "2026-01-01T00:00:05Z".to_owned())]);
    }

    #[test]
    fn what_is_written_can_be_read() {
        let vacancy = Vacancy { name: "m".to_owned(), since: Timestamp::UNIX_EPOCH };
        let taken = machine("new", None, true, &json!(vacancy.annotations()));
        assert_eq!(since(&taken), Some(Timestamp::UNIX_EPOCH));
        assert_eq!(
            since(&machine("new", None, true, &json!({annotation::REPLACES_SINCE: "?"}))),
            None
        );
    }
}
