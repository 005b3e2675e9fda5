//! Takes back the announcement of a disruption that did not happen.

use std::time::Duration;

use fleetwright_kstore::Key;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::{
    AGENT, PODS,
    driver::{Controller, Next, Seen},
    queue::Queue,
};
use crate::{
    handlers::timestamp, internal::InternalClient, object, server::Server, status::Result, storage,
};

const TIMEOUT: Duration = Duration::from_mins(2);
const CONDITION: &str = "DisruptionTarget";

/// Watches over pods that are said to be disrupted.
pub(in super::super) struct StaleConditions {
    server: Server,
    client: InternalClient,
}

impl StaleConditions {
    pub(in super::super) fn new(server: &Server) -> Self {
        Self { server: server.clone(), client: InternalClient::new(server, AGENT) }
    }
}

impl Controller for StaleConditions {
    type Key = Key;
    const NAME: &'static str = "stale disruption conditions";
    const FOLLOWS: &'static [&'static str] = &[PODS];

    fn observe(&self, seen: &Seen<'_>, queue: &mut Queue<Key>) {
        if seen.is_gone() {
            return;
        }
        let Ok(pod) = storage::parse(&seen.object.json) else { return };
        if let Some(left) = time_left(&pod, self.server.now()) {
            queue.add_after(seen.object.key.clone(), left);
        }
    }

    async fn reconcile(&self, key: &Key) -> Result<Next> {
        let Some(stored) = self.server.storage().get(key) else { return Ok(Next::Rest) };
        let mut pod = storage::parse(&stored.json)?;
        let now = self.server.now();
        match time_left(&pod, now) {
            None => return Ok(Next::Rest),
            Some(left) if !left.is_zero() => return Ok(Next::After(left)),
            Some(_) => {}
        }
        take_back(&mut pod, now);
        let path = format!("/api/v1/namespaces/{}/pods/{}/status", key.namespace, key.name);
        match self.client.put(&path, &pod).await {
            Err(error) if error.reason() != "NotFound" => Err(error),
            _ => Ok(Next::Rest),
        }
    }
}

/// How long the condition of a pod may still hold without its deletion; `None` if it has none
/// that could be stale.
fn time_left(pod: &Value, now: Timestamp) -> Option<Duration> {
    let over = matches!(object::text(pod, &["status", "phase"]), "Succeeded" | "Failed");
    if over || object::is_terminating(pod) {
        return None;
    }
    let condition = object::list(pod, &["status", "conditions"]).iter().find(|condition| {
        object::text(condition, &["type"]) == CONDITION
            && object::text(condition, &["status"]) == "True"
            // The kubelet may take as long as it likes.
            && object::text(condition, &["reason"]) != "TerminationByKubelet"
    })?;
    let since = object::text(condition, &["lastTransitionTime"]).parse().unwrap_or(Timestamp::MIN);
    let age = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    Some(TIMEOUT.saturating_sub(age))
}

fn take_back(pod: &mut Value, now: Timestamp) {
    let mut conditions = object::list(pod, &["status", "conditions"]).to_vec();
    let generation = object::generation(pod);
    for condition in conditions.iter_mut().filter(|c| object::text(c, &["type"]) == CONDITION) {
        *condition = json!({
            "type": CONDITION,
            "status": "False",
            "lastProbeTime": null,
            "lastTransitionTime": timestamp(now),
        });
        if generation != 0 {
            object::set(condition, &["observedGeneration"], generation);
        }
    }
    object::set(pod, &["apiVersion"], "v1");
    object::set(pod, &["kind"], "Pod");
    object::set(pod, &["status", "conditions"], conditions);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_stale_after_two_minutes() {
        let pod = json!({
            "metadata": {"generation": 3},
            "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True"},
                {
                    "type": CONDITION,
                    "status": "True",
                    "reason": "EvictionByEvictionAPI",
                    "lastTransitionTime": "2025-01-01T00:00:00Z",
                },
            ]},
        });
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let early = time("2025-01-01T00:00:30Z");
        let late = time("2025-01-01T00:03:00Z");
        assert_eq!(time_left(&pod, early), Some(Duration::from_secs(90)));
        assert_eq!(time_left(&pod, late), Some(Duration::ZERO));
        for (path, value) in [
            (&["metadata", "deletionTimestamp"], "2025-01-01T00:01:00Z"),
            (&["status", "phase"], "Failed"),
        ] {
            let mut pod = pod.clone();
            object::set(&mut pod, path, value);
            assert_eq!(time_left(&pod, late), None);
        }
        let mut taken_back = pod;
        take_back(&mut taken_back, late);
        assert_eq!(time_left(&taken_back, late), None);
        assert_eq!(
            taken_back["status"]["conditions"],
            json!([
                {"type": "Ready", "status": "True"},
                {
                    "type": CONDITION,
                    "status": "False",
                    "observedGeneration": 3,
                    "lastProbeTime": null,
                    "lastTransitionTime": "2025-01-01T00:03:00Z",
                },
            ])
        );
    }
}
