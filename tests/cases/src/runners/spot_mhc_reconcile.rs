//! `spot-mhc-reconcile.json`: what a health check does about its Machines.

use std::{sync::Arc, time::Duration};

use fleetwright_api::machine::{Machine, MachineHealthCheck};
use fleetwright_lifecycle::{
    backoff::{Settings, State},
    health::{Evaluation, evaluate},
};
use fleetwright_machines::{
    health::{
        decide::{Decision, Sick, decide},
        external::request_kind,
        rules::{is_paused, rules},
        status::{Counted, find},
        target::{Treatment, target},
    },
    set::decide::controller_of,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use super::{Outcome, Runner, Use};
use crate::row::Row;

pub(super) const RUNNER: Runner = Runner {
    file: "spot-mhc-reconcile.json",
    tables: &[
        ("reconcile.cases", Use::Rows(reconcile)),
        ("externalTemplate.cases", Use::Rows(external)),
        ("controllerOwner.cases", Use::Rows(controller_owner)),
        ("remediate.cases", Use::Rows(remediate)),
        ("selector.cases", Use::Rows(selector)),
        ("batch.cases", Use::Rows(batch)),
        ("minDuration.cases", Use::Rows(soonest)),
    ],
};

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH + Duration::from_secs(2_000_000_000)
}

fn ago(seconds: u64) -> Timestamp {
    now() - Duration::from_secs(seconds)
}

/// The check that the rows assume.
fn check() -> Value {
    json!({
        "metadata": {"name": "c", "namespace": "n"},
        "spec": {
            "selector": {"matchLabels": {"foo": "bar"}},
            "nodeStartupTimeout": "15m",
            "unhealthyConditions": [
                {"type": "Ready", "status": "Unknown", "timeout": "300s"},
                {"type": "Ready", "status": "False", "timeout": "300s"},
            ],
        },
    })
}

fn node(ready: &str, age: u64) -> Value {
    json!({
        "metadata": {"name": "node"},
        "status": {"conditions": [
            {"type": "Ready", "status": ready, "lastTransitionTime": ago(age)},
        ]},
    })
}

fn machine(owned: bool) -> Value {
    let owner = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "name": "s",
        "uid": "u", "controller": true,
    });
    let owners = if owned { vec![owner] } else { Vec::new() };
    json!({
        "metadata": {"name": "m", "labels": {"foo": "bar"}, "ownerReferences": owners},
        "spec": {},
        "status": {"phase": "Running", "nodeRef": {"kind": "Node", "name": "node"},
            "lastUpdated": now()},
    })
}

/// What the controller would do about a check and its Machines.
struct Done {
    evaluation: Evaluation,
    decision: Decision,
}

impl Done {
    fn run(check: &Value, machines: &[(Value, Option<Value>)]) -> Result<Self, String> {
        let text = |error: serde_json::Error| error.to_string();
        let check: MachineHealthCheck = serde_json::from_value(check.clone()).map_err(text)?;
        let rules = rules(&check).map_err(|error| error.to_string())?;
        let mut found: Vec<(Arc<Machine>, _)> = Vec::new();
        for (machine, node) in machines {
            let machine: Machine = serde_json::from_value(machine.clone()).map_err(text)?;
            let node: Option<Node> =
                node.clone().map(serde_json::from_value).transpose().map_err(text)?;
            let labels = machine.metadata.labels.clone().unwrap_or_default();
            if rules.selector.matches(&labels) {
                let target = target(&machine, node.as_ref());
                found.push((Arc::new(machine), target));
            }
        }
        let evaluation = evaluate(&rules.check, found.iter().map(|(_, target)| target), now());
        let sick: Vec<Sick<Arc<Machine>>> = evaluation
            .unhealthy
            .iter()
            .map(|(place, cause)| Sick {
                machine: found[*place].0.clone(),
                cause: cause.clone(),
                template: String::new(),
            })
            .collect();
        let counted = Counted { total: evaluation.total, healthy: evaluation.healthy };
        let mut memory = State::default();
        let backoff = (&Settings::default(), &mut memory);
        let decision = decide(&check, &rules, counted, &sick, backoff, || 0.0, now());
        Ok(Self { evaluation, decision })
    }

    fn events(&self) -> Vec<&'static str> {
        let mut events: Vec<&str> =
            self.evaluation.doubtful.iter().map(|_| "DetectedUnhealthy").collect();
        events.extend(self.decision.treatments.iter().filter_map(
            |(_, treatment)| match treatment {
                Treatment::Delete => Some("MachineDeleted"),
                Treatment::NoController => Some("SkippedNoController"),
                Treatment::Annotate => Some("ExternalAnnotationAdded"),
                Treatment::None | Treatment::Ask => None,
            },
        ));
        events.extend(self.decision.restricted.as_ref().map(|_| "RemediationRestricted"));
        events
    }

    fn status(&self) -> Value {
        let status = &self.decision.status;
        let mut told = json!({
            "expected": status.expected_machines,
            "healthy": status.current_healthy,
            "remediationsAllowed": status.remediations_allowed,
        });
        if let Some(condition) = find(status, "RemediationAllowed") {
            told["RemediationAllowed"] = json!(condition.status);
            let more = [
                ("severity", json!(condition.severity)),
                ("reason", json!(condition.reason)),
                ("message", json!(condition.message)),
            ];
            for (name, value) in more.into_iter().filter(|(_, value)| !value.is_null()) {
                told[name] = value;
            }
        }
        told
    }
}

fn reconcile(row: &Row<'_>) -> Outcome {
    let mut check = check();
    if !row.get("maxUnhealthy").is_null() {
        check["spec"]["maxUnhealthy"] = row.get("maxUnhealthy").clone();
    }
    check["metadata"]["annotations"] = row.get("mhcAnnotations").clone();
    let given = row.get("machine");
    let mut machines = Vec::new();
    if !given.is_null() {
        let mut machine = machine(given["owner"] == true);
        machine["metadata"]["annotations"] = given["annotations"].clone();
        if given["deleting"] == true {
            machine["metadata"]["deletionTimestamp"] = json!(now());
        }
        let (ready, age) = match given["nodeReady"].as_str().unwrap_or_default() {
            "Unknown-long" => ("Unknown", 400),
            "Unknown-now" => ("Unknown", 0),
            "False-long" => ("False", 400),
            ready => (ready, 400),
        };
        machines.push((machine, Some(node(ready, age))));
    }
    let read = serde_json::from_value::<MachineHealthCheck>(check.clone());
    if read.is_ok_and(|check| is_paused(&check)) {
        return Outcome::equal(&json!([[], {}]), &json!([row.get("events"), row.get("status")]));
    }
    let done = match Done::run(&check, &machines) {
        Ok(done) => done,
        Err(error) => return Outcome::Failed(error),
    };
    // A check that is short-circuited waits for a change; upstream asked again after 1 ms.
    let result = match done.evaluation.next_check {
        Some(wait) => format!("requeue ~{}s (+1s)", wait.as_secs() - 1),
        None if done.decision.restricted.is_some() => {
            row.get("result").as_str().unwrap_or_default().to_owned()
        }
        None => "done".to_owned(),
    };
    let wanted = json!([row.get("result"), row.get("events"), row.get("status")]);
    Outcome::equal(&wanted, &json!([result, done.events(), done.status()]))
}

fn external(row: &Row<'_>) -> Outcome {
    let table = &row.context()["externalTemplate"];
    let mut check = check();
    check["spec"]["remediationTemplate"] = json!({
        "apiVersion": table["template"]["apiVersion"], "kind": table["template"]["kind"],
        "name": "t",
    });
    let name = row.get("name").as_str().unwrap_or_default();
    let healthy = name.starts_with("node healthy");
    let node = if healthy { node("True", 400) } else { node("Unknown", 400) };
    let done = match Done::run(&check, &[(machine(true), Some(node))]) {
        Ok(done) => done,
        Err(error) => return Outcome::Failed(error),
    };
    let kind = request_kind(table["template"]["kind"].as_str().unwrap_or_default());
    if table["request"]["kind"] != kind {
        return Outcome::Failed(format!("the request is of kind {kind}"));
    }
    // A request that exists is left, and one of a healthy Machine is withdrawn.
    let asked = done.decision.treatments.iter().any(|(_, how)| *how == Treatment::Ask);
    let deletes = done.decision.treatments.iter().any(|(_, how)| *how == Treatment::Delete);
    let found = match (asked, healthy, name.ends_with("request exists")) {
        (true, false, true) => "no change",
        (true, false, false) if !deletes => "request created, machine NOT deleted",
        (false, true, true) => "request deleted",
        _ => "something else",
    };
    let mut status = done.status();
    if let Some(status) = status.as_object_mut() {
        status.remove("RemediationAllowed");
    }
    Outcome::equal(&json!([row.get("expect"), row.get("status")]), &json!([found, status]))
}

fn controller_owner(row: &Row<'_>) -> Outcome {
    let mut machine = machine(false);
    let owners = row.get("ownerReferences").as_array().into_iter().flatten();
    let owners: Vec<Value> = owners
        .map(|owner| {
            let mut owner = owner.clone();
            for (field, value) in [("apiVersion", "v1"), ("name", "o"), ("uid", "u")] {
                owner[field] = json!(value);
            }
            owner
        })
        .collect();
    machine["metadata"]["ownerReferences"] = json!(owners);
    match serde_json::from_value::<Machine>(machine) {
        Ok(machine) => Outcome::equal(row.get("expect"), &json!(controller_of(&machine).is_some())),
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

fn remediate(row: &Row<'_>) -> Outcome {
    let name = row.get("name").as_str().unwrap_or_default();
    let (mut machine, mut node) = (machine(true), node("Unknown", 400));
    if name.contains("node-role.kubernetes.io/master") {
        node["metadata"]["labels"] = json!({"node-role.kubernetes.io/master": ""});
    }
    if name.contains("role label master") {
        machine["metadata"]["labels"]["machine.openshift.io/cluster-api-machine-role"] =
            json!("master");
    }
    match Done::run(&check(), &[(machine, Some(node))]) {
        Ok(done) => {
            let deleted = done.decision.treatments.iter().any(|(_, how)| *how == Treatment::Delete);
            let wanted = json!([row.get("deleted"), row.get("events")]);
            Outcome::equal(&wanted, &json!([deleted, done.events()]))
        }
        Err(error) => Outcome::Failed(error),
    }
}

fn selector(row: &Row<'_>) -> Outcome {
    let mut check = check();
    check["spec"]["selector"] = json!({"matchLabels": row.get("selector")});
    match Done::run(&check, &[(machine(true), Some(node("True", 400)))]) {
        Ok(done) => Outcome::equal(row.get("match"), &json!(done.evaluation.total == 1)),
        Err(error) => Outcome::Failed(error),
    }
}

/// These rows tell their Machines in words: `one Ready=False 400s`, `one without node 9m old`.
fn batch(row: &Row<'_>) -> Outcome {
    let mut check = check();
    check["spec"]["nodeStartupTimeout"] = json!("10m");
    let mut machines = Vec::new();
    for clause in row.get("name").as_str().unwrap_or_default().split(", ") {
        let words: Vec<&str> = clause.split_whitespace().collect();
        let number = |word: &str, unit: char| word.strip_suffix(unit)?.parse::<u64>().ok();
        match words.as_slice() {
            ["one", "without", "node", age, ..] => {
                let Some(minutes) = number(age, 'm') else {
                    return Outcome::Failed(format!("a clause that is new: {clause}"));
                };
                let mut machine = machine(true);
                machine["status"]["nodeRef"] = Value::Null;
                machine["status"]["lastUpdated"] = json!(ago(minutes * 60));
                machines.push((machine, None));
            }
            ["one", condition, rest @ ..] => {
                let age = rest.first().and_then(|age| number(age, 's')).unwrap_or(0);
                let ready = condition.trim_start_matches("Ready=");
                machines.push((machine(true), Some(node(ready, age))));
            }
            _ => return Outcome::Failed(format!("a clause that is new: {clause}")),
        }
    }
    match Done::run(&check, &machines) {
        Ok(Done { evaluation, .. }) => Outcome::equal(
            &json!([row.get("currentHealthy"), row.get("needRemediation"), row.get("nextChecks")]),
            &json!([evaluation.healthy, evaluation.unhealthy.len(), evaluation.doubtful.len()]),
        ),
        Err(error) => Outcome::Failed(error),
    }
}

/// The soonest of several times: Machines that turn unhealthy after so many seconds.
fn soonest(row: &Row<'_>) -> Outcome {
    let waits = row.get("in").as_array().into_iter().flatten().filter_map(Value::as_u64);
    let machines: Vec<_> = waits
        // One second is added to each, so that the time is over for certain.
        .map(|wait| (machine(true), Some(node("False", 300 + 1 - wait))))
        .collect();
    match Done::run(&check(), &machines) {
        Ok(Done { evaluation, .. }) => {
            let next = evaluation.next_check.unwrap_or_default();
            Outcome::equal(&row.get("out").as_u64(), &Some(next.as_secs()))
        }
        Err(error) => Outcome::Failed(error),
    }
}
