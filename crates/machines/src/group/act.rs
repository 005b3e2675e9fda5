//! Carries decisions about groups out. Decides nothing.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fleetwright_api::{
    names::{annotation, finalizer},
    placement::AWSPlacementGroup,
};
use fleetwright_clock::Clock;
use fleetwright_cloud::{Cloud, CloudError, ErrorClass, GroupOrder};
use fleetwright_runtime::{Action, EventRecorder, EventType, Informer, ObjectKey, WorkQueue};
use jiff::Timestamp;
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{
    decide::{Decision, Next, Object, Place, Progress, Seen, Situation, Step, decide},
    memory::{Memory, Version},
    names::{CREATED, DELETED, RECONCILE_ERROR, RELEASED},
    observe::{Lane, Observer},
    status::{self, Status},
    wanted::{WrittenSpec, check},
};
use crate::clouds::{Clouds, Opened};

/// Holds the object until its group is gone.
pub const FINALIZER: &str = finalizer::PLACEMENT_GROUP;
/// Says when we were last about to make the group.
pub const INTENT: &str = annotation::INTENT;
/// In whose name the API is written to.
pub const FIELD_MANAGER: &str = "fleetwright/placementgroup";
const CREATE: &str = "CreatePlacementGroup";
/// No way through the decisions is longer; one that is would be a loop.
const MOST_STEPS: usize = 12;
/// Groups that are due within this time are looked at together with one that is due now.
const DUE_SOON: Duration = Duration::from_secs(40);

/// A reconcile did not reach its end.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// The Kubernetes API refused a write or did not answer.
    #[error("could not {what} AWSPlacementGroup {name}")]
    Api {
        /// What was attempted.
        what: &'static str,
        /// The object.
        name: String,
        /// Why not.
        #[source]
        source: kube::Error,
    },
    /// The decisions do not come to an end.
    #[error("no end of steps for AWSPlacementGroup {0}")]
    NoEnd(String),
}

/// Reconciles one group.
#[derive(Clone)]
pub(crate) struct Reconciler {
    pub(crate) api: Api<AWSPlacementGroup>,
    pub(crate) groups: Informer<AWSPlacementGroup>,
    pub(crate) namespace: String,
    pub(crate) clouds: Clouds,
    pub(crate) observer: Observer,
    pub(crate) memory: Memory,
    pub(crate) queue: WorkQueue<ObjectKey>,
    pub(crate) events: EventRecorder,
    pub(crate) clock: Clock,
}

/// Everything that one run knows and changes.
struct Run {
    group: AWSPlacementGroup,
    place: Result<Placed, String>,
    seen: Option<Arc<Seen>>,
    outdated: bool,
    progress: Progress,
}

struct Placed {
    place: Place,
    lane: Lane,
    cloud: Arc<dyn Cloud>,
}

impl Reconciler {
    pub(crate) async fn reconcile(self, key: ObjectKey) -> Result<Action, ReconcileError> {
        let Some(group) = self.groups.get(&key).filter(|_| key.namespace == self.namespace) else {
            self.memory.forget(&key.name);
            self.observer.forget(&key.name);
            return Ok(Action::await_change());
        };
        let version = version(&group);
        if let Some(pause) = self.memory.pause(&key.name, version) {
            return Ok(Action::requeue_after(pause));
        }
        let mut run = Run {
            place: self.place(&group),
            seen: self.memory.seen(&key.name),
            outdated: self.memory.is_outdated(&key.name),
            group: group.as_ref().clone(),
            progress: Progress::default(),
        };
        for _ in 0..MOST_STEPS {
            let object = object(&run.group);
            let decision = decide(&Situation {
                object: &object,
                place: run.place.as_ref().map(|placed| &placed.place).map_err(String::as_str),
                seen: run.seen.as_deref(),
                outdated: run.outdated,
                progress: &run.progress,
                now: self.clock.now(),
            });
            for line in &decision.report {
                tracing::info!("{line}");
            }
            match decision.step.clone() {
                Step::Settle => return self.settle(&run.group, &decision, version).await,
                Step::Look => self.look(&mut run).await,
                Step::Hold { intends } => self.hold(&mut run, intends).await?,
                Step::Create(order) => self.create(&mut run, order).await?,
                Step::Remove => self.remove(&mut run).await,
                Step::LetGo => {
                    if self.let_go(&mut run, &decision).await? {
                        self.memory.succeeded(&key.name);
                        return Ok(Action::await_change());
                    }
                }
            }
        }
        Err(ReconcileError::NoEnd(key.name))
    }

    fn place(&self, group: &AWSPlacementGroup) -> Result<Placed, String> {
        let secret = secret_of(group).map(|name| ObjectKey::new(&self.namespace, name));
        let opened = self.clouds.open("", secret.clone()).map_err(|error| error.to_string())?;
        let Opened { region, cluster, cluster_tags, cloud } = opened;
        let place = Place { cluster, tags: cluster_tags };
        let lane = Lane { region, secret };
        Ok(Placed { place, lane, cloud })
    }

    async fn look(&self, run: &mut Run) {
        let name = run.group.name_any();
        let Ok(placed) = &run.place else { return };
        let lane = placed.lane.clone();
        let looked =
            self.observer.look(lane, placed.cloud.as_ref(), &name, self.due_soon(&run.group)).await;
        match looked {
            Ok(news) => {
                run.seen = self.memory.seen(&name);
                run.progress.looked = true;
                for other in news.into_iter().filter(|other| *other != name) {
                    self.queue.add(ObjectKey::new(&self.namespace, other));
                }
            }
            Err(error) => run.progress.look_failed = Some(error),
        }
    }

    /// Other groups of the same account that would ask by themselves before long.
    fn due_soon(&self, group: &AWSPlacementGroup) -> BTreeSet<String> {
        let secret = secret_of(group);
        let due = |name: &str| {
            self.memory.is_outdated(name)
                || self.memory.renew_in(name).is_none_or(|left| left <= DUE_SOON)
        };
        let groups = self.groups.list_in(&self.namespace);
        let same = groups.iter().filter(|other| secret_of(other) == secret);
        same.map(|other| other.name_any()).filter(|name| due(name)).collect()
    }

    /// Holds the object, on the condition that it is still as we know it.
    async fn hold(&self, run: &mut Run, intends: bool) -> Result<(), ReconcileError> {
        let mut finalizers = run.group.finalizers().to_vec();
        if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            finalizers.push(FINALIZER.to_owned());
        }
        let mut metadata = json!({
            "finalizers": finalizers,
            "resourceVersion": run.group.resource_version(),
        });
        if intends {
            let intent = json!({"version": 1, "op": CREATE, "at": self.clock.now()}).to_string();
            metadata["annotations"] = json!({ INTENT: intent });
        }
        run.group = self.patch(&run.group, "hold", json!({ "metadata": metadata })).await?;
        run.progress.intended |= intends;
        Ok(())
    }

    async fn create(&self, run: &mut Run, order: GroupOrder) -> Result<(), ReconcileError> {
        let name = run.group.name_any();
        if !run.progress.intended && !self.is_current(&mut run.group).await? {
            return Ok(());
        }
        let Ok(placed) = &run.place else { return Ok(()) };
        let at = self.clock.now();
        match create(placed.cloud.as_ref(), order).await {
            Ok(group) => {
                self.event(&run.group, EventType::Normal, CREATED, "created aws placement group");
                let seen = Seen { at, group: Some(group), members: Vec::new(), made: true };
                // To be looked at again soon: the cloud's own view counts.
                let renew = tokio::time::Instant::now() + DUE_SOON;
                self.memory.saw(&name, seen, renew);
                run.seen = self.memory.seen(&name);
                run.progress.create_failed = None;
                run.progress.looked = true;
            }
            Err(error) => {
                if matches!(error.class, ErrorClass::AlreadyExists | ErrorClass::AnswerLost) {
                    // It may be there now: what was seen before says nothing any more.
                    run.seen = None;
                    run.progress.looked = false;
                }
                run.progress.create_failed = Some(error);
            }
        }
        Ok(())
    }

    /// Whether the object is in the API as it is in our copy, which may lag: nothing is made for
    /// an object that is gone.
    async fn is_current(&self, group: &mut AWSPlacementGroup) -> Result<bool, ReconcileError> {
        let name = group.name_any();
        let found = self.api.get_opt(&name).await;
        let failed = |source| ReconcileError::Api { what: "read", name: name.clone(), source };
        let current = found.map_err(failed)?;
        let same = |current: &AWSPlacementGroup| {
            current.uid() == group.uid()
                && current.metadata.deletion_timestamp == group.metadata.deletion_timestamp
                && current.metadata.generation == group.metadata.generation
                && is_held(current)
        };
        let Some(current) = current else {
            // As if it had been let go: there is nothing left to decide.
            group.metadata.deletion_timestamp.get_or_insert_with(|| time(self.clock.now()));
            group.metadata.finalizers = None;
            return Ok(false);
        };
        let is_same = same(&current);
        *group = current;
        Ok(is_same)
    }

    async fn remove(&self, run: &mut Run) {
        let Ok(placed) = &run.place else { return };
        match remove(placed.cloud.as_ref(), &run.group.name_any()).await {
            Ok(()) => {
                self.event(&run.group, EventType::Normal, DELETED, "deleted aws placement group");
                run.progress.removed = true;
            }
            Err(error) => run.progress.remove_failed = Some(error),
        }
    }

    /// Takes our finalizer off; true when that ends the object.
    async fn let_go(&self, run: &mut Run, decision: &Decision) -> Result<bool, ReconcileError> {
        let mut finalizers = run.group.finalizers().to_vec();
        finalizers.retain(|finalizer| finalizer != FINALIZER);
        let deleting = run.group.metadata.deletion_timestamp.is_some();
        let patch = json!({"metadata": {
            "finalizers": finalizers,
            "resourceVersion": run.group.resource_version(),
            "annotations": { INTENT: Value::Null },
        }});
        match self.patch(&run.group, "let go of", patch).await {
            Ok(patched) => run.group = patched,
            Err(ReconcileError::Api { source: kube::Error::Api(status), .. })
                if status.is_not_found() =>
            {
                return Ok(true);
            }
            Err(error) => return Err(error),
        }
        if !deleting {
            let message = decision.report.join("; ");
            self.event(&run.group, EventType::Normal, RELEASED, &message);
        }
        Ok(deleting)
    }

    async fn patch(
        &self,
        group: &AWSPlacementGroup,
        what: &'static str,
        patch: Value,
    ) -> Result<AWSPlacementGroup, ReconcileError> {
        let name = group.name_any();
        let params =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..Default::default() };
        let patched = self.api.patch(&name, &params, &Patch::Merge(patch)).await;
        patched.map_err(|source| ReconcileError::Api { what, name, source })
    }

    /// Writes the status if it changed, tells the user what went wrong, and says when to come
    /// back.
    async fn settle(
        &self,
        group: &AWSPlacementGroup,
        decision: &Decision,
        version: Version,
    ) -> Result<Action, ReconcileError> {
        let name = group.name_any();
        if let Some(trouble) = &decision.trouble {
            let mut text = trouble.clone();
            for line in &decision.report {
                text = format!("{text}; {line}");
            }
            tracing::info!("{text}");
            self.event(group, EventType::Warning, RECONCILE_ERROR, &text);
        }
        if let Some(wanted) = &decision.status {
            self.write_status(group, wanted).await?;
        }
        if decision.next == Next::Retry {
            return Ok(Action::requeue_after(self.memory.failed(&name, version)));
        }
        self.memory.succeeded(&name);
        Ok(match decision.next {
            Next::After(delay) => {
                // Whatever it waits for, the cloud must be asked again to see it.
                self.memory.stands_for(&name, delay);
                Action::requeue_after(delay)
            }
            Next::BeforeExpiry => {
                self.memory.renew_in(&name).map_or(Action::await_change(), Action::requeue_after)
            }
            Next::Change | Next::Retry => Action::await_change(),
        })
    }

    async fn write_status(
        &self,
        group: &AWSPlacementGroup,
        wanted: &Status,
    ) -> Result<(), ReconcileError> {
        let name = group.name_any();
        let (generation, now) = (group.metadata.generation, self.clock.now());
        let Some(mut patch) = status::patch(group.status.as_ref(), wanted, generation, now) else {
            return Ok(());
        };
        // Not of another object of the same name.
        patch["metadata"] = json!({"uid": group.uid()});
        let params =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..Default::default() };
        match self.api.patch_status(&name, &params, &Patch::Merge(patch)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(source) => Err(ReconcileError::Api { what: "write the status of", name, source }),
        }
    }

    fn event(&self, group: &AWSPlacementGroup, kind: EventType, reason: &str, message: &str) {
        self.events.record(&group.object_ref(&()), kind, reason, message);
    }
}

async fn create(
    cloud: &dyn Cloud,
    order: GroupOrder,
) -> Result<fleetwright_cloud::PlacementGroup, CloudError> {
    match cloud.placement_groups() {
        Some(port) => port.create(order).await,
        None => Err(no_groups(CREATE)),
    }
}

async fn remove(cloud: &dyn Cloud, name: &str) -> Result<(), CloudError> {
    match cloud.placement_groups() {
        Some(port) => port.delete(name).await,
        None => Err(no_groups("DeletePlacementGroup")),
    }
}

fn no_groups(operation: &str) -> CloudError {
    CloudError::configuration(operation, "this cloud has no placement groups")
}

/// The Secret that an object names.
pub(crate) fn secret_of(group: &AWSPlacementGroup) -> Option<&str> {
    let secret = group.spec.credentials_secret.as_ref()?;
    Some(secret.name.as_str()).filter(|name| !name.is_empty())
}

fn version(group: &AWSPlacementGroup) -> Version {
    Version {
        generation: group.metadata.generation,
        deleting: group.metadata.deletion_timestamp.is_some(),
    }
}

fn is_held(group: &AWSPlacementGroup) -> bool {
    group.finalizers().iter().any(|finalizer| finalizer == FINALIZER)
}

fn time(at: Timestamp) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::Time {
    k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at)
}

/// The object as decisions see it.
pub fn object(group: &AWSPlacementGroup) -> Object {
    let management = &group.spec.management_spec;
    let managed = management.managed.as_ref();
    let intent = group.annotations().get(INTENT);
    Object {
        name: group.name_any(),
        deleting: group.metadata.deletion_timestamp.is_some(),
        held: is_held(group),
        // An intent that cannot be read is none that we wrote.
        intended: intent
            .and_then(|text| serde_json::from_str::<Value>(text).ok())
            .and_then(|intent| intent["at"].as_str()?.parse().ok()),
        wanted: check(WrittenSpec {
            management_state: management.management_state.as_str(),
            group_type: managed.map(|managed| managed.group_type.as_str()),
            partition_count: managed
                .and_then(|managed| managed.partition.as_ref())
                .and_then(|partition| partition.count),
        }),
        status: Status::of(group.status.as_ref()),
    }
}
