//! Lists of names that people switch on and off.

use std::{borrow::Cow, collections::BTreeMap};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::nearest::nearest;

/// Which controllers run, as in kube-controller-manager: `*` stands for all that run by default,
/// `foo` switches `foo` on and `-foo` switches it off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ControllerNames(pub Vec<String>);

impl Default for ControllerNames {
    fn default() -> Self {
        Self(vec!["*".to_owned()])
    }
}

impl ControllerNames {
    /// Whether the controller of this name runs. What is said of it by name counts for more than
    /// `*`, and what is said first counts for more than what is said later.
    pub fn enabled(&self, name: &str, by_default: bool) -> bool {
        for item in &self.0 {
            if item == name {
                return true;
            }
            if item.strip_prefix('-') == Some(name) {
                return false;
            }
        }
        by_default && self.0.iter().any(|item| item == "*")
    }

    /// Names that no controller has, each with what may have been meant.
    pub fn unknown(&self, known: &[&str]) -> Vec<(String, Option<String>)> {
        let names = self.0.iter().filter(|item| *item != "*");
        let names = names.map(|item| item.strip_prefix('-').unwrap_or(item));
        unknown(names, known)
    }
}

impl JsonSchema for ControllerNames {
    fn schema_name() -> Cow<'static, str> {
        "ControllerNames".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "array", "items": {"type": "string", "minLength": 1}})
    }
}

/// Upstream's feature gates that are set, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct FeatureGates(pub BTreeMap<String, bool>);

impl FeatureGates {
    /// Whether the gate is open.
    pub fn enabled(&self, gate: &str, by_default: bool) -> bool {
        self.0.get(gate).copied().unwrap_or(by_default)
    }

    /// Gates that nobody knows, each with what may have been meant.
    pub fn unknown(&self, known: &[&str]) -> Vec<(String, Option<String>)> {
        unknown(self.0.keys().map(String::as_str), known)
    }
}

fn unknown<'a>(
    names: impl Iterator<Item = &'a str>,
    known: &[&str],
) -> Vec<(String, Option<String>)> {
    names
        .filter(|name| !known.contains(name))
        .map(|name| (name.to_owned(), nearest(name, known.iter().copied()).map(str::to_owned)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_chosen_as_upstream() {
        let enabled = |list: &str, name: &str, by_default: bool| {
            let list = list.split(',').map(str::to_owned).collect();
            ControllerNames(list).enabled(name, by_default)
        };
        for (list, name, by_default, expected) in [
            ("*", "a", true, true),
            ("*", "a", false, false),
            ("*,a", "a", false, true),
            ("*,-a", "a", true, false),
            ("*,-a", "b", true, true),
            ("a", "a", false, true),
            ("a", "b", true, false),
            ("-a,a", "a", true, false),
        ] {
            assert_eq!(enabled(list, name, by_default), expected, "{list} {name}");
        }
        let names = ControllerNames(vec!["*".into(), "-machinset".into(), "zzz".into()]);
        assert_eq!(
            names.unknown(&["machine", "machineset"]),
            [("machinset".into(), Some("machineset".into())), ("zzz".into(), None)]
        );
    }
}
