//! Which fields an endpoint may own at all.
//!
//! Writes to the main resource cannot change `status`, and most subresources change only
//! their own part: what they cannot change they must not own.

use super::{Node, PathElement, Set};

/// The fields of a request that may be owned.
#[derive(Clone, Debug, Default)]
pub enum FieldFilter {
    /// All of them.
    #[default]
    All,
    /// All but these and what is below them.
    Except(Set),
    /// Only those that match one of these patterns.
    Only(Vec<PathPattern>),
}

/// A prefix of paths; `None` stands for any element.
pub type PathPattern = Vec<Option<PathElement>>;

impl FieldFilter {
    /// All fields but those below these dotted paths, such as `status` or `metadata.labels`.
    pub fn except<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        let paths = paths.into_iter().map(|path| super::Path::fields(path.split('.')));
        Self::Except(paths.collect())
    }

    /// Reduces a set to what may be owned.
    pub fn apply(&self, set: &mut Set) {
        match self {
            Self::All => {}
            Self::Except(excluded) => set.subtract_recursively(excluded),
            Self::Only(patterns) => {
                let patterns: Vec<&[Option<PathElement>]> =
                    patterns.iter().map(Vec::as_slice).collect();
                *set = matching(std::mem::take(set), &patterns);
            }
        }
    }
}

fn matching(set: Set, patterns: &[&[Option<PathElement>]]) -> Set {
    if patterns.iter().any(|pattern| pattern.is_empty()) {
        return set;
    }
    let nodes = set.into_nodes().into_iter().filter_map(|node| {
        let below: Vec<&[Option<PathElement>]> = patterns
            .iter()
            .filter_map(|pattern| {
                let (first, rest) = pattern.split_first()?;
                first.as_ref().is_none_or(|element| *element == node.element).then_some(rest)
            })
            .collect();
        if below.is_empty() {
            return None;
        }
        Some(Node { children: matching(node.children, &below), ..node })
    });
    Set::from_nodes(nodes.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fieldpath::Path;

    fn set(paths: &[&str]) -> Set {
        paths.iter().map(|path| Path::fields(path.split('.'))).collect()
    }

    #[test]
    fn filters() {
        let all = ["status", "status.a", "spec.x.resources.cpu", "spec.x.image", "metadata.name"];
        let only = vec![Some("spec".into()), None, Some("resources".into())];
        let cases = [
            (FieldFilter::All, set(&all)),
            (
                FieldFilter::except(["status", "metadata.name"]),
                set(&["spec.x.resources.cpu", "spec.x.image"]),
            ),
            (FieldFilter::Only(vec![only.clone()]), set(&["spec.x.resources.cpu"])),
            (
                FieldFilter::Only(vec![only, vec![Some("metadata".into())]]),
                set(&["spec.x.resources.cpu", "metadata.name"]),
            ),
        ];
        for (filter, expected) in cases {
            let mut got = set(&all);
            filter.apply(&mut got);
            assert_eq!(got, expected, "{filter:?}");
        }
    }
}
