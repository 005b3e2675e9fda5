//! `spot-mhc-needs-remediation.json`: whether a Machine is healthy.

use std::time::Duration;

use fleetwright_lifecycle::health::{
    Cause, Check, Evaluation, NodeState, Seen, Target, Unhealthy, Verdict, evaluate, judge,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Outcome, Runner, Use};
use crate::row::Row;

pub(super) const RUNNER: Runner = Runner {
    file: "spot-mhc-needs-remediation.json",
    tables: &[("cases", Use::Rows(needs_remediation)), ("capiTargets.cases", Use::Rows(targets))],
};

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH + Duration::from_secs(2_000_000_000)
}

fn ago(seconds: u64) -> Timestamp {
    now() - Duration::from_secs(seconds)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn seconds(value: &Value) -> Duration {
    Duration::from_secs(value.as_u64().unwrap_or_default())
}

fn needs_remediation(row: &Row<'_>) -> Outcome {
    let machine = row.get("machine");
    let rule = |rule: &Value| Unhealthy {
        kind: text(&rule["type"]),
        status: text(&rule["status"]),
        timeout: seconds(&rule["timeoutSeconds"]),
    };
    let seen = |condition: &Value| Seen {
        kind: text(&condition["type"]),
        status: text(&condition["status"]),
        since: ago(condition["ageSeconds"].as_u64().unwrap_or_default()),
    };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let node = match row.get("node") {
        Value::Null => NodeState::None,
        node if node["exists"] == false => NodeState::Missing,
        node => NodeState::Present(list(&node["conditions"]).iter().map(seen).collect()),
    };
    let check = Check {
        node_conditions: list(row.get("unhealthyConditions")).iter().map(rule).collect(),
        machine_conditions: Vec::new(),
        node_startup_timeout: seconds(row.get("nodeStartupTimeoutSeconds")),
    };
    let target = Target {
        failed: machine["phase"] == "Failed",
        started: machine["lastUpdatedAgeSeconds"].as_u64().map(ago),
        node,
        ..Target::default()
    };
    let (needs, next) = match judge(&check, &target, now()) {
        Verdict::Unhealthy(_) => (true, 0),
        Verdict::Doubtful(wait) => (false, wait.as_secs()),
        Verdict::Fine => (false, 0),
    };
    let found = json!({"needsRemediation": needs, "nextCheckSeconds": next});
    Outcome::equal(row.get("expect"), &found)
}

/// The reason that Cluster API has for a cause.
fn reason(cause: &Cause) -> &'static str {
    match cause {
        Cause::Asked => "HasRemediateAnnotation",
        Cause::LaunchFailed | Cause::InstanceGone => "MachineHasFailure",
        Cause::StartupTimeout => "NodeStartupTimeout",
        Cause::NodeMissing => "NodeDeleted",
        Cause::NodeCondition { .. } => "UnhealthyNode",
        Cause::MachineCondition { .. } => "UnhealthyMachine",
    }
}

/// `400s` in `created 400s ago`.
fn age(clause: &str) -> Option<u64> {
    clause.split_whitespace().find_map(|word| word.strip_suffix('s')?.parse().ok())
}

/// These rows tell their Machines in words, clause by clause.
struct Story {
    check: Check,
    targets: Vec<Target>,
}

impl Story {
    fn tell(name: &str) -> Option<Self> {
        let rule = |kind: &str, status: &str| Unhealthy {
            kind: kind.to_owned(),
            status: status.to_owned(),
            timeout: Duration::from_mins(5),
        };
        let mut story = Self {
            check: Check {
                node_conditions: vec![rule("Ready", "Unknown")],
                machine_conditions: vec![rule("Infra", "False")],
                node_startup_timeout: Duration::from_mins(10),
            },
            targets: Vec::new(),
        };
        for clause in name.trim_start_matches("mix: ").split(", ") {
            story.hear(clause)?;
        }
        Some(story)
    }

    fn hear(&mut self, clause: &str) -> Option<()> {
        let seen = |kind: &str, status: &str, age| Seen {
            kind: kind.to_owned(),
            status: status.to_owned(),
            since: ago(age),
        };
        let ready = |status: &str, age| NodeState::Present(vec![seen("Ready", status, age)]);
        let words: Vec<&str> = clause.split_whitespace().collect();
        match words.as_slice() {
            ["no", "node", ..] => {
                let started = age(clause).map(ago);
                self.targets.push(Target { started, ..Target::default() });
            }
            // The latest of the times that a start depends on counts.
            ["created", ..] | ["infra", "ready", ..] => {
                let target = self.targets.last_mut()?;
                target.started = target.started.max(Some(ago(age(clause)?)));
            }
            ["startup", "disabled"] => self.check.node_startup_timeout = Duration::ZERO,
            ["startup", ..] => self.check.node_startup_timeout = Duration::from_secs(age(clause)?),
            ["timeout", ..] => {
                let timeout = Duration::from_secs(age(clause)?);
                let check = &mut self.check;
                for rule in check.node_conditions.iter_mut().chain(&mut check.machine_conditions) {
                    rule.timeout = timeout;
                }
            }
            ["node", "deleted"] => {
                self.targets.push(Target { node: NodeState::Missing, ..Target::default() });
            }
            ["Ready", status, _] | [status @ ("Unknown" | "False"), _] => {
                let node = ready(status, age(clause)?);
                self.targets.push(Target { node, ..Target::default() });
            }
            ["machine", "condition", status, _] => self.targets.push(Target {
                node: ready("True", 1000),
                conditions: vec![seen("Infra", status, age(clause)?)],
                ..Target::default()
            }),
            ["healthy"] => {
                self.targets.push(Target { node: ready("True", 1000), ..Target::default() });
            }
            ["remediate-machine", "annotation", "present"] => self.targets.push(Target {
                repair_asked: true,
                node: ready("True", 1000),
                ..Target::default()
            }),
            ["no", "unhealthyNodeConditions"] => {
                self.check.node_conditions.clear();
            }
            ["node", "NotReady"] => {
                self.targets.push(Target { node: ready("False", 1000), ..Target::default() });
            }
            _ => return None,
        }
        Some(())
    }
}

fn targets(row: &Row<'_>) -> Outcome {
    let name = row.get("name").as_str().unwrap_or_default();
    let Some(Story { check, targets }) = Story::tell(name) else {
        return Outcome::Failed(format!("a story that is new: {name}"));
    };
    let Evaluation { healthy, unhealthy, .. } = evaluate(&check, &targets, now());
    let waits: Vec<u64> = targets
        .iter()
        .filter_map(|target| match judge(&check, target, now()) {
            Verdict::Doubtful(wait) => Some(wait.as_secs()),
            _ => None,
        })
        .collect();
    let mut found = json!({
        "healthy": healthy,
        "unhealthy": unhealthy.len(),
        "nextCheckSeconds": waits,
    });
    let wanted = row.get("expect");
    if wanted.get("reason").is_some() {
        found["reason"] = unhealthy.first().map(|(_, cause)| reason(cause)).into();
    }
    Outcome::equal(wanted, &found)
}
