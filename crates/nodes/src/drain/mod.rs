//! Carries out the drain of a Node.
//!
//! [`Drainer::advance`] makes one step and never waits: it cordons, asks for the evictions that are
//! due, and says what is missing and when to come back. The decisions are
//! [`fleetwright_lifecycle::drain`]'s. What it remembers between steps is in memory alone; after a
//! restart some pods are asked once too early, and nothing else happens.
//!
//! Every eviction and deletion carries the pod's UID, so a pod that came back under the same name
//! is never hit by mistake.
//!
//! Give it a client that does not retry by itself (`Config::default_retry = false`): kube's own
//! retries would sit on a refused eviction for minutes and hide the budget's name.

mod pods;
mod report;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use fleetwright_clock::Clock;
use fleetwright_lifecycle::drain::{
    self, Existence, Options, Pod as PodFacts, Request, Stage, Verb, Wish,
    attempts::{Answer, Attempts},
    gate,
};
use fleetwright_runtime::{Informer, ObjectKey};
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::DaemonSet,
    core::v1::{Node, Pod},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
    core::Status,
};
use parking_lot::Mutex;
use serde_json::json;

pub use report::{Advance, DRAIN_TIMED_OUT, State};

use crate::facts;

/// How many requests of one step are under way at once.
const CONCURRENCY: usize = 10;
/// How long one request may take. A step is short, so that a worker is free for others.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a DaemonSet is believed to be there.
const DAEMON_SET_TRUST: Duration = Duration::from_mins(1);
/// How soon to make sure that a Node is empty that seems to be.
const MAKE_SURE_AFTER: Duration = Duration::from_secs(1);
/// How many pods are read at once.
const PAGE: u32 = 500;
/// The index of pods by Node.
const NODE_INDEX: &str = "node";

/// Why a step could not be made. Nothing is lost; make it again.
#[derive(Debug, thiserror::Error)]
pub enum DrainError {
    /// The Node cannot be read.
    #[error("cannot read the Node {node}")]
    ReadNode {
        /// The Node.
        node: String,
        /// Why.
        source: kube::Error,
    },
    /// The Nodes of the control plane cannot be read.
    #[error("could not list control plane nodes")]
    ListNodes {
        /// Why.
        source: kube::Error,
    },
    /// The pods cannot be read.
    #[error("cannot list the pods of the Node {node}")]
    ListPods {
        /// The Node.
        node: String,
        /// Why.
        source: kube::Error,
    },
}

/// Drains Nodes of one cluster.
pub struct Drainer {
    client: Client,
    clock: Clock,
    manager: String,
    pods: Option<Informer<Pod>>,
    wishes: bool,
    memory: Mutex<BTreeMap<String, Memory>>,
    /// Held from the look at other control plane Nodes until this one is cordoned, so that two
    /// workers cannot both find that nobody else drains.
    control_plane: tokio::sync::Mutex<()>,
}

/// What is remembered of a Node between two steps.
#[derive(Clone, Debug, Default)]
struct Memory {
    attempts: Attempts,
    daemon_sets: BTreeMap<ObjectKey, Timestamp>,
}

/// How to look at pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    /// As somebody saw them lately.
    Recent,
    /// As they are.
    Current,
}

impl Drainer {
    /// A drainer that reads the pods of a Node whenever it looks.
    pub fn new(client: Client, clock: Clock, manager: &str) -> Self {
        Self {
            client,
            clock,
            manager: manager.to_owned(),
            pods: None,
            wishes: false,
            memory: Mutex::default(),
            control_plane: tokio::sync::Mutex::default(),
        }
    }

    /// The same with an informer of all pods, which wakes the caller when one goes.
    #[must_use]
    pub fn with_pods(mut self, pods: Informer<Pod>) -> Self {
        pods.index(NODE_INDEX, |pod| node_of(pod).map(str::to_owned).into_iter().collect());
        self.pods = Some(pods);
        self
    }

    /// The same for Cluster API, where a label of a pod says whether it is drained
    /// ([`drain::DRAIN_LABEL`]).
    #[must_use]
    pub fn with_wishes(mut self) -> Self {
        self.wishes = true;
        self
    }

    /// Makes one step of the drain of a Node that began at `started`.
    pub async fn advance(
        &self,
        node: &str,
        options: &Options,
        started: Timestamp,
    ) -> Result<Advance, DrainError> {
        let state = match self.read_node(node).await? {
            None => State::NodeGone,
            Some(found) => match self.cordon(&found).await? {
                Some(state) => state,
                None => return self.evict(&found, options, started).await,
            },
        };
        if state.is_over() {
            self.forget(node);
        }
        Ok(Advance::new(state, self.clock.now()))
    }

    /// Removes the pods of a Node whose instance is gone, whatever they are, so that volumes are
    /// let go. Gives the pods that are left, because a finalizer holds them or the API refused.
    /// To be called again until there are none.
    pub async fn clean_up(&self, node: &str) -> Result<Vec<String>, DrainError> {
        let pods = self.current_pods(node).await?;
        let facts: Vec<PodFacts> =
            pods.iter().map(|pod| pods::facts(pod, |_| Existence::Exists)).collect();
        let answers = self.make(&facts, drain::clean_up(&facts)).await;
        for (request, answer) in &answers {
            if answer.code >= 400 && answer.code != 404 && answer.code != 409 {
                let pod = &facts[request.pod];
                tracing::warn!(%pod, node, error = answer.message, "cannot clean up a pod");
            }
        }
        self.forget(node);
        let left = self.current_pods(node).await?;
        Ok(left.iter().map(|pod| ObjectKey::of(pod.as_ref()).to_string()).collect())
    }

    /// Forgets a Node that is not drained any more.
    pub fn forget(&self, node: &str) {
        self.memory.lock().remove(node);
    }

    async fn read_node(&self, node: &str) -> Result<Option<Node>, DrainError> {
        let api: Api<Node> = Api::all(self.client.clone());
        api.get_opt(node)
            .await
            .map_err(|source| DrainError::ReadNode { node: node.to_owned(), source })
    }

    /// Cordons a Node. Gives a state when the drain cannot go on.
    async fn cordon(&self, node: &Node) -> Result<Option<State>, DrainError> {
        let this = facts::for_drain(node);
        if this.cordoned {
            return Ok(None);
        }
        let _one_at_a_time =
            if this.control_plane { Some(self.control_plane.lock().await) } else { None };
        if this.control_plane {
            let others = self.control_plane_nodes().await?;
            if let Some(other) = gate::waits_for(&this, &others) {
                return Ok(Some(State::WaitsForNode(other.name.clone())));
            }
        }
        let api: Api<Node> = Api::all(self.client.clone());
        let params =
            PatchParams { field_manager: Some(self.manager.clone()), ..PatchParams::default() };
        let patch = json!({"spec": {"unschedulable": true}});
        match api.patch(&this.name, &params, &Patch::Merge(&patch)).await {
            Ok(_) => Ok(None),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Some(State::NodeGone)),
            Err(error) => Ok(Some(State::CannotCordon(error.to_string()))),
        }
    }

    async fn control_plane_nodes(&self) -> Result<Vec<gate::NodeFacts>, DrainError> {
        let api: Api<Node> = Api::all(self.client.clone());
        let mut found = Vec::new();
        for label in [gate::CONTROL_PLANE_LABEL, gate::MASTER_LABEL] {
            let nodes = api
                .list(&ListParams::default().labels(label))
                .await
                .map_err(|source| DrainError::ListNodes { source })?;
            found.extend(nodes.iter().map(facts::for_drain));
        }
        Ok(found)
    }

    async fn evict(
        &self,
        node: &Node,
        options: &Options,
        started: Timestamp,
    ) -> Result<Advance, DrainError> {
        let name = node.name_any();
        let unreachable;
        let options = if facts::unreachable(node) {
            unreachable = options.clone().unreachable();
            &unreachable
        } else {
            options
        };
        let mut memory = self.memory.lock().get(&name).cloned().unwrap_or_default();
        let mut pods = self.facts(&name, View::Recent, &mut memory).await?;
        let mut plan = drain::plan(options, &pods, &memory.attempts, started, self.clock.now());
        if plan.stage == Stage::Drained {
            // What was seen lately may be old; this is not to be wrong.
            pods = self.facts(&name, View::Current, &mut memory).await?;
            memory.attempts.believe_the_list();
            plan = drain::plan(options, &pods, &memory.attempts, started, self.clock.now());
        }
        let warnings = plan.warnings.clone();
        if !plan.requests.is_empty() {
            let answers = self.make(&pods, plan.requests).await;
            let deadline = options.deadline.is_some();
            for (request, answer) in answers {
                let pod = &pods[request.pod];
                let now = self.clock.now();
                memory.attempts.answered(pod, request.verb, &answer, deadline, now);
            }
            plan = drain::plan(options, &pods, &memory.attempts, started, self.clock.now());
            if plan.stage == Stage::Drained {
                // The answers say so; the next look makes sure.
                plan.stage = Stage::Draining;
                plan.look_again = Some(self.clock.now() + MAKE_SURE_AFTER);
            }
        }
        memory.attempts.keep_only(pods.iter().map(|pod| pod.uid.as_str()));
        let mut advance = Advance::of(plan, options, self.clock.now());
        advance.warnings = warnings;
        if advance.state.is_over() {
            self.forget(&name);
        } else {
            self.memory.lock().insert(name, memory);
        }
        Ok(advance)
    }

    /// The pods of a Node, with what is known of their DaemonSets.
    async fn facts(
        &self,
        node: &str,
        view: View,
        memory: &mut Memory,
    ) -> Result<Vec<PodFacts>, DrainError> {
        let pods = match (view, &self.pods) {
            (View::Recent, Some(informer)) if informer.has_synced() => {
                informer.by_index(NODE_INDEX, node)
            }
            (View::Recent, _) => self.list_pods(node, View::Recent).await?,
            (View::Current, _) => self.current_pods(node).await?,
        };
        let wanted: Vec<ObjectKey> = pods.iter().filter_map(|pod| pods::daemon_set(pod)).collect();
        let lookups = self.daemon_sets(wanted, memory).await;
        let existence = |key: &ObjectKey| lookups.get(key).cloned().unwrap_or(Existence::Exists);
        let facts = |pod: &Arc<Pod>| {
            let wish = if self.wishes { pods::wish(pod) } else { Wish::Drain };
            PodFacts { wish, ..pods::facts(pod, existence) }
        };
        Ok(pods.iter().map(facts).collect())
    }

    async fn current_pods(&self, node: &str) -> Result<Vec<Arc<Pod>>, DrainError> {
        self.list_pods(node, View::Current).await
    }

    async fn list_pods(&self, node: &str, view: View) -> Result<Vec<Arc<Pod>>, DrainError> {
        let api: Api<Pod> = Api::all(self.client.clone());
        let mut params = ListParams::default().fields(&format!("spec.nodeName={node}"));
        params = match view {
            // Answered from memory, not by reading every pod of the cluster.
            View::Recent => params.match_any(),
            View::Current => params.limit(PAGE),
        };
        let mut pods = Vec::new();
        loop {
            let page = api
                .list(&params)
                .await
                .map_err(|source| DrainError::ListPods { node: node.to_owned(), source })?;
            pods.extend(page.items.into_iter().map(Arc::new));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(pods),
            }
        }
    }

    /// Whether DaemonSets exist. Those that do are not asked for again at once.
    async fn daemon_sets(
        &self,
        mut wanted: Vec<ObjectKey>,
        memory: &mut Memory,
    ) -> BTreeMap<ObjectKey, Existence> {
        let now = self.clock.now();
        memory.daemon_sets.retain(|_, seen| now < *seen + DAEMON_SET_TRUST);
        wanted.sort();
        wanted.dedup();
        wanted.retain(|key| !memory.daemon_sets.contains_key(key));
        let lookups = stream::iter(wanted).map(|key| async {
            let api: Api<DaemonSet> = Api::namespaced(self.client.clone(), &key.namespace);
            let existence = match self.in_time(api.get_metadata(&key.name)).await {
                Ok(_) => Existence::Exists,
                Err(answer) if answer.code == 404 => Existence::Absent(answer.message),
                Err(answer) => Existence::Unknown(answer.message),
            };
            (key, existence)
        });
        let found: BTreeMap<ObjectKey, Existence> =
            lookups.buffer_unordered(CONCURRENCY).collect().await;
        for (key, existence) in &found {
            if *existence == Existence::Exists {
                memory.daemon_sets.insert(key.clone(), now);
            }
        }
        found
    }

    /// Makes requests, some at once, in their order.
    async fn make(&self, pods: &[PodFacts], requests: Vec<Request>) -> Vec<(Request, Answer)> {
        let made = stream::iter(requests).map(|request| async {
            let answer = self.make_one(&pods[request.pod], &request).await;
            Ok::<_, std::convert::Infallible>((request, answer))
        });
        // Cannot fail; this keeps the answers in the order of the requests.
        made.buffered(CONCURRENCY).try_collect().await.unwrap_or_default()
    }

    async fn make_one(&self, pod: &PodFacts, request: &Request) -> Answer {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace);
        let params = DeleteParams {
            grace_period_seconds: request
                .grace
                .map(|grace| u32::try_from(grace.as_secs()).unwrap_or(u32::MAX)),
            preconditions: Some(Preconditions {
                uid: Some(pod.uid.clone()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let made = match request.verb {
            Verb::Evict => {
                let eviction = json!({
                    "apiVersion": "policy/v1",
                    "kind": "Eviction",
                    "metadata": {"name": pod.name, "namespace": pod.namespace},
                    "deleteOptions": params,
                });
                let none = PostParams::default();
                // Not `Api::evict`: kube 5.0 spells the options in a way that the API ignores.
                let evict = api.create_subresource("eviction", &pod.name, &none, &eviction);
                self.in_time(evict).await.map(|_: Status| ())
            }
            Verb::Delete => self.in_time(api.delete(&pod.name, &params)).await.map(drop),
        };
        let answer =
            made.map_or_else(|answer| answer, |()| Answer { code: 200, ..Answer::default() });
        tracing::debug!(%pod, verb = ?request.verb, code = answer.code, answer.message, "asked");
        answer
    }

    /// The value, or what the API said instead.
    async fn in_time<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Answer> {
        match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(report::answer(error)),
            Err(_) => Err(Answer {
                message: format!("no answer within {} seconds", REQUEST_TIMEOUT.as_secs()),
                ..Answer::default()
            }),
        }
    }
}

/// The Node that a pod runs on.
pub fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}
