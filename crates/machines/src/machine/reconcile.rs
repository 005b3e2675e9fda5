//! One pass over a Machine: asks [`fleetwright_lifecycle::phase`] what comes next, does it, and
//! writes what came of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use fleetwright_api::{
    aws::AWSMachineProviderConfig,
    machine::{Machine, MachineSet, Phase as ApiPhase},
    names::{annotation, condition, event, finalizer, label, message, reason},
    placement::AWSPlacementGroup,
};
use fleetwright_clock::Clock;
use fleetwright_cloud::{
    Instance, InstanceState, Shape,
    tags::{missing_tags, without_repetitions},
};
use fleetwright_lifecycle::{
    conditions::{self, Condition, Style},
    hooks,
    phase::{Call, End, Facts, Failure, Learned, Phase, Step, Then, UPDATE_ERROR, next},
};
use fleetwright_runtime::{Action, EventRecorder, EventType, Informer, ObjectKey};
use jiff::Timestamp;
use kube::{Api, Client, Resource as _, ResourceExt as _, api::ObjectMeta};
use parking_lot::Mutex;
use serde_json::Value;

use super::{
    echo::Replaced,
    find::{Identity, find, find_all},
    group_gate::{self, Passed},
    instance_id, launching,
    launching::{Circumstances, News, Outlook},
    look::{self, Youth},
    market,
    metrics::{FailureLabels, MachineMetrics, PhaseLabels},
    nodes::{self, NodeError, Nodes},
    notice,
    observe::{Draft, observe, record_failure, record_instance, record_state},
    set_uid, status,
    wish::{self, Obstacle},
    write::write,
};
use crate::{
    authority,
    clouds::{Clouds, NoSite, Site},
    group::Groups,
    launch::{
        Candidate, Launcher, Standing,
        intent::{Intent, IntentError},
        own_tags,
        settings::{GangPolicy, LaunchConfig},
        verdict::Patience,
    },
    set::replacing,
};

/// What is known of the cloud is at most this old when a Machine is looked at.
pub(super) const AGE: Duration = Duration::from_mins(2);
/// How soon a launch that is under way is looked at again; its end wakes the Machine earlier.
pub(super) const UNDER_WAY: Duration = Duration::from_secs(5);

/// A pass that did not reach its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// What was decided could not be written.
    #[error("cannot write Machine {0}")]
    Write(ObjectKey, #[source] kube::Error),
    /// What the shared rule says.
    #[error("{0}")]
    Failed(String),
    /// The Node.
    #[error("cannot look after the Node")]
    Node(#[from] NodeError),
}

/// How long to wait for the echo of a write, should nothing else happen.
const ECHO: Duration = Duration::from_secs(10);

/// Everything that a pass needs.
pub(crate) struct Reconciler {
    pub(crate) client: Client,
    pub(crate) machines: Informer<Machine>,
    pub(crate) sets: Informer<MachineSet>,
    pub(crate) groups: Informer<AWSPlacementGroup>,
    pub(crate) clouds: Clouds,
    pub(crate) launcher: Launcher,
    pub(crate) nodes: Nodes,
    pub(crate) placement: Option<Groups>,
    pub(crate) config: LaunchConfig,
    pub(crate) clock: Clock,
    pub(crate) events: EventRecorder,
    pub(crate) metrics: MachineMetrics,
    /// Machines that are behind their load balancers, as far as this process knows.
    pub(crate) registered: Mutex<BTreeSet<String>>,
    /// UIDs by name, to forget what is gone.
    pub(crate) known: Mutex<BTreeMap<ObjectKey, String>>,
    /// What this process wrote and has not seen yet.
    pub(crate) replaced: Replaced,
}

/// One pass.
pub(super) struct Pass<'a> {
    pub(super) of: &'a Reconciler,
    pub(super) machine: &'a Machine,
    pub(super) key: ObjectKey,
    pub(super) uid: String,
    pub(super) now: Timestamp,
    pub(super) draft: Draft,
    pub(super) conditions: Vec<Condition>,
    pub(super) intent: Result<Option<Intent>, IntentError>,
    pub(super) site: Result<Arc<Site>, NoSite>,
    pub(super) instance: Option<Arc<Instance>>,
}

impl Reconciler {
    /// Reconciles one Machine.
    pub(crate) async fn reconcile(
        self: Arc<Self>,
        key: ObjectKey,
    ) -> Result<Action, ReconcileError> {
        let Some(machine) = self.machines.get(&key) else {
            if let Some(uid) = self.known.lock().remove(&key) {
                self.forget(&uid);
            }
            self.replaced.is_old(&key, None);
            return Ok(Action::await_change());
        };
        if self.replaced.is_old(&key, machine.meta().resource_version.as_deref()) {
            // What we wrote last is on its way here and brings us back.
            return Ok(Action::requeue_after(ECHO));
        }
        let uid = machine.uid().unwrap_or_default();
        if let Some(old) = self.known.lock().insert(key.clone(), uid.clone())
            && old != uid
        {
            self.forget(&old);
        }
        let authority = machine.status.as_ref().and_then(|s| s.authoritative_api.as_ref());
        let ours = authority::is_ours(authority);
        if ours && !self.is_complete(&machine) {
            return Ok(Action::await_change());
        }
        let now = self.clock.now();
        let draft = Draft::of(&machine);
        let mut pass = Pass {
            of: &self,
            machine: &machine,
            key,
            uid,
            now,
            conditions: status::conditions(&draft.status),
            draft,
            intent: Intent::of(&machine),
            site: wish::site(&self.clouds, &machine),
            instance: None,
        };
        if let Some(paused) = authority::paused(authority) {
            pass.set(paused);
        }
        if ours { pass.run().await } else { pass.pause().await }
    }

    pub(super) fn forget(&self, uid: &str) {
        self.launcher.forget(uid);
        self.registered.lock().remove(uid);
    }

    /// Whether the Machine has what every Machine needs.
    fn is_complete(&self, machine: &Machine) -> bool {
        let labels = machine.labels();
        let cluster = labels.get(label::CLUSTER).or_else(|| labels.get(label::LEGACY_CLUSTER));
        if cluster.is_none_or(String::is_empty) && machine.meta().deletion_timestamp.is_none() {
            let why = format!("missing {:?} label", label::CLUSTER);
            self.tell(machine, EventType::Warning, event::FAILED_VALIDATE, &why);
            return false;
        }
        true
    }

    pub(super) fn tell(&self, machine: &Machine, kind: EventType, reason: &str, message: &str) {
        self.events.record(&machine.object_ref(&()), kind, reason, message);
    }

    fn set_of(&self, machine: &Machine) -> Option<Arc<MachineSet>> {
        let uid = set_uid(machine)?;
        let owners = machine.meta().owner_references.as_deref().unwrap_or_default();
        let owner = owners.iter().find(|owner| owner.uid == uid)?;
        let key = ObjectKey::new(machine.namespace().unwrap_or_default(), &owner.name);
        self.sets.get(&key).filter(|set| set.meta().uid.as_deref() == Some(uid))
    }
}

impl Pass<'_> {
    async fn run(mut self) -> Result<Action, ReconcileError> {
        let deleting = self.machine.meta().deletion_timestamp.is_some();
        let lifecycle_hooks = &self.machine.spec.lifecycle_hooks;
        let pre_drain = status::hooks(&lifecycle_hooks.pre_drain);
        let pre_terminate = status::hooks(&lifecycle_hooks.pre_terminate);
        for condition in hooks::conditions(&pre_drain, &pre_terminate) {
            self.set(condition);
        }
        let mut again = None;
        if deleting && self.has_finalizer() {
            self.find_node();
            again = self.drain(!pre_drain.is_empty()).await?;
        }
        let mut learned = Learned::Nothing;
        let end = loop {
            let facts = self.facts(deleting, &pre_terminate);
            match next(&facts, &learned) {
                Step::AddFinalizer => {
                    self.draft.finalizers.push(finalizer::MACHINE.to_owned());
                    self.write().await?;
                    return Ok(Action::await_change());
                }
                Step::Call(call) => learned = self.make(call, deleting).await,
                Step::End(end) => break end,
            }
        };
        if let Some(condition) = end.instance_exists.clone() {
            self.set(condition);
        }
        if !deleting
            && (end.phase == Some(Phase::Failed)
                || self.draft.status.phase == Some(ApiPhase::Failed))
        {
            again = self.clean_up().await;
        }
        let starting = self.instance.as_deref().and_then(look::again);
        let again = again.into_iter().chain(starting).min();
        self.finish(end, again).await
    }

    /// Another API looks after the Machine: nothing is done but to say so.
    async fn pause(mut self) -> Result<Action, ReconcileError> {
        self.of.launcher.withdraw(&self.uid);
        let before = self.machine.status.clone().unwrap_or_default();
        let drafted = std::mem::take(&mut self.draft.status);
        let conditions = std::mem::take(&mut self.conditions);
        let (settled, _) = status::settle(&before, drafted, conditions, None, None, self.now);
        self.draft.status = settled;
        self.write().await?;
        Ok(Action::await_change())
    }

    fn has_finalizer(&self) -> bool {
        self.draft.finalizers.iter().any(|name| name == finalizer::MACHINE)
    }

    fn facts(&self, deleting: bool, pre_terminate: &[hooks::Hook]) -> Facts {
        let status = &self.draft.status;
        Facts {
            phase: status.phase.as_ref().map(ToString::to_string).unwrap_or_default(),
            deleting,
            finalizer: self.has_finalizer(),
            drained: conditions::is_true(&self.conditions, condition::DRAINED),
            pre_terminate: pre_terminate.to_vec(),
            // An instance that was made counts, whatever else is known of it: there is never
            // another one for this Machine.
            provider_id: self.draft.spec.provider_id.is_some() || self.instance_id().is_some(),
            addresses: !status.addresses.is_empty(),
            node_ref: status.node_ref.is_some(),
        }
    }

    pub(super) fn set(&mut self, condition: Condition) {
        conditions::set(&mut self.conditions, condition, self.now, Style::Sorted);
    }

    pub(super) fn instance_id(&self) -> Option<String> {
        instance_id(self.machine).or_else(|| match self.of.launcher.standing(&self.uid) {
            Standing::Placed(id) => Some(id),
            _ => None,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.key.name
    }

    pub(super) fn tell(&self, kind: EventType, reason: &str, message: &str) {
        self.of.tell(self.machine, kind, reason, message);
    }

    async fn make(&mut self, call: Call, deleting: bool) -> Learned {
        match call {
            Call::Exists => Learned::Exists(self.exists(deleting).await),
            Call::Create => Learned::Created(self.create().await),
            Call::Update => Learned::Updated(self.update().await),
            Call::Delete => {
                let outcome = self.delete().await;
                if let Err(failure) = &outcome
                    && !matches!(failure.kind, fleetwright_lifecycle::phase::FailureKind::Later(_))
                {
                    self.tell(EventType::Warning, event::FAILED_DELETE, &failure.message);
                    self.of.metrics.delete_failed.get_or_create(&self.failure()).inc();
                }
                Learned::Deleted(outcome)
            }
        }
    }

    fn failure(&self) -> FailureLabels {
        FailureLabels {
            name: self.key.name.clone(),
            namespace: self.key.namespace.clone(),
            reason: String::new(),
        }
    }

    /// Whether the instance exists.
    pub(super) async fn exists(&mut self, deleting: bool) -> Result<bool, Failure> {
        let id = self.instance_id();
        let site = match &self.site {
            Ok(site) => site.clone(),
            // Without a place there is nothing to look for, unless there was an instance.
            Err(_) if id.is_none() && self.intent == Ok(None) => return Ok(false),
            Err(error) => return Err(Failure::retry(UPDATE_ERROR, error.to_string())),
        };
        site.inventory
            .at_most(AGE)
            .await
            .map_err(|error| Failure::retry(UPDATE_ERROR, error.to_string()))?;
        let intent = self.intent.clone().unwrap_or_default();
        let identity = Identity {
            instance: id.as_deref(),
            uid: &self.uid,
            name: &self.key.name,
            intent: intent.as_ref(),
        };
        if deleting {
            let all = find_all(identity, &site.inventory);
            let alive = all.into_iter().find(|instance| instance.state.exists());
            if let Some(instance) = &alive {
                record_state(&mut self.draft, instance.state);
                site.hurry();
            }
            if alive.is_some() {
                return Ok(true);
            }
            return match &id {
                Some(id) => self.shown(&site, id).await.map(|found| found.is_some()),
                None => Ok(false),
            };
        }
        self.instance = find(identity, &site.inventory);
        if self.instance.is_none()
            && let Some(id) = &id
        {
            self.instance = self.shown(&site, id).await?;
        }
        let exists = look::exists(id.as_deref(), self.instance.as_deref(), &self.youth())?;
        if let Some(instance) = self.instance.as_ref().filter(|_| !exists) {
            // It was made, if nobody wrote that down yet.
            record_instance(&mut self.draft, &instance.id.clone());
            self.draft.spec.provider_id.get_or_insert_with(|| instance.provider_id.clone());
        }
        Ok(exists)
    }

    /// Asks the cloud for one instance that the inventory does not show: it may have lost the tag
    /// that the inventory goes by.
    pub(super) async fn shown(
        &self,
        site: &Site,
        id: &str,
    ) -> Result<Option<Arc<Instance>>, Failure> {
        let found = site.cloud.instances(BTreeSet::from([id.to_owned()])).await;
        let found = found.map_err(|error| Failure::retry(UPDATE_ERROR, error.to_string()))?;
        let alive = found.into_iter().find(|instance| instance.id == id);
        Ok(alive.filter(|instance| instance.state.exists()).map(|instance| {
            site.inventory.seen(std::slice::from_ref(&instance));
            Arc::new(instance)
        }))
    }

    fn youth(&self) -> Youth {
        let status = &self.draft.status;
        Youth {
            has_addresses: !status.addresses.is_empty(),
            updated: status.last_updated.as_ref().map(|time| time.0),
            launched: self.intent.as_ref().ok().and_then(Option::as_ref).map(|intent| intent.at),
            settle_time: self.of.config.settle_time.0,
            now: self.now,
        }
    }

    /// Has an instance made.
    async fn create(&mut self) -> Result<(), Failure> {
        let said = conditions::get(&self.conditions, condition::MACHINE_CREATED).cloned();
        let since = launching::short_since(said.as_ref());
        if let Some(since) = since {
            self.of.launcher.short_since(&self.uid, since);
        }
        let set = self.of.set_of(self.machine);
        let outlook = self.launch(set.as_deref(), said.as_ref(), since).await;
        let Outlook { news, outcome } = outlook;
        if is_final(&outcome) && !self.of.launcher.withdraw(&self.uid) {
            // It is being launched this very moment: what becomes of it decides.
            return Ok(());
        }
        match news {
            News::None => {}
            News::Clear => {
                conditions::remove(&mut self.conditions, condition::MACHINE_CREATED);
            }
            News::Says(news) => {
                if !said.is_some_and(|said| conditions::same(&said, &news)) {
                    self.tell(EventType::Warning, event::FAILED_CREATE, &news.message);
                    self.of.metrics.create_failed.get_or_create(&self.failure()).inc();
                }
                record_failure(&mut self.draft, &news.message, self.now);
                self.set(news);
            }
        }
        outcome
    }

    async fn launch(
        &mut self,
        set: Option<&MachineSet>,
        said: Option<&Condition>,
        since: Option<Timestamp>,
    ) -> Outlook {
        let deadline = wish::capacity_deadline(set).unwrap_or(self.of.config.capacity_deadline);
        let interruptible = market::asked(&self.machine.spec.provider_spec);
        let patience =
            Patience { deadline: deadline.0, interruptible, spot: self.of.config.spot_capacity };
        let at = Circumstances {
            said,
            patience,
            missing_deadline: self.of.config.missing_deadline.0,
            now: self.now,
        };
        let intent = match &self.intent {
            Ok(intent) => intent.clone(),
            Err(error) => {
                let obstacle = Obstacle::NotNow(error.to_string());
                return launching::obstructed(&obstacle, since, at);
            }
        };
        let open = intent.as_ref().is_some_and(|intent| self.of.launcher.is_open(intent));
        match self.candidate(set, intent).await {
            Ok(candidate) => {
                let shape = candidate.launch.as_ref().map(|l| l.shape.clone()).unwrap_or_default();
                self.of.launcher.submit(candidate);
                let standing = self.of.launcher.standing(&self.uid);
                launching::waiting(&standing, &shape, at)
            }
            Err((obstacle, Some(candidate))) if open => {
                // Something may have been made: it is looked for, whatever is in the way.
                self.of.launcher.submit(candidate);
                let mut outlook = launching::obstructed(&obstacle, since, at);
                if is_final(&outlook.outcome) {
                    let again = Failure::later(UPDATE_ERROR, UNDER_WAY, obstacle_text(&obstacle));
                    outlook.outcome = Err(again);
                }
                if self.of.launcher.standing(&self.uid) == Standing::Gone {
                    outlook = launching::waiting(&Standing::Gone, &Shape::default(), at);
                }
                outlook
            }
            Err((obstacle, _)) => {
                self.of.launcher.withdraw(&self.uid);
                launching::obstructed(&obstacle, since, at)
            }
        }
    }

    /// The Machine as the launcher takes it, or what is in the way.
    async fn candidate(
        &self,
        set: Option<&MachineSet>,
        intent: Option<Intent>,
    ) -> Result<Candidate, (Obstacle, Option<Candidate>)> {
        let site = self.site.clone().map_err(|error| (error.into(), None))?;
        let mut candidate = Candidate {
            key: self.key.clone(),
            uid: self.uid.clone(),
            site: site.clone(),
            launch: None,
            intent,
            gang: None,
            headroom: None,
        };
        let fail = |obstacle| (obstacle, Some(candidate.clone()));
        let config = wish::config(self.machine).map_err(&fail)?;
        let launch = wish::resolve(&self.of.clouds, &site, self.machine, &config).await;
        let launch = launch.map_err(&fail)?;
        let gate = self.group_gate(&site, &config, &launch.shape).await.map_err(&fail)?;
        let asked = wish::gang(set).map_err(|error| fail(Obstacle::Wrong(error.to_string())))?;
        candidate.headroom = gate.room;
        let policy = match asked {
            Some(asked) => asked,
            None if gate.is_cluster => GangPolicy::of_cluster_groups(self.of.config.gang),
            None => None,
        };
        candidate.gang = policy.zip(set_uid(self.machine)).map(|(p, set)| (set.to_owned(), p));
        candidate.launch = Some(Arc::new(launch));
        Ok(candidate)
    }

    /// Asks the placement group whether it takes the Machine now.
    async fn group_gate(
        &self,
        site: &Site,
        config: &AWSMachineProviderConfig,
        shape: &Shape,
    ) -> Result<Passed, Obstacle> {
        let Some(name) = config.group_name().ok().flatten() else {
            return group_gate::ask(config, shape, None, None, &[], self.now)
                .map_err(|stopped| stopped.obstacle);
        };
        let group = self.of.groups.get(&ObjectKey::new(&self.key.namespace, name));
        // What cannot be looked up is left to the launch.
        let offer = site.cloud.instance_type(&config.instance_type).await.ok().flatten();
        let seen = self.of.placement.as_ref().map(|groups| groups.members(name));
        let ours = site.inventory.by_group(name);
        let members = group_gate::members(seen.unwrap_or_default(), ours.iter().map(AsRef::as_ref));
        let strategies = offer.as_ref().map(|offer| &offer.strategies);
        let answer =
            group_gate::ask(config, shape, group.as_deref(), strategies, &members, self.now);
        answer.map_err(|stopped| {
            if stopped.refresh
                && let Some(groups) = &self.of.placement
            {
                groups.refresh(name);
            }
            stopped.obstacle
        })
    }

    /// Brings the Machine up to date with its instance.
    async fn update(&mut self) -> Result<(), Failure> {
        let Some(instance) = self.instance.clone() else { return Ok(()) };
        let Ok(site) = self.site.clone() else { return Ok(()) };
        let first = instance_id(self.machine).is_none() || self.draft.spec.provider_id.is_none();
        if instance_id(self.machine).is_none() {
            // Saved before anything else that can fail.
            record_instance(&mut self.draft, &instance.id);
        }
        observe(&mut self.draft, &instance, self.now);
        self.set(
            Condition::holds(condition::MACHINE_CREATED)
                .with_reason(reason::MACHINE_CREATION_SUCCEEDED)
                .with_message(message::MACHINE_CREATED),
        );
        if first {
            let text = format!("Created Machine {}", self.name());
            self.tell(EventType::Normal, event::CREATE, &text);
        }
        if instance.state == InstanceState::Pending {
            site.hurry();
        }
        self.link().await?;
        self.tag(&site, &instance).await?;
        self.register(&site, &instance).await
    }

    /// Links the Machine to its Node, and the Node to the Machine.
    async fn link(&mut self) -> Result<(), Failure> {
        let as_it_will_be = Machine {
            metadata: ObjectMeta {
                labels: Some(self.draft.labels.clone()),
                ..self.machine.metadata.clone()
            },
            spec: self.draft.spec.clone(),
            status: Some(self.draft.status.clone()),
        };
        let known = self.draft.status.node_ref.as_ref();
        let node = match known.and_then(|reference| self.of.nodes.linked(reference)) {
            Some(node) => Some(node),
            None => self.of.nodes.find(&as_it_will_be).map_err(|error| self.node_failed(&error))?,
        };
        self.draft.status.node_ref = node.as_deref().map(nodes::reference);
        if let Some(node) = node {
            let labelled = self.of.nodes.label(&as_it_will_be, &node).await;
            labelled.map_err(|error| self.node_failed(&error))?;
        }
        Ok(())
    }

    fn node_failed(&self, error: &NodeError) -> Failure {
        // Somebody else wrote to the Node: that is for the next pass.
        if let NodeError::Write(_, kube::Error::Api(status)) = error
            && (status.is_conflict() || status.is_not_found())
        {
            return Failure::later(UPDATE_ERROR, Duration::from_secs(1), error.to_string());
        }
        self.update_failed(&error.to_string())
    }

    /// What is launched together is tagged one by one, disks included, once they are known; and
    /// so is what lost a tag, or whose Machine wants other ones.
    async fn tag(&self, site: &Site, instance: &Instance) -> Result<(), Failure> {
        let spec = self.machine.spec.provider_spec.value.as_ref().unwrap_or(&Value::Null);
        let of_spec = site.cloud.wanted_tags(spec, &site.cluster, &site.cluster_tags);
        let own = own_tags(self.name(), &self.uid);
        let wanted = without_repetitions(own.into_iter().chain(of_spec));
        let missing = missing_tags(&instance.tags, &wanted);
        let ready = !instance.volumes.is_empty() || instance.state == InstanceState::Running;
        if missing.is_empty() || !ready {
            return Ok(());
        }
        let ids: Vec<String> =
            std::iter::once(&instance.id).chain(&instance.volumes).cloned().collect();
        let tagged = site.cloud.tag(&ids, &missing).await;
        tagged.map_err(|error| self.update_failed(&format!("failed to tag instance: {error}")))?;
        site.inventory.tagged(&ids[..1], &missing);
        Ok(())
    }

    /// Puts the instance behind its load balancers, once.
    async fn register(&self, site: &Site, instance: &Instance) -> Result<(), Failure> {
        let Some(spec) = &self.machine.spec.provider_spec.value else { return Ok(()) };
        let balanced = spec["loadBalancers"].as_array().is_some_and(|list| !list.is_empty());
        let known = self.of.registered.lock().contains(&self.uid);
        if !balanced || known || instance.state != InstanceState::Running {
            return Ok(());
        }
        let registered = site.cloud.register(spec, instance).await;
        registered.map_err(|error| {
            self.update_failed(&format!("failed to register load balancers: {error}"))
        })?;
        self.of.registered.lock().insert(self.uid.clone());
        Ok(())
    }

    fn update_failed(&self, why: &str) -> Failure {
        self.tell(EventType::Warning, event::FAILED_UPDATE, why);
        self.of.metrics.update_failed.get_or_create(&self.failure()).inc();
        Failure::retry(UPDATE_ERROR, why)
    }

    /// Writes what the pass came to.
    async fn finish(mut self, end: End, again: Option<Duration>) -> Result<Action, ReconcileError> {
        let End { phase, error, finish, then, .. } = end;
        if finish {
            return self.let_go().await;
        }
        let before = self.machine.status.clone().unwrap_or_default();
        let drafted = std::mem::take(&mut self.draft.status);
        let conditions = std::mem::take(&mut self.conditions);
        let (settled, instance_state) =
            status::settle(&before, drafted, conditions, phase, error.as_ref(), self.now);
        if let Some(state) = instance_state {
            let key = annotation::INSTANCE_STATE.to_owned();
            self.draft.annotations.insert(key, state.to_owned());
        }
        if let Some(phase) = phase
            && before.phase.as_ref().map(|known| known.as_str().to_owned()).as_deref()
                != Some(phase.as_str())
        {
            self.moved(phase);
        }
        self.draft.status = settled;
        self.write().await?;
        match then {
            Then::Done => Ok(again.map_or_else(Action::await_change, Action::requeue_after)),
            Then::Again(after) => Ok(Action::requeue_after(again.map_or(after, |a| a.min(after)))),
            Then::Error(error) => Err(ReconcileError::Failed(error)),
        }
    }

    fn moved(&self, phase: Phase) {
        let Some(created) = self.machine.creation_timestamp() else { return };
        let took = self.now.duration_since(created.0).as_secs_f64();
        let labels = PhaseLabels { phase: phase.as_str() };
        self.of.metrics.phase_transition.get_or_create(&labels).observe(took.max(0.0));
        if let (Phase::Running, Some(since)) = (phase, replacing::since(self.machine)) {
            let took = Duration::try_from(self.now.duration_since(since)).unwrap_or_default();
            self.of.metrics.hop(notice::REPLACED, took);
        }
        if phase == Phase::Failed {
            tracing::warn!(machine = %self.key, "Failed");
        }
    }

    pub(super) async fn write(&self) -> Result<(), ReconcileError> {
        let api: Api<Machine> = Api::namespaced(self.of.client.clone(), &self.key.namespace);
        match write(&api, self.machine, &self.draft).await {
            Ok(versions) => {
                self.of.replaced.add(&self.key, versions);
                Ok(())
            }
            // It is gone, and so is what was to be written.
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(ReconcileError::Write(self.key.clone(), error)),
        }
    }
}

fn is_final(outcome: &Result<(), Failure>) -> bool {
    let kind = outcome.as_ref().err().map(|failure| failure.kind);
    kind == Some(fleetwright_lifecycle::phase::FailureKind::Final)
}

fn obstacle_text(obstacle: &Obstacle) -> String {
    match obstacle {
        Obstacle::Wrong(text)
        | Obstacle::Missing(text)
        | Obstacle::GroupNotReady(text)
        | Obstacle::GroupFull { message: text, .. }
        | Obstacle::NotNow(text) => text.clone(),
        Obstacle::Cloud(error) => error.to_string(),
    }
}
