//! `machinepool-autoscaler.json`: what cluster-autoscaler reads and does, as far as it is about
//! MachineSets.

use fleetwright_lifecycle::{
    autoscaler::{Bounds, Measure, bounds, labels, looked_after},
    quantity,
    replicas::{Replica, Set, asks_to_go_first, plan},
    selector::{Labels, Selector},
};
use serde_json::{Value, json};

use super::{
    Outcome, Runner, Use,
    aws_machineset::{days_ago, now},
    spot_autoscaler::THEIRS,
};
use crate::row::Row;

pub(super) const RUNNER: Runner = Runner {
    file: "machinepool-autoscaler.json",
    tables: &[
        ("scalingBounds", Use::Rows(scaling_bounds)),
        ("nodeGroupAdmitted.cases", Use::Rows(admitted)),
        ("normalizedProviderID", Use::NotApplicable(THEIRS)),
        ("capacity.cpu", Use::Rows(cpu)),
        ("capacity.memory", Use::Rows(memory)),
        ("capacity.gpuCount", Use::Rows(count)),
        ("capacity.maxPods", Use::Rows(count)),
        ("capacity.taints", Use::NotApplicable(THEIRS)),
        ("capacity.labels", Use::Rows(node_labels)),
        ("autoDiscovery", Use::NotApplicable(THEIRS)),
        ("deleteNodes.cases", Use::Rows(delete)),
        (
            "deleteNodes.byProviderID",
            Use::NotApplicable("machine pools: Nodes of a MachineSet are found by their Machines"),
        ),
        ("scaleSubresource", Use::Rows(scale)),
    ],
};

fn scaling_bounds(row: &Row<'_>) -> Outcome {
    // The rows have the keys of the other group.
    let annotations = row.get("annotations").as_object();
    let written = |end: &str| {
        annotations.into_iter().flatten().find(|(key, _)| key.ends_with(end))?.1.as_str()
    };
    let found = match bounds(written("min-size"), written("max-size")) {
        Ok(Bounds { min, max }) => json!([min, max, null]),
        Err(error) => json!([null, null, error.to_string()]),
    };
    Outcome::equal(&json!([row.get("min"), row.get("max"), row.get("error")]), &found)
}

fn admitted(row: &Row<'_>) -> Outcome {
    let number = |key: &str| row.get(key).as_u64().and_then(|number| u32::try_from(number).ok());
    let bounds =
        Bounds { min: number("min").unwrap_or_default(), max: number("max").unwrap_or_default() };
    let replicas = row.get("replicas").as_i64().unwrap_or_default();
    let found = looked_after(bounds, replicas, row.get("capacityKnown") == true);
    Outcome::equal(row.get("admitted"), &found.is_ok().into())
}

/// The amount of a row; one that is none is an error, and 0.
fn amount(row: &Row<'_>, measure: Measure, wanted: Option<i64>) -> Outcome {
    let found = measure.read(row.get("value").as_str());
    let (amount, failed) = (found.unwrap_or_default(), found.is_none());
    Outcome::equal(&(wanted, row.get("error") == true), &(Some(amount), failed))
}

fn text<'a>(row: &Row<'a>) -> &'a str {
    row.get("expect").as_str().unwrap_or_default()
}

fn cpu(row: &Row<'_>) -> Outcome {
    amount(row, Measure::Cpu, quantity::milli(text(row)))
}

fn memory(row: &Row<'_>) -> Outcome {
    amount(row, Measure::Bytes, text(row).parse().ok())
}

fn count(row: &Row<'_>) -> Outcome {
    amount(row, Measure::Count, text(row).parse().ok())
}

fn node_labels(row: &Row<'_>) -> Outcome {
    let found = labels(row.get("value").as_str().unwrap_or_default());
    Outcome::equal(row.get("expect"), &json!(found))
}

/// Our part of it: of the Machines of the set, the one that is marked goes, and no other.
fn delete(row: &Row<'_>) -> Outcome {
    if !row.get("error").is_null() {
        return Outcome::NotApplicable("the autoscaler refuses by itself, and asks nothing of us");
    }
    let number = |key: &str| {
        row.get(key).as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or_default()
    };
    let (nodes, gone) = (number("nodes"), number("delete"));
    let labels = Labels::from([("set".to_owned(), "set".to_owned())]);
    let selector = Selector { match_labels: labels.clone(), ..Selector::default() };
    let set = Set { uid: "set".to_owned(), replicas: nodes - gone, selector, ..Set::default() };
    // The last ones are marked: nothing else speaks for them.
    let machines: Vec<Replica> = (0..nodes)
        .map(|place| Replica {
            name: format!("m-{place}"),
            labels: labels.clone(),
            controller: Some("set".to_owned()),
            delete_first: asks_to_go_first(|key| {
                let marked = key == "machine.openshift.io/delete-machine" && place >= nodes - gone;
                marked.then_some("2026-01-01T00:00:00Z")
            }),
            created: Some(days_ago(1)),
            has_node: true,
            ..Replica::default()
        })
        .collect();
    let mut found = plan(&set, &machines, now()).delete;
    found.sort_unstable();
    Outcome::equal(&(nodes - gone..nodes).collect::<Vec<_>>(), &found)
}

/// The scale subresource of MachineSets: where numbers are read and written, and a 0 that stays.
fn scale(row: &Row<'_>) -> Outcome {
    let definitions = fleetwright_api::crds();
    let sets = definitions.iter().find(|crd| crd.spec.names.plural == "machinesets");
    let versions = sets.into_iter().flat_map(|sets| &sets.spec.versions);
    let scales: Vec<Value> = versions
        .map(|version| json!(version.subresources.as_ref().and_then(|it| it.scale.as_ref())))
        .collect();
    let wanted = json!({
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.labelSelector",
    });
    if scales.is_empty() || scales.iter().any(|scale| *scale != wanted) {
        return Outcome::Failed(format!("found {scales:?}"));
    }
    let empty = fleetwright_api::machine::MachineSetSpec {
        replicas: Some(0),
        ..fleetwright_api::machine::MachineSetSpec::default()
    };
    let explicit = json!(empty)["replicas"] == json!(0);
    Outcome::equal(row.get("zeroMustBeExplicit"), &explicit.into())
}
