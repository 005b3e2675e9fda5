//! Pods on one Node, and how they end.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, ensure};
use fleetwright_simnode::TERMINATES_IN;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, Client, api::PostParams};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::watching::{Sighting, What};

/// Where they are.
pub(crate) const NAMESPACE: &str = "default";
/// Longer than pods take to start.
const PATIENCE: Duration = Duration::from_mins(2);

/// A Deployment of pods that run on one Node alone, and take the whole of their grace to end.
pub(crate) fn deployment(name: &str, node: &str, pods: usize, grace: Duration) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": pods,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {
                    "labels": labels,
                    "annotations": {TERMINATES_IN: format!("{}s", grace.as_secs())},
                },
                "spec": {
                    "terminationGracePeriodSeconds": grace.as_secs(),
                    "nodeSelector": {"kubernetes.io/hostname": node},
                    "containers": [{"name": "main", "image": "example.com/web:1"}],
                },
            },
        },
    })
}

/// Makes a Deployment.
pub(crate) async fn make(client: &Client, deployment: Value) -> Result<()> {
    let deployment: Deployment = serde_json::from_value(deployment)?;
    let made = api(client).create(&PostParams::default(), &deployment).await;
    made.context("cannot create the Deployment")?;
    Ok(())
}

/// Waits until all its pods run.
pub(crate) async fn wait_for(client: &Client, name: &str, pods: usize) -> Result<()> {
    let begin = Instant::now();
    loop {
        let found = api(client).get(name).await.context("cannot read the Deployment")?;
        let available = found.status.and_then(|status| status.available_replicas);
        if available == i32::try_from(pods).ok() {
            return Ok(());
        }
        ensure!(begin.elapsed() < PATIENCE, "{available:?} of {pods} pods of {name} run");
        sleep(Duration::from_millis(50)).await;
    }
}

fn api(client: &Client) -> Api<Deployment> {
    Api::namespaced(client.clone(), NAMESPACE)
}

/// How the pods of a Node ended, from a moment on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Endings {
    /// How many there were.
    pub(crate) pods: usize,
    /// When the first was told to end.
    pub(crate) told: Option<Duration>,
    /// When each that ended had ended, in order.
    pub(crate) ended: Vec<Duration>,
}

impl Endings {
    /// Reads them from what was seen of the pods of a Node.
    pub(crate) fn of(sightings: &[Sighting], node: &str, pods: usize, begin: Instant) -> Self {
        let after = |at: Instant| at.saturating_duration_since(begin);
        let mut told = None;
        let mut ended = BTreeMap::new();
        for sighting in sightings {
            match &sighting.what {
                What::PodTold { pod: _, node: of } if of == node => {
                    told.get_or_insert(after(sighting.at));
                }
                What::PodEnded { pod, node: of } if of == node => {
                    ended.entry(pod.clone()).or_insert(after(sighting.at));
                }
                _ => {}
            }
        }
        let mut ended: Vec<Duration> = ended.into_values().collect();
        ended.sort_unstable();
        Self { pods, told, ended }
    }

    /// The share that ended in so much time.
    pub(crate) fn share(&self, within: Duration) -> f64 {
        let ended = self.ended.iter().filter(|at| **at <= within).count();
        ended as f64 / self.pods.max(1) as f64
    }

    /// When so many percent had ended.
    pub(crate) fn percent(&self, percent: usize) -> Option<Duration> {
        let count = (self.pods * percent).div_ceil(100).max(1);
        self.ended.get(count - 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_all_pods_even_of_those_that_never_ended() {
        let begin = Instant::now();
        let at =
            |seconds: u64, what: What| Sighting { at: begin + Duration::from_secs(seconds), what };
        let pod = |name: &str| (name.to_owned(), "n".to_owned());
        let told = |name: &str| {
            let (pod, node) = pod(name);
            What::PodTold { pod, node }
        };
        let ended = |name: &str| {
            let (pod, node) = pod(name);
            What::PodEnded { pod, node }
        };
        let elsewhere = What::PodEnded { pod: "x".to_owned(), node: "other".to_owned() };
        let sightings = [
            at(1, told("a")),
            at(2, told("b")),
            at(3, elsewhere),
            at(31, ended("b")),
            at(11, ended("a")),
            at(40, ended("a")),
        ];
        let found = Endings::of(&sightings, "n", 4, begin);
        assert_eq!(found.told, Some(Duration::from_secs(1)));
        assert_eq!(found.ended, [11, 31].map(Duration::from_secs));
        assert!((found.share(Duration::from_secs(30)) - 0.25).abs() < 1e-9);
        assert!((found.share(Duration::from_mins(2)) - 0.5).abs() < 1e-9);
        assert_eq!(found.percent(50), Some(Duration::from_secs(31)));
        assert_eq!(found.percent(100), None);
    }
}
