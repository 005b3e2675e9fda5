//! What to do about one group, as plain data.
//!
//! [`decide`] is asked again after every step until it says [`Step::Settle`]. It never makes or
//! removes anything on the strength of what was seen before this run, and it takes nothing but the
//! cloud's own word for absence: an error is an error.

use std::time::Duration;

use fleetwright_cloud::{CloudError, GroupOrder, GroupState, PlacementGroup, Tag};
use jiff::Timestamp;

use super::{
    names::{
        CONFIGURATION_IN_SYNC, CONFIGURATION_MISMATCH, CREATION_FAILED, CREATION_SUCCEEDED,
        DELETION_FAILED, INVALID_CONFIGURATION, NOT_AVAILABLE, NOT_FOUND, OBSERVATION_FAILED,
    },
    status::{Status, Verdict},
    wanted::{
        Configuration, InvalidSpec, Management, UNMANAGED_FOR_GOOD, Wanted, compare, order,
        owned_by,
    },
};

/// How long an observation may be trusted, as upstream.
pub const VALID_FOR: Duration = Duration::from_mins(2);
/// A group that was made this recently may not show yet: reads of the cloud lag behind its writes.
pub const SETTLES_IN: Duration = Duration::from_mins(1);
/// How soon to look again at something that is about to change.
const SOON: Duration = Duration::from_secs(5);
/// How soon to look again at a group that cannot go yet; Machines that leave wake us earlier.
const BLOCKED: Duration = Duration::from_secs(20);

/// An instance in the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The cloud's name of it.
    pub id: String,
    /// What it is doing.
    pub state: fleetwright_cloud::InstanceState,
    /// Where it is.
    pub zone: String,
}

/// What the cloud showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// When it was asked.
    pub at: Timestamp,
    /// The group; none when the cloud says that there is none.
    pub group: Option<PlacementGroup>,
    /// Its members that are not terminated, whoever made them.
    pub members: Vec<Member>,
    /// Whether this is the answer to our order of the group, and not an observation.
    pub made: bool,
}

/// The object, as far as it matters here.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its name, which is the group's name in the cloud.
    pub name: String,
    /// Whether it is to go.
    pub deleting: bool,
    /// Whether we hold it until the group is gone.
    pub held: bool,
    /// When we last wrote down that we were about to make the group.
    pub intended: Option<Timestamp>,
    /// What the user asks for.
    pub wanted: Result<Wanted, InvalidSpec>,
    /// What its status says.
    pub status: Status,
}

/// Where the object lives in the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The cluster's name in the cloud.
    pub cluster: String,
    /// Tags of everything that belongs to the cluster.
    pub tags: Vec<Tag>,
}

/// What happened in this run so far.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// The cloud was asked in this run, so [`Situation::seen`] is new.
    pub looked: bool,
    /// It could not be asked.
    pub look_failed: Option<CloudError>,
    /// The intention to make the group was written down in this run.
    pub intended: bool,
    /// It could not be made.
    pub create_failed: Option<CloudError>,
    /// The group was removed in this run.
    pub removed: bool,
    /// It could not be removed.
    pub remove_failed: Option<CloudError>,
}

/// All that a decision depends on.
#[derive(Clone, Debug)]
pub struct Situation<'a> {
    /// The object.
    pub object: &'a Object,
    /// Where it lives, or why that is not known.
    pub place: Result<&'a Place, &'a str>,
    /// What the cloud last showed.
    pub seen: Option<&'a Seen>,
    /// Whether that is too old, or something has happened since.
    pub outdated: bool,
    /// What happened in this run.
    pub progress: &'a Progress,
    /// The time.
    pub now: Timestamp,
}

/// The next thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Ask the cloud.
    Look,
    /// Hold the object until the group is gone, and write down that one is about to be made.
    Hold {
        /// Whether one is about to be made now.
        intends: bool,
    },
    /// Make the group.
    Create(GroupOrder),
    /// Remove the group.
    Remove,
    /// Let the object go, or be unmanaged.
    LetGo,
    /// Write the status and wait.
    Settle,
}

/// When to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Before the observation expires.
    BeforeExpiry,
    /// After this time.
    After(Duration),
    /// As failures are retried, each time later.
    Retry,
    /// When something changes.
    Change,
}

/// What to do, what to write and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The next thing to do.
    pub step: Step,
    /// What the status is to say; none leaves it.
    pub status: Option<Status>,
    /// When to look again, after [`Step::Settle`].
    pub next: Next,
    /// What was done or refused, and why, in the user's words.
    pub report: Vec<String>,
    /// What went wrong, for the event.
    pub trouble: Option<String>,
}

impl Decision {
    fn step(step: Step) -> Self {
        Self { step, status: None, next: Next::Change, report: Vec::new(), trouble: None }
    }

    fn settle(status: Status, next: Next) -> Self {
        Self { status: Some(status), next, ..Self::step(Step::Settle) }
    }

    fn because(mut self, line: impl Into<String>) -> Self {
        self.report.push(line.into());
        self
    }

    fn troubled(mut self, trouble: impl Into<String>) -> Self {
        self.trouble = Some(trouble.into());
        self
    }
}

/// Who looks after the group: what the user asks for, but once unmanaged it stays so.
fn management(object: &Object) -> Option<(Management, bool)> {
    let asked = object.wanted.as_ref().ok().map(Wanted::management);
    match (asked, object.status.management) {
        (Some(Management::Managed), Some(Management::Unmanaged)) => {
            Some((Management::Unmanaged, true))
        }
        (Some(asked), _) => Some((asked, false)),
        (None, remembered) => remembered.map(|remembered| (remembered, false)),
    }
}

/// Decides the next step.
pub fn decide(situation: &Situation<'_>) -> Decision {
    let object = situation.object;
    let managed_by = management(object);
    if object.deleting {
        return match managed_by {
            _ if !object.held => Decision::step(Step::Settle),
            Some((Management::Unmanaged, _)) => Decision::step(Step::LetGo)
                .because("the group is unmanaged: it stays as it is in AWS"),
            // An object whose specification became wrong still has its group.
            Some((Management::Managed, _)) | None => retire(situation),
        };
    }
    let wanted = match object.wanted {
        Ok(wanted) => wanted,
        Err(invalid) => {
            let ready = Verdict::no(INVALID_CONFIGURATION, invalid.to_string());
            let status = Status { ready: Some(ready), ..object.status.clone() };
            return Decision::settle(status, Next::Change).troubled(invalid.to_string());
        }
    };
    match (wanted, managed_by) {
        (Wanted::Managed(configuration), Some((Management::Managed, _))) => {
            keep(situation, configuration)
        }
        (_, forbidden) => watch(situation, forbidden.is_some_and(|(_, forbidden)| forbidden)),
    }
}

/// Looks at the cloud if that is needed; otherwise gives what was seen, or the end of this run.
fn look<'a>(
    situation: &Situation<'a>,
    management: Management,
) -> Result<(&'a Place, &'a Seen), Box<Decision>> {
    let place = match situation.place {
        Ok(place) => place,
        Err(why) => {
            let status = unseen(situation, management, why);
            return Err(Box::new(Decision::settle(status, Next::Change).troubled(why)));
        }
    };
    if let Some(error) = &situation.progress.look_failed {
        let why = look_failed(error);
        let status = unseen(situation, management, &why);
        return Err(Box::new(Decision::settle(status, Next::Retry).troubled(why)));
    }
    match situation.seen {
        Some(seen) if situation.progress.looked || !situation.outdated => Ok((place, seen)),
        _ => Err(Box::new(Decision::step(Step::Look))),
    }
}

/// Whether an error is the cloud's word that there is no such group; no other error is.
pub fn means_absent(error: &CloudError) -> bool {
    error.class == fleetwright_cloud::ErrorClass::NotFound
        && error.code == "InvalidPlacementGroup.Unknown"
}

fn look_failed(error: &CloudError) -> String {
    format!("could not describe aws placement groups: {error}")
}

/// The status when the cloud could not be asked: what it last said holds until it expires.
fn unseen(situation: &Situation<'_>, management: Management, why: &str) -> Status {
    let mut status = situation.object.status.clone();
    status.management = Some(management);
    if status.expires_at.is_none_or(|until| until <= situation.now) {
        status.ready = Some(Verdict::unknown(OBSERVATION_FAILED, why));
    }
    status
}

/// The status when the cloud has answered, without the verdict.
fn observed(situation: &Situation<'_>, management: Management, seen: &Seen) -> Status {
    let group = seen.group.as_ref().filter(|group| exists(group));
    Status {
        ready: None,
        deleting: situation.object.status.deleting.clone().filter(|_| situation.object.deleting),
        expires_at: seen.at.checked_add(VALID_FOR).ok(),
        replicas: group.map(|_| u32::try_from(seen.members.len()).unwrap_or(u32::MAX)),
        management: Some(management),
        observed: group.map(Configuration::of),
    }
}

fn exists(group: &PlacementGroup) -> bool {
    group.state != GroupState::Deleted
}

fn state_name(state: GroupState) -> &'static str {
    match state {
        GroupState::Pending => "pending",
        GroupState::Available => "available",
        GroupState::Deleting => "deleting",
        GroupState::Deleted => "deleted",
    }
}

/// A verdict about a group that is what is asked for: ready if the cloud says that it is available.
fn available(group: &PlacementGroup, reason: &'static str, message: &str) -> (Verdict, Next) {
    if group.state == GroupState::Available {
        (Verdict::yes(reason, message), Next::BeforeExpiry)
    } else {
        let message = format!("aws placement group is in state {:?}", state_name(group.state));
        (Verdict::no(NOT_AVAILABLE, message), Next::After(SOON))
    }
}

/// An unmanaged group is watched and never touched.
fn watch(situation: &Situation<'_>, forbidden: bool) -> Decision {
    let object = situation.object;
    if object.held {
        return Decision::step(Step::LetGo)
            .because("the group is unmanaged: it stays as it is in AWS");
    }
    let (_, seen) = match look(situation, Management::Unmanaged) {
        Ok(found) => found,
        Err(decision) => return *decision,
    };
    let mut status = observed(situation, Management::Unmanaged, seen);
    let found = seen.group.as_ref().filter(|group| exists(group));
    let (mut ready, next) = if let Some(group) = found {
        available(group, CONFIGURATION_IN_SYNC, "aws placement group is available")
    } else {
        let message = format!("aws placement group {:?} not found", object.name);
        (Verdict::no(NOT_FOUND, message), Next::BeforeExpiry)
    };
    if forbidden {
        ready.message = format!("{}; {UNMANAGED_FOR_GOOD}", ready.message);
    }
    status.ready = Some(ready);
    let decision = Decision::settle(status, next);
    if forbidden { decision.troubled(UNMANAGED_FOR_GOOD) } else { decision }
}

/// A managed group is made when there is none, and compared when there is one.
fn keep(situation: &Situation<'_>, wanted: Configuration) -> Decision {
    let object = situation.object;
    let (place, seen) = match look(situation, Management::Managed) {
        Ok(found) => found,
        Err(decision) => return *decision,
    };
    let mut status = observed(situation, Management::Managed, seen);
    let Some(group) = seen.group.as_ref().filter(|group| exists(group)) else {
        return make(situation, place, wanted, status);
    };
    if let Err(foreign) = owned_by(&place.cluster, group) {
        // Not ours: neither held nor ever deleted, so that the object can go at any time.
        let message = mismatch_message(&foreign);
        status.ready = Some(Verdict::no(CONFIGURATION_MISMATCH, &message));
        return Decision::settle(status, Next::BeforeExpiry).troubled(message);
    }
    if !object.held {
        return Decision::step(Step::Hold { intends: false });
    }
    if let Err(mismatch) = compare(&object.name, wanted, group) {
        let message = mismatch_message(&mismatch);
        status.ready = Some(Verdict::no(CONFIGURATION_MISMATCH, &message));
        return Decision::settle(status, Next::BeforeExpiry).troubled(message);
    }
    let (reason, message) = if seen.made {
        (CREATION_SUCCEEDED, "aws placement group created")
    } else {
        (CONFIGURATION_IN_SYNC, "aws placement group is as configured")
    };
    let (ready, next) = available(group, reason, message);
    status.ready = Some(ready);
    Decision::settle(status, next)
}

/// The message of a group that is not the one that is asked for.
pub fn mismatch_message(mismatch: &super::wanted::Mismatch) -> String {
    format!("invalid configuration for existing aws placement group: {mismatch}")
}

fn make(
    situation: &Situation<'_>,
    place: &Place,
    wanted: Configuration,
    mut status: Status,
) -> Decision {
    const NOT_SEEN_YET: &str = "aws placement group was created and is not visible yet";
    let (object, progress) = (situation.object, situation.progress);
    if let Some(error) = &progress.create_failed {
        if error.class == fleetwright_cloud::ErrorClass::AlreadyExists {
            // There is one after all, which the cloud does not show us yet.
            status.ready = Some(Verdict::no(NOT_AVAILABLE, NOT_SEEN_YET));
            return Decision::settle(status, Next::After(SOON)).because(NOT_SEEN_YET);
        }
        let message = format!("failed to create aws placement group: {error}");
        status.ready = Some(Verdict::no(CREATION_FAILED, &message));
        return Decision::settle(status, Next::Retry).troubled(message);
    }
    let settles = object.intended.is_some_and(|intended| {
        situation.now < intended.saturating_add(SETTLES_IN).unwrap_or(intended)
    });
    if settles && !progress.intended && object.status.was_just_created() {
        // Made moments ago: what we were told then is truer than a read that lags behind.
        return Decision::settle(object.status.clone(), Next::After(SOON)).because(NOT_SEEN_YET);
    }
    if !progress.looked {
        return Decision::step(Step::Look);
    }
    if !object.held || !settles {
        return Decision::step(Step::Hold { intends: true });
    }
    Decision::step(Step::Create(order(&object.name, wanted, &place.cluster, &place.tags)))
}

/// What a group that cannot go says of itself.
pub fn deletion_message(why: &str) -> String {
    format!("failed to delete aws placement group: {why}")
}

/// A managed group goes when it is ours and empty.
fn retire(situation: &Situation<'_>) -> Decision {
    let (object, progress) = (situation.object, situation.progress);
    if progress.removed {
        return Decision::step(Step::LetGo).because("aws placement group deleted");
    }
    let refuse = |status: Status, why: String, next: Next| {
        let message = deletion_message(&why);
        let status = Status { deleting: Some(Verdict::yes(DELETION_FAILED, &message)), ..status };
        Decision::settle(status, next).troubled(message)
    };
    if let Some(error) = &progress.look_failed {
        let status = unseen(situation, Management::Managed, &look_failed(error));
        return refuse(status, look_failed(error), Next::Retry);
    }
    let place = match situation.place {
        Ok(place) => place,
        Err(why) => {
            return refuse(
                unseen(situation, Management::Managed, why),
                why.to_owned(),
                Next::Change,
            );
        }
    };
    // Nothing is removed on an old observation, but a recent one may well say what to wait for:
    // groups that are deleted together would otherwise look for each other again and again.
    let waits = |seen: &Seen| {
        !situation.outdated
            && seen.group.as_ref().is_some_and(|group| {
                group.state == GroupState::Deleting || !seen.members.is_empty()
            })
    };
    let Some(seen) = situation.seen.filter(|seen| progress.looked || waits(seen)) else {
        return Decision::step(Step::Look);
    };
    let status = Status {
        ready: object.status.ready.clone(),
        ..observed(situation, Management::Managed, seen)
    };
    let Some(group) = seen.group.as_ref().filter(|group| exists(group)) else {
        let certain = object.intended.map_or(Timestamp::MIN, |intended| {
            intended.saturating_add(SETTLES_IN).unwrap_or(intended)
        });
        if certain > situation.now {
            // It may have been made a moment ago by a call whose effect does not show yet.
            let wait = Duration::try_from(certain.duration_since(situation.now)).unwrap_or(SOON);
            return Decision::settle(status, Next::After(wait.min(SOON)))
                .because("a group that was ordered moments ago may not be visible yet");
        }
        return Decision::step(Step::LetGo).because("there is no such group in AWS");
    };
    if owned_by(&place.cluster, group).is_err() {
        let why = "aws placement group was not created by machine-api".to_owned();
        return refuse(status, why, Next::BeforeExpiry)
            .because("to delete this object and keep the group, set managementState to Unmanaged");
    }
    if group.state == GroupState::Deleting {
        return Decision::settle(status, Next::After(SOON)).because("AWS is deleting the group");
    }
    if !seen.members.is_empty() {
        let why = format!("aws placement group still contains {} instances", seen.members.len());
        return refuse(status, why, Next::After(BLOCKED)).because(name_members(&seen.members));
    }
    if let Some(error) = &progress.remove_failed {
        let next = if error.class == fleetwright_cloud::ErrorClass::InUse {
            Next::After(BLOCKED)
        } else {
            Next::Retry
        };
        let why = format!("could not remove the cloud resource on aws: {error}");
        return refuse(status, why, next);
    }
    Decision::step(Step::Remove)
}

/// The first few members, so that the user finds them.
fn name_members(members: &[Member]) -> String {
    const SHOWN: usize = 5;
    let mut names: Vec<String> = members
        .iter()
        .take(SHOWN)
        .map(|member| format!("{} ({}, {})", member.id, member.state, member.zone))
        .collect();
    if members.len() > SHOWN {
        names.push(format!("and {} more", members.len() - SHOWN));
    }
    format!("instances in the group: {}", names.join(", "))
}
