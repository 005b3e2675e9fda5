//! Label selectors: what they match and how they are written.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// A label selector. All of its parts must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// Labels that must be there as they are.
    pub match_labels: Labels,
    /// What must be true of further labels.
    pub match_expressions: Vec<Requirement>,
}

/// What must be true of one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// What about it.
    pub operator: Operator,
}

/// What must be true of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Its value is one of these.
    In(BTreeSet<String>),
    /// Its value is none of these, or it is absent.
    NotIn(BTreeSet<String>),
    /// It is there.
    Exists,
    /// It is not.
    DoesNotExist,
}

/// A selector that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// Nobody knows this operator.
    #[error("{0:?} is not a valid label selector operator")]
    Operator(String),
    /// `In` and `NotIn` need values.
    #[error("for 'in', 'notin' operators, values set can't be empty")]
    NoValues,
    /// The others take none.
    #[error("values set must be empty for exists and does not exist")]
    Values,
}

impl Requirement {
    /// A requirement as the API writes it.
    pub fn parse<V>(key: &str, operator: &str, values: V) -> Result<Self, SelectorError>
    where
        V: IntoIterator<Item = String>,
    {
        let values: BTreeSet<String> = values.into_iter().collect();
        let operator = match (operator, values.is_empty()) {
            ("In" | "NotIn", true) => return Err(SelectorError::NoValues),
            ("Exists" | "DoesNotExist", false) => return Err(SelectorError::Values),
            ("In", false) => Operator::In(values),
            ("NotIn", false) => Operator::NotIn(values),
            ("Exists", true) => Operator::Exists,
            ("DoesNotExist", true) => Operator::DoesNotExist,
            (other, _) => return Err(SelectorError::Operator(other.to_owned())),
        };
        Ok(Self { key: key.to_owned(), operator })
    }

    fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        match &self.operator {
            Operator::In(values) => value.is_some_and(|value| values.contains(value)),
            Operator::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

impl Selector {
    /// Whether it asks for nothing, and so matches everything.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Whether labels match.
    pub fn matches(&self, labels: &Labels) -> bool {
        has_all(labels, &self.match_labels)
            && self.match_expressions.iter().all(|requirement| requirement.matches(labels))
    }
}

/// Whether `labels` has everything that `wanted` has.
pub fn has_all(labels: &Labels, wanted: &Labels) -> bool {
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |values: &BTreeSet<String>| {
            values.iter().map(String::as_str).collect::<Vec<_>>().join(",")
        };
        match &self.operator {
            Operator::In(values) => write!(f, "{} in ({})", self.key, listed(values)),
            Operator::NotIn(values) => write!(f, "{} notin ({})", self.key, listed(values)),
            Operator::Exists => f.write_str(&self.key),
            Operator::DoesNotExist => write!(f, "!{}", self.key),
        }
    }
}

/// As `status.labelSelector` has it: sorted by key, joined by commas.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels = self.match_labels.iter().map(|(key, value)| (key, format!("{key}={value}")));
        let expressions =
            self.match_expressions.iter().map(|wanted| (&wanted.key, wanted.to_string()));
        let mut parts: Vec<(&String, String)> = labels.chain(expressions).collect();
        parts.sort_by_key(|(key, _)| *key);
        let texts: Vec<String> = parts.into_iter().map(|(_, text)| text).collect();
        f.write_str(&texts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn one(key: &str, operator: &str, values: &[&str]) -> Selector {
        let values = values.iter().map(|value| (*value).to_owned());
        let requirement = Requirement::parse(key, operator, values).unwrap();
        Selector { match_labels: Labels::new(), match_expressions: vec![requirement] }
    }

    #[test]
    fn every_operator_with_the_label_there_other_and_absent() {
        let cases = [
            (one("a", "In", &["1", "2"]), [true, false, false]),
            (one("a", "NotIn", &["1", "2"]), [false, true, true]),
            (one("a", "Exists", &[]), [true, true, false]),
            (one("a", "DoesNotExist", &[]), [false, false, true]),
        ];
        for (selector, wanted) in cases {
            let found = [labels(&[("a", "1")]), labels(&[("a", "3")]), labels(&[("b", "1")])]
                .map(|labels| selector.matches(&labels));
            assert_eq!(found, wanted, "{selector}");
        }
    }

    #[test]
    fn all_parts_must_match_and_none_matches_everything() {
        let mut selector = one("a", "Exists", &[]);
        selector.match_labels = labels(&[("b", "1")]);
        assert!(selector.matches(&labels(&[("a", ""), ("b", "1")])));
        assert!(!selector.matches(&labels(&[("a", "")])));
        assert!(!selector.matches(&labels(&[("b", "1")])));
        assert_eq!(selector.to_string(), "a,b=1");
        assert!(Selector::default().matches(&labels(&[])));
    }

    #[test]
    fn what_is_no_requirement() {
        let parse = |operator: &str, values: &[&str]| {
            let values = values.iter().map(|value| (*value).to_owned());
            Requirement::parse("a", operator, values).unwrap_err()
        };
        assert_eq!(parse("In", &[]), SelectorError::NoValues);
        assert_eq!(parse("Exists", &["1"]), SelectorError::Values);
        assert_eq!(parse("Near", &["1"]), SelectorError::Operator("Near".to_owned()));
    }
}
