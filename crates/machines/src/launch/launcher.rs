//! Keeps those who wait, plans, and has plans carried out.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use fleetwright_api::machine::{Machine, MachineSet, Phase};
use fleetwright_clock::Clock;
use fleetwright_cloud::{CloudError, Launch, Shape};
use fleetwright_runtime::{Informer, ObjectKey, WorkQueue};
use jiff::Timestamp;
use kube::{Client, Resource as _, ResourceExt as _};
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    carry_out,
    intent::Intent,
    memory::{CapacityMemory, Pool},
    plan::{
        Batch, GangSet, Held, Holder, Known, LastAnswer, Plan, PlanSettings, Recovery, TokenMemory,
        Waiting, plan,
    },
    settings::{GangPolicy, LaunchConfig},
    verdict::Verdict,
};
use crate::{
    clouds::Site,
    machine::{INDEX_SET, INDEX_TOKEN, instance_id},
};

/// Machines come in crowds: one plan for all that come at about the same time.
const GATHER: Duration = Duration::from_millis(20);
/// How long launches that are under way may go on after the controller was told to stop.
const STOP_LIMIT: Duration = Duration::from_secs(20);
/// More remembered tokens than this are looked through for those that nobody carries.
const TOKENS: usize = 4096;

/// A Machine that needs an instance.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its name.
    pub key: ObjectKey,
    /// Its UID.
    pub uid: String,
    /// Where it is made.
    pub site: Arc<Site>,
    /// With what; none when that cannot be said now, so that only what was launched before can be
    /// found.
    pub launch: Option<Arc<Launch>>,
    /// What is written down on it.
    pub intent: Option<Intent>,
    /// Its gang: the UID of its MachineSet.
    pub gang: Option<(String, GangPolicy)>,
    /// How many more its group takes.
    pub headroom: Option<u32>,
}

/// Where a Machine stands with the launcher.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// It waits for its turn or its gang.
    Waiting,
    /// It is being launched or looked for.
    UnderWay,
    /// It has this instance.
    Placed(String),
    /// It is not tried because others like it were refused, or its group is full.
    Held(Held, Timestamp),
    /// It was refused.
    Refused(Refused),
    /// It was refused for good.
    Failed(CloudError),
    /// Its instance was made and is gone.
    Gone,
}

/// A refusal that may pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// What it means.
    pub verdict: Verdict,
    /// The cloud's words.
    pub error: CloudError,
    /// Since when there is no capacity, where that is what it means.
    pub since: Timestamp,
}

/// What is known of the instance of a Machine that goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// A launch is under way: wait.
    UnderWay,
    /// Nothing was made.
    Nothing,
    /// Something may have been made, and shows by then.
    Perhaps(Timestamp),
}

/// Launches Machines. Clones share everything.
#[derive(Clone)]
pub struct Launcher(pub(super) Arc<Shared>);

/// What a launcher is made of.
pub struct LauncherParts {
    /// The Kubernetes API.
    pub client: Client,
    /// Machines, with the indices of [`crate::machine`].
    pub machines: Informer<Machine>,
    /// MachineSets.
    pub sets: Informer<MachineSet>,
    /// Is told of Machines whose standing changed.
    pub queue: WorkQueue<ObjectKey>,
    /// Wall time.
    pub clock: Clock,
    /// Settings.
    pub config: LaunchConfig,
}

pub(super) struct Shared {
    pub(super) parts: LauncherParts,
    /// When this process began to act: nobody else sent anything in our name after this.
    started: Mutex<Timestamp>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
pub(super) struct State {
    waiting: BTreeMap<String, Submitted>,
    /// Machines in launches that are under way.
    busy: BTreeSet<String>,
    busy_tokens: BTreeSet<String>,
    pub(super) placed: BTreeMap<String, String>,
    pub(super) reports: BTreeMap<String, Report>,
    held: BTreeMap<String, Held>,
    short_since: BTreeMap<String, Timestamp>,
    pub(super) tokens: BTreeMap<String, TokenMemory>,
    pub(super) capacity: CapacityMemory,
    probing: BTreeSet<Pool>,
    pub(super) limits: BTreeMap<String, u32>,
}

#[derive(Clone)]
struct Submitted {
    candidate: Candidate,
    since: Timestamp,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Report {
    Refused(Verdict, CloudError),
    Failed(CloudError),
    Gone,
}

impl Launcher {
    /// A launcher that does nothing until [`Launcher::run`].
    pub fn new(parts: LauncherParts) -> Self {
        let started = Mutex::new(parts.clock.now());
        Self(Arc::new(Shared { parts, started, state: Mutex::default(), changed: Notify::new() }))
    }

    /// Has a Machine launched.
    pub fn submit(&self, mut candidate: Candidate) {
        let now = self.0.parts.clock.now();
        let mut state = self.0.state.lock();
        if state.placed.contains_key(&candidate.uid) {
            return;
        }
        let uid = candidate.uid.clone();
        let known = state.waiting.get(&uid);
        let since = known.map_or(now, |known| known.since);
        // What we wrote ourselves may not have come back to us yet.
        let written = known.and_then(|known| known.candidate.intent.clone());
        if written.as_ref().map(|intent| intent.at) > candidate.intent.as_ref().map(|own| own.at) {
            candidate.intent = written;
        }
        state.waiting.insert(uid, Submitted { candidate, since });
        drop(state);
        self.0.changed.notify_one();
    }

    /// Takes a Machine back that must not be launched any more. False when it is too late: it
    /// will be told when that is over.
    pub fn withdraw(&self, uid: &str) -> bool {
        let mut state = self.0.state.lock();
        if state.busy.contains(uid) {
            return false;
        }
        if state.waiting.remove(uid).is_some() {
            // Those who share its token must be looked at in another way now.
            self.0.changed.notify_one();
        }
        true
    }

    /// Where a Machine stands.
    pub fn standing(&self, uid: &str) -> Standing {
        let mut state = self.0.state.lock();
        if let Some(id) = state.placed.get(uid) {
            return Standing::Placed(id.clone());
        }
        if state.busy.contains(uid) && !state.reports.contains_key(uid) {
            return Standing::UnderWay;
        }
        let now = self.0.parts.clock.now();
        if let Some(held) = state.held.get(uid).cloned() {
            let since = *state.short_since.entry(uid.to_owned()).or_insert(now);
            return Standing::Held(held, since);
        }
        match state.reports.get(uid).cloned() {
            None => Standing::Waiting,
            Some(Report::Failed(error)) => Standing::Failed(error),
            Some(Report::Gone) => Standing::Gone,
            Some(Report::Refused(verdict, error)) => {
                let since = match verdict {
                    Verdict::Short(_) => *state.short_since.entry(uid.to_owned()).or_insert(now),
                    _ => now,
                };
                Standing::Refused(Refused { verdict, error, since })
            }
        }
    }

    /// A Machine was short of capacity earlier than this process knows.
    pub fn short_since(&self, uid: &str, since: Timestamp) {
        let mut state = self.0.state.lock();
        let known = state.short_since.entry(uid.to_owned()).or_insert(since);
        *known = since.min(*known);
    }

    /// What became of a Machine's intent, for one that goes.
    pub fn made(&self, intent: &Intent) -> Made {
        let state = self.0.state.lock();
        if state.busy_tokens.contains(&intent.token) {
            return Made::UnderWay;
        }
        let memory = state.tokens.get(&intent.token);
        match memory.map(|memory| memory.last).unwrap_or_default() {
            LastAnswer::Refused | LastAnswer::Released { .. } => Made::Nothing,
            _ => {
                let sent = memory.and_then(|memory| memory.sent);
                Made::Perhaps(self.0.settles(intent.at, sent))
            }
        }
    }

    /// Whether a Machine is bound to a launch of which the outcome is not known.
    pub fn is_open(&self, intent: &Intent) -> bool {
        self.made(intent) != Made::Nothing
    }

    /// A Machine is gone.
    pub fn forget(&self, uid: &str) {
        let mut state = self.0.state.lock();
        state.waiting.remove(uid);
        state.placed.remove(uid);
        state.reports.remove(uid);
        state.held.remove(uid);
        state.short_since.remove(uid);
    }

    /// Plans and launches until `stop`; then waits for what is under way.
    pub async fn run(self, stop: CancellationToken) {
        // Another process may have acted until now.
        *self.0.started.lock() = self.0.parts.clock.now();
        let mut under_way = JoinSet::new();
        let mut wake: Option<Timestamp> = None;
        loop {
            let sleep_time = wake.map_or(Duration::MAX, |wake| {
                Duration::try_from(wake.duration_since(self.0.parts.clock.now()))
                    .unwrap_or_default()
            });
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(ended) = under_way.join_next(), if !under_way.is_empty() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "a launch ended badly");
                    }
                }
                () = self.0.changed.notified() => sleep(GATHER).await,
                () = sleep(sleep_time.max(GATHER)) => {}
            }
            let plan = self.0.plan();
            wake = plan.wake;
            for batch in plan.batches {
                if let Some((site, launch)) = self.0.start_batch(&batch) {
                    let shared = self.0.clone();
                    under_way.spawn(async move {
                        carry_out::launch(&shared, &site, &launch, &batch).await;
                        shared.end(&batch.token, &batch.members);
                    });
                }
            }
            for recovery in plan.recoveries {
                if let Some(site) = self.0.start_recovery(&recovery) {
                    let shared = self.0.clone();
                    under_way.spawn(async move {
                        carry_out::recover(&shared, &site, &recovery).await;
                        shared.end(&recovery.token, &recovery.members);
                    });
                }
            }
        }
        let ended = async { while under_way.join_next().await.is_some() {} };
        if timeout(STOP_LIMIT, ended).await.is_err() {
            // What is under way is written down, and found by whoever comes next.
            tracing::warn!("launches that do not end are cut off");
            under_way.shutdown().await;
        }
    }
}

impl Shared {
    /// Changes what is remembered.
    pub(super) fn note<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock())
    }

    /// The time.
    pub(super) fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    /// When what was written at one time, and sent at another, must show.
    pub(super) fn settles(&self, written: Timestamp, sent: Option<Timestamp>) -> Timestamp {
        let last = written.max(*self.started.lock()).max(sent.unwrap_or(Timestamp::MIN));
        last.saturating_add(self.parts.config.settle_time.0).unwrap_or(Timestamp::MAX)
    }

    fn plan(&self) -> Plan {
        let now = self.now();
        let mut state = self.state.lock();
        state.capacity.prune(now);
        self.prune_tokens(&mut state);
        let waiting: Vec<Waiting> = state
            .waiting
            .values()
            .filter(|submitted| !state.busy.contains(&submitted.candidate.uid))
            .filter(|submitted| !state.is_settled(&submitted.candidate.uid))
            .map(Submitted::waiting)
            .filter(|waiting| waiting.intent.is_some() || !waiting.hash.is_empty())
            .collect();
        let holders = self.holders(&state, &waiting);
        let sets = self.gang_sets(&waiting);
        let config = &self.parts.config;
        let plan = plan(&Known {
            waiting: &waiting,
            holders: &holders,
            sets: &sets,
            tokens: &state.tokens,
            capacity: &state.capacity,
            probing: &state.probing,
            limits: &state.limits,
            settings: PlanSettings {
                coalesce: config.coalesce,
                coalesce_window: config.coalesce_window.0,
                gang_window: config.gang_window.0,
                max_batch: config.max_batch.max(1),
            },
            now,
        });
        let keys: BTreeMap<&str, &ObjectKey> =
            waiting.iter().map(|waiting| (waiting.uid.as_str(), &waiting.key)).collect();
        for uid in plan.held.keys() {
            if plan.held.get(uid) != state.held.get(uid)
                && let Some(key) = keys.get(uid.as_str())
            {
                self.parts.queue.add((*key).clone());
            }
        }
        state.held.clone_from(&plan.held);
        plan
    }

    /// Who carries the tokens of those who wait.
    fn holders(
        &self,
        state: &State,
        waiting: &[Waiting],
    ) -> BTreeMap<String, BTreeMap<u32, Holder>> {
        let tokens: BTreeSet<&str> = waiting
            .iter()
            .filter_map(|waiting| waiting.intent.as_ref())
            .map(|intent| intent.token.as_str())
            .collect();
        let mut holders = BTreeMap::new();
        for token in tokens {
            let mut indices = BTreeMap::new();
            for machine in self.parts.machines.by_index(INDEX_TOKEN, token) {
                let Ok(Some(intent)) = Intent::of(&machine) else { continue };
                let uid = machine.uid().unwrap_or_default();
                let holder = if leaving(&machine) || state.reports.get(&uid) == Some(&Report::Gone)
                {
                    Holder::Leaving
                } else if state.placed.contains_key(&uid) || instance_id(&machine).is_some() {
                    Holder::Placed
                } else {
                    Holder::Waiting
                };
                indices.insert(intent.index, holder);
            }
            holders.insert(token.to_owned(), indices);
        }
        holders
    }

    /// How many Machines the gangs of those who wait will have.
    fn gang_sets(&self, waiting: &[Waiting]) -> BTreeMap<String, GangSet> {
        let uids: BTreeSet<&str> = waiting
            .iter()
            .filter_map(|waiting| waiting.gang.as_ref())
            .map(|(set, _)| set.as_str())
            .collect();
        let mut sets = BTreeMap::new();
        for set in self.parts.sets.list() {
            let Some(uid) = set.meta().uid.as_deref().filter(|uid| uids.contains(uid)) else {
                continue;
            };
            let machines = self.parts.machines.by_index(INDEX_SET, uid);
            let settled = machines
                .iter()
                .filter(|machine| machine.meta().deletion_timestamp.is_none())
                .filter(|machine| {
                    leaving(machine)
                        || instance_id(machine).is_some()
                        || matches!(Intent::of(machine), Ok(Some(_)))
                })
                .count();
            let replicas = u32::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or(0);
            let settled = u32::try_from(settled).unwrap_or(u32::MAX);
            sets.insert(uid.to_owned(), GangSet { replicas, settled });
        }
        sets
    }

    /// Forgets tokens that nobody carries.
    fn prune_tokens(&self, state: &mut State) {
        if state.tokens.len() < TOKENS {
            return;
        }
        let busy = &state.busy_tokens;
        state.tokens.retain(|token, _| {
            busy.contains(token) || !self.parts.machines.by_index(INDEX_TOKEN, token).is_empty()
        });
    }

    fn start_batch(&self, batch: &Batch) -> Option<(Arc<Site>, Arc<Launch>)> {
        let mut state = self.state.lock();
        let candidates: Vec<&Candidate> = batch
            .members
            .iter()
            .filter_map(|member| state.waiting.get(&member.uid))
            .map(|submitted| &submitted.candidate)
            .collect();
        let found = candidates
            .iter()
            .find_map(|candidate| {
                let launch = candidate.launch.as_ref().filter(|l| l.hash == batch.hash)?;
                Some((candidate.site.clone(), launch.clone()))
            })
            .filter(|_| candidates.len() == batch.members.len())?;
        state.probing.insert(batch.pool.clone());
        state.start(&batch.token, &batch.members);
        Some(found)
    }

    fn start_recovery(&self, recovery: &Recovery) -> Option<Arc<Site>> {
        let mut state = self.state.lock();
        let first = recovery.members.first()?;
        let site = state.waiting.get(&first.uid)?.candidate.site.clone();
        state.start(&recovery.token, &recovery.members);
        Some(site)
    }

    fn end(&self, token: &str, members: &[super::plan::Member]) {
        {
            let mut state = self.state.lock();
            state.busy_tokens.remove(token);
            for member in members {
                state.busy.remove(&member.uid);
                if state.is_settled(&member.uid) {
                    state.waiting.remove(&member.uid);
                }
            }
        }
        for member in members {
            self.parts.queue.add(member.key.clone());
        }
        self.changed.notify_one();
    }
}

impl State {
    fn start(&mut self, token: &str, members: &[super::plan::Member]) {
        self.busy_tokens.insert(token.to_owned());
        self.busy.extend(members.iter().map(|member| member.uid.clone()));
    }

    /// Whether nothing more is to be done for a Machine.
    fn is_settled(&self, uid: &str) -> bool {
        self.placed.contains_key(uid)
            || matches!(self.reports.get(uid), Some(Report::Failed(_) | Report::Gone))
    }

    /// A Machine does not wait any more.
    pub(super) fn dismiss(&mut self, uid: &str) {
        self.waiting.remove(uid);
    }

    /// The intent that is on a Machine as far as we know.
    pub(super) fn intent(&self, uid: &str) -> Option<Intent> {
        self.waiting.get(uid)?.candidate.intent.clone()
    }

    /// An intent was written.
    pub(super) fn written(&mut self, uid: &str, intent: Intent) {
        if let Some(submitted) = self.waiting.get_mut(uid) {
            submitted.candidate.intent = Some(intent);
        }
    }

    /// A pool is not probed any more.
    pub(super) fn probed(&mut self, pool: &Pool) {
        self.probing.remove(pool);
    }

    /// There is enough for a Machine again.
    pub(super) fn not_short(&mut self, uid: &str) {
        self.short_since.remove(uid);
    }

    /// What is remembered of a token.
    pub(super) fn token(&mut self, token: &str) -> &mut TokenMemory {
        self.tokens.entry(token.to_owned()).or_default()
    }
}

impl Submitted {
    fn waiting(&self) -> Waiting {
        let candidate = &self.candidate;
        let launch = candidate.launch.as_deref();
        Waiting {
            key: candidate.key.clone(),
            uid: candidate.uid.clone(),
            account: candidate.site.name.clone(),
            hash: launch.map(|launch| launch.hash.clone()).unwrap_or_default(),
            shape: launch.map_or_else(Shape::default, |launch| launch.shape.clone()),
            intent: candidate.intent.clone(),
            gang: candidate.gang.clone(),
            headroom: candidate.headroom,
            since: self.since,
        }
    }
}

/// Whether a Machine is on its way out or given up: no instance may be made for it.
pub(super) fn leaving(machine: &Machine) -> bool {
    let phase = machine.status.as_ref().and_then(|status| status.phase.as_ref());
    machine.meta().deletion_timestamp.is_some() || phase == Some(&Phase::Failed)
}

impl fmt::Debug for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Launcher")
    }
}
