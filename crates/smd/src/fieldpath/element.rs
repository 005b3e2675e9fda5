//! One step from a container to something inside it, and paths of such steps.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

use crate::{goformat, values};

/// How a child is selected in its container.
///
/// The order of the variants is the canonical order of elements in a set.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A field of a struct or a key of a map.
    Field(String),
    /// The element of an associative list that has these key fields, sorted by name.
    Key(Vec<(String, Value)>),
    /// The element of a set that has this value.
    Value(Value),
    /// The element of a list at this position.
    Index(i64),
}

impl PathElement {
    /// A field of this name.
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    /// The element of an associative list with these keys, in any order.
    pub fn key<N: Into<String>, V: Into<Value>>(keys: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut keys: Vec<_> = keys.into_iter().map(|(n, v)| (n.into(), v.into())).collect();
        keys.sort_by(|(left, _), (right, _)| left.cmp(right));
        Self::Key(keys)
    }

    /// The element of a set with this value.
    pub fn value(value: impl Into<Value>) -> Self {
        Self::Value(value.into())
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(left), Self::Field(right)) => left.cmp(right),
            (Self::Key(left), Self::Key(right)) => left
                .iter()
                .zip(right)
                .map(|((ln, lv), (rn, rv))| ln.cmp(rn).then_with(|| values::compare(lv, rv)))
                .find(|order| order.is_ne())
                .unwrap_or_else(|| left.len().cmp(&right.len())),
            (Self::Value(left), Self::Value(right)) => values::compare(left, right),
            (Self::Index(left), Self::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

impl From<&str> for PathElement {
    fn from(name: &str) -> Self {
        Self::Field(name.to_owned())
    }
}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                f.write_str("[")?;
                for (i, (name, value)) in keys.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", goformat::in_path(value))?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={}]", goformat::in_path(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A field named from the root of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<PathElement>);

impl Path {
    /// A path through fields of these names.
    pub fn fields<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(names.into_iter().map(PathElement::from).collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_print_as_upstream_prints_them() {
        let path = Path(vec![
            "spec".into(),
            PathElement::key([("protocol", Value::from("TCP")), ("containerPort", 80.into())]),
            PathElement::value("a\"b"),
            PathElement::Index(3),
            PathElement::value(true),
        ]);
        assert_eq!(
            path.to_string(),
            r#".spec[containerPort=80,protocol="TCP"][="a\"b"][3][=true]"#
        );
    }

    #[test]
    fn elements_are_ordered_by_kind_then_content() {
        let ordered = [
            PathElement::field("a"),
            PathElement::field("b"),
            PathElement::key([("a", 9)]),
            PathElement::key([("a", 10)]),
            PathElement::key([("a", 10), ("b", 1)]),
            PathElement::key([("b", 1)]),
            PathElement::value(1),
            PathElement::value("1"),
            PathElement::Index(0),
            PathElement::Index(1),
        ];
        for (i, left) in ordered.iter().enumerate() {
            for (j, right) in ordered.iter().enumerate() {
                assert_eq!(left.cmp(right), i.cmp(&j), "{left} against {right}");
            }
        }
        assert_eq!(PathElement::value(1), PathElement::value(1.0));
    }
}
