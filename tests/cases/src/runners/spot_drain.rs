//! `spot-drain.json`: kubectl's filters, answers to evictions, waits, deadlines.

use std::time::Duration;

use fleetwright_lifecycle::drain::{
    Controller, DEFAULT_GRACE, Existence, MIRROR_ANNOTATION, Options, Pod, Stage, Verb, Wish,
    attempts::{Answer, Attempts, Next, next},
    deadline::{AtDeadline, removal},
    filters::{Filter, Verdict, judge},
    gate::{
        DRAIN_SKIPPED, EXCLUDE_NODE_DRAINING, Gate, MachineFacts, NOT_NOW, NodeFacts, gate,
        waits_for,
    },
    plan,
    progress::Progress,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Outcome, Runner, Use};
use crate::row::Row;

pub(super) const RUNNER: Runner = Runner {
    file: "spot-drain.json",
    tables: &[
        ("kubectl.cases", Use::Rows(kubectl)),
        ("mapiDerived.cases", Use::Rows(machine_api)),
        ("skipDeleted.cases", Use::Rows(skip_deleted)),
        ("additionalFilters.cases", Use::Rows(additional_filters)),
        ("waitForDelete.cases", Use::Rows(wait_for_delete)),
        ("evictionResponses.cases", Use::Rows(eviction_response)),
        ("isDrainAllowed.cases", Use::Rows(drain_allowed)),
        ("drainController.cases", Use::Rows(drain_controller)),
        ("capi.podDrainLabel.cases", Use::Rows(drain_label)),
        ("capi.conditionMessage", Use::Rows(condition_message)),
        ("deadline.cases", Use::Rows(deadline)),
    ],
};

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH + Duration::from_secs(2_000_000_000)
}

fn ago(seconds: i64) -> Timestamp {
    now() - SignedDuration::from_secs(seconds)
}

fn pod(value: &Value) -> Pod {
    let controller = value["controller"].as_str().and_then(|text| {
        let (api_version, kind) = text.rsplit_once('/')?;
        let existence = if value["daemonSetExists"] == false {
            Existence::Absent("daemonsets.apps \"owner\" not found".to_owned())
        } else {
            Existence::Exists
        };
        Some(Controller {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: "owner".to_owned(),
            existence,
        })
    });
    Pod {
        namespace: "default".to_owned(),
        name: "bar".to_owned(),
        uid: "uid".to_owned(),
        controller,
        mirror: value["annotations"].get(MIRROR_ANNOTATION).is_some(),
        local_storage: value["emptyDir"] == true,
        finished: matches!(value["phase"].as_str(), Some("Failed" | "Succeeded")),
        deletion: None,
        grace: DEFAULT_GRACE,
        critical: false,
        wish: Wish::Drain,
    }
}

fn filter(flags: &Value) -> Filter {
    let yes = |key: &str| flags[key].as_bool().unwrap_or_default();
    Filter {
        force: yes("force"),
        ignore_daemon_sets: yes("ignoreDaemonSets"),
        delete_empty_dir_data: yes("deleteEmptyDirData"),
        skip_after_deletion: None,
    }
}

fn filtered(filter: &Filter, row: &Row<'_>) -> Outcome {
    let verdict = judge(filter, &pod(row.get("pod")), now());
    let (fatal, evicted, warnings) = match verdict {
        Verdict::Remove { warnings } => (false, true, warnings),
        Verdict::Leave { warning } => (false, false, warning.into_iter().collect()),
        Verdict::Refuse(message) => (true, false, vec![message]),
    };
    if let Some(warning) = row.get("warning").as_str()
        && !warnings.iter().any(|found| found == warning)
    {
        return Outcome::Failed(format!("wanted the warning {warning:?}, found {warnings:?}"));
    }
    let wanted_fatal = row.get("fatal").as_bool().unwrap_or_default();
    Outcome::equal(&(wanted_fatal, row.get("evicted")), &(fatal, &evicted.into()))
}

fn kubectl(row: &Row<'_>) -> Outcome {
    filtered(&filter(row.get("flags")), row)
}

fn machine_api(row: &Row<'_>) -> Outcome {
    filtered(&Options::machine_api().filter, row)
}

fn skip_deleted(row: &Row<'_>) -> Outcome {
    let filter = Filter {
        skip_after_deletion: row.get("skipSeconds").as_u64().map(Duration::from_secs),
        ..Options::machine_api().filter
    };
    let deletion = row.get("ageSeconds").as_i64().map(ago);
    let verdict = judge(&filter, &Pod { deletion, ..pod(&Value::Null) }, now());
    let removed = matches!(verdict, Verdict::Remove { .. });
    Outcome::equal(row.get("delete"), &removed.into())
}

/// Our one further filter is the owner's wish; one that skips wins wherever it stands.
fn additional_filters(row: &Row<'_>) -> Outcome {
    let words = row.get("filters").as_array().into_iter().flatten();
    let skips = words.filter(|word| *word == "skip").count() > 0;
    let wish = if skips { Wish::Skip } else { Wish::Drain };
    let verdict = judge(&Options::machine_api().filter, &Pod { wish, ..pod(&Value::Null) }, now());
    let pods = u64::from(matches!(verdict, Verdict::Remove { .. }));
    Outcome::equal(row.get("pods"), &pods.into())
}

fn wait_for_delete(row: &Row<'_>) -> Outcome {
    let mut options = Options::machine_api();
    options.filter.skip_after_deletion = row.get("skipSeconds").as_u64().map(Duration::from_secs);
    let waiting = Pod {
        deletion: Some(ago(row.get("ageSeconds").as_i64().unwrap_or_default())),
        ..pod(&Value::Null)
    };
    // A pod of another UID is another pod: the one that was waited for is not in the list.
    let cancelled = row.get("error").is_string();
    let present = cancelled || row.get("skipSeconds").is_number();
    let pods: Vec<Pod> = present.then_some(waiting).into_iter().collect();
    let found = plan(&options, &pods, &Attempts::default(), now(), now());
    let pending = match found.stage {
        Stage::Drained => false,
        // Whoever cancels does not come back: what is left is left.
        Stage::Draining => found.progress.pods().len() == 1,
        other => return Outcome::Failed(format!("{other:?}")),
    };
    Outcome::equal(row.get("pending"), &pending.into())
}

fn eviction_response(row: &Row<'_>) -> Outcome {
    let answer = Answer {
        code: row.get("status").as_u64().and_then(|code| code.try_into().ok()).unwrap_or_default(),
        namespace_terminating: row.get("cause") == "NamespaceTerminating",
        ..Answer::default()
    };
    let terminating = row.get("podDeletionTimestamp").as_bool().unwrap_or_default();
    let wanted = match row.get("next").as_str().unwrap_or_default() {
        "wait for pod gone" => Next::WaitForGone,
        "done" => Next::Gone,
        "error" => Next::Error,
        text if text.contains("retry") => Next::Retry,
        // We do send the precondition.
        text if text.contains("done when UID precondition was sent") => Next::Gone,
        other => return Outcome::Failed(format!("a word that is new: {other}")),
    };
    Outcome::equal(&wanted, &next(&answer, terminating))
}

fn drain_allowed(row: &Row<'_>) -> Outcome {
    let given = row.get("node");
    let yes = |key: &str| given[key].as_bool().unwrap_or_default();
    let node = NodeFacts {
        name: "node".to_owned(),
        control_plane: yes("controlPlane") || yes("master"),
        cordoned: yes("cordoned"),
    };
    let other = |words: &Value| {
        let words = words.as_str().unwrap_or_default();
        NodeFacts {
            name: words.to_owned(),
            control_plane: words.ends_with("cp") || words.ends_with("master"),
            cordoned: words.starts_with("cordoned"),
        }
    };
    let others: Vec<NodeFacts> =
        row.get("others").as_array().into_iter().flatten().map(other).collect();
    let waits = waits_for(&node, &others).is_some();
    let seconds = waits.then(|| NOT_NOW.as_secs());
    let wanted = (row.get("allowed").as_bool(), row.get("requeueSeconds").as_u64());
    Outcome::equal(&wanted, &(Some(!waits), seconds))
}

fn drain_controller(row: &Row<'_>) -> Outcome {
    let phase = row.get("phase").as_str().unwrap_or_default();
    let excluded = row.get("annotations").get(EXCLUDE_NODE_DRAINING).is_some();
    let machine = MachineFacts {
        phase: phase.to_owned(),
        deleting: phase == "Deleting",
        excluded,
        has_node: row.value().get("nodeRef").is_none(),
        ..MachineFacts::default()
    };
    let (action, message) = match gate(&machine) {
        Gate::Ignore => ("ignore", Value::Null),
        Gate::Skip => ("Drained=True", DRAIN_SKIPPED.into()),
        Gate::Blocked => ("blocked", Value::Null),
        Gate::Drain => ("drain", Value::Null),
    };
    Outcome::equal(&(row.get("action"), row.get("message")), &(&action.into(), &message))
}

fn drain_label(row: &Row<'_>) -> Outcome {
    let wish = Wish::parse(row.get("value").as_str().unwrap_or_default());
    Outcome::equal(row.get("behavior"), &format!("{wish:?}").into())
}

fn condition_message(row: &Row<'_>) -> Outcome {
    let given = row.get("in");
    let names = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|name| Some(name.as_str()?.to_owned()))
            .collect()
    };
    let Some(started) = given["startedAt"].as_str().and_then(|text| text.parse().ok()) else {
        return Outcome::Failed("the row does not say when it began".to_owned());
    };
    let mut progress = Progress::new(started);
    progress.terminating = names(&given["deletionTimestampSet"]);
    for (why, pods) in given["failed"].as_object().into_iter().flatten() {
        progress.failed.insert(why.clone(), names(pods));
    }
    progress.later = names(&given["later"]);
    Outcome::equal(row.get("out"), &progress.message().into())
}

fn deadline(row: &Row<'_>) -> Outcome {
    let left = row.get("remainingSeconds").as_i64().map(SignedDuration::from_secs);
    let own = Duration::from_secs(row.get("podGrace").as_u64().unwrap_or_default());
    let found = match removal(AtDeadline::DeleteWhatBlocks, left, own) {
        (Verb::Evict, _) => json!({"action": "evict", "grace": null}),
        (Verb::Delete, grace) => {
            json!({"action": "delete", "grace": grace.map(|grace| grace.as_secs())})
        }
    };
    let wanted = json!({"action": row.get("action"), "grace": row.get("grace")});
    Outcome::equal(&wanted, &found)
}
