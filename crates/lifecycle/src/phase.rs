//! The life of a Machine, one pass at a time.
//!
//! A pass is a conversation: [`next`] names a call to make, the caller makes it, tells what was
//! [`Learned`], with the facts as they are then, and asks again until it gets an [`End`].
//!
//! ```text
//! let mut learned = Learned::Nothing;
//! let end = loop {
//!     match next(&facts, &learned) {
//!         Step::Call(call) => learned = make(call),
//!         Step::End(end) => break end,
//!     }
//! };
//! ```
//!
//! One Machine has one instance, for ever: an instance that was there and is gone makes the Machine
//! Failed, and Failed is left only by deletion. Existence is asked again after every deletion, so
//! that the finalizer goes when the instance has.

use std::{error::Error, time::Duration};

use crate::{
    conditions::{Condition, SEVERITY_WARNING},
    hooks::Hook,
};

/// Where a Machine is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Its instance is being made.
    Provisioning,
    /// Its instance is there, its Node is not.
    Provisioned,
    /// Its Node is there.
    Running,
    /// It goes.
    Deleting,
    /// It cannot be helped.
    Failed,
}

impl Phase {
    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Provisioning => "Provisioning",
            Self::Provisioned => "Provisioned",
            Self::Running => "Running",
            Self::Deleting => "Deleting",
            Self::Failed => "Failed",
        }
    }
}

/// Condition: the instance exists.
pub const INSTANCE_EXISTS: &str = "InstanceExists";
/// The cloud did not say.
pub const ERROR_CHECKING_PROVIDER: &str = "ErrorCheckingProvider";
/// It was there and is gone.
pub const INSTANCE_MISSING: &str = "InstanceMissing";
/// Message of [`INSTANCE_MISSING`].
pub const INSTANCE_MISSING_MESSAGE: &str = "Instance not found on provider";
/// It was not made yet.
pub const INSTANCE_NOT_CREATED: &str = "InstanceNotCreated";
/// Message of [`INSTANCE_NOT_CREATED`].
pub const INSTANCE_NOT_CREATED_MESSAGE: &str = "Instance has not been created";
/// What a Machine says whose instance vanished.
pub const CANNOT_FIND_INSTANCE: &str = "can't find created instance";

/// `status.errorReason`: the spec cannot work.
pub const INVALID_CONFIGURATION: &str = "InvalidConfiguration";
/// `status.errorReason`: the spec changed in a way that cannot be followed.
pub const UNSUPPORTED_CHANGE: &str = "UnsupportedChange";
/// `status.errorReason`: there is no capacity or no quota.
pub const INSUFFICIENT_RESOURCES: &str = "InsufficientResources";
/// `status.errorReason`: it could not be made.
pub const CREATE_ERROR: &str = "CreateError";
/// `status.errorReason`: it could not be kept.
pub const UPDATE_ERROR: &str = "UpdateError";
/// `status.errorReason`: it could not be removed.
pub const DELETE_ERROR: &str = "DeleteError";

/// How long until the next look at an instance that is on its way.
pub const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// What is known of a Machine.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its phase; empty when it has none.
    pub phase: String,
    /// Whether it has a deletion timestamp.
    pub deleting: bool,
    /// Whether our finalizer is on it.
    pub finalizer: bool,
    /// Whether its condition `Drained` holds.
    pub drained: bool,
    /// Who holds back the end of its instance.
    pub pre_terminate: Vec<Hook>,
    /// Whether it has a provider ID.
    pub provider_id: bool,
    /// Whether it has addresses.
    pub addresses: bool,
    /// Whether it has a Node.
    pub node_ref: bool,
}

impl Facts {
    /// Whether there once was an instance.
    pub fn provisioned(&self) -> bool {
        self.provider_id || self.addresses
    }
}

/// Why a call to the cloud failed, as far as the Machine's life depends on it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What follows.
    pub kind: FailureKind,
    /// `status.errorReason` where the Machine becomes Failed.
    pub reason: &'static str,
    /// What happened.
    pub message: String,
}

/// What follows from a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The Machine is Failed: trying again is of no use, or not wanted.
    Final,
    /// The same call may succeed after this time, and no sooner.
    Later(Duration),
    /// The same call may succeed; the caller's back-off says when.
    Retry,
}

impl Failure {
    /// Trying again is of no use.
    pub fn fatal(reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Final, reason, message: message.into() }
    }

    /// Trying again may help.
    pub fn retry(reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Retry, reason, message: message.into() }
    }

    /// Trying again after some time may help.
    pub fn later(reason: &'static str, after: Duration, message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Later(after), reason, message: message.into() }
    }

    /// Whether the spec cannot work.
    pub fn is_invalid_configuration(&self) -> bool {
        self.reason == INVALID_CONFIGURATION
    }

    /// The failure that an error wraps, however deep.
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut error = Some(error);
        while let Some(inner) = error {
            if let Some(failure) = inner.downcast_ref() {
                return Some(failure);
            }
            error = inner.source();
        }
        None
    }

    /// What follows for the caller of an error that may wrap a failure.
    pub fn then(error: &(dyn Error + 'static)) -> Then {
        match Self::find(error).map(|failure| failure.kind) {
            Some(FailureKind::Later(after)) => Then::Again(after),
            _ => Then::Error(error.to_string()),
        }
    }
}

/// A call to the cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Ask whether the instance exists.
    Exists,
    /// Make it.
    Create,
    /// Bring the Machine up to date with it.
    Update,
    /// Remove it.
    Delete,
}

/// What the last call of this pass brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Learned {
    /// There was none yet.
    Nothing,
    /// Whether the instance exists.
    Exists(Result<bool, Failure>),
    /// It is made.
    Created(Result<(), Failure>),
    /// The Machine is up to date with it. The facts are those after the call.
    Updated(Result<(), Failure>),
    /// Its removal has begun, or there was nothing to remove.
    Deleted(Result<(), Failure>),
}

/// What comes next.
#[expect(clippy::large_enum_variant, reason = "there is one of it, and it is moved once")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Put the finalizer on, and end the pass: nothing may be made before it is there.
    AddFinalizer,
    /// Make a call and ask again.
    Call(Call),
    /// The pass is over.
    End(End),
}

/// How a pass ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The phase that the Machine is in now; none leaves it as it is.
    pub phase: Option<Phase>,
    /// Why it is Failed.
    pub error: Option<Failure>,
    /// The condition [`INSTANCE_EXISTS`]; none leaves it as it is.
    pub instance_exists: Option<Condition>,
    /// The instance is gone: delete the Node, then take the finalizer off.
    pub finish: bool,
    /// When to come back.
    pub then: Then,
    /// What it waits for, for people; empty when it waits for nothing.
    pub waits_for: String,
}

/// When to come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Then {
    /// When something changes.
    Done,
    /// After some time.
    Again(Duration),
    /// As the back-off says; this went wrong.
    Error(String),
}

impl End {
    fn stay() -> Self {
        Self {
            phase: None,
            error: None,
            instance_exists: None,
            finish: false,
            then: Then::Done,
            waits_for: String::new(),
        }
    }

    fn in_phase(phase: Phase) -> Self {
        Self { phase: Some(phase), ..Self::stay() }
    }

    fn failed(failure: &Failure) -> Self {
        Self { error: Some(failure.clone()), ..Self::in_phase(Phase::Failed) }
    }

    fn again(self, after: Duration, waits_for: &str) -> Self {
        Self { then: Then::Again(after), ..self.waiting(waits_for) }
    }

    fn waiting(self, waits_for: &str) -> Self {
        Self { waits_for: waits_for.to_owned(), ..self }
    }

    fn existing(self, condition: Condition) -> Self {
        Self { instance_exists: Some(condition), ..self }
    }
}

/// What a Machine needs next.
pub fn next(machine: &Facts, learned: &Learned) -> Step {
    if machine.deleting {
        return deleting(machine, learned);
    }
    match learned {
        Learned::Nothing if !machine.finalizer => Step::AddFinalizer,
        Learned::Nothing if machine.phase == Phase::Failed.as_str() => Step::End(End::stay()),
        Learned::Nothing => Step::Call(Call::Exists),
        Learned::Exists(Ok(true)) => Step::Call(Call::Update),
        Learned::Exists(Ok(false)) => absent(machine),
        Learned::Exists(Err(failure)) => Step::End(unknown(failure)),
        Learned::Updated(outcome) => Step::End(updated(machine, outcome)),
        Learned::Created(outcome) => Step::End(created(outcome)),
        // Deleted between two calls of a pass: the next pass sees it.
        Learned::Deleted(_) => Step::End(End::stay()),
    }
}

fn unknown(failure: &Failure) -> End {
    let condition =
        Condition::unknown(INSTANCE_EXISTS, ERROR_CHECKING_PROVIDER, failure.message.clone());
    let end = match failure.kind {
        FailureKind::Final => End::failed(failure),
        FailureKind::Later(_) | FailureKind::Retry => End::stay(),
    };
    End { then: Failure::then(failure), ..end.existing(condition) }
}

fn absent(machine: &Facts) -> Step {
    if machine.provisioned() {
        let gone = Failure::fatal(UPDATE_ERROR, CANNOT_FIND_INSTANCE);
        return Step::End(End::failed(&gone).existing(Condition::fails(
            INSTANCE_EXISTS,
            INSTANCE_MISSING,
            SEVERITY_WARNING,
            INSTANCE_MISSING_MESSAGE,
        )));
    }
    if machine.phase.is_empty() {
        // Written down before anything is made, so that users see it begin.
        return Step::End(End::in_phase(Phase::Provisioning).existing(Condition::fails(
            INSTANCE_EXISTS,
            INSTANCE_NOT_CREATED,
            SEVERITY_WARNING,
            INSTANCE_NOT_CREATED_MESSAGE,
        )));
    }
    Step::Call(Call::Create)
}

fn created(outcome: &Result<(), Failure>) -> End {
    match outcome {
        Ok(()) => End::stay().again(LOOK_AGAIN, "the instance to start"),
        Err(failure) if failure.kind == FailureKind::Final => End::failed(failure),
        Err(failure) => {
            End { then: Failure::then(failure), ..End::stay().waiting(&failure.message) }
        }
    }
}

fn updated(machine: &Facts, outcome: &Result<(), Failure>) -> End {
    let exists = Condition::holds(INSTANCE_EXISTS);
    match outcome {
        // The instance is there, so an error here is no reason for the back-off of errors.
        Err(failure) => {
            let end = match failure.kind {
                FailureKind::Final => End::failed(failure),
                FailureKind::Later(_) | FailureKind::Retry => End::stay(),
            };
            let after = match failure.kind {
                FailureKind::Later(after) => after,
                FailureKind::Final | FailureKind::Retry => LOOK_AGAIN,
            };
            end.again(after, &failure.message)
        }
        Ok(()) if !machine.provisioned() => {
            End::stay().existing(exists).again(LOOK_AGAIN, "addresses or a provider ID")
        }
        Ok(()) if !machine.node_ref => End::in_phase(Phase::Provisioned)
            .existing(exists)
            .again(LOOK_AGAIN, "the instance to join as a Node"),
        Ok(()) => End::in_phase(Phase::Running).existing(exists),
    }
}

fn deleting(machine: &Facts, learned: &Learned) -> Step {
    let goes = || End::in_phase(Phase::Deleting);
    match learned {
        // The others will let it go.
        Learned::Nothing if !machine.finalizer => Step::End(End::stay()),
        Learned::Nothing if !machine.drained => Step::End(goes().waiting("the Node to be drained")),
        Learned::Nothing if !machine.pre_terminate.is_empty() => {
            Step::End(goes().waiting("the pre-terminate hooks to be removed"))
        }
        Learned::Nothing => Step::Call(Call::Delete),
        Learned::Deleted(Ok(())) => Step::Call(Call::Exists),
        Learned::Deleted(Err(failure)) => {
            // A spec that never worked has no instance; without this the Machine could not go.
            // With addresses there was one, so it must not be forgotten.
            if failure.is_invalid_configuration() && !machine.addresses {
                return Step::Call(Call::Exists);
            }
            Step::End(End { then: Failure::then(failure), ..goes().waiting(&failure.message) })
        }
        Learned::Exists(Ok(false)) => Step::End(End { finish: true, ..goes() }),
        Learned::Exists(Ok(true)) => {
            Step::End(goes().again(LOOK_AGAIN, "the instance to be terminated"))
        }
        Learned::Exists(Err(failure)) => {
            Step::End(End { then: Failure::then(failure), ..goes().waiting(&failure.message) })
        }
        // Deletion came between two calls of a pass: the next pass begins with it.
        Learned::Created(_) | Learned::Updated(_) => Step::End(goes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(phase: &str) -> Facts {
        Facts { phase: phase.to_owned(), finalizer: true, ..Facts::default() }
    }

    fn end(step: Step) -> End {
        match step {
            Step::End(end) => end,
            other => panic!("the pass goes on: {other:?}"),
        }
    }

    #[test]
    fn nothing_is_asked_of_the_cloud_before_the_finalizer_is_there() {
        let fresh = Facts::default();
        assert_eq!(next(&fresh, &Learned::Nothing), Step::AddFinalizer);
        let going = Facts { deleting: true, ..fresh };
        assert_eq!(next(&going, &Learned::Nothing), Step::End(End::stay()));
    }

    #[test]
    fn failed_stays_failed_until_deleted() {
        let failed = live("Failed");
        assert_eq!(next(&failed, &Learned::Nothing), Step::End(End::stay()));
        let going = Facts { deleting: true, drained: true, ..failed };
        assert_eq!(next(&going, &Learned::Nothing), Step::Call(Call::Delete));
    }

    #[test]
    fn a_terminated_instance_is_never_replaced() {
        for facts in [
            Facts { provider_id: true, ..live("Running") },
            Facts { addresses: true, ..live("Provisioning") },
        ] {
            let end = end(next(&facts, &Learned::Exists(Ok(false))));
            assert_eq!(end.phase, Some(Phase::Failed));
            assert_eq!(end.error.unwrap().message, CANNOT_FIND_INSTANCE);
            assert_eq!(end.instance_exists.unwrap().reason, INSTANCE_MISSING);
        }
    }

    #[test]
    fn what_a_failed_launch_means() {
        let facts = live("Provisioning");
        let launch = |failure| end(next(&facts, &Learned::Created(Err(failure))));
        let fatal = launch(Failure::fatal(INSUFFICIENT_RESOURCES, "no spot"));
        assert_eq!(fatal.phase, Some(Phase::Failed));
        assert_eq!(fatal.error.unwrap().reason, INSUFFICIENT_RESOURCES);
        assert_eq!(fatal.then, Then::Done);
        let minute = Duration::from_mins(1);
        let later = launch(Failure::later(CREATE_ERROR, minute, "no capacity"));
        assert_eq!((later.phase, later.then), (None, Then::Again(minute)));
        let retry = launch(Failure::retry(CREATE_ERROR, "oops"));
        assert_eq!((retry.phase, retry.then), (None, Then::Error("oops".to_owned())));
    }

    #[test]
    fn a_spec_that_never_worked_does_not_keep_a_machine() {
        let going = Facts { deleting: true, drained: true, ..live("Deleting") };
        let refused = Learned::Deleted(Err(Failure::fatal(INVALID_CONFIGURATION, "bad")));
        assert_eq!(next(&going, &refused), Step::Call(Call::Exists));
        let had_instance = Facts { addresses: true, ..going.clone() };
        assert_eq!(end(next(&had_instance, &refused)).then, Then::Error("bad".to_owned()));
        assert!(end(next(&going, &Learned::Exists(Ok(false)))).finish);
        assert!(!end(next(&going, &Learned::Exists(Ok(true)))).finish);
    }

    #[test]
    fn a_hook_before_the_end_holds_it_back() {
        let hook = Hook { name: "etcd".to_owned(), owner: "operator".to_owned() };
        let held =
            Facts { deleting: true, drained: true, pre_terminate: vec![hook], ..live("Deleting") };
        let end = end(next(&held, &Learned::Nothing));
        assert_eq!((end.phase, end.then), (Some(Phase::Deleting), Then::Done));
    }
}
