//! `spot-autoscaler.json`: which Machine goes first, and what an autoscaler makes of Machines.

use fleetwright_lifecycle::{
    autoscaler::{Bounds, BoundsError, bounds},
    replicas::{DeletePolicy, Replica, score},
};
use serde_json::{Value, json};

use super::{
    Outcome, Runner, Use,
    aws_machineset::{days_ago, gone, now},
};
use crate::row::Row;

/// The names are what the autoscaler makes of our objects: its own code, which the product never
/// runs.
pub(super) const THEIRS: &str = "what the autoscaler itself computes; the real one is a referee";

pub(super) const RUNNER: Runner = Runner {
    file: "spot-autoscaler.json",
    tables: &[
        ("machineSetDeletePriority.random.scores", Use::Rows(scores)),
        ("machineSetDeletePriority.random.cases", Use::Rows(random)),
        ("machineSetDeletePriority.newest.cases", Use::Rows(newest)),
        ("machineSetDeletePriority.oldest.cases", Use::Rows(oldest)),
        ("fakeIds.cases", Use::NotApplicable(THEIRS)),
        ("providerIdSelection.cases", Use::NotApplicable(THEIRS)),
        ("normalizedProviderId.cases", Use::NotApplicable(THEIRS)),
        ("scalingBounds.cases", Use::Rows(scaling_bounds)),
    ],
};

/// A Machine by the word that the table has for it.
fn replica(word: &str) -> Replica {
    let days = |text: &str| text.strip_suffix('d').and_then(|days| days.parse::<u64>().ok());
    let mut machine = Replica { name: word.to_owned(), has_node: true, ..Replica::default() };
    let digits = word.find(|letter: char| letter.is_ascii_digit()).unwrap_or(word.len());
    let (kind, age) = word.split_at(digits);
    let age = match kind {
        "newest" => Some(1),
        "new" => Some(5),
        "old" | "oldest" => Some(10),
        _ => days(age),
    };
    machine.created = age.map(days_ago);
    match kind {
        "deleting" => machine.deleting = true,
        "error" => machine.failed = true,
        "annotated" | "oldAnnotated" => machine.delete_first = true,
        "noNode" => machine.has_node = false,
        _ => {}
    }
    machine
}

fn policy(row: &Row<'_>, policy: DeletePolicy) -> Outcome {
    let words = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|word| Some(word.as_str()?.to_owned()))
            .collect()
    };
    let machines: Vec<Replica> =
        words(row.get("machines")).iter().map(|word| replica(word)).collect();
    let mut found = gone(policy, &machines, row.get("diff"));
    let mut wanted = words(row.get("expect"));
    found.sort();
    wanted.sort();
    Outcome::equal(&wanted, &found)
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

fn scaling_bounds(row: &Row<'_>) -> Outcome {
    let found = match bounds(row.get("min").as_str(), row.get("max").as_str()) {
        Ok(Bounds { min, max }) => json!([[min, max], null]),
        Err(BoundsError::Min) => json!([null, "min"]),
        Err(BoundsError::Max) => json!([null, "max"]),
    };
    Outcome::equal(&json!([row.get("out"), row.get("error")]), &found)
}

fn scores(row: &Row<'_>) -> Outcome {
    let words = [
        ("deleting", "deleting"),
        ("deleteAnnotation", "annotated"),
        ("errorReasonOrMessage", "error"),
        ("noNodeRef", "noNode"),
        ("other", "running"),
    ];
    for (key, word) in words {
        let wanted = row.get(key).as_f64().unwrap_or(f64::NAN);
        let found = score(DeletePolicy::Random, &replica(word), now());
        if (found - wanted).abs() > 1e-9 {
            return Outcome::Failed(format!("{key}: wanted {wanted}, found {found}"));
        }
    }
    Outcome::Passed
}
