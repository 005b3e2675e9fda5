//! `aws-machineset.json`: replicas of a MachineSet.

use std::time::Duration;

use fleetwright_lifecycle::{
    replicas::{DeletePolicy, Replica, Set, asks_to_go_first, membership, plan, score, victims},
    selector::{Labels, Requirement, Selector},
};
use jiff::Timestamp;
use serde_json::Value;

use super::{Outcome, Runner, Use};
use crate::row::Row;

pub(super) const RUNNER: Runner = Runner {
    file: "aws-machineset.json",
    tables: &[
        ("priority_formula", Use::Rows(constants)),
        ("random_policy_cases", Use::Rows(random)),
        ("newest_policy_cases", Use::Rows(newest)),
        ("oldest_policy_cases", Use::Rows(oldest)),
        ("membership_cases", Use::Rows(members)),
        ("adopt_case", Use::Rows(adopt)),
        ("label_selector_status_cases", Use::Rows(label_selector)),
        (
            "crd_defaulting_cases",
            Use::NotApplicable("defaults of the schema, checked with the CRDs themselves"),
        ),
    ],
};

/// When the rows happen.
pub(super) fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH + Duration::from_secs(2_000_000_000)
}

/// So many days before that.
pub(super) fn days_ago(days: u64) -> Timestamp {
    now() - Duration::from_secs(days * 24 * 3600)
}

fn replica(machine: &Value) -> Replica {
    let annotation = |key: &str| machine["annotations"][key].as_str();
    Replica {
        name: machine["id"].as_str().unwrap_or_default().to_owned(),
        labels: labels(&machine["labels"]),
        controller: machine["controller"].as_str().map(str::to_owned),
        deleting: machine["deleting"].as_bool().unwrap_or_default(),
        delete_first: asks_to_go_first(annotation),
        failed: machine["errorMessage"].is_string() || machine["errorReason"].is_string(),
        created: machine["age_days"].as_u64().map(days_ago),
        has_node: machine["nodeRef"].as_bool().unwrap_or_default(),
        ..Replica::default()
    }
}

fn labels(value: &Value) -> Labels {
    value
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// The names of those who go, sorted: ties are not significant.
pub(super) fn gone(policy: DeletePolicy, machines: &[Replica], diff: &Value) -> Vec<String> {
    let count = usize::try_from(diff.as_u64().unwrap_or_default()).unwrap_or(usize::MAX);
    let machines: Vec<&Replica> = machines.iter().collect();
    victims(policy, &machines, count, now())
        .into_iter()
        .map(|place| machines[place].name.clone())
        .collect()
}

fn names(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|id| Some(id.as_str()?.to_owned())).collect()
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

fn policy(row: &Row<'_>, policy: DeletePolicy) -> Outcome {
    let machines: Vec<Replica> =
        row.get("machines").as_array().into_iter().flatten().map(replica).collect();
    let found = gone(policy, &machines, row.get("diff"));
    Outcome::equal(&sorted(names(row.get("expect_ids"))), &sorted(found))
}

fn random(row: &Row<'_>) -> Outcome {
    policy(row, DeletePolicy::Random)
}

fn newest(row: &Row<'_>) -> Outcome {
    policy(row, DeletePolicy::Newest)
}

fn oldest(row: &Row<'_>) -> Outcome {
    policy(row, DeletePolicy::Oldest)
}

fn constants(row: &Row<'_>) -> Outcome {
    let constant = |name: &str| row.get("constants")[name].as_f64().unwrap_or(f64::NAN);
    let running = Replica { has_node: true, created: Some(days_ago(100)), ..Replica::default() };
    let deleting = Replica { deleting: true, ..running.clone() };
    let failed = Replica { failed: true, ..running.clone() };
    let marked = Replica { delete_first: true, ..running.clone() };
    let nodeless = Replica { has_node: false, ..running.clone() };
    let ageless = Replica { created: None, ..running.clone() };
    let unborn = Replica { created: Some(now() + Duration::from_secs(1)), ..running.clone() };
    let must = constant("mustDelete");
    let old = constant("betterDelete")
        * (1.0 - (-100.0 * 86_400.0 / constant("secondsPerHundredDays")).exp());
    let cases = [
        (DeletePolicy::Random, &deleting, must),
        (DeletePolicy::Random, &failed, constant("betterDelete")),
        (DeletePolicy::Random, &marked, constant("betterDelete")),
        (DeletePolicy::Random, &nodeless, constant("preferDelete")),
        (DeletePolicy::Random, &running, constant("couldDelete")),
        (DeletePolicy::Oldest, &deleting, must),
        (DeletePolicy::Oldest, &failed, must),
        (DeletePolicy::Oldest, &marked, must),
        (DeletePolicy::Oldest, &ageless, constant("mustNotDelete")),
        (DeletePolicy::Oldest, &unborn, constant("mustNotDelete")),
        (DeletePolicy::Oldest, &running, old),
        (DeletePolicy::Newest, &deleting, must),
        (DeletePolicy::Newest, &failed, must),
        (DeletePolicy::Newest, &marked, must),
        (DeletePolicy::Newest, &running, must - old),
    ];
    for (policy, machine, wanted) in cases {
        let found = score(policy, machine, now());
        if (found - wanted).abs() > 1e-9 {
            return Outcome::Failed(format!("{policy:?}: wanted {wanted}, found {found}"));
        }
    }
    Outcome::Passed
}

fn members(row: &Row<'_>) -> Outcome {
    let set = Set {
        uid: "own".to_owned(),
        selector: Selector { match_labels: labels(row.get("selector")), ..Selector::default() },
        ..Set::default()
    };
    let excluded = !membership(&set, &replica(row.get("machine"))).counts();
    Outcome::equal(row.get("expect_excluded"), &excluded.into())
}

/// The owner reference itself is written by the controller; here it is who gets one.
fn adopt(row: &Row<'_>) -> Outcome {
    let labels = Labels::from([("foo".to_owned(), "bar".to_owned())]);
    let set = Set {
        uid: "own".to_owned(),
        replicas: 1,
        selector: Selector { match_labels: labels.clone(), ..Selector::default() },
        ..Set::default()
    };
    let orphan = Replica {
        name: row.get("machine").as_str().unwrap_or_default().to_owned(),
        labels,
        ..Replica::default()
    };
    let plan = plan(&set, &[orphan], now());
    Outcome::equal(&(vec![0], 0), &(plan.adopt, plan.create))
}

fn label_selector(row: &Row<'_>) -> Outcome {
    let given = row.get("selector");
    let expressions = given["matchExpressions"].as_array().into_iter().flatten().map(|wanted| {
        Requirement::parse(
            wanted["key"].as_str().unwrap_or_default(),
            wanted["operator"].as_str().unwrap_or_default(),
            names(&wanted["values"]),
        )
    });
    let selector = match expressions.collect() {
        Ok(match_expressions) => {
            Selector { match_labels: labels(&given["matchLabels"]), match_expressions }
        }
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    Outcome::equal(row.get("expect"), &selector.to_string().into())
}
