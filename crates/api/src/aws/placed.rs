use super::AWSMachineProviderConfig;

/// The placement group and partition a provider spec asks for, whichever way it is spelled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placed {
    /// The group's name.
    pub group: Option<String>,
    /// The partition's number. Not checked against any range.
    pub partition: Option<i32>,
}

/// Two spellings of one thing that disagree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlacementContradiction {
    /// The group.
    #[error(
        "providerSpec.placement.group.name \"{nested}\" and providerSpec.placementGroupName \
         \"{flat}\" name different groups: set one of them, or both alike"
    )]
    Group {
        /// In `placement.group.name`.
        nested: String,
        /// In `placementGroupName`.
        flat: String,
    },
    /// The partition.
    #[error(
        "{one} {one_value} and {other} {other_value} ask for different partitions: set one of \
         them, or both alike"
    )]
    Partition {
        /// A field.
        one: &'static str,
        /// Its value.
        one_value: i32,
        /// Another.
        other: &'static str,
        /// Its value.
        other_value: i32,
    },
}

impl PlacementContradiction {
    /// The field to name in an error.
    pub fn field(&self) -> &'static str {
        match self {
            Self::Group { .. } => "providerSpec.placementGroupName",
            Self::Partition { other, .. } => other,
        }
    }
}

/// The fields that may name a partition.
const PARTITION_NUMBER: &str = "providerSpec.placement.partitionNumber";
const NUMBER: &str = "providerSpec.placement.number";
const PLACEMENT_GROUP_PARTITION: &str = "providerSpec.placementGroupPartition";

impl AWSMachineProviderConfig {
    /// The group's name, from `placement.group.name` or `placementGroupName`. An empty name is
    /// none.
    pub fn group_name(&self) -> Result<Option<&str>, PlacementContradiction> {
        let nested = self.placement.group.as_ref().map(|g| g.name.as_str());
        let nested = nested.filter(|name| !name.is_empty());
        let flat = Some(self.placement_group_name.as_str()).filter(|name| !name.is_empty());
        match (nested, flat) {
            (Some(nested), Some(flat)) if nested != flat => Err(PlacementContradiction::Group {
                nested: nested.to_owned(),
                flat: flat.to_owned(),
            }),
            (nested, flat) => Ok(nested.or(flat)),
        }
    }

    /// The partition, from `placement.partitionNumber`, `placement.number` or
    /// `placementGroupPartition`. Zero is none in the first two, as in Go; in the third it is a
    /// value, and one that is out of range.
    pub fn partition(&self) -> Result<Option<i32>, PlacementContradiction> {
        let set = |number: Option<i32>| number.filter(|n| *n != 0);
        let spellings = [
            (PARTITION_NUMBER, set(self.placement.partition_number)),
            (NUMBER, set(self.placement.number)),
            (PLACEMENT_GROUP_PARTITION, self.placement_group_partition),
        ];
        let mut found: Option<(&'static str, i32)> = None;
        for (field, value) in spellings {
            let Some(value) = value else { continue };
            match found {
                Some((one, one_value)) if one_value != value => {
                    return Err(PlacementContradiction::Partition {
                        one,
                        one_value,
                        other: field,
                        other_value: value,
                    });
                }
                Some(_) => {}
                None => found = Some((field, value)),
            }
        }
        Ok(found.map(|(_, value)| value))
    }

    /// Group and partition together.
    pub fn placed(&self) -> Result<Placed, PlacementContradiction> {
        Ok(Placed { group: self.group_name()?.map(str::to_owned), partition: self.partition()? })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: &Value) -> AWSMachineProviderConfig {
        serde_json::from_value(value.clone()).expect("reads")
    }

    fn placed(group: Option<&str>, partition: Option<i32>) -> Placed {
        Placed { group: group.map(str::to_owned), partition }
    }

    #[test]
    fn every_spelling_is_understood() {
        let rows = [
            (json!({}), placed(None, None)),
            (json!({"placement": {"group": {"name": "g"}}}), placed(Some("g"), None)),
            (json!({"placementGroupName": "g"}), placed(Some("g"), None)),
            (
                json!({"placement": {"group": {"name": ""}}, "placementGroupName": "g"}),
                placed(Some("g"), None),
            ),
            (
                json!({"placement": {"group": {"name": "g"}}, "placementGroupName": "g"}),
                placed(Some("g"), None),
            ),
            (json!({"placement": {"partitionNumber": 3}}), placed(None, Some(3))),
            (json!({"placement": {"number": 3}}), placed(None, Some(3))),
            (json!({"placementGroupPartition": 3}), placed(None, Some(3))),
            (
                json!({"placement": {"number": 3, "partitionNumber": 3}, "placementGroupPartition": 3}),
                placed(None, Some(3)),
            ),
            (
                json!({"placement": {"partitionNumber": 0}, "placementGroupPartition": 2}),
                placed(None, Some(2)),
            ),
            (json!({"placementGroupPartition": 0}), placed(None, Some(0))),
        ];
        for (value, wanted) in rows {
            assert_eq!(read(&value).placed(), Ok(wanted), "{value}");
        }
    }

    #[test]
    fn a_contradiction_names_both_fields_and_values() {
        let rows = [
            (
                json!({"placement": {"group": {"name": "a"}}, "placementGroupName": "b"}),
                ["placement.group.name \"a\"", "placementGroupName \"b\""],
            ),
            (
                json!({"placement": {"partitionNumber": 1}, "placementGroupPartition": 2}),
                ["placement.partitionNumber 1", "placementGroupPartition 2"],
            ),
            (
                json!({"placement": {"partitionNumber": 1, "number": 2}}),
                ["placement.partitionNumber 1", "placement.number 2"],
            ),
        ];
        for (value, wanted) in rows {
            let text = read(&value).placed().expect_err("contradicts").to_string();
            for part in wanted {
                assert!(text.contains(part), "{text} lacks {part}");
            }
        }
    }
}
