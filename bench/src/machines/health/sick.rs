//! Nodes that turn bad, and the Machines that are deleted for it.

use std::{collections::BTreeSet, pin::pin, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use fleetwright_api::{
    machine::{Machine, MachineHealthCheck},
    names::MACHINE_NAMESPACE,
};
use fleetwright_clock::Clock;
use futures::{Stream, StreamExt, TryStreamExt, stream, stream::BoxStream};
use k8s_openapi::{api::core::v1::Node, jiff::Timestamp};
use kube::{
    Api, Client, ResourceExt,
    api::{
        DeleteParams, ListParams, PartialObjectMeta, Patch, PatchParams, PostParams, Preconditions,
        WatchEvent, WatchParams,
    },
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::machines::ground::IN_FLIGHT;

/// A check looks again this long after a time is over, as upstream's does.
pub(crate) const LOOKS_AFTER: Duration = Duration::from_secs(1);
/// Longer than deletions take, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(5);

/// A Machine and its Node.
#[derive(Debug, Clone)]
pub(crate) struct Patient {
    pub(crate) machine: String,
    pub(crate) node: String,
    uid: Option<String>,
}

/// From the moment at which something was due.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) first: Duration,
    pub(crate) last: Duration,
}

fn machines(client: &Client) -> Api<Machine> {
    Api::namespaced(client.clone(), MACHINE_NAMESPACE)
}

fn checks(client: &Client) -> Api<MachineHealthCheck> {
    Api::namespaced(client.clone(), MACHINE_NAMESPACE)
}

/// So many Machines that run.
pub(crate) async fn choose(client: &Client, count: usize) -> Result<Vec<Patient>> {
    let all = machines(client).list(&ListParams::default()).await.context("cannot list")?;
    let running = all.items.iter().filter(|machine| machine.metadata.deletion_timestamp.is_none());
    let chosen: Vec<Patient> = running
        .filter_map(|machine| {
            let node = machine.status.as_ref()?.node_ref.as_ref()?.name.clone()?;
            Some(Patient { machine: machine.name_any(), node, uid: machine.uid() })
        })
        .take(count)
        .collect();
    ensure!(chosen.len() == count, "only {} Machines have Nodes", chosen.len());
    Ok(chosen)
}

/// A check of all Machines.
pub(crate) fn check(name: &str, timeout: Duration, limit: &str) -> Value {
    json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "MachineHealthCheck",
        "metadata": {"name": name, "namespace": MACHINE_NAMESPACE},
        "spec": {
            "selector": {"matchLabels": {"machine.openshift.io/cluster-api-machine-role": "worker"}},
            "unhealthyConditions": [
                {"type": "Ready", "status": "False", "timeout": format!("{}s", timeout.as_secs())},
            ],
            "maxUnhealthy": limit,
            "nodeStartupTimeout": "0",
        },
    })
}

/// Makes a check.
pub(crate) async fn make(client: &Client, check: Value) -> Result<()> {
    let check: MachineHealthCheck = serde_json::from_value(check)?;
    let made = checks(client).create(&PostParams::default(), &check).await;
    made.context("cannot create the health check")?;
    Ok(())
}

/// Waits until a check says this of its repairs: `True` when they are made.
pub(crate) async fn wait_for(
    client: &Client,
    name: &str,
    (total, allowed): (usize, &str),
) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        let check = checks(client).get(name).await.context("cannot read the health check")?;
        let status = check.status.unwrap_or_default();
        let told = status.conditions.iter().find(|told| told.type_ == "RemediationAllowed");
        let counted = status.expected_machines == i64::try_from(total).ok();
        if counted && told.is_some_and(|told| told.status == allowed) {
            return Ok(());
        }
        ensure!(Instant::now() < end, "the health check {name} says {status:?}");
        sleep(Duration::from_millis(100)).await;
    }
}

/// Removes a check.
pub(crate) async fn remove(client: &Client, name: &str) -> Result<()> {
    let gone = checks(client).delete(name, &DeleteParams::default()).await;
    gone.context("cannot delete the health check")?;
    Ok(())
}

/// Lets Nodes say whether they are ready, and since when, so many at a time.
pub(crate) async fn turn(
    client: &Client,
    patients: &[Patient],
    ready: &str,
    since: Timestamp,
) -> Result<()> {
    let api: Api<Node> = Api::all(client.clone());
    let patch = json!({"status": {"conditions": [
        {"type": "Ready", "status": ready, "reason": "Bench", "message": "as the benchmark says",
         "lastTransitionTime": seconds(since)},
    ]}});
    stream::iter(patients)
        .map(|patient| {
            let (api, patch) = (api.clone(), Patch::Strategic(patch.clone()));
            async move {
                let params = PatchParams::default();
                let done = api.patch_status(&patient.node, &params, &patch).await;
                done.map(drop).with_context(|| format!("cannot write {}", patient.node))
            }
        })
        .buffer_unordered(IN_FLIGHT)
        .try_collect()
        .await
}

/// The whole second in which we are.
pub(crate) fn this_second(clock: &Clock) -> Timestamp {
    Timestamp::from_second(clock.now().as_second()).unwrap_or_default()
}

fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// When a clock will show a time.
pub(crate) fn moment(clock: &Clock, time: Timestamp) -> Instant {
    Instant::now() + Duration::try_from(time.duration_since(clock.now())).unwrap_or_default()
}

/// The plain client: the deletions, so many at a time.
pub(crate) async fn delete(
    client: &Client,
    patients: &[Patient],
    in_flight: usize,
) -> Result<Taken> {
    let begin = Instant::now();
    let api = machines(client);
    let answers: Vec<Instant> = stream::iter(patients)
        .map(|patient| {
            let api = api.clone();
            async move {
                let preconditions =
                    Some(Preconditions { uid: patient.uid.clone(), resource_version: None });
                let params = DeleteParams { preconditions, ..DeleteParams::background() };
                let done = api.delete(&patient.machine, &params).await;
                done.with_context(|| format!("cannot delete {}", patient.machine))?;
                anyhow::Ok(Instant::now())
            }
        })
        .buffer_unordered(in_flight)
        .try_collect()
        .await?;
    let (Some(first), Some(last)) = (answers.first(), answers.last()) else {
        bail!("nothing was deleted");
    };
    Ok(Taken { first: *first - begin, last: *last - begin })
}

/// Deletions of Machines as a watch shows them.
pub(crate) struct Deletions {
    missing: BTreeSet<String>,
    events: BoxStream<'static, kube::Result<WatchEvent<PartialObjectMeta<Machine>>>>,
}

impl Deletions {
    /// Begins to watch.
    pub(crate) async fn of(client: &Client, patients: &[Patient]) -> Result<Self> {
        let api = machines(client);
        let limit = ListParams::default().limit(1);
        let now = api.list_metadata(&limit).await.context("cannot list Machines")?;
        let version = now.metadata.resource_version.unwrap_or_default();
        let params = WatchParams::default().timeout(290);
        let events = api.watch_metadata(&params, &version).await.context("cannot watch")?;
        let missing = patients.iter().map(|patient| patient.machine.clone()).collect();
        Ok(Self { missing, events: events.boxed() })
    }

    /// Waits for all of them; says when the first and the last came, from a moment on.
    pub(crate) async fn all(self, begin: Instant) -> Result<Taken> {
        let Self { mut missing, events } = self;
        let count = missing.len();
        let left = begin.saturating_duration_since(Instant::now()) + PATIENCE;
        match timeout(left, arrivals(&mut missing, events)).await {
            Ok(found) => {
                let (first, last) = found?;
                Ok(Taken { first: after(begin, first), last: after(begin, last) })
            }
            Err(_) => bail!("{} of {count} Machines are not deleted", missing.len()),
        }
    }
}

fn after(begin: Instant, moment: Instant) -> Duration {
    moment.saturating_duration_since(begin)
}

async fn arrivals(
    missing: &mut BTreeSet<String>,
    events: impl Stream<Item = kube::Result<WatchEvent<PartialObjectMeta<Machine>>>>,
) -> Result<(Instant, Instant)> {
    let mut events = pin!(events);
    let mut first = None;
    while let Some(event) = events.next().await {
        let machine = match event.context("the watch of Machines broke off")? {
            WatchEvent::Modified(machine) if machine.metadata.deletion_timestamp.is_some() => {
                machine
            }
            WatchEvent::Deleted(machine) => machine,
            WatchEvent::Error(error) => bail!("the watch of Machines ended: {error:?}"),
            _ => continue,
        };
        if missing.remove(&machine.name_any()) {
            let now = Instant::now();
            let first = *first.get_or_insert(now);
            if missing.is_empty() {
                return Ok((first, now));
            }
        }
    }
    bail!("the watch of Machines ended")
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    fn machine(name: &str, deleting: bool) -> PartialObjectMeta<Machine> {
        let mut metadata = json!({"name": name});
        if deleting {
            metadata["deletionTimestamp"] = json!("2026-11-15T12:00:00Z");
        }
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn each_machine_is_deleted_once() {
        let events = [
            WatchEvent::Modified(machine("a", false)),
            WatchEvent::Modified(machine("a", true)),
            WatchEvent::Modified(machine("a", true)),
            WatchEvent::Modified(machine("other", true)),
            WatchEvent::Deleted(machine("b", true)),
        ];
        let paced = stream::iter(events).then(|event| async move {
            sleep(Duration::from_secs(1)).await;
            Ok(event)
        });
        let begin = Instant::now();
        let missing = ["a", "b"].map(str::to_owned).into();
        let deletions = Deletions { missing, events: paced.boxed() };
        let taken = deletions.all(begin).await.unwrap();
        assert_eq!((taken.first.as_secs(), taken.last.as_secs()), (2, 5));
    }

    #[test]
    fn times_are_written_in_seconds() {
        let time = "2026-11-15T12:00:00.75Z".parse().unwrap();
        assert_eq!(seconds(time), "2026-11-15T12:00:00Z");
    }
}
