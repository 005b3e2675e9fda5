//! Who is launched when, and with whom. Plain functions: what waits goes in, launches come out.
//!
//! A Machine that has an [`Intent`] is bound to its token and to those who share it: they are sent
//! again exactly as before, or, when that cannot be, what the token made is looked for
//! ([`Recovery`]). All others are free to be put together: those of a gang in one launch that
//! takes all of them, others with equal parameters in one that takes as many as it gets.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use fleetwright_cloud::{CloudError, Shape};
use fleetwright_runtime::ObjectKey;
use jiff::Timestamp;

use super::{
    intent::{self, Intent},
    memory::{CapacityMemory, Pool},
    settings::GangPolicy,
};

/// Tenancy of dedicated hosts, which are chosen for one Machine at a time.
const HOST_TENANCY: &str = "host";

/// How long those who share a token are waited for after a restart.
const LATE: Duration = Duration::from_mins(1);

/// A Machine that needs an instance and is known to have none.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Its name.
    pub key: ObjectKey,
    /// Its UID.
    pub uid: String,
    /// Whose account pays: launches of different accounts never mix.
    pub account: String,
    /// Digest of the parameters as they are now.
    pub hash: String,
    /// What the launch means.
    pub shape: Shape,
    /// What was written down before.
    pub intent: Option<Intent>,
    /// The MachineSet (its UID) with which it forms a gang, and how.
    pub gang: Option<(String, GangPolicy)>,
    /// How many more its placement group takes in its zone, where that is known.
    pub headroom: Option<u32>,
    /// Since when it waits.
    pub since: Timestamp,
}

/// What somebody else that carries a token is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// It waits.
    Waiting,
    /// It has its instance: the token was used.
    Placed,
    /// It is being deleted or has failed: its instance must not be made.
    Leaving,
}

/// What is remembered of a token.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TokenMemory {
    /// What the cloud last said.
    pub last: LastAnswer,
    /// Not to be sent, or looked for, before.
    pub not_before: Option<Timestamp>,
    /// How often in a row that did not help.
    pub failures: u32,
    /// When it was last sent by this process.
    pub sent: Option<Timestamp>,
}

/// What the cloud last said to a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LastAnswer {
    /// Nothing that is known, or it was lost.
    #[default]
    Unknown,
    /// No, and nothing was made.
    Refused,
    /// It was used with other parameters: sending it again is of no use.
    Changed,
    /// What it made is gone, or some of it.
    Used,
    /// It made nothing for those who still carry it: they are free. The next launch may have as
    /// few as `floor`, where a gang could not be had whole.
    Released {
        /// The fewest to try with.
        floor: Option<u32>,
    },
}

/// A MachineSet, as far as its gang is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GangSet {
    /// How many Machines it wants.
    pub replicas: u32,
    /// How many of its Machines will not join a new launch: they have an instance or an intent, or
    /// have failed.
    pub settled: u32,
}

/// Numbers to plan with.
#[derive(Clone, Copy, Debug)]
pub struct PlanSettings {
    /// Whether free launches with equal parameters go together.
    pub coalesce: bool,
    /// How long they wait for others.
    pub coalesce_window: Duration,
    /// How long a gang waits for its members.
    pub gang_window: Duration,
    /// The most at once.
    pub max_batch: u32,
}

/// Everything that is known.
#[derive(Debug)]
pub struct Known<'a> {
    /// Those who wait, none of them part of a launch that is under way.
    pub waiting: &'a [Waiting],
    /// Who carries each token, by index.
    pub holders: &'a BTreeMap<String, BTreeMap<u32, Holder>>,
    /// The MachineSets of gangs by UID.
    pub sets: &'a BTreeMap<String, GangSet>,
    /// Tokens that were sent.
    pub tokens: &'a BTreeMap<String, TokenMemory>,
    /// Pools that refused.
    pub capacity: &'a CapacityMemory,
    /// Pools that are being probed.
    pub probing: &'a BTreeSet<Pool>,
    /// The most at once that an account was found to take.
    pub limits: &'a BTreeMap<String, u32>,
    /// Numbers.
    pub settings: PlanSettings,
    /// The time.
    pub now: Timestamp,
}

/// One Machine in a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub key: ObjectKey,
    /// Its UID.
    pub uid: String,
    /// Its index.
    pub index: u32,
    /// Which of its launches this is.
    pub attempt: u32,
}

/// A launch to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Token.
    pub token: String,
    /// Account.
    pub account: String,
    /// Digest of the parameters.
    pub hash: String,
    /// Where the capacity comes from.
    pub pool: Pool,
    /// With fewer, none is launched.
    pub min: u32,
    /// How many.
    pub size: u32,
    /// For whom, by index.
    pub members: Vec<Member>,
    /// How its gang wants it, if it is one.
    pub policy: Option<GangPolicy>,
    /// Whether it was sent before, so that the intents are written.
    pub again: bool,
}

/// A token whose instances are to be looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Token.
    pub token: String,
    /// How many it was for.
    pub size: u32,
    /// With fewer, none was launched.
    pub min: u32,
    /// Account.
    pub account: String,
    /// Who still needs to know.
    pub members: Vec<Member>,
    /// When the newest of their intents was written.
    pub written: Timestamp,
    /// Whether the token is known to have been used.
    pub used: bool,
    /// Whether the cloud is known to have made nothing: there is nothing to look for.
    pub refused: bool,
}

/// Why a Machine is not launched now although nothing is wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub enum Held {
    /// The pool refused others; it is asked again at that time.
    NoCapacity(Box<CloudError>, Timestamp),
    /// The placement group is full in the zone.
    GroupFull,
}

/// What to do.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// Launches to send.
    pub batches: Vec<Batch>,
    /// Tokens to look for.
    pub recoveries: Vec<Recovery>,
    /// Who is held back, by UID.
    pub held: BTreeMap<String, Held>,
    /// When to plan again although nothing has changed.
    pub wake: Option<Timestamp>,
}

/// A Machine that is free to be put together with others.
struct Free<'a> {
    machine: &'a Waiting,
    attempt: u32,
    floor: Option<u32>,
}

/// Plans.
pub fn plan(known: &Known<'_>) -> Plan {
    let mut planner = Planner { known, plan: Plan::default(), probed: BTreeSet::new() };
    let mut bound: BTreeMap<&str, Vec<(&Waiting, &Intent)>> = BTreeMap::new();
    let mut free: BTreeMap<_, Vec<Free<'_>>> = BTreeMap::new();
    for machine in known.waiting {
        let (attempt, floor) = match &machine.intent {
            None => (0, None),
            Some(intent) => {
                let LastAnswer::Released { floor } = known.last(&intent.token) else {
                    bound.entry(&intent.token).or_default().push((machine, intent));
                    continue;
                };
                (intent.attempt.saturating_add(1), floor)
            }
        };
        let key = (&machine.account, &machine.hash, &machine.gang);
        free.entry(key).or_default().push(Free { machine, attempt, floor });
    }
    for (token, members) in bound {
        planner.bound(token, members);
    }
    for ((.., gang), machines) in free {
        match gang {
            Some((set, policy)) => planner.gang(set, *policy, machines),
            None => planner.others(machines),
        }
    }
    planner.plan
}

impl Known<'_> {
    fn last(&self, token: &str) -> LastAnswer {
        self.tokens.get(token).map(|memory| memory.last).unwrap_or_default()
    }

    fn not_before(&self, token: &str) -> Option<Timestamp> {
        self.tokens.get(token)?.not_before.filter(|at| *at > self.now)
    }
}

struct Planner<'a> {
    known: &'a Known<'a>,
    plan: Plan,
    /// Pools that this plan probes.
    probed: BTreeSet<Pool>,
}

impl Planner<'_> {
    fn wake(&mut self, at: Timestamp) {
        self.plan.wake = Some(self.plan.wake.map_or(at, |wake| wake.min(at)));
    }

    /// Those who share a token go again as they went, if nothing has changed; otherwise what the
    /// token made is looked for.
    fn bound(&mut self, token: &str, mut machines: Vec<(&Waiting, &Intent)>) {
        machines.sort_by_key(|(_, intent)| intent.index);
        let Some(&(first, intent)) = machines.first() else { return };
        let last = self.known.last(token);
        let holders = self.known.holders.get(token);
        let holder = |index: u32| holders.and_then(|holders| holders.get(&index)).copied();
        let placed = (0..intent.size).any(|index| holder(index) == Some(Holder::Placed));
        let refused = last == LastAnswer::Refused && !placed;
        let whole = (0..intent.size).all(|index| holder(index) == Some(Holder::Waiting));
        let missing = machines.len() < usize::try_from(intent.size).unwrap_or(usize::MAX);
        if whole && missing {
            // The others will come. If one does not, what was made is looked for without it.
            let first = machines.iter().map(|(machine, _)| machine.since).min();
            let late = first.and_then(|first| first.saturating_add(LATE).ok());
            if let Some(late) = late.filter(|late| *late > self.known.now) {
                self.wake(late);
                return;
            }
        }
        let whole = whole && !missing;
        // Token and parameters belong together; in another zone the same token would even launch
        // again. A Machine of the batch that still has the parameters speaks for all.
        let speaker = machines
            .iter()
            .find(|(machine, intent)| machine.hash == intent.params_hash)
            .map(|(machine, _)| *machine);
        let members: Vec<Member> = machines
            .iter()
            .map(|(machine, intent)| member(machine, intent.index, intent.attempt))
            .collect();
        if whole
            && !matches!(last, LastAnswer::Used | LastAnswer::Changed)
            && let Some(speaker) = speaker
        {
            let pool = Pool::of(&first.account, &first.shape);
            let batch = Batch {
                token: token.to_owned(),
                account: first.account.clone(),
                hash: speaker.hash.clone(),
                pool,
                min: intent.min,
                size: intent.size,
                members,
                policy: first.gang.as_ref().map(|(_, policy)| *policy),
                again: true,
            };
            // An answer that was lost is asked for at once, whatever others were told.
            if refused && self.is_held(&batch) {
                return;
            }
            match self.known.not_before(token) {
                Some(at) => self.wake(at),
                None => self.plan.batches.push(batch),
            }
            return;
        }
        if let Some(at) = self.known.not_before(token)
            && !refused
        {
            self.wake(at);
            return;
        }
        self.plan.recoveries.push(Recovery {
            token: token.to_owned(),
            size: intent.size,
            min: intent.min,
            account: first.account.clone(),
            members,
            written: machines.iter().map(|(_, intent)| intent.at).max().unwrap_or(intent.at),
            used: placed || last == LastAnswer::Used,
            refused,
        });
    }

    /// A gang goes when all its members are there, or when they have been waited for long enough.
    fn gang(&mut self, set: &str, policy: GangPolicy, machines: Vec<Free<'_>>) {
        let others = self
            .known
            .waiting
            .iter()
            .filter(|machine| machine.gang.as_ref().is_some_and(|(other, _)| other == set))
            .count()
            .saturating_sub(machines.len());
        let expected = self.known.sets.get(set).map_or(0, |set| {
            let bound_elsewhere = u32::try_from(others).unwrap_or(u32::MAX);
            set.replicas.saturating_sub(set.settled).saturating_sub(bound_elsewhere)
        });
        let here = u32::try_from(machines.len()).unwrap_or(u32::MAX);
        let first = machines.iter().map(|free| free.machine.since).min();
        let until =
            first.and_then(|first| first.saturating_add(self.known.settings.gang_window).ok());
        if here < expected
            && let Some(until) = until.filter(|until| *until > self.known.now)
        {
            self.wake(until);
            return;
        }
        self.launch_free(Some(policy), machines);
    }

    /// Others go after a short wait for more of their kind.
    fn others(&mut self, machines: Vec<Free<'_>>) {
        let settings = &self.known.settings;
        let alone = !settings.coalesce
            || machines
                .iter()
                .any(|free| free.machine.shape.tenancy.as_deref() == Some(HOST_TENANCY));
        if alone {
            for machine in machines {
                self.launch_free(None, vec![machine]);
            }
            return;
        }
        let newest = machines.iter().map(|free| free.machine.since).max();
        let until = newest
            .and_then(|newest| newest.saturating_add(settings.coalesce_window).ok())
            .filter(|until| *until > self.known.now);
        let full = machines.len() >= usize::try_from(settings.max_batch).unwrap_or(usize::MAX);
        match until {
            Some(until) if !full => self.wake(until),
            _ => self.launch_free(None, machines),
        }
    }

    fn launch_free(&mut self, policy: Option<GangPolicy>, mut machines: Vec<Free<'_>>) {
        machines.sort_by(|one, other| one.machine.key.cmp(&other.machine.key));
        let Some(first) = machines.first() else { return };
        let account = first.machine.account.clone();
        // Members that wait for room do not keep others from it.
        let room = machines.iter().filter_map(|free| free.machine.headroom).min();
        if let Some(room) = room {
            let room = usize::try_from(room).unwrap_or(usize::MAX);
            let all = policy == Some(GangPolicy::AllOrNothing) && machines.len() > room;
            let kept = if all { 0 } else { room.min(machines.len()) };
            for free in machines.drain(kept..) {
                self.plan.held.insert(free.machine.uid.clone(), Held::GroupFull);
            }
        }
        let learned = self.known.limits.get(&account).copied().unwrap_or(u32::MAX);
        let most = self.known.settings.max_batch.min(learned).max(1);
        for chunk in machines.chunks(usize::try_from(most).unwrap_or(usize::MAX)) {
            let Some(batch) = batch(policy, chunk) else { continue };
            if !self.is_held(&batch) {
                self.plan.batches.push(batch);
            }
        }
    }

    /// Whether the pool is known to be full. One launch is let through when it is time to ask.
    fn is_held(&mut self, batch: &Batch) -> bool {
        let Some(refusal) = self.known.capacity.refusal(&batch.pool, batch.min) else {
            return false;
        };
        let due = refusal.until <= self.known.now
            && !self.known.probing.contains(&batch.pool)
            && self.probed.insert(batch.pool.clone());
        if due {
            return false;
        }
        for member in &batch.members {
            let held = Held::NoCapacity(Box::new(refusal.error.clone()), refusal.until);
            self.plan.held.insert(member.uid.clone(), held);
        }
        if refusal.until > self.known.now {
            let until = refusal.until;
            self.wake(until);
        }
        true
    }
}

fn member(machine: &Waiting, index: u32, attempt: u32) -> Member {
    Member { key: machine.key.clone(), uid: machine.uid.clone(), index, attempt }
}

fn batch(policy: Option<GangPolicy>, machines: &[Free<'_>]) -> Option<Batch> {
    let first = machines.first()?.machine;
    let size = u32::try_from(machines.len()).ok()?;
    let floor = machines.iter().filter_map(|free| free.floor).min();
    let min = match policy {
        None => 1,
        Some(_) => floor.unwrap_or(size).clamp(1, size),
    };
    let token =
        intent::token(machines.iter().map(|free| (free.machine.uid.as_str(), free.attempt)));
    let members =
        (0..).zip(machines).map(|(index, free)| member(free.machine, index, free.attempt));
    Some(Batch {
        token,
        account: first.account.clone(),
        hash: first.hash.clone(),
        pool: Pool::of(&first.account, &first.shape),
        min,
        size,
        members: members.collect(),
        policy,
        again: false,
    })
}
