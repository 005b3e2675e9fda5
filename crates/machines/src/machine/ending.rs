//! The end of a Machine: its Node is emptied, its instance terminated, its Node removed; and what is
//! left to do when the instance went by itself.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fleetwright_api::names::{annotation, condition, event, finalizer, reason};
use fleetwright_cloud::{ErrorClass, Instance, InstanceState};
use fleetwright_lifecycle::{
    conditions::{self, Condition},
    drain::gate::{self, Gate},
    phase::{DELETE_ERROR, Failure, Phase},
};
use fleetwright_runtime::{Action, EventType};
use k8s_openapi::api::core::v1::ObjectReference;

use super::{
    find::{Identity, find_all},
    nodes, notice,
    observe::{Draft, record_state},
    reconcile::{AGE, Pass, ReconcileError, UNDER_WAY},
    wish,
};
use crate::{
    clouds::Site,
    launch::{Made, intent::Intent},
};

/// How soon to look again at pods that were left behind.
const CLEAN_UP_AGAIN: Duration = Duration::from_secs(20);

/// What becomes of the instances of a Machine that goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaving {
    /// Those to take from their load balancers and to terminate.
    pub retire: Vec<Arc<Instance>>,
    /// What the Machine says of its instance; none when there is none.
    pub state: Option<InstanceState>,
}

/// What becomes of the instances of a Machine that goes. Those that go already are left to it.
pub fn leaving(found: &[Arc<Instance>]) -> Leaving {
    let goes = |instance: &&Arc<Instance>| {
        matches!(instance.state, InstanceState::ShuttingDown | InstanceState::Terminated)
    };
    let last = found.iter().max_by_key(|instance| instance.state.exists());
    Leaving {
        retire: found.iter().filter(|instance| !goes(instance)).cloned().collect(),
        state: last.map(|instance| instance.state),
    }
}

impl Pass<'_> {
    /// Removes every instance that is the Machine's.
    pub(super) async fn delete(&mut self) -> Result<(), Failure> {
        if !self.of.launcher.withdraw(&self.uid) {
            return Err(Failure::later(DELETE_ERROR, UNDER_WAY, "a launch is under way"));
        }
        let id = self.instance_id();
        let intent = match self.intent.clone() {
            Ok(intent) => intent,
            Err(error) => return Err(Failure::retry(DELETE_ERROR, error.to_string())),
        };
        if id.is_none() && intent.is_none() && self.site.is_err() {
            return Ok(());
        }
        let site =
            self.site.clone().map_err(|error| Failure::retry(DELETE_ERROR, error.to_string()))?;
        let retry =
            |error: fleetwright_cloud::CloudError| Failure::retry(DELETE_ERROR, error.to_string());
        site.inventory.at_most(AGE).await.map_err(retry)?;
        if id.is_none()
            && let Some(intent) = &intent
        {
            self.prove(&site, intent).await?;
        }
        let identity = Identity {
            instance: id.as_deref(),
            uid: &self.uid,
            name: &self.key.name,
            intent: intent.as_ref(),
        };
        let mut found = find_all(identity, &site.inventory);
        if found.is_empty()
            && let Some(id) = &id
        {
            found.extend(self.shown(&site, id).await?);
        }
        let spec = self.machine.spec.provider_spec.value.clone().unwrap_or_default();
        let Leaving { retire, state } = leaving(&found);
        for instance in &retire {
            match site.cloud.deregister(&spec, instance).await {
                Ok(()) => {}
                // A load balancer that is gone holds nobody.
                Err(error) if error.class == ErrorClass::NotFound => {}
                Err(error) => return Err(retry(error)),
            }
        }
        if !retire.is_empty() {
            let ids: BTreeSet<String> = retire.iter().map(|instance| instance.id.clone()).collect();
            site.retire(ids).await.map_err(retry)?;
            let text = format!("Deleted machine {}", self.name());
            self.tell(EventType::Normal, event::DELETE, &text);
        }
        if let Some(state) = state {
            record_state(&mut self.draft, state);
        }
        Ok(())
    }

    /// Makes sure that nothing was launched for a Machine that has only an intent, or finds it.
    async fn prove(&self, site: &Site, intent: &Intent) -> Result<(), Failure> {
        let settles = match self.of.launcher.made(intent) {
            Made::Nothing => return Ok(()),
            Made::UnderWay => {
                return Err(Failure::later(DELETE_ERROR, UNDER_WAY, "a launch is under way"));
            }
            Made::Perhaps(settles) => settles,
        };
        let (key, value) = if intent.is_shared() {
            (fleetwright_cloud::GANG_TAG, intent.token.as_str())
        } else {
            (fleetwright_cloud::MACHINE_UID_TAG, self.uid.as_str())
        };
        let found = site.cloud.tagged(key, value).await;
        let found = found.map_err(|error| Failure::retry(DELETE_ERROR, error.to_string()))?;
        site.inventory.seen(&found);
        let mine = |instance: &Instance| {
            !intent.is_shared()
                || instance.machine_uid() == Some(&self.uid)
                || instance.launch_index == Some(intent.index)
        };
        if found.iter().any(mine) || settles <= self.now {
            return Ok(());
        }
        Err(Failure::later(
            DELETE_ERROR,
            UNDER_WAY,
            format!("an instance that was launched may not show yet, until {settles}"),
        ))
    }

    /// The Node may have joined after the Machine was last looked at.
    pub(super) fn find_node(&mut self) {
        if self.draft.status.node_ref.is_none()
            && let Ok(Some(node)) = self.of.nodes.find(self.machine)
        {
            self.draft.status.node_ref = Some(nodes::reference(&node));
        }
    }

    /// The instance went without being asked to. Nobody will end the pods of its Node, and volumes
    /// are not let go while they are there. Says when to look again.
    pub(super) async fn clean_up(&mut self) -> Option<Duration> {
        let lost = conditions::get(&self.conditions, condition::INSTANCE_EXISTS)
            .is_some_and(|exists| exists.reason == reason::INSTANCE_MISSING);
        let node = self.draft.status.node_ref.as_ref()?;
        if !lost || self.of.nodes.linked(node).is_none() {
            return None;
        }
        let node = node.clone();
        let cleaned = match self.of.nodes.clean_up(node.name.as_deref()?).await {
            Ok(left) if left.is_empty() => self.of.nodes.remove(&node).await,
            Ok(_) => return Some(CLEAN_UP_AGAIN),
            Err(error) => Err(error),
        };
        cleaned.err().map(|error| {
            tracing::warn!(machine = %self.key, %error, "cannot clean up after a lost instance");
            CLEAN_UP_AGAIN
        })
    }

    /// Empties the Node. Says when to look again.
    pub(super) async fn drain(
        &mut self,
        pre_drain_hooks: bool,
    ) -> Result<Option<Duration>, ReconcileError> {
        let facts = gate::MachineFacts {
            phase: Phase::Deleting.as_str().to_owned(),
            deleting: true,
            drained: conditions::is_true(&self.conditions, condition::DRAINED),
            excluded: self.draft.annotations.contains_key(annotation::EXCLUDE_NODE_DRAINING),
            has_node: self.draft.status.node_ref.is_some(),
            pre_drain_hooks,
        };
        match gate::gate(&facts) {
            Gate::Ignore => {}
            Gate::Skip => {
                self.tell(EventType::Normal, event::DRAIN_SKIPPED, gate::DRAIN_SKIPPED);
                self.set(Condition::holds(condition::DRAINED).with_message(gate::DRAIN_SKIPPED));
            }
            Gate::Blocked => {
                self.tell(EventType::Normal, event::DRAIN_BLOCKED, gate::BLOCKED_BY_HOOK);
            }
            Gate::Drain => return self.empty_node().await,
        }
        Ok(None)
    }

    pub(super) async fn empty_node(&mut self) -> Result<Option<Duration>, ReconcileError> {
        let node = self.draft.status.node_ref.as_ref().and_then(|node| node.name.clone());
        let Some(node) = node else { return Ok(None) };
        let said = conditions::get(&self.conditions, condition::DRAINED).cloned();
        let started = nodes::drain_start(self.machine, self.now, &self.conditions);
        if said.is_none() {
            if let Some(notice) = self.notice() {
                self.tell(EventType::Warning, event::TERMINATION_NOTICE, &notice::text(&notice));
            }
            self.tell(EventType::Normal, event::DRAIN_PROCEEDS, gate::DRAIN_PROCEEDS);
        }
        if self.instance_is_gone().await {
            return Ok(self.skip_the_dead(&node).await);
        }
        let advance = match self.of.nodes.drain(self.machine, &node, started).await {
            Ok(advance) => advance,
            Err(error) => {
                self.tell(EventType::Normal, event::DRAIN_REQUEUED, &error.to_string());
                return Err(error.into());
            }
        };
        let says = advance.condition();
        if says.status == conditions::Status::True {
            self.tell(EventType::Normal, event::DRAIN_SUCCEEDED, gate::DRAIN_SUCCEEDED);
            self.tell(EventType::Normal, event::DELETED, &format!("Node {node:?} drained"));
        } else if !said.is_some_and(|said| conditions::same(&said, &says)) {
            self.tell(EventType::Normal, event::DRAIN_REQUEUED, &says.message);
        }
        self.set(says);
        Ok(self.of.nodes.again(&advance))
    }

    /// What the Node says of its end.
    fn notice(&self) -> Option<notice::Notice> {
        let node = self.draft.status.node_ref.as_ref()?;
        notice::of(self.of.nodes.linked(node).as_deref()?)
    }

    /// Whether the instance of a Node that does not work is gone: then nobody ends its pods.
    async fn instance_is_gone(&mut self) -> bool {
        let works = |node: &ObjectReference| self.of.nodes.is_ready(node);
        if self.instance_id().is_none() || self.draft.status.node_ref.as_ref().is_some_and(works) {
            return false;
        }
        matches!(self.exists(true).await, Ok(false))
    }

    /// Removes the pods that an instance left, so that their volumes are let go.
    async fn skip_the_dead(&mut self, node: &str) -> Option<Duration> {
        match self.of.nodes.clean_up(node).await {
            Ok(left) => {
                let mut message = gate::DRAIN_SKIPPED.to_owned();
                if !left.is_empty() {
                    message = format!("{message}: its instance is gone, {} stay", left.join(", "));
                }
                self.tell(EventType::Normal, event::DRAIN_SKIPPED, &message);
                self.set(Condition::holds(condition::DRAINED).with_message(message));
                None
            }
            Err(error) => {
                tracing::warn!(machine = %self.key, %error, "cannot clean up a lost instance");
                Some(CLEAN_UP_AGAIN)
            }
        }
    }

    /// Gives back what was taken for the instance alone. Instances leave it behind, and so do
    /// launches that failed half-way. Says when to look again.
    async fn release(&self) -> Result<Option<Duration>, ReconcileError> {
        let Ok(config) = wish::config(self.machine) else { return Ok(None) };
        let launched = self.intent.as_ref().ok().and_then(Option::as_ref).map(|intent| intent.at);
        if !config.has_own_host() || (launched.is_none() && self.instance_id().is_none()) {
            return Ok(None);
        }
        let shows = launched.map(|at| at.saturating_add(self.of.config.settle_time.0));
        if shows.is_some_and(|shows| shows.is_ok_and(|shows| shows > self.now)) {
            return Ok(Some(UNDER_WAY));
        }
        let site = self.site.clone().map_err(|error| ReconcileError::Failed(error.to_string()))?;
        let spec = self.machine.spec.provider_spec.value.clone().unwrap_or_default();
        match site.cloud.release(&spec, &self.uid).await {
            Ok(()) => Ok(None),
            Err(error) if error.class == ErrorClass::InUse => Ok(Some(UNDER_WAY)),
            Err(error) => {
                self.tell(EventType::Warning, event::FAILED_DELETE, &error.to_string());
                Err(ReconcileError::Failed(error.to_string()))
            }
        }
    }

    /// The instance is gone: so goes what was taken for it, the Node, and then the Machine.
    pub(super) async fn let_go(mut self) -> Result<Action, ReconcileError> {
        if let Some(again) = self.release().await? {
            return Ok(Action::requeue_after(again));
        }
        let notice = self.notice();
        let hops = notice::hops(self.machine, notice.as_ref(), &self.conditions, self.now);
        if let Some(node) = self.draft.status.node_ref.clone() {
            self.of.nodes.remove(&node).await?;
        }
        let id = self.instance_id();
        // Nothing else is written: with its last finalizer the Machine is gone.
        self.draft = Draft::of(self.machine);
        self.draft.finalizers.retain(|name| name != finalizer::MACHINE);
        self.write().await?;
        for (hop, span) in hops {
            self.of.metrics.hop(hop, span);
        }
        if let Some(id) = id {
            self.tell(EventType::Normal, event::INSTANCE_GONE, &format!("Instance {id} is gone"));
        }
        self.of.forget(&self.uid);
        Ok(Action::await_change())
    }
}
