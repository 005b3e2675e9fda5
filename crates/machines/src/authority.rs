//! Which API looks after a resource while a cluster moves to Cluster API, and the condition that
//! says so.

use fleetwright_api::{
    machine::Authority,
    names::{condition, reason},
};
use fleetwright_lifecycle::conditions::{Condition, SEVERITY_INFO};

/// Whether a resource is looked after here: nobody said anything else.
pub fn is_ours(authority: Option<&Authority>) -> bool {
    said(authority).is_none_or(|authority| *authority == Authority::MachineApi)
}

/// No word is no answer.
fn said(authority: Option<&Authority>) -> Option<&Authority> {
    authority.filter(|authority| !authority.as_str().is_empty())
}

/// The condition `Paused` of a resource; none where nobody ever said whose it is, or said something
/// that we do not know.
pub fn paused(authority: Option<&Authority>) -> Option<Condition> {
    let authority = said(authority)?;
    let message = format!("The AuthoritativeAPI status is set to '{authority}'");
    match authority {
        Authority::MachineApi => {
            Some(Condition::fails(condition::PAUSED, reason::MACHINE_API, SEVERITY_INFO, message))
        }
        Authority::ClusterApi | Authority::Migrating => Some(
            Condition::holds(condition::PAUSED)
                .with_reason(reason::NOT_MACHINE_API)
                .with_message(message),
        ),
        Authority::Other(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use fleetwright_lifecycle::conditions::Status;

    use super::*;

    #[test]
    fn paused_says_who_looks_after_it() {
        for (authority, ours, says) in [
            ("MachineAPI", true, Some((Status::False, "AuthoritativeAPIMachineAPI", "Info"))),
            ("ClusterAPI", false, Some((Status::True, "AuthoritativeAPINotMachineAPI", ""))),
            ("Migrating", false, Some((Status::True, "AuthoritativeAPINotMachineAPI", ""))),
            ("Unheard-of", false, None),
        ] {
            let authority = Authority::from(authority);
            assert_eq!(is_ours(Some(&authority)), ours, "{authority}");
            let found = paused(Some(&authority));
            let found = found.as_ref().map(|it| (it.status, it.reason.as_str(), &*it.severity));
            assert_eq!(found, says, "{authority}");
        }
        for nothing in [None, Some(&Authority::default())] {
            assert!(is_ours(nothing) && paused(nothing).is_none());
        }
        let message = paused(Some(&Authority::Migrating)).unwrap().message;
        assert_eq!(message, "The AuthoritativeAPI status is set to 'Migrating'");
    }
}
