//! Which instance is a Machine's.

use std::sync::Arc;

use fleetwright_cloud::{Instance, Inventory};

use crate::launch::intent::Intent;

/// What a Machine is found by.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// The instance that it is known to have.
    pub instance: Option<&'a str>,
    /// Its UID.
    pub uid: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What was written down before it was launched.
    pub intent: Option<&'a Intent>,
}

/// The instance of a Machine: the one it is known to have and no other, or else the one that was
/// made for it.
pub fn find(machine: Identity<'_>, inventory: &Inventory) -> Option<Arc<Instance>> {
    if let Some(id) = machine.instance {
        return inventory.get(id);
    }
    let mut found = made_for(machine, inventory);
    // Of several, which cannot be, the one that lives, and of those the first.
    found.sort_by_key(|instance| {
        (!instance.state.exists(), instance.launched_at, instance.id.clone())
    });
    found.into_iter().next()
}

/// Every instance that is a Machine's, however it came to be: what goes with the Machine.
pub fn find_all(machine: Identity<'_>, inventory: &Inventory) -> Vec<Arc<Instance>> {
    let mut found = made_for(machine, inventory);
    if let Some(known) = machine.instance.and_then(|id| inventory.get(id)) {
        found.push(known);
    }
    found.sort_by(|one, other| one.id.cmp(&other.id));
    found.dedup_by(|one, other| one.id == other.id);
    found
}

fn made_for(machine: Identity<'_>, inventory: &Inventory) -> Vec<Arc<Instance>> {
    let mut found = inventory.by_machine_uid(machine.uid);
    if let Some(intent) = machine.intent.filter(|intent| intent.is_shared()) {
        // Seconds pass before what was launched together is tagged one by one.
        found.extend(inventory.by_gang(&intent.token).into_iter().filter(|instance| {
            instance.launch_index == Some(intent.index)
                && instance.machine_uid().is_none_or(|uid| uid == machine.uid)
        }));
    }
    if found.is_empty() && machine.intent.is_none() {
        // One that was made before there were our tags goes by its name. Once we have begun to
        // launch, a name is not enough: it may belong to an earlier Machine of this name.
        found.extend(inventory.by_name(machine.name).into_iter().filter(|instance| {
            instance.state.exists() && instance.machine_uid().is_none() && instance.gang().is_none()
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use fleetwright_cloud::{GANG_TAG, InstanceState, InventoryOptions, MACHINE_UID_TAG};
    use jiff::Timestamp;

    use super::*;
    use crate::{group::testbed::member, launch::intent::Operation, machine::tests::no_cloud};

    fn instance(id: &str, index: Option<u32>, tags: &[(&str, &str)]) -> Instance {
        let mut instance = member(id, "", "a", InstanceState::Running);
        instance.launch_index = index;
        instance.tags =
            tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        instance
    }

    fn intent(index: u32) -> Intent {
        Intent {
            version: 1,
            operation: Operation::Launch,
            token: "gang".to_owned(),
            params_hash: String::new(),
            index,
            size: 2,
            min: 2,
            attempt: 0,
            at: Timestamp::UNIX_EPOCH,
        }
    }

    fn inventory(instances: &[Instance]) -> Inventory {
        let inventory = Inventory::new(no_cloud(), "cluster", InventoryOptions::default());
        inventory.seen(instances);
        inventory
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_has_the_instance_that_it_is_known_to_have_and_no_other() {
        let there = inventory(&[instance("i-2", None, &[(MACHINE_UID_TAG, "u"), ("Name", "m")])]);
        let identity = |id| Identity { instance: id, uid: "u", name: "m", intent: None };
        assert_eq!(find(identity(Some("i-1")), &there), None, "never a second one");
        assert_eq!(find(identity(Some("i-2")), &there).unwrap().id, "i-2");
        assert_eq!(find(identity(None), &there).unwrap().id, "i-2");
        assert_eq!(find_all(identity(Some("i-1")), &there).len(), 1, "but it goes with it");
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_no_name_yet_is_found_by_gang_and_index() {
        let there = inventory(&[
            instance("i-0", Some(0), &[(GANG_TAG, "gang")]),
            instance("i-1", Some(1), &[(GANG_TAG, "gang")]),
            instance("i-2", Some(1), &[(GANG_TAG, "gang"), (MACHINE_UID_TAG, "other")]),
        ]);
        let intent = intent(1);
        let identity = Identity { instance: None, uid: "u", name: "m", intent: Some(&intent) };
        assert_eq!(find(identity, &there).unwrap().id, "i-1");
        assert_eq!(find_all(identity, &there).len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_counts_only_before_the_first_launch() {
        let there = inventory(&[instance("i-9", None, &[("Name", "m")])]);
        let intent = intent(0);
        let identity = |intent| Identity { instance: None, uid: "u", name: "m", intent };
        assert_eq!(find(identity(None), &there).unwrap().id, "i-9");
        assert_eq!(find(identity(Some(&intent)), &there), None);
    }
}
