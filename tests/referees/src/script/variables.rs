//! Values that a script keeps from one request to the next.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use regex::{Captures, Regex};

/// The variables of one run. Only names that the script declares count: `$patch` in a body and
/// `$` in a pattern stay what they are.
#[derive(Debug)]
pub(super) struct Variables {
    values: BTreeMap<String, Option<String>>,
    pattern: Regex,
}

impl Variables {
    pub(super) fn new(names: &[String]) -> Result<Self> {
        Ok(Self {
            values: names.iter().map(|name| (name.clone(), None)).collect(),
            pattern: Regex::new(r"\$(?:\{(\w+)\}|(\w+)|\(fill:(\d+)\))")?,
        })
    }

    pub(super) fn set(&mut self, name: &str, value: String) {
        self.values.insert(name.to_owned(), Some(value));
    }

    /// Replaces variables in a text.
    pub(super) fn expand(&self, text: &str) -> Result<String> {
        let mut unset = None;
        let expanded = self.pattern.replace_all(text, |found: &Captures<'_>| {
            if let Some(length) = found.get(3) {
                return "x".repeat(length.as_str().parse().unwrap_or(0));
            }
            let name = found.get(1).or(found.get(2)).map_or("", |name| name.as_str());
            match self.values.get(name) {
                Some(Some(value)) => value.clone(),
                Some(None) => {
                    unset = Some(name.to_owned());
                    String::new()
                }
                None => found[0].to_owned(),
            }
        });
        match unset {
            None => Ok(expanded.into_owned()),
            Some(name) => None.with_context(|| format!("${name} is used before it is set")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_declared_names_are_replaced() {
        let mut variables = Variables::new(&["ns".to_owned(), "rv".to_owned()]).unwrap();
        variables.set("ns", "demo".to_owned());
        assert_eq!(
            variables.expand(r#"/$ns/${ns}9 {"$patch": "^a$", "b": "$(fill:3)"}"#).unwrap(),
            r#"/demo/demo9 {"$patch": "^a$", "b": "xxx"}"#
        );
        assert!(variables.expand("$rv").is_err());
    }
}
