//! Where a virtual machine is put.

use fleetwright_api::azure::AzureMachineProviderSpec;

/// Names of availability sets are no longer than this.
const LONGEST: usize = 80;
/// What names of those that are made end with.
const ENDING: &str = "-as";

/// The availability set of a virtual machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AvailabilitySet {
    /// Its name.
    pub name: String,
    /// Whether it is ours to make.
    pub ours: bool,
}

/// The availability set that a virtual machine joins: the one that is named, else one per MachineSet
/// where a location has no zones. Spare capacity is never in one: Azure refuses it.
pub fn availability_set(
    spec: &AzureMachineProviderSpec,
    zones: &[String],
    cluster: &str,
    machine_set: Option<&str>,
) -> Option<AvailabilitySet> {
    if spec.is_interruptible() {
        return None;
    }
    if !spec.availability_set.is_empty() {
        return Some(AvailabilitySet { name: spec.availability_set.clone(), ours: false });
    }
    let machine_set = machine_set.filter(|_| zones.is_empty())?;
    let mut name = if machine_set.starts_with(cluster) {
        machine_set.to_owned()
    } else {
        format!("{cluster}_{machine_set}")
    };
    name.truncate(name.floor_char_boundary(LONGEST - ENDING.len()));
    name.push_str(ENDING);
    Some(AvailabilitySet { name, ours: true })
}

/// The zone of a virtual machine, as its Machine's label has it.
pub fn zone(zones: &[String]) -> String {
    zones.join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn set(spec: Value, zones: &[String], machine_set: Option<&str>) -> Option<(String, bool)> {
        let spec = serde_json::from_value(spec).unwrap();
        availability_set(&spec, zones, "demo", machine_set).map(|set| (set.name, set.ours))
    }

    #[test]
    fn which_set() {
        let named = json!({"availabilitySet": "mine"});
        assert_eq!(set(named, &["1".to_owned()], None), Some(("mine".to_owned(), false)));
        assert_eq!(set(json!({}), &["1".to_owned()], Some("s")), None);
        assert_eq!(set(json!({}), &[], None), None);
        assert_eq!(set(json!({}), &[], Some("s")), Some(("demo_s-as".to_owned(), true)));
        assert_eq!(set(json!({}), &[], Some("demo-s")), Some(("demo-s-as".to_owned(), true)));
        let spot = json!({"spotVMOptions": {}, "availabilitySet": "mine"});
        assert_eq!(set(spot, &[], Some("s")), None);
        let long = set(json!({}), &[], Some(&"ü".repeat(60))).unwrap().0;
        assert!(long.len() <= LONGEST && long.ends_with("ü-as"), "{long}");
    }
}
