//! Sets of field paths, as tries with sorted nodes.
//!
//! Operations that the server runs on every write work in place and consume what they can,
//! so that element names are moved rather than copied.

use std::cmp::Ordering;
use std::fmt;

use super::{Path, PathElement};
use crate::schema::{Schema, TypeId};

/// A set of fields. The object as a whole (the empty path) is never a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// Sorted by element; no node is empty (neither a member nor a parent of members).
    nodes: Vec<Node>,
}

/// One element at one level of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) element: PathElement,
    pub(crate) member: bool,
    pub(crate) children: Set,
}

impl Node {
    fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

impl Set {
    /// An empty set.
    pub const fn new() -> Self {
        Self { nodes: Vec::new() }
    }

    /// A set of nodes in any order. Nodes of the same element are united.
    pub(crate) fn from_nodes(mut nodes: Vec<Node>) -> Self {
        nodes.retain(|node| !node.is_empty());
        if !nodes.is_sorted_by(|left, right| left.element < right.element) {
            nodes.sort_by(|left, right| left.element.cmp(&right.element));
            nodes.dedup_by(|later, first| {
                let same = later.element == first.element;
                if same {
                    first.member |= later.member;
                    first.children.unite(std::mem::take(&mut later.children));
                }
                same
            });
        }
        Self { nodes }
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(crate) fn into_nodes(self) -> Vec<Node> {
        self.nodes
    }

    pub(crate) fn nodes_mut(&mut self) -> &mut [Node] {
        &mut self.nodes
    }

    fn find(&self, element: &PathElement) -> Result<usize, usize> {
        self.nodes.binary_search_by(|node| node.element.cmp(element))
    }

    fn get(&self, element: &PathElement) -> Option<&Node> {
        self.find(element).ok().and_then(|at| self.nodes.get(at))
    }

    /// Adds one field. Its parents do not become members.
    pub fn insert(&mut self, path: &Path) {
        let mut set = self;
        let mut rest = path.0.as_slice();
        while let Some((element, below)) = rest.split_first() {
            let at = set.find(element).unwrap_or_else(|at| {
                let node = Node { element: element.clone(), member: false, children: Self::new() };
                set.nodes.insert(at, node);
                at
            });
            let Some(node) = set.nodes.get_mut(at) else { return };
            node.member |= below.is_empty();
            set = &mut node.children;
            rest = below;
        }
    }

    /// Whether the set has no members.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many fields the set has.
    pub fn len(&self) -> usize {
        self.nodes.iter().map(|node| usize::from(node.member) + node.children.len()).sum()
    }

    /// Whether a field is a member.
    pub fn contains(&self, path: &Path) -> bool {
        let Some((last, parents)) = path.0.split_last() else { return false };
        let mut set = self;
        for element in parents {
            let Some(node) = set.get(element) else { return false };
            set = &node.children;
        }
        set.has(last)
    }

    /// Whether a direct child is a member.
    pub fn has(&self, element: &PathElement) -> bool {
        self.get(element).is_some_and(|node| node.member)
    }

    /// The fields below a direct child, if there are any.
    pub fn below(&self, element: &PathElement) -> Option<&Self> {
        self.get(element).map(|node| &node.children).filter(|children| !children.is_empty())
    }

    /// Adds the members of another set.
    pub fn unite(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
            return;
        }
        if other.is_empty() {
            return;
        }
        let mut left = std::mem::take(&mut self.nodes).into_iter().peekable();
        let mut right = other.nodes.into_iter().peekable();
        let mut out = Vec::with_capacity(left.len() + right.len());
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some(l), Some(r)) => l.element.cmp(&r.element),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            match order {
                Ordering::Less => out.extend(left.next()),
                Ordering::Greater => out.extend(right.next()),
                Ordering::Equal => {
                    if let (Some(mut l), Some(r)) = (left.next(), right.next()) {
                        l.member |= r.member;
                        l.children.unite(r.children);
                        out.push(l);
                    }
                }
            }
        }
        self.nodes = out;
    }

    /// Removes the members of another set. Members below them stay.
    pub fn subtract(&mut self, other: &Self) {
        self.retain_against(other, |node, removed| {
            node.member &= !removed.member;
            node.children.subtract(&removed.children);
        });
    }

    /// Removes the members of another set and everything below them.
    pub fn subtract_recursively(&mut self, other: &Self) {
        self.retain_against(other, |node, removed| {
            if removed.member {
                node.member = false;
                node.children = Self::new();
            } else {
                node.children.subtract_recursively(&removed.children);
            }
        });
    }

    fn retain_against(&mut self, other: &Self, change: impl Fn(&mut Node, &Node)) {
        if self.is_empty() || other.is_empty() {
            return;
        }
        let mut against = other.nodes.iter().peekable();
        self.nodes.retain_mut(|node| {
            while against.next_if(|removed| removed.element < node.element).is_some() {}
            if let Some(removed) = against.peek().filter(|removed| removed.element == node.element)
            {
                change(node, removed);
            }
            !node.is_empty()
        });
    }

    /// The members of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.unite(other.clone());
        out
    }

    /// The members of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut nodes = Vec::new();
        let mut right = other.nodes.iter().peekable();
        for left in &self.nodes {
            while right.next_if(|r| r.element < left.element).is_some() {}
            let Some(r) = right.next_if(|r| r.element == left.element) else { continue };
            let member = left.member && r.member;
            let children = left.children.intersection(&r.children);
            if member || !children.is_empty() {
                nodes.push(Node { element: left.element.clone(), member, children });
            }
        }
        Self { nodes }
    }

    /// The members that the other set lacks.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.subtract(other);
        out
    }

    /// The members that are neither in the other set nor below one of its members.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.subtract_recursively(other);
        out
    }

    /// The members that have no members below them.
    #[must_use]
    pub fn leaves(&self) -> Self {
        let nodes = self
            .nodes
            .iter()
            .map(|node| Node {
                element: node.element.clone(),
                member: node.member && node.children.is_empty(),
                children: node.children.leaves(),
            })
            .collect();
        Self { nodes }
    }

    /// Every member, at each level the fields of that level before those below them.
    pub fn paths(&self) -> Vec<Path> {
        let mut out = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut out);
        out
    }

    fn collect_paths(&self, prefix: &mut Vec<PathElement>, out: &mut Vec<Path>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            let mut path = prefix.clone();
            path.push(node.element.clone());
            out.push(Path(path));
        }
        for node in self.nodes.iter().filter(|node| !node.children.is_empty()) {
            prefix.push(node.element.clone());
            node.children.collect_paths(prefix, out);
            prefix.pop();
        }
    }

    /// Makes every struct field on the way to a member a member too. Keys of maps and
    /// elements of lists stay as they are.
    pub(crate) fn ensure_named_fields_are_members(
        &mut self,
        schema: &Schema,
        container: Option<TypeId>,
    ) {
        let atom = schema.atom(container);
        for node in &mut self.nodes {
            if node.children.is_empty() {
                continue;
            }
            let mut below = None;
            match (&node.element, atom) {
                (PathElement::Field(name), Some(atom)) => {
                    if let Some(map) = &atom.map {
                        node.member |= map.fields.contains_key(name);
                        below = map.type_of(name);
                    }
                }
                (PathElement::Key(_), Some(atom)) => {
                    below = atom.list.as_ref().and_then(|list| list.element);
                }
                _ => {}
            }
            node.children.ensure_named_fields_are_members(schema, below);
        }
    }
}

impl<'a> FromIterator<&'a Path> for Set {
    fn from_iter<I: IntoIterator<Item = &'a Path>>(paths: I) -> Self {
        let mut set = Self::new();
        paths.into_iter().for_each(|path| set.insert(path));
        set
    }
}

impl FromIterator<Path> for Set {
    fn from_iter<I: IntoIterator<Item = Path>>(paths: I) -> Self {
        let mut set = Self::new();
        paths.into_iter().for_each(|path| set.insert(&path));
        set
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, path) in self.paths().iter().enumerate() {
            let line = if i > 0 { "\n" } else { "" };
            write!(f, "{line}{path}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths of fields, written `a.b.c`.
    fn set(paths: &[&str]) -> Set {
        paths.iter().map(|path| Path::fields(path.split('.'))).collect()
    }

    #[test]
    fn algebra() {
        let left = set(&["a", "a.b", "a.b.c", "d.e"]);
        let right = set(&["a.b", "d.e", "d.f"]);
        let cases = [
            (left.union(&right), set(&["a", "a.b", "a.b.c", "d.e", "d.f"])),
            (left.intersection(&right), set(&["a.b", "d.e"])),
            (left.difference(&right), set(&["a", "a.b.c"])),
            (right.difference(&left), set(&["d.f"])),
            (left.recursive_difference(&right), set(&["a"])),
            (left.recursive_difference(&set(&["a"])), set(&["d.e"])),
            (left.leaves(), set(&["a.b.c", "d.e"])),
            (left.difference(&left), Set::new()),
        ];
        for (i, (got, expected)) in cases.into_iter().enumerate() {
            assert_eq!(got, expected, "case {i}");
        }
    }

    #[test]
    fn membership_is_of_the_exact_path() {
        let set = set(&["a.b", "c"]);
        assert!(set.contains(&Path::fields(["a", "b"])));
        assert!(!set.contains(&Path::fields(["a"])));
        assert!(!set.contains(&Path::default()));
        assert!(set.below(&"a".into()).is_some());
        assert!(set.below(&"c".into()).is_none());
        assert_eq!(set.len(), 2);
    }

    #[test]
    fn paths_list_a_level_before_descending() {
        assert_eq!(set(&["a.b", "a.c.d", "z", "a.c"]).to_string(), ".z\n.a.b\n.a.c\n.a.c.d");
    }

    #[test]
    fn the_empty_path_is_never_a_member() {
        let mut set = Set::new();
        set.insert(&Path::default());
        assert!(set.is_empty());
    }

    #[test]
    fn nodes_of_one_element_are_united() {
        let node = |member, children: &[&str]| Node {
            element: "a".into(),
            member,
            children: set(children),
        };
        let united = Set::from_nodes(vec![node(true, &[]), node(false, &["x"]), node(false, &[])]);
        assert_eq!(united, set(&["a", "a.x"]));
    }
}
