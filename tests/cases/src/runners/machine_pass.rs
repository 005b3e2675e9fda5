//! A pass of the Machine controller with a cloud that answers as a row says.

use std::collections::BTreeMap;

use fleetwright_lifecycle::phase::{Call, End, Facts, Failure, Learned, Step, next};
use serde_json::Value;

/// What the cloud answers.
pub(super) struct Cloud {
    pub(super) exists: Result<bool, Failure>,
    pub(super) create: Result<(), Failure>,
    pub(super) update: Result<(), Failure>,
    pub(super) delete: Result<(), Failure>,
}

/// The calls that were made, by name.
#[derive(Default)]
pub(super) struct Calls(BTreeMap<&'static str, u64>);

impl Calls {
    /// Those that were made.
    pub(super) fn made(&self) -> Value {
        self.0.iter().map(|(name, count)| ((*name).to_owned(), Value::from(*count))).collect()
    }

    /// All there are, also those that were not made.
    pub(super) fn every(&self) -> Value {
        ["create", "exists", "update", "delete"]
            .into_iter()
            .map(|name| (name.to_owned(), Value::from(self.0.get(name).copied().unwrap_or(0))))
            .collect()
    }
}

/// How a pass went.
pub(super) struct Pass {
    pub(super) calls: Calls,
    pub(super) end: End,
}

/// Runs one pass.
pub(super) fn run(machine: &Facts, cloud: &Cloud) -> Pass {
    let mut calls = Calls::default();
    let mut count = |name| *calls.0.entry(name).or_default() += 1;
    let mut learned = Learned::Nothing;
    loop {
        learned = match next(machine, &learned) {
            Step::Call(Call::Exists) => {
                count("exists");
                Learned::Exists(cloud.exists.clone())
            }
            Step::Call(Call::Create) => {
                count("create");
                Learned::Created(cloud.create.clone())
            }
            Step::Call(Call::Update) => {
                count("update");
                Learned::Updated(cloud.update.clone())
            }
            Step::Call(Call::Delete) => {
                count("delete");
                Learned::Deleted(cloud.delete.clone())
            }
            Step::AddFinalizer => unreachable!("the rows' Machines have it"),
            Step::End(end) => return Pass { calls, end },
        };
    }
}
