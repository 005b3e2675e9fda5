//! Where an instance stands in its group, as labels of its Machine and Node.
//!
//! The partition's label names group and number, so that pods can be spread over the partitions of
//! one group by `topologySpreadConstraints`, and partitions of different groups are never taken
//! for the same.

use std::collections::BTreeMap;

use fleetwright_api::names::label;
use fleetwright_cloud::Instance;
use sha2::{Digest, Sha256};

/// Longest value of a label.
const VALUE_LIMIT: usize = 63;
/// Characters of the digest that stands for what was left out of a name.
const DIGEST_LENGTH: usize = 8;

/// The labels of an instance; none when it is in no group.
pub fn labels(instance: &Instance) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    let Some(group) = instance.group.as_deref().filter(|group| !group.is_empty()) else {
        return labels;
    };
    labels.insert(label::PLACEMENT_GROUP.to_owned(), label_value(group, VALUE_LIMIT));
    if let Some(partition) = instance.partition {
        labels.insert(label::PARTITION.to_owned(), partition_value(group, partition));
    }
    labels
}

/// The value that stands for a partition of a group.
pub fn partition_value(group: &str, partition: u32) -> String {
    let number = format!("-{partition}");
    format!("{}{number}", label_value(group, VALUE_LIMIT - number.len()))
}

/// A name as a label's value: names that fit stay as they are; others are cut, and told apart by
/// a digest.
fn label_value(name: &str, limit: usize) -> String {
    let allowed = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    let edge = |character: char| !character.is_ascii_alphanumeric();
    let fits = name.len() <= limit && name.chars().all(allowed) && name.trim_matches(edge) == name;
    if fits && !name.is_empty() {
        return name.to_owned();
    }
    let number =
        Sha256::digest(name).iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte));
    let digest = format!("{number:0DIGEST_LENGTH$x}");
    let start: String = name
        .chars()
        .map(|character| if allowed(character) { character } else { '-' })
        .take(limit - DIGEST_LENGTH - 1)
        .collect();
    match start.trim_matches(edge) {
        "" => digest,
        start => format!("{start}-{digest}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_partition_names_its_group() {
        assert_eq!(partition_value("shards", 3), "shards-3");
        assert_eq!(partition_value("a.b-c", 1), "a.b-c-1");
    }

    #[test]
    fn names_that_do_not_fit_are_told_apart() {
        let (one, other) = ("g".repeat(100), "g".repeat(101));
        assert_ne!(partition_value(&one, 1), partition_value(&other, 1));
        assert_ne!(label_value("a b", 63), label_value("a:b", 63));
        assert_ne!(label_value("", 63), "");
    }

    proptest! {
        #[test]
        fn every_value_is_valid(name in ".{0,300}", partition in 0_u32..=7) {
            for value in [label_value(&name, VALUE_LIMIT), partition_value(&name, partition)] {
                prop_assert!(value.len() <= VALUE_LIMIT && !value.is_empty());
                prop_assert!(value.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)));
                prop_assert!(value.starts_with(|c: char| c.is_ascii_alphanumeric()));
                prop_assert!(value.ends_with(|c: char| c.is_ascii_alphanumeric()));
            }
        }
    }
}
