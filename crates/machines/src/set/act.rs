//! Carries out what a MachineSet needs. Decides nothing.

use std::{sync::Arc, time::Duration};

use fleetwright_api::machine::{Machine, MachineSet};
use fleetwright_clock::{Clock, Random};
use fleetwright_runtime::{Action, EventRecorder, EventType, Expectations, Informer, ObjectKey};
use futures::FutureExt;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    core::Status as ApiStatus,
};
use serde_json::json;
use tokio::time::sleep;

use super::{
    BY_OWNER, ORPHANS,
    decide::{self, Decision, InvalidSet, decide, is_ours, node_name, owner_reference},
    replacing::{Vacancy, vacancies},
};
use crate::requests::{
    LOST_ANSWER_PAUSE, LOST_ANSWER_TRIES, bulk::slow_start, delete_machine, is_lost, pace::Paces,
};

/// In whose name the API is written to.
pub const FIELD_MANAGER: &str = "fleetwright/machineset";
/// Event: a reconcile did not reach its end.
const RECONCILE_ERROR: &str = fleetwright_api::names::event::RECONCILE_ERROR;
/// Requests under way at once for one set.
const IN_FLIGHT: usize = 32;
/// Length of the random part of a name, as in Kubernetes.
const SUFFIX_LENGTH: usize = 5;
/// A reconcile did not reach its end.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// The MachineSet makes no sense.
    #[error(transparent)]
    Invalid(#[from] InvalidSet),
    /// The Kubernetes API refused a request or did not answer.
    #[error("could not {what}{more}: {source}")]
    Api {
        /// What was attempted.
        what: String,
        /// How many other requests went wrong.
        more: String,
        /// Why the first did not work.
        source: kube::Error,
    },
}

/// Reconciles one set.
#[derive(Clone)]
pub(crate) struct Reconciler {
    pub(crate) client: Client,
    pub(crate) sets: Informer<MachineSet>,
    pub(crate) machines: Informer<Machine>,
    pub(crate) nodes: Informer<Node>,
    pub(crate) expectations: Expectations<ObjectKey>,
    pub(crate) paces: Paces,
    pub(crate) events: EventRecorder,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
}

/// A request that did not work, and what it was.
struct Refused {
    what: String,
    error: kube::Error,
}

impl Reconciler {
    pub(crate) async fn reconcile(self, key: ObjectKey) -> Result<Action, ReconcileError> {
        let set = self.sets.get(&key);
        let Some(set) = set.clone().filter(|set| is_ours(set)) else {
            self.expectations.forget(&key);
            self.paces.forget(&key);
            if let Some(set) = &set {
                self.pause(&key, set).await?;
            }
            return Ok(Action::await_change());
        };
        let outcome = self.work(&key, &set).await;
        if let Err(error) = &outcome {
            let about = set.object_ref(&());
            self.events.record(&about, EventType::Warning, RECONCILE_ERROR, &error.to_string());
        }
        match outcome {
            // Nothing but a change of the set helps, and that wakes us.
            Err(ReconcileError::Invalid(error)) => {
                tracing::warn!(%error, "the MachineSet makes no sense");
                Ok(Action::await_change())
            }
            outcome => outcome,
        }
    }

    /// Says of a set that was handed over that it was.
    async fn pause(&self, key: &ObjectKey, set: &MachineSet) -> Result<(), ReconcileError> {
        let going = set.metadata.deletion_timestamp.is_some();
        let patch = decide::pause_patch(set, self.clock.now()).filter(|_| !going);
        let Some(mut patch) = patch else { return Ok(()) };
        patch["metadata"] = json!({"uid": set.uid(), "resourceVersion": set.resource_version()});
        let api: Api<MachineSet> = Api::namespaced(self.client.clone(), &key.namespace);
        match api.patch_status(&key.name, &params(), &Patch::Merge(patch)).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            written => written.map(drop).map_err(|source| ReconcileError::Api {
                what: "write the status".to_owned(),
                more: String::new(),
                source,
            }),
        }
    }

    async fn work(&self, key: &ObjectKey, set: &MachineSet) -> Result<Action, ReconcileError> {
        let rules = decide::rules(set)?;
        let machines = self.candidates(&key.namespace, &rules.uid);
        let replicas: Vec<_> = machines
            .iter()
            .map(|machine| {
                let node =
                    node_name(machine).and_then(|name| self.nodes.get(&ObjectKey::cluster(name)));
                decide::replica(machine, node.as_deref())
            })
            .collect();
        let plain: Vec<&Machine> = machines.iter().map(AsRef::as_ref).collect();
        let now = self.clock.now();
        let decision = decide(set, &rules, &plain, &replicas, now);
        // Until all that was written has been seen, the counts are wrong.
        let unseen = self.expectations.time_left(key);
        let mut acted = false;
        if unseen.is_none() {
            acted = self.act(key, set, &machines, &decision).await?;
        }
        let mut waits: Vec<Duration> = unseen.into_iter().collect();
        if let Some(check) = decision.next_check {
            let left = Duration::try_from(check.duration_since(now)).unwrap_or_default();
            waits.push(left.max(Duration::from_millis(1)));
        }
        if !acted {
            // What was just done changes the counts, and its echo brings us back.
            waits.extend(self.write_status(key, set, &decision).await?);
        }
        let next = waits.into_iter().min();
        Ok(next.map_or(Action::await_change(), Action::requeue_after))
    }

    /// The Machines that the set controls, and those that nobody does.
    fn candidates(&self, namespace: &str, uid: &str) -> Vec<Arc<Machine>> {
        let mut machines = self.machines.by_index(BY_OWNER, uid);
        machines.extend(self.machines.by_index(ORPHANS, namespace));
        machines
    }

    /// Adopts, releases, makes and deletes. True when something was made or deleted.
    async fn act(
        &self,
        key: &ObjectKey,
        set: &MachineSet,
        machines: &[Arc<Machine>],
        decision: &Decision,
    ) -> Result<bool, ReconcileError> {
        let api: Api<Machine> = Api::namespaced(self.client.clone(), &key.namespace);
        let plan = &decision.plan;
        if !plan.adopt.is_empty() {
            if !self.is_current(key, set).await? {
                return Ok(false);
            }
            let mut jobs = Vec::new();
            for place in &plan.adopt {
                jobs.push(adopt(&api, set, &machines[*place]).boxed());
            }
            finish(slow_start(jobs, IN_FLIGHT).await.failed)?;
        }
        if !plan.release.is_empty() {
            let mut jobs = Vec::new();
            for place in &plan.release {
                jobs.push(release(&api, set, &machines[*place]).boxed());
            }
            finish(slow_start(jobs, IN_FLIGHT).await.failed)?;
        }
        if plan.create > 0 {
            // When our copy of the set lags behind that of its Machines, a set that is gone seems
            // to miss what the garbage collector takes away, for ever.
            if !self.is_current(key, set).await? {
                return Ok(false);
            }
            let left = self.vacancies(set, machines);
            finish(self.create(key, &api, set, plan.create, &left).await)?;
            return Ok(true);
        }
        if !plan.delete.is_empty() {
            let victims: Vec<&Machine> =
                plan.delete.iter().map(|place| machines[*place].as_ref()).collect();
            finish(self.delete(key, &api, &victims).await)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// The places that new Machines take.
    fn vacancies(&self, set: &MachineSet, machines: &[Arc<Machine>]) -> Vec<Vacancy> {
        let machines: Vec<&Machine> = machines.iter().map(AsRef::as_ref).collect();
        vacancies(&set.uid().unwrap_or_default(), &machines, |machine| {
            self.nodes.get(&ObjectKey::cluster(node_name(machine)?))
        })
    }

    /// Whether the set is in the API as it is in our copy: before it takes what is nobody's, or
    /// makes more, it must be certain that it is still there and still wants that.
    async fn is_current(&self, key: &ObjectKey, set: &MachineSet) -> Result<bool, ReconcileError> {
        let api: Api<MachineSet> = Api::namespaced(self.client.clone(), &key.namespace);
        let current =
            api.get_metadata_opt(&key.name).await.map_err(|source| ReconcileError::Api {
                what: "read the MachineSet".to_owned(),
                more: String::new(),
                source,
            })?;
        Ok(current.is_some_and(|current| {
            current.uid() == set.uid()
                && current.metadata.generation == set.metadata.generation
                && current.metadata.deletion_timestamp.is_none()
        }))
    }

    async fn create(
        &self,
        key: &ObjectKey,
        api: &Api<Machine>,
        set: &MachineSet,
        count: usize,
        left: &[Vacancy],
    ) -> Vec<Refused> {
        let new: Vec<Machine> = (0..count)
            .map(|place| {
                let suffix = self.random.name_suffix(SUFFIX_LENGTH);
                let mut machine = decide::machine(set, &suffix);
                if let Some(vacancy) = left.get(place) {
                    machine.annotations_mut().extend(vacancy.annotations());
                }
                machine
            })
            .collect();
        let names: Vec<String> = new.iter().map(ResourceExt::name_any).collect();
        self.expectations.expect_creates(key, names.iter());
        let mut jobs = Vec::new();
        for (machine, name) in new.iter().zip(&names) {
            let job = async move {
                create_one(api, machine).await.map_err(|error| {
                    if !is_lost(&error) {
                        self.expectations.create_settled(key, name);
                    }
                    Refused { what: format!("create Machine {name}"), error }
                })
            };
            jobs.push(job.boxed());
        }
        let done = slow_start(jobs, IN_FLIGHT).await;
        for name in &names[done.begun..] {
            self.expectations.create_settled(key, name);
        }
        tracing::info!(created = done.well.len(), failed = done.failed.len(), "made Machines");
        done.failed
    }

    async fn delete(
        &self,
        key: &ObjectKey,
        api: &Api<Machine>,
        victims: &[&Machine],
    ) -> Vec<Refused> {
        let uids: Vec<String> = victims.iter().map(|machine| uid(machine)).collect();
        self.expectations.expect_deletes(key, uids.iter());
        let mut jobs = Vec::new();
        for (machine, uid) in victims.iter().zip(&uids) {
            let job = async move {
                delete_machine(api, machine).await.map_err(|error| {
                    if !is_lost(&error) {
                        self.expectations.delete_settled(key, uid);
                    }
                    Refused { what: format!("delete Machine {}", machine.name_any()), error }
                })
            };
            jobs.push(job.boxed());
        }
        let done = slow_start(jobs, IN_FLIGHT).await;
        for uid in &uids[done.begun..] {
            self.expectations.delete_settled(key, uid);
        }
        tracing::info!(deleted = done.well.len(), failed = done.failed.len(), "deleted Machines");
        done.failed
    }

    /// Writes the status if it changed; says how long to wait if it is too early for that.
    async fn write_status(
        &self,
        key: &ObjectKey,
        set: &MachineSet,
        decision: &Decision,
    ) -> Result<Option<Duration>, ReconcileError> {
        let Some(mut patch) = decide::status_patch(set.status.as_ref(), &decision.status) else {
            return Ok(None);
        };
        if let Some(wait) = self.paces.wait(key) {
            return Ok(Some(wait));
        }
        patch["metadata"] = json!({"uid": set.uid()});
        let api: Api<MachineSet> = Api::namespaced(self.client.clone(), &key.namespace);
        match api.patch_status(&key.name, &params(), &Patch::Merge(patch)).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(None),
            Err(source) => {
                let (what, more) = ("write the status".to_owned(), String::new());
                return Err(ReconcileError::Api { what, more, source });
            }
        }
        self.paces.wrote(key);
        if let Some((reason, message)) = &decision.news {
            self.events.record(&set.object_ref(&()), EventType::Warning, reason, message);
        }
        Ok(None)
    }
}

fn params() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

fn uid(machine: &Machine) -> String {
    machine.uid().unwrap_or_default()
}

/// Creates a Machine. Its name is ours, so a create without an answer is simply repeated, and one
/// that is there already then is the one.
async fn create_one(api: &Api<Machine>, machine: &Machine) -> Result<(), kube::Error> {
    let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), dry_run: false };
    let mut lost = 0;
    loop {
        match api.create(&params, machine).await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if lost > 0 && is_already_exists(&status) => {
                return Ok(());
            }
            Err(error) if is_lost(&error) && lost < LOST_ANSWER_TRIES => {
                lost += 1;
                sleep(LOST_ANSWER_PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
}

fn is_already_exists(status: &ApiStatus) -> bool {
    status.reason == "AlreadyExists"
}

/// Makes the set the controller of a Machine that has none, if it is still as we know it.
async fn adopt(api: &Api<Machine>, set: &MachineSet, machine: &Machine) -> Result<(), Refused> {
    let mut owners = machine.owner_references().to_vec();
    owners.push(owner_reference(set));
    tracing::info!(machine = machine.name_any(), "adopting a Machine");
    set_owners(api, machine, &owners, "adopt").await
}

/// Lets a Machine go that does not match any more.
async fn release(api: &Api<Machine>, set: &MachineSet, machine: &Machine) -> Result<(), Refused> {
    let mut owners = machine.owner_references().to_vec();
    owners.retain(|owner| Some(&owner.uid) != set.metadata.uid.as_ref());
    tracing::info!(machine = machine.name_any(), "letting go of a Machine");
    set_owners(api, machine, &owners, "let go of").await
}

async fn set_owners(
    api: &Api<Machine>,
    machine: &Machine,
    owners: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference],
    what: &str,
) -> Result<(), Refused> {
    let name = machine.name_any();
    let patch = json!({"metadata": {
        "uid": machine.uid(),
        "resourceVersion": machine.resource_version(),
        "ownerReferences": owners,
    }});
    match api.patch(&name, &params(), &Patch::Merge(patch)).await {
        Ok(_) => Ok(()),
        // It changed or went: its event brings us back.
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
        Err(error) => Err(Refused { what: format!("{what} Machine {name}"), error }),
    }
}

/// The first of the requests that did not work, as the error of the reconcile.
fn finish(mut failed: Vec<Refused>) -> Result<(), ReconcileError> {
    if failed.is_empty() {
        return Ok(());
    }
    let others = failed.len() - 1;
    let more = if others == 0 { String::new() } else { format!(" (and {others} others)") };
    let Refused { what, error } = failed.swap_remove(0);
    Err(ReconcileError::Api { what, more, source: error })
}
