//! Why one object is as it is: what was done, what it waits for, why, and what to do.

mod gone;
mod group;
mod machine;
mod replaced;
mod set;

use fleetwright_api::{
    machine::{Machine, MachineSet},
    placement::AWSPlacementGroup,
};
use jiff::Timestamp;
use kube::ResourceExt;

use crate::Snapshot;

/// The object cannot be explained.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ExplainError {
    /// The argument is not KIND/NAME.
    #[error("\"{0}\" is not KIND/NAME: say for instance machine/worker-abc12")]
    Argument(String),
    /// The kind is not one of ours.
    #[error("nothing is known of the kind \"{0}\": use machine, machineset or awsplacementgroup")]
    Kind(String),
    /// There is none of this name.
    #[error("there is no {kind} \"{name}\" in this namespace{}", among(.others))]
    NotFound {
        /// The kind.
        kind: &'static str,
        /// The name.
        name: String,
        /// Names that there are.
        others: Vec<String>,
    },
}

fn among(others: &[String]) -> String {
    const SHOWN: usize = 5;
    match others {
        [] => ": there are none".to_owned(),
        others if others.len() <= SHOWN => format!(": there are {}", others.join(", ")),
        others => {
            format!(": there are {} and {} more", others[..SHOWN].join(", "), others.len() - SHOWN)
        }
    }
}

/// Explains KIND/NAME.
pub fn explain(subject: &str, snapshot: &Snapshot, now: Timestamp) -> Result<String, ExplainError> {
    let (kind, name) = subject
        .split_once('/')
        .filter(|(kind, name)| !kind.is_empty() && !name.is_empty())
        .ok_or_else(|| ExplainError::Argument(subject.to_owned()))?;
    let kind = kind.split_once('.').map_or(kind, |(kind, _)| kind).to_lowercase();
    match kind.as_str() {
        "machine" | "machines" => match named(&snapshot.machines, Machine::KIND, name) {
            Ok(found) => Ok(machine::explain(found, snapshot, now)),
            // What is told of one that is gone outlives it for a while.
            Err(error) => gone::explain(name, snapshot, now).ok_or(error),
        },
        "machineset" | "machinesets" => {
            let found = named(&snapshot.sets, MachineSet::KIND, name)?;
            Ok(set::explain(found, snapshot, now))
        }
        "awsplacementgroup" | "awsplacementgroups" => {
            let found = named(&snapshot.groups, AWSPlacementGroup::KIND, name)?;
            Ok(group::explain(found, snapshot, now))
        }
        _ => Err(ExplainError::Kind(kind)),
    }
}

fn named<'a, K: ResourceExt>(
    objects: &'a [K],
    kind: &'static str,
    name: &str,
) -> Result<&'a K, ExplainError> {
    objects.iter().find(|object| object.name_any() == name).ok_or_else(|| ExplainError::NotFound {
        kind,
        name: name.to_owned(),
        others: objects.iter().map(ResourceExt::name_any).collect(),
    })
}

/// A line `  label: text`, or nothing when there is no text.
fn line(label: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("  {label:<11}{text}\n") }
}
