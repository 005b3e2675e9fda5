//! Carries launches out: writes intents, sends, saves what came of it. Decides nothing about who
//! is launched; every step may be the last one of this process and is safe to do again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use fleetwright_api::{aws::AWSMachineProviderStatus, machine::Machine, names::reason};
use fleetwright_clock::BackoffPolicy;
use fleetwright_cloud::{
    CLUSTER_UID_TAG, CloudError, Count, ErrorClass, GANG_TAG, Instance, Launch, LaunchOrder,
    MACHINE_UID_TAG, Tag,
};
use futures::{StreamExt as _, stream};
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::json;

use super::{
    assign::assign,
    intent::{ANNOTATION, Intent},
    launcher::{Report, Shared, leaving},
    plan::{Batch, LastAnswer, Member, Recovery},
    verdict::{Verdict, judge},
};
use crate::{
    clouds::Site,
    machine::{FIELD_MANAGER, instance_id},
};

/// Requests to the API server at the same time, for one launch.
const AT_ONCE: usize = 16;
/// How often a write is tried before somebody else has to do it.
const TRIES: u32 = 4;
/// Pauses between those.
const PAUSE: Duration = Duration::from_millis(100);
/// How soon something that did not help is done again.
const RETRIES: BackoffPolicy = BackoffPolicy {
    initial: Duration::from_secs(2),
    max: Duration::from_mins(1),
    factor: 2.0,
    jitter: 0.0,
    reset_after: None,
};
/// Wrong credentials are put right by people.
const SLOW_RETRIES: BackoffPolicy =
    BackoffPolicy { initial: Duration::from_secs(20), max: Duration::from_mins(5), ..RETRIES };
/// How often instances are looked for.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

fn api(shared: &Shared, namespace: &str) -> Api<Machine> {
    Api::namespaced(shared.parts.client.clone(), namespace)
}

fn as_manager() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// Sends a launch, or sends it again.
pub(super) async fn launch(shared: &Arc<Shared>, site: &Site, what: &Launch, batch: &Batch) {
    let preparations: Vec<_> =
        batch.members.iter().map(|member| prepare(shared, batch, member)).collect();
    let readiness: Vec<Readiness> = stream::iter(preparations).buffered(AT_ONCE).collect().await;
    if readiness.iter().any(|readiness| *readiness != Readiness::Ready) {
        shared.note(|state| {
            state.probed(&batch.pool);
            for (member, readiness) in batch.members.iter().zip(&readiness) {
                if *readiness == Readiness::Unfit {
                    // It comes back if it should.
                    state.dismiss(&member.uid);
                }
            }
            if !batch.again {
                // It was never sent: those who carry the token are free.
                state.token(&batch.token).last = LastAnswer::Released { floor: None };
            }
        });
        tokio::time::sleep(PAUSE * 10).await;
        return;
    }
    let before = shared.note(|state| {
        let now = shared.now();
        let memory = state.token(&batch.token);
        let before = if batch.again { memory.last } else { LastAnswer::Refused };
        memory.sent = Some(now);
        memory.last = LastAnswer::Unknown;
        before
    });
    let order = LaunchOrder {
        token: batch.token.clone(),
        launch: what.clone(),
        count: Count { min: batch.min, max: batch.size },
        tags: tags(batch, &site.cluster_uid),
    };
    tracing::info!(token = batch.token, count = batch.size, again = batch.again, "launching");
    let answer = site.cloud.launch(order).await;
    shared.note(|state| state.probed(&batch.pool));
    match answer {
        Ok(instances) => launched(shared, site, batch, &instances).await,
        Err(error) => refused(shared, batch, error, before),
    }
}

/// Tags of a launch beside those of its parameters. What is launched alone carries its Machine
/// from the start; what is launched together carries the token, until each gets its own.
/// From the start, too, it carries which cluster it was launched by.
fn tags(batch: &Batch, cluster_uid: &str) -> Vec<Tag> {
    let mut tags = match batch.members.as_slice() {
        [member] if batch.size == 1 => own_tags(&member.key.name, &member.uid),
        _ => vec![Tag::new(GANG_TAG, &batch.token)],
    };
    tags.push(Tag::new(CLUSTER_UID_TAG, cluster_uid));
    tags
}

/// The tags of a Machine's instance.
pub(crate) fn own_tags(name: &str, uid: &str) -> Vec<Tag> {
    vec![Tag::name(name), Tag::new(MACHINE_UID_TAG, uid)]
}

/// Whether a Machine may be launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readiness {
    /// It may.
    Ready,
    /// It is not what it was when it was planned for.
    Unfit,
    /// The API server did not say.
    Unknown,
}

/// Makes sure that the Machine as it is now, not as it was last seen, is to be launched, and that
/// its intent is on it.
async fn prepare(shared: &Shared, batch: &Batch, member: &Member) -> Readiness {
    let api = api(shared, &member.key.namespace);
    let read = async || match api.get_opt(&member.key.name).await {
        Ok(Some(machine)) => Ok(machine),
        Ok(None) => Err(Readiness::Unfit),
        Err(error) => {
            tracing::warn!(machine = %member.key, %error, "cannot read a Machine");
            Err(Readiness::Unknown)
        }
    };
    let mut seen = shared.parts.machines.get(&member.key).filter(|_| !batch.again);
    let expected = shared.note(|state| state.intent(&member.uid));
    for _ in 0..TRIES {
        let recent = seen.take();
        let is_recent = recent.is_some();
        let machine = match recent {
            Some(machine) => machine,
            None => match read().await {
                Ok(machine) => Arc::new(machine),
                Err(readiness) => return readiness,
            },
        };
        let may = machine.uid().as_deref() == Some(&member.uid)
            && !leaving(&machine)
            && instance_id(&machine).is_none();
        let intent = Intent::of(&machine);
        if let Ok(Some(found)) = &intent
            && !batch.again
            && may
            && *found == Intent::launch(batch, member, found.at)
        {
            // Our own, of which the answer was lost.
            shared.note(|state| state.written(&member.uid, found.clone()));
            return Readiness::Ready;
        }
        if batch.again || !may || intent != Ok(expected.clone()) {
            if is_recent {
                // It may be older than it looks.
                continue;
            }
            let fits = may && intent == Ok(expected.clone());
            return if fits { Readiness::Ready } else { Readiness::Unfit };
        }
        let intent = Intent::launch(batch, member, shared.now());
        let patch = json!({"metadata": {
            "resourceVersion": machine.resource_version(),
            "uid": member.uid,
            "annotations": {ANNOTATION: intent.to_text()},
        }});
        let written = api.patch(&member.key.name, &as_manager(), &Patch::Merge(patch)).await;
        if let Err(error) = written {
            // It may have been written all the same: what is there decides.
            tracing::debug!(machine = %member.key, %error, "cannot write an intent");
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        shared.note(|state| state.written(&member.uid, intent));
        return Readiness::Ready;
    }
    Readiness::Unknown
}

/// The cloud answered with the instances of the token.
async fn launched(shared: &Shared, site: &Site, batch: &Batch, instances: &[Instance]) {
    site.inventory.seen(instances);
    let assigned = assign(&batch.token, &batch.members, batch.size, instances);
    shared.note(|state| {
        state.capacity.served(&batch.pool);
        for (uid, instance) in &assigned.placed {
            state.placed.insert(uid.clone(), instance.id.clone());
            state.reports.remove(uid);
            state.not_short(uid);
        }
        let memory = state.token(&batch.token);
        memory.failures = 0;
        memory.not_before = None;
        memory.last = match assigned.without.as_slice() {
            [] => LastAnswer::Used,
            // Fewer than asked for were to be had: the others go again by themselves.
            _ if batch.min < batch.size => LastAnswer::Released { floor: None },
            _ => LastAnswer::Used,
        };
    });
    save(shared, site, &batch.members, &assigned.placed).await;
}

/// Saves which instance is a Machine's. Its own tags follow when its disks are known, see
/// `machine::reconcile`.
async fn save(
    shared: &Shared,
    site: &Site,
    members: &[Member],
    placed: &BTreeMap<String, Instance>,
) {
    let saves: Vec<_> = members
        .iter()
        .filter_map(|member| Some(save_one(shared, site, member, placed.get(&member.uid)?)))
        .collect();
    stream::iter(saves).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    site.hurry();
}

async fn save_one(shared: &Shared, site: &Site, member: &Member, instance: &Instance) {
    let api = api(shared, &member.key.namespace);
    let patch = json!({
        "metadata": {"uid": member.uid},
        "status": {"providerStatus": {
            "apiVersion": AWSMachineProviderStatus::API_VERSION,
            "kind": AWSMachineProviderStatus::KIND,
            "instanceId": instance.id,
            "instanceState": instance.state.as_str(),
        }},
    });
    for tried in 1..=TRIES {
        let saved = api.patch_status(&member.key.name, &as_manager(), &Patch::Merge(&patch)).await;
        let Err(error) = saved else { break };
        tracing::warn!(machine = %member.key, instance = instance.id, %error, "cannot save an instance");
        match api.get_opt(&member.key.name).await {
            Ok(Some(machine)) if machine.uid().as_deref() == Some(&member.uid) => {}
            Err(_) => {}
            Ok(_) => {
                // There is no such Machine any more, and nobody else knows of the instance.
                tracing::warn!(machine = %member.key, instance = instance.id, "its Machine is gone: terminating");
                let ids = BTreeSet::from([instance.id.clone()]);
                if let Err(error) = site.retire(ids).await {
                    tracing::warn!(instance = instance.id, %error, "cannot terminate");
                }
                return;
            }
        }
        tokio::time::sleep(PAUSE * tried).await;
    }
}

/// The cloud did not launch, or did not say.
fn refused(shared: &Shared, batch: &Batch, error: CloudError, before: LastAnswer) {
    let now = shared.now();
    let verdict = judge(&error);
    tracing::info!(token = batch.token, %error, ?verdict, "launch refused");
    shared.note(|state| {
        if matches!(verdict, Verdict::Short(_)) {
            state.capacity.refused(batch.pool.clone(), batch.min, error.clone(), now);
        }
        if verdict == Verdict::Split {
            state.limits.insert(batch.account.clone(), (batch.size / 2).max(1));
        }
        let memory = state.token(&batch.token);
        memory.failures = memory.failures.saturating_add(1);
        let policy = if error.class == ErrorClass::Credentials { SLOW_RETRIES } else { RETRIES };
        let wait = policy.wait(memory.failures - 1).max(error.retry_after.unwrap_or_default());
        memory.not_before = now.saturating_add(wait).ok();
        memory.last = match &verdict {
            Verdict::Short(_) => {
                // The pool's memory says when to ask again.
                memory.not_before = None;
                let floor = batch.policy.and_then(|policy| policy.next_floor(batch.min));
                match floor {
                    Some(floor) => LastAnswer::Released { floor: Some(floor) },
                    None => LastAnswer::Refused,
                }
            }
            Verdict::Split => LastAnswer::Released { floor: None },
            // What was sent before may have worked, although it would not work now.
            Verdict::Failed if before == LastAnswer::Unknown => LastAnswer::Changed,
            Verdict::Failed => LastAnswer::Refused,
            Verdict::Recover => LastAnswer::Changed,
            Verdict::Gone => LastAnswer::Used,
            Verdict::Retry(_) => match error.class {
                // It was not even looked at.
                ErrorClass::Throttled | ErrorClass::Credentials => before,
                ErrorClass::NotFound => LastAnswer::Refused,
                _ => LastAnswer::Unknown,
            },
        };
        if matches!(
            memory.last,
            LastAnswer::Changed | LastAnswer::Used | LastAnswer::Released { .. }
        ) {
            memory.not_before = None;
        }
        let report = match (&verdict, memory.last) {
            (Verdict::Failed, LastAnswer::Refused) => Some(Report::Failed(error)),
            (Verdict::Short(_) | Verdict::Retry(_), _) => Some(Report::Refused(verdict, error)),
            _ => None,
        };
        if let Some(report) = report {
            for member in &batch.members {
                state.reports.insert(member.uid.clone(), report.clone());
            }
        }
    });
}

/// Looks for what a token made.
pub(super) async fn recover(shared: &Shared, site: &Site, recovery: &Recovery) {
    let Recovery { token, size, members, .. } = recovery;
    if recovery.refused {
        shared.note(|state| state.token(token).last = LastAnswer::Released { floor: None });
        return;
    }
    let found = match members.as_slice() {
        [member] if *size == 1 => site.cloud.tagged(MACHINE_UID_TAG, &member.uid).await,
        _ => site.cloud.tagged(GANG_TAG, token).await,
    };
    let now = shared.now();
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            let verdict = Verdict::Retry(match judge(&error) {
                Verdict::Retry(reason) => reason,
                _ => reason::MACHINE_CREATION_FAILED,
            });
            shared.note(|state| {
                let memory = state.token(token);
                memory.failures = memory.failures.saturating_add(1);
                memory.not_before = now.saturating_add(RETRIES.wait(memory.failures)).ok();
                for member in members {
                    let report = Report::Refused(verdict.clone(), error.clone());
                    state.reports.insert(member.uid.clone(), report);
                }
            });
            return;
        }
    };
    site.inventory.seen(&found);
    let assigned = assign(token, members, *size, &found);
    shared.note(|state| {
        for (uid, instance) in &assigned.placed {
            state.placed.insert(uid.clone(), instance.id.clone());
            state.reports.remove(uid);
            state.not_short(uid);
        }
        let sent = state.token(token).sent;
        let settles = shared.settles(recovery.written, sent);
        let used = recovery.used || !assigned.placed.is_empty();
        if assigned.without.is_empty() {
            state.token(token).last = LastAnswer::Used;
        } else if now < settles {
            let soon = now.saturating_add(LOOK_AGAIN).unwrap_or(settles);
            state.token(token).not_before = Some(soon.min(settles));
        } else if used && recovery.min == *size {
            // All were made, so these were too, and are gone.
            for member in &assigned.without {
                state.reports.insert(member.uid.clone(), Report::Gone);
            }
        } else {
            state.token(token).last = LastAnswer::Released { floor: None };
        }
    });
    save(shared, site, members, &assigned.placed).await;
}
