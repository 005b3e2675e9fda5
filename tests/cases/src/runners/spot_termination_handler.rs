//! `spot-termination-handler.json`: what metadata services answer, and what is written then.

use fleetwright_node::{
    aws::{After, after_answer, answers, token},
    azure,
    decide::{LONGEST_WAIT, Retry, after_write, next_wait, plan, standing},
    gcp,
    manifests::runs_on,
    notice::{Kind, Notice, origin},
    source::Looked,
    trouble::Trouble,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use super::{Outcome, Runner, Use};
use crate::row::Row;

pub(super) const RUNNER: Runner = Runner {
    file: "spot-termination-handler.json",
    tables: &[
        ("aws.cases", Use::Rows(aws)),
        ("awsIMDS.cases", Use::Rows(imds)),
        ("gcp.cases", Use::Rows(google)),
        ("gcp.derived", Use::Rows(google)),
        ("azure.cases", Use::Rows(microsoft)),
        ("azure.versionProbe.cases", Use::Rows(version)),
        ("azure.wanted", Use::Rows(microsoft)),
        ("conditionMerge.cases", Use::Rows(merge)),
        ("platformImage.handler", Use::Rows(has_handler)),
        ("platformImage.none", Use::Rows(has_no_handler)),
    ],
};

const NOW: &str = "2026-01-01T00:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap_or_default()
}

fn notice(at: Timestamp, origin: &'static str) -> Notice {
    Notice {
        kind: Kind::Termination,
        deadline: Some(at),
        id: String::new(),
        origin,
        revocable: false,
    }
}

fn no_answer() -> Trouble {
    let source = fleetwright_cloud::transport::TransportError::NotSent("refused".to_owned());
    Trouble::Unreachable { what: "the item", source }
}

/// What stands after a series of looks, and whether one failed. The last one is repeated when the
/// handler is told to stop, and once more in any case.
fn looks(
    given: &Value,
    answer: impl Fn(&Value) -> Result<Option<Notice>, Trouble>,
) -> (Vec<Notice>, bool) {
    let given = given.as_array().map(Vec::as_slice).unwrap_or_default();
    let (mut stands, mut failed) = (Vec::new(), false);
    for one in given.iter().chain(given.last()) {
        let mut looked = Looked::default();
        looked.add(answer(one));
        failed |= !looked.troubles.is_empty();
        stands = standing(&stands, &looked);
    }
    (stands, failed)
}

/// Whether a Node would be marked; a failure must only have the next look come sooner.
fn outcome(row: &Row<'_>, stands: &[Notice], failed: bool) -> Outcome {
    let node = Node::default();
    let marked = plan(&node, stands, !failed, now()).status.is_some();
    if failed && next_wait(LONGEST_WAIT * 100, 50, 0.0) > LONGEST_WAIT {
        return Outcome::Failed("a failure makes the handler wait for long".to_owned());
    }
    if row.get("error").is_string() != failed && row.value().get("error").is_some() {
        return Outcome::Failed(format!(
            "a failure was {}expected",
            if failed { "not " } else { "" }
        ));
    }
    Outcome::equal(row.get("marked"), &marked.into())
}

fn aws(row: &Row<'_>) -> Outcome {
    let (stands, failed) = looks(row.get("responses"), |response| {
        let Some(status) = response.as_u64().and_then(|status| u16::try_from(status).ok()) else {
            return Err(no_answer());
        };
        // Upstream takes any body for a yes; EC2 writes the time.
        let found = answers::termination_time(status, b"2026-01-01T00:02:00Z")?;
        Ok(found.map(|at| notice(at, origin::AWS_SPOT_TIME)))
    });
    outcome(row, &stands, failed)
}

fn imds(row: &Row<'_>) -> Outcome {
    let status = |answer: &Value| {
        answer["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or_default()
    };
    let get = row.get("get");
    let body = get["body"].as_str().unwrap_or_default().as_bytes();
    let expect = row.get("expect");
    let given = row.get("token");
    if !given.is_null() {
        let text = given["body"].as_str().unwrap_or_default();
        return match token(status(given), given["ttlHeader"].as_str(), text.as_bytes()) {
            // Nothing is asked without a token; an answer that is an error is one to whoever
            // asked, and never "no notice".
            Err(_) if status(get) >= 400 => {
                let used = after_answer(status(get), false) == After::Use;
                let failed = answers::instance_action(status(get), body).is_err()
                    && answers::termination_time(status(get), body).is_err()
                    && answers::scheduled(status(get), body).is_err()
                    && answers::rebalance(status(get), body).is_err();
                Outcome::equal(&(true, true), &(used, failed))
            }
            Err(_) => Outcome::NotApplicable("version 1 of the service is never used"),
            Ok((token, lasts)) => {
                let ttl = given["ttlHeader"].as_str().and_then(|ttl| ttl.parse().ok());
                let used = after_answer(status(get), false) == After::Use;
                let found = json!({"status": status(get), "sentTokenHeader": token});
                if !used || ttl.is_some_and(|ttl: u64| ttl != lasts.as_secs()) {
                    return Outcome::Failed(format!("used: {used}, for {lasts:?}"));
                }
                Outcome::equal(expect, &found)
            }
        };
    }
    let item = row.get("path").as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let found = match item {
        "instance-action" => answers::instance_action(status(get), body).map(|found| {
            found.map_or(
                json!({"event": null}),
                |found| json!({"action": found.action, "time": found.time.to_string()}),
            )
        }),
        "termination-time" => answers::termination_time(status(get), body)
            .map(|found| json!({"event": null, "time": found.map(|time| time.to_string())})),
        "scheduled" => answers::scheduled(status(get), body).map(|events| {
            let first = events.first();
            json!({"events": events.len(), "code": first.map(|event| &event.code),
                "state": first.map(|event| &event.state)})
        }),
        "rebalance" => answers::rebalance(status(get), body)
            .map(|found| json!({"event": found.map(|time| time.to_string())})),
        _ => return Outcome::Failed(format!("what is {item}?")),
    };
    let mut found = found.unwrap_or_else(|_| json!({"error": true}));
    if expect["error"] == json!(false) && found.get("error").is_none() {
        found["error"] = json!(false);
    }
    // Only what the row speaks of.
    if let (Some(found), Some(expect)) = (found.as_object_mut(), expect.as_object()) {
        found.retain(|key, _| expect.contains_key(key));
    }
    Outcome::equal(expect, &found)
}

fn google(row: &Row<'_>) -> Outcome {
    if let Some(updates) = row.get("updates").as_array() {
        let status = |update: &Value| update.as_u64().and_then(|status| u16::try_from(status).ok());
        let retries = updates.iter().map(|update| after_write(status(update)));
        let marked = retries.clone().any(|retry| retry == Retry::Done)
            && retries.take(updates.len() - 1).all(|retry| retry != Retry::Done);
        return Outcome::equal(row.get("marked"), &marked.into());
    }
    let (stands, failed) = looks(row.get("bodies"), |body| {
        let body = body.as_str().unwrap_or_default();
        if body == "connect-error" {
            return Err(no_answer());
        }
        let status = if body.starts_with('<') { 503 } else { 200 };
        let preempted = gcp::preempted(status, Some(gcp::FLAVOR.1), body.as_bytes())?;
        Ok(preempted.then(|| notice(now() + gcp::NOTICE, origin::GCP_PREEMPTED)))
    });
    outcome(row, &stands, failed)
}

fn microsoft(row: &Row<'_>) -> Outcome {
    let own = row.get("vmName").as_str().or(Some("node-a"));
    let mut looked = Looked::default();
    looked.add(azure::notices(200, row.get("body").to_string().as_bytes(), own, now()));
    let stands = standing(&[], &looked);
    if let Some(deadline) = row.get("deadline").as_str() {
        let wanted = if deadline == "now" { NOW } else { deadline };
        let found = stands.first().and_then(|notice| notice.deadline).map(|at| at.to_string());
        if found.as_deref() != Some(wanted) {
            return Outcome::Failed(format!("wanted the deadline {wanted}, found {found:?}"));
        }
    }
    outcome(row, &stands, !looked.troubles.is_empty())
}

fn version(row: &Row<'_>) -> Outcome {
    let status = row.get("status").as_u64().and_then(|status| u16::try_from(status).ok());
    // No answer in time is no status at all.
    let found = status.ok_or_else(no_answer).and_then(azure::version);
    let wanted = row.get("use").as_str().unwrap_or_default();
    match found {
        Ok(version) => Outcome::equal(&wanted, &version),
        Err(_) => Outcome::equal(&wanted.starts_with("error"), &true),
    }
}

fn merge(row: &Row<'_>) -> Outcome {
    let names = |list: &Value| -> Vec<(String, String)> {
        let names = list.as_array().into_iter().flatten().filter_map(Value::as_str);
        names.filter_map(|name| name.split_once('=')).map(|(a, b)| (a.into(), b.into())).collect()
    };
    let conditions: Vec<Value> = names(row.get("in"))
        .iter()
        .map(|(kind, status)| json!({"type": kind, "status": status}))
        .collect();
    let node = json!({"metadata": {"name": "n"}, "status": {"conditions": conditions}});
    let node: Node = match serde_json::from_value(node) {
        Ok(node) => node,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let notice = Notice { deadline: None, ..notice(now(), origin::AWS_SPOT) };
    let patch = plan(&node, &[notice], true, now()).status.unwrap_or_default();
    let written = patch["status"]["conditions"].as_array().cloned().unwrap_or_default();
    // The server merges by type, and keeps what the patch does not name.
    let mut found = Vec::new();
    for condition in conditions.iter().filter(|c| written.iter().all(|w| w["type"] != c["type"])) {
        found.push((condition.clone(), false));
    }
    found.extend(written.iter().map(|condition| (condition.clone(), true)));
    let text = |(condition, new): &(Value, bool)| {
        let (kind, status) = (condition["type"].as_str(), condition["status"].as_str());
        let name = format!("{}={}", kind.unwrap_or_default(), status.unwrap_or_default());
        if *new && condition["lastTransitionTime"] == NOW { format!("{name}(new)") } else { name }
    };
    let found: Vec<String> = found.iter().map(text).collect();
    let wanted: Vec<String> = row
        .get("out")
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|name| name.replace("(new timestamps)", "(new)").replace("(unchanged timestamps)", ""))
        .collect();
    let changed = !written.is_empty();
    if row.get("changed") != &json!(changed) {
        return Outcome::Failed(format!("changed: {changed}"));
    }
    if let Some(condition) = written.first() {
        for (key, value) in row.context()["condition"].as_object().into_iter().flatten() {
            if condition[key] != *value {
                return Outcome::Failed(format!("{key}: wanted {value}, found {}", condition[key]));
            }
        }
    }
    Outcome::equal(&wanted, &found)
}

fn has_handler(row: &Row<'_>) -> Outcome {
    Outcome::equal(&true, &runs_on(row.value().as_str().unwrap_or_default()))
}

fn has_no_handler(row: &Row<'_>) -> Outcome {
    Outcome::equal(&false, &runs_on(row.value().as_str().unwrap_or_default()))
}
