//! Carries out what a check needs. Decides nothing.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fleetwright_api::{
    machine::{Machine, MachineHealthCheck, MachineHealthCheckStatus, MachineSet},
    names::{annotation, event},
};
use fleetwright_clock::{Clock, Random};
use fleetwright_lifecycle::{
    backoff::{BACKOFF_ANNOTATION, Recovered, Settings, State},
    health::{Cause, Target, board::Turn},
    replicas::NodeReady,
};
use fleetwright_runtime::{Action, EventRecorder, EventType, Informer, ObjectKey};
use futures::FutureExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, ObjectReference};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    BY_OWNER, FIELD_MANAGER,
    decide::{self, Decision, Sick, decide},
    external::{External, ExternalError},
    metrics::HealthMetrics,
    rules::{self, Repair, Rules},
    status,
    target::{Treatment, is_skipped, target},
    watched::{Checks, Machines, Round},
};
use crate::{
    requests::{bulk::slow_start, delete_machine, pace::Paces},
    set::decide::{node_name, node_ready, owner},
};

/// Repairs under way at once for one check.
const IN_FLIGHT: usize = 32;
/// A Node that only our copy misses is looked for again after this time.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// A reconcile did not reach its end.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// A Machine could not be repaired.
    #[error("could not {what} Machine {machine}: {source}")]
    Repair {
        /// What was attempted.
        what: &'static str,
        /// The Machine.
        machine: String,
        /// Why.
        source: kube::Error,
    },
    /// Somebody else could not be asked.
    #[error(transparent)]
    External(#[from] ExternalError),
    /// The check could not be written.
    #[error("could not write {what}: {source}")]
    Write {
        /// What of it.
        what: &'static str,
        /// Why.
        source: kube::Error,
    },
}

/// Reconciles one check.
#[derive(Clone)]
pub(super) struct Reconciler {
    pub(super) client: Client,
    pub(super) informer: Informer<MachineHealthCheck>,
    pub(super) machines: Informer<Machine>,
    pub(super) sets: Informer<MachineSet>,
    pub(super) nodes: Informer<Node>,
    pub(super) checks: Checks,
    pub(super) paces: Paces,
    pub(super) external: External,
    pub(super) backoff: Settings,
    pub(super) events: EventRecorder,
    pub(super) metrics: HealthMetrics,
    pub(super) clock: Clock,
    pub(super) random: Random,
}

/// The Machines of a check, in the informers.
struct Found<'a> {
    machines: &'a Informer<Machine>,
    nodes: &'a Informer<Node>,
    namespace: &'a str,
    rules: &'a Rules,
}

impl Machines for Found<'_> {
    fn all(&self) -> Vec<Arc<Machine>> {
        self.machines.list_in(self.namespace)
    }

    fn get(&self, key: &ObjectKey) -> Option<Arc<Machine>> {
        self.machines.get(key)
    }

    fn target(&self, machine: &Machine) -> Option<Target> {
        if is_skipped(machine) || !self.rules.selector.matches(machine.labels()) {
            return None;
        }
        let node = node_name(machine).and_then(|name| self.nodes.get(&ObjectKey::cluster(name)));
        Some(target(machine, node.as_deref()))
    }
}

impl Reconciler {
    pub(super) async fn reconcile(self, key: ObjectKey) -> Result<Action, ReconcileError> {
        let check = self.informer.get(&key);
        let Some(check) = check.filter(|check| check.metadata.deletion_timestamp.is_none()) else {
            self.checks.forget(&key);
            self.paces.forget(&key);
            self.metrics.forget(&key);
            return Ok(Action::await_change());
        };
        if rules::is_paused(&check) {
            self.checks.forget(&key);
            return Ok(Action::await_change());
        }
        let rules = match rules::rules(&check) {
            Ok(rules) => rules,
            Err(error) => {
                self.checks.forget(&key);
                return self.tell_invalid(&key, &check, &error.to_string()).await;
            }
        };
        let now = self.clock.now();
        let found = Found {
            machines: &self.machines,
            nodes: &self.nodes,
            namespace: &key.namespace,
            rules: &rules,
        };
        let round = self.checks.round(&key, &rules, &found, now);
        self.metrics.observe(&key, round.counted.total, round.counted.allowed(&rules.limit));
        self.metrics.judged(&key, round.judged);
        self.tell_doubtful(&check, &round);
        self.work(&key, &check, &rules, &round, now).await
    }

    async fn work(
        &self,
        key: &ObjectKey,
        check: &MachineHealthCheck,
        rules: &Rules,
        round: &Round,
        now: Timestamp,
    ) -> Result<Action, ReconcileError> {
        let sick = self.sick(key, round);
        let remembered = check.annotations().get(BACKOFF_ANNOTATION).map_or("", String::as_str);
        let mut memory = State::parse(remembered);
        self.forget_old(key, &mut memory, now);
        let chance = || 2.0 * self.random.fraction() - 1.0;
        let mut decision =
            decide(check, rules, round.counted, &sick, (&self.backoff, &mut memory), chance, now);
        // First what is remembered: a repair that nobody counted would be repeated at once.
        self.remember(key, check, remembered, &memory.to_text()).await?;
        let mut outcome = self.treat(key, check, rules, &sick, &decision, now).await;
        if let Repair::Ask(template) = &rules.repair {
            let withdrawn = self.withdraw(key, template, round).await;
            if withdrawn.is_err() {
                // Everybody is looked at once more.
                self.checks.forget(key);
            }
            outcome = outcome.and(withdrawn.map(|()| None).map_err(ReconcileError::from));
            tell_external(&mut decision.status, outcome.as_ref().err(), now);
        }
        let later = self.write_status(key, check, &decision.status).await?;
        if later.is_none() {
            // Who reads the status has heard of what was told before.
            self.tell(key, check, &decision);
        }
        let again = outcome?.into_iter().chain(later);
        let due = decision.next.map(|due| {
            let left = Duration::try_from(due.duration_since(now)).unwrap_or_default();
            left.max(Duration::from_millis(1))
        });
        let next = round.next_check.into_iter().chain(due).chain(again).min();
        Ok(next.map_or(Action::await_change(), Action::requeue_after))
    }

    /// Those that need a repair and were not treated just now.
    fn sick(&self, key: &ObjectKey, round: &Round) -> Vec<Sick<Arc<Machine>>> {
        let found = round.unhealthy.iter().filter_map(|(machine, cause)| {
            let machine = self.machines.get(machine)?;
            let treated = self.checks.was_treated(key, &machine.uid().unwrap_or_default());
            (!treated).then(|| Sick {
                template: self.template(&machine),
                machine,
                cause: cause.clone(),
            })
        });
        found.collect()
    }

    /// What the owner of a Machine makes Machines from, in short.
    fn template(&self, machine: &Machine) -> String {
        let Some(set) = owner(machine).and_then(|key| self.sets.get(&key)) else {
            return String::new();
        };
        let text = serde_json::to_vec(&set.spec.template).unwrap_or_default();
        let digest = Sha256::digest(text);
        format!("{:02x}{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2], digest[3])
    }

    fn forget_old(&self, key: &ObjectKey, memory: &mut State, now: Timestamp) {
        let mut living = BTreeSet::new();
        let mut recovered = Vec::new();
        for uid in memory.owners() {
            let machines = self.machines.by_index(BY_OWNER, &uid);
            let is_set = |set: &Arc<MachineSet>| set.metadata.uid.as_ref() == Some(&uid);
            if !machines.is_empty() || self.sets.list_in(&key.namespace).iter().any(is_set) {
                living.insert(uid.clone());
            }
            let healthy = machines
                .iter()
                .filter(|machine| self.checks.is_healthy(key, &ObjectKey::of(machine.as_ref())));
            recovered.extend(healthy.filter_map(|machine| {
                Some(Recovered {
                    owner: uid.clone(),
                    created: machine.creation_timestamp()?.0,
                    healthy_since: self.ready_since(machine)?,
                })
            }));
        }
        memory.forget(&self.backoff, &living, &recovered, now);
    }

    fn ready_since(&self, machine: &Machine) -> Option<Timestamp> {
        let node = self.nodes.get(&ObjectKey::cluster(node_name(machine)?))?;
        match node_ready(&node) {
            NodeReady::Since(since) => since,
            NodeReady::No => None,
        }
    }

    async fn remember(
        &self,
        key: &ObjectKey,
        check: &MachineHealthCheck,
        before: &str,
        after: &str,
    ) -> Result<(), ReconcileError> {
        if before == after {
            return Ok(());
        }
        let value = (!after.is_empty()).then_some(after);
        let patch = json!({"metadata": {
            "uid": check.uid(), "annotations": {BACKOFF_ANNOTATION: value},
        }});
        let api: Api<MachineHealthCheck> = Api::namespaced(self.client.clone(), &key.namespace);
        match api.patch(&key.name, &params(), &Patch::Merge(patch)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(source) => Err(ReconcileError::Write { what: "the back-off", source }),
        }
    }

    /// Repairs, many at once. Says when to look again.
    async fn treat(
        &self,
        key: &ObjectKey,
        check: &MachineHealthCheck,
        rules: &Rules,
        sick: &[Sick<Arc<Machine>>],
        decision: &Decision,
        now: Timestamp,
    ) -> Result<Option<Duration>, ReconcileError> {
        let mut jobs = Vec::new();
        for (place, treatment) in &decision.treatments {
            let Sick { machine, cause, .. } = &sick[*place];
            let job = async move {
                let again = self.treat_one(key, check, rules, machine, cause, *treatment).await?;
                if again.is_none() {
                    self.checks.treated(key, machine.uid().unwrap_or_default(), now);
                }
                Ok(again)
            };
            jobs.push(job.boxed());
        }
        let done = slow_start(jobs, IN_FLIGHT).await;
        match done.failed.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(done.well.into_iter().flatten().min()),
        }
    }

    async fn treat_one(
        &self,
        key: &ObjectKey,
        check: &MachineHealthCheck,
        rules: &Rules,
        machine: &Machine,
        cause: &Cause,
        treatment: Treatment,
    ) -> Result<Option<Duration>, ReconcileError> {
        let about = machine.object_ref(&());
        let node = node_name(machine).unwrap_or_default();
        let name = decide::name_in_events(check, machine, &node);
        let api: Api<Machine> = Api::namespaced(self.client.clone(), &key.namespace);
        let failed = |what| {
            let machine = machine.name_any();
            move |source| ReconcileError::Repair { what, machine, source }
        };
        match treatment {
            Treatment::None => {}
            Treatment::NoController => {
                let text = format!("Machine {name} has no controller owner, skipping remediation");
                self.events.record(&about, EventType::Warning, event::SKIPPED_NO_CONTROLLER, &text);
            }
            Treatment::Delete => {
                if *cause == Cause::NodeMissing && self.node_is_there(&node).await? {
                    return Ok(Some(LOOK_AGAIN));
                }
                if let Err(error) = delete_machine(&api, machine).await {
                    let text = format!(
                        "Machine {name} remediation failed: unable to delete Machine object: \
                         {error}"
                    );
                    let reason = event::MACHINE_DELETION_FAILED;
                    self.events.record(&about, EventType::Warning, reason, &text);
                    return Err(failed("delete")(error));
                }
                tracing::info!(machine = machine.name_any(), %cause, "deleted an unhealthy Machine");
                let text = format!(
                    "Machine {name} has been remediated by requesting to delete Machine object \
                     ({cause})"
                );
                self.events.record(&about, EventType::Normal, event::MACHINE_DELETED, &text);
                self.metrics.repaired(key);
            }
            Treatment::Annotate => {
                let patch = json!({"metadata": {
                    "uid": machine.uid(),
                    "annotations": {annotation::EXTERNAL_REMEDIATION: ""},
                }});
                let asking = format!(
                    "Requesting external remediation of node associated with machine {name}"
                );
                let patched = api.patch(&machine.name_any(), &params(), &Patch::Merge(patch)).await;
                if let Err(error) = patched {
                    let text = format!("{asking} failed: {error}");
                    let reason = event::EXTERNAL_ANNOTATION_FAILED;
                    self.events.record(&about, EventType::Warning, reason, &text);
                    return Err(failed("annotate")(error));
                }
                let reason = event::EXTERNAL_ANNOTATION_ADDED;
                self.events.record(&about, EventType::Normal, reason, &asking);
            }
            Treatment::Ask => {
                if let Repair::Ask(template) = &rules.repair {
                    self.external.ask(template, machine).await?;
                }
            }
        }
        Ok(None)
    }

    /// Whether a Node that our copy misses is there all the same: copies of different kinds do not
    /// grow at the same pace.
    async fn node_is_there(&self, name: &str) -> Result<bool, ReconcileError> {
        let api: Api<Node> = Api::all(self.client.clone());
        let found = api.get_metadata_opt(name).await.map_err(|source| ReconcileError::Repair {
            what: "look for the Node of",
            machine: name.to_owned(),
            source,
        })?;
        Ok(found.is_some())
    }

    /// Removes requests for Machines that are healthy again.
    async fn withdraw(
        &self,
        key: &ObjectKey,
        template: &ObjectReference,
        round: &Round,
    ) -> Result<(), ExternalError> {
        let names: Vec<String> = if round.fresh {
            // What was asked before this process began is not known otherwise.
            self.external.asked(template, &key.namespace).await?
        } else {
            let recovered = round.turned.iter().filter(|(_, turn)| *turn == Turn::Recovered);
            recovered.map(|(machine, _)| machine.name.clone()).collect()
        };
        for name in names {
            if self.checks.is_healthy(key, &ObjectKey::new(&key.namespace, &name)) {
                self.external.withdraw(template, &key.namespace, &name).await?;
            }
        }
        Ok(())
    }

    fn tell_doubtful(&self, check: &MachineHealthCheck, round: &Round) {
        for (machine, turn) in &round.turned {
            let Some(machine) =
                (*turn == Turn::Doubtful).then(|| self.machines.get(machine)).flatten()
            else {
                continue;
            };
            let node = node_name(&machine).unwrap_or_default();
            let name = decide::name_in_events(check, &machine, &node);
            let text = format!("Machine {name} has unhealthy node {node}");
            let about = machine.object_ref(&());
            self.events.record(&about, EventType::Normal, event::DETECTED_UNHEALTHY, &text);
        }
    }

    fn tell(&self, key: &ObjectKey, check: &MachineHealthCheck, decision: &Decision) {
        let about = check.object_ref(&());
        if let Some(text) = &decision.restricted {
            tracing::warn!(check = key.name, text, "too many are unhealthy");
            self.events.record(&about, EventType::Warning, event::REMEDIATION_RESTRICTED, text);
        }
        if let Some(text) = &decision.waits {
            self.events.record(&about, EventType::Normal, event::REMEDIATION_BACKOFF, text);
            for (cause, count) in &decision.deferred {
                self.metrics.deferred(key, cause, *count);
            }
        }
        let wait = decision.next.map(|due| due.duration_since(self.clock.now()).as_secs());
        self.metrics.waits(key, wait.unwrap_or_default().max(0));
    }

    async fn tell_invalid(
        &self,
        key: &ObjectKey,
        check: &MachineHealthCheck,
        message: &str,
    ) -> Result<Action, ReconcileError> {
        let known = check.status.clone().unwrap_or_default();
        let wanted = status::invalid(&known, message.to_owned(), self.clock.now());
        if known != wanted {
            let about = check.object_ref(&());
            self.events.record(&about, EventType::Warning, event::RECONCILE_ERROR, message);
        }
        let later = self.write_status(key, check, &wanted).await?;
        // Nothing but a change of the check helps, and that wakes us.
        Ok(later.map_or(Action::await_change(), Action::requeue_after))
    }

    /// Writes the status if it changed; says how long to wait if it is too early for that.
    async fn write_status(
        &self,
        key: &ObjectKey,
        check: &MachineHealthCheck,
        wanted: &MachineHealthCheckStatus,
    ) -> Result<Option<Duration>, ReconcileError> {
        let Some(mut patch) = status::patch(check.status.as_ref(), wanted) else {
            return Ok(None);
        };
        if let Some(wait) = self.paces.wait(key) {
            return Ok(Some(wait));
        }
        patch["metadata"] = json!({"uid": check.uid()});
        let api: Api<MachineHealthCheck> = Api::namespaced(self.client.clone(), &key.namespace);
        match api.patch_status(&key.name, &params(), &Patch::Merge(patch)).await {
            Ok(_) => self.paces.wrote(key),
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(source) => return Err(ReconcileError::Write { what: "the status", source }),
        }
        Ok(None)
    }
}

/// Shows how asking others went.
fn tell_external(
    status: &mut MachineHealthCheckStatus,
    error: Option<&ReconcileError>,
    now: Timestamp,
) {
    use fleetwright_api::names::condition::{
        EXTERNAL_REMEDIATION_REQUEST, EXTERNAL_REMEDIATION_TEMPLATE,
    };
    let failed = match error {
        Some(ReconcileError::External(error)) => {
            let (kind, reason) = error.condition();
            Some((kind, reason, error.to_string()))
        }
        _ => None,
    };
    for kind in [EXTERNAL_REMEDIATION_TEMPLATE, EXTERNAL_REMEDIATION_REQUEST] {
        let failed = failed.clone().filter(|(of, ..)| *of == kind);
        let failed = failed.map(|(_, reason, message)| (reason, message));
        status::set_external(status, kind, failed, now);
    }
}

fn params() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}
