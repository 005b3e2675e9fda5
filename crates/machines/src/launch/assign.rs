//! Which instance of a launch is whose.

use std::collections::BTreeMap;

use fleetwright_cloud::Instance;

use super::plan::Member;

/// The instances of one token, given to those who share it.
#[derive(Debug, Default, PartialEq)]
pub struct Assigned {
    /// The instance of each Machine that has one, by UID.
    pub placed: BTreeMap<String, Instance>,
    /// Who got none.
    pub without: Vec<Member>,
}

/// Gives each Machine the instance with its index. The index is fixed at launch, so that it is the
/// same whoever asks and however often. An instance that says whose it is belongs to nobody else.
pub fn assign(token: &str, members: &[Member], size: u32, instances: &[Instance]) -> Assigned {
    let mut candidates: Vec<&Instance> = instances
        .iter()
        .filter(|instance| instance.token.as_deref().is_none_or(|made_by| made_by == token))
        .collect();
    // Of two for one Machine, which cannot be, the one that lives.
    candidates.sort_by_key(|instance| (!instance.state.exists(), instance.id.clone()));
    let mut assigned = Assigned::default();
    for member in members {
        let named = candidates.iter().find(|found| found.machine_uid() == Some(&member.uid));
        let indexed = || {
            candidates.iter().find(|found| {
                found.machine_uid().is_none()
                    && (size == 1 || found.launch_index == Some(member.index))
            })
        };
        match named.or_else(indexed) {
            Some(instance) => {
                assigned.placed.insert(member.uid.clone(), (*instance).clone());
            }
            None => assigned.without.push(member.clone()),
        }
    }
    assigned
}
