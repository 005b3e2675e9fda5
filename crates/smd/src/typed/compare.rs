//! Which fields differ between two values.

use serde_json::{Map as JsonMap, Value};

use super::element::list_element;
use super::validate::scalar_problem;
use super::{Kind, Kinds, ValidationErrors, as_list, invalid_atom, is_empty_map, resolve};
use crate::fieldpath::{FieldFilter, Node, PathElement, Set};
use crate::schema::{Atom, List, Map, Schema, TypeId};
use crate::values;

/// The fields that differ between an older and a newer value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// In the older value only.
    pub removed: Set,
    /// In both, but different.
    pub modified: Set,
    /// In the newer value only.
    pub added: Set,
}

impl Comparison {
    /// Whether the values are the same.
    pub fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// Forgets the differences in fields that may not be owned.
    pub fn filter(&mut self, filter: &FieldFilter) {
        filter.apply(&mut self.removed);
        filter.apply(&mut self.modified);
        filter.apply(&mut self.added);
    }
}

pub(super) fn compare(
    schema: &Schema,
    older: &Value,
    newer: &Value,
) -> Result<Comparison, ValidationErrors> {
    let walk = Walk { schema };
    let mut differences = Differences::default();
    walk.values(Some(schema.root()), Some(older), Some(newer), &mut differences)?;
    Ok(Comparison {
        removed: Set::from_nodes(differences.removed),
        modified: Set::from_nodes(differences.modified),
        added: Set::from_nodes(differences.added),
    })
}

/// What a value itself is, besides what is below it.
#[derive(Clone, Copy, Default)]
struct Own {
    removed: bool,
    modified: bool,
    added: bool,
}

/// The differences of one level.
#[derive(Default)]
struct Differences {
    removed: Vec<Node>,
    modified: Vec<Node>,
    added: Vec<Node>,
}

impl Differences {
    /// Takes in the differences of a child.
    fn push(&mut self, element: PathElement, own: Own, below: Self) {
        let present = [
            own.removed || !below.removed.is_empty(),
            own.modified || !below.modified.is_empty(),
            own.added || !below.added.is_empty(),
        ];
        let node =
            |element, member, nodes| Node { element, member, children: Set::from_nodes(nodes) };
        // The name is copied only where more than one set needs it.
        match present {
            [false, false, false] => {}
            [true, false, false] => self.removed.push(node(element, own.removed, below.removed)),
            [false, true, false] => self.modified.push(node(element, own.modified, below.modified)),
            [false, false, true] => self.added.push(node(element, own.added, below.added)),
            [removed, modified, added] => {
                if removed {
                    self.removed.push(node(element.clone(), own.removed, below.removed));
                }
                if modified {
                    self.modified.push(node(element.clone(), own.modified, below.modified));
                }
                if added {
                    self.added.push(node(element, own.added, below.added));
                }
            }
        }
    }
}

struct Walk<'s> {
    schema: &'s Schema,
}

impl Walk<'_> {
    fn values(
        &self,
        id: Option<TypeId>,
        older: Option<&Value>,
        newer: Option<&Value>,
        out: &mut Differences,
    ) -> Result<Own, ValidationErrors> {
        let atom = resolve(self.schema, id)?;
        let mut own = Own { removed: newer.is_none(), modified: false, added: older.is_none() };
        let before = Kinds::of(atom, older);
        let after = Kinds::of(atom, newer);
        if newer.is_none() {
            own.modified |= self.by_kind(before, atom, older, newer, out)?;
        } else {
            if older.is_some() && before != after {
                own.modified |= self.by_kind(before, atom, older, newer, out)?;
            }
            own.modified |= self.by_kind(after, atom, older, newer, out)?;
        }
        Ok(own)
    }

    /// Compares values as the first of some kinds; true if they differ as a whole.
    fn by_kind(
        &self,
        kinds: Kinds,
        atom: &Atom,
        older: Option<&Value>,
        newer: Option<&Value>,
        out: &mut Differences,
    ) -> Result<bool, ValidationErrors> {
        match kinds.first() {
            Some(Kind::Map) => {
                let Some(map) = &atom.map else { return Ok(false) };
                if map.atomic || (is_empty_map(older) && is_empty_map(newer)) {
                    return Ok(differ(older, newer));
                }
                self.fields(map, older, newer, out)?;
                Ok(false)
            }
            Some(Kind::Scalar) => {
                let problem = |value: Option<&Value>| scalar_problem(atom.scalar?, value?);
                if let (Some(left), Some(right)) = (problem(older), problem(newer)) {
                    let mut errors = ValidationErrors::one(format!("lhs: {left}"));
                    errors.append(ValidationErrors::one(format!("rhs: {right}")));
                    return Err(errors);
                }
                Ok(differ(older, newer))
            }
            Some(Kind::List) => {
                let Some(list) = &atom.list else { return Ok(false) };
                let (left, right) = (as_list(older), as_list(newer));
                if !list.associative || (left.is_empty() && right.is_empty()) {
                    return Ok(differ(older, newer));
                }
                // Naming the elements is the dear part: spare it where nothing changed.
                if left != right {
                    self.items(list, left, right, out)?;
                }
                Ok(false)
            }
            None => Err(invalid_atom(Some(atom))),
        }
    }

    fn fields(
        &self,
        map: &Map,
        older: Option<&Value>,
        newer: Option<&Value>,
        out: &mut Differences,
    ) -> Result<(), ValidationErrors> {
        let empty = JsonMap::new();
        let older = older.and_then(Value::as_object).unwrap_or(&empty);
        let newer = newer.and_then(Value::as_object).unwrap_or(&empty);
        let mut left = older.iter().peekable();
        let mut right = newer.iter().peekable();
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some((l, _)), Some((r, _))) => l.cmp(r),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (None, None) => return Ok(()),
            };
            let l = if order.is_le() { left.next() } else { None };
            let r = if order.is_ge() { right.next() } else { None };
            let Some((name, _)) = l.or(r) else { return Ok(()) };
            let mut below = Differences::default();
            let own = self
                .values(map.type_of(name), l.map(|(_, v)| v), r.map(|(_, v)| v), &mut below)
                .map_err(|errors| errors.below(&PathElement::field(name.as_str())))?;
            if own.removed
                || own.modified
                || own.added
                || !(below.removed.is_empty()
                    && below.modified.is_empty()
                    && below.added.is_empty())
            {
                out.push(PathElement::field(name.as_str()), own, below);
            }
        }
    }

    fn items(
        &self,
        list: &List,
        older: &[Value],
        newer: &[Value],
        out: &mut Differences,
    ) -> Result<(), ValidationErrors> {
        let older = self.named(list, older)?;
        let newer = self.named(list, newer)?;
        let mut left = older.into_iter().peekable();
        let mut right = newer.into_iter().peekable();
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some((l, _)), Some((r, _))) => l.cmp(r),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (None, None) => return Ok(()),
            };
            let l = if order.is_le() { left.next() } else { None };
            let r = if order.is_ge() { right.next() } else { None };
            let (element, before, after) = match (l, r) {
                (Some((element, before)), Some((_, after))) => (element, before, after),
                (Some((element, before)), None) => (element, before, Vec::new()),
                (None, Some((element, after))) => (element, Vec::new(), after),
                (None, None) => return Ok(()),
            };
            let mut below = Differences::default();
            let own = self
                .same_named(list, &before, &after, &mut below)
                .map_err(|errors| errors.below(&element))?;
            out.push(element, own, below);
        }
    }

    /// Compares the elements of one name. Where there are several they count as a whole.
    fn same_named(
        &self,
        list: &List,
        before: &[&Value],
        after: &[&Value],
        below: &mut Differences,
    ) -> Result<Own, ValidationErrors> {
        match (before, after) {
            ([] | [_], [] | [_]) => {
                self.values(list.element, before.first().copied(), after.first().copied(), below)
            }
            ([_, _, ..], [_, _, ..]) => {
                let same = before.len() == after.len()
                    && before.iter().zip(after).all(|(l, r)| values::equal(l, r));
                Ok(Own { modified: !same, ..Own::default() })
            }
            ([_, _, ..], _) => {
                let mut own = Own::default();
                if let Some(item) = after.first() {
                    own = self.values(list.element, None, Some(item), below)?;
                }
                Ok(Own { removed: true, ..own })
            }
            (_, _) => {
                let mut own = Own::default();
                if let Some(item) = before.first() {
                    own = self.values(list.element, Some(item), None, below)?;
                }
                Ok(Own { added: true, ..own })
            }
        }
    }

    /// The elements of a list by name, sorted by it, those of one name together.
    fn named<'v>(
        &self,
        list: &List,
        items: &'v [Value],
    ) -> Result<Vec<(PathElement, Vec<&'v Value>)>, ValidationErrors> {
        let mut named = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            let element = list_element(self.schema, list, item)
                .map_err(|error| ValidationErrors::one(format!("element {i}: {error}")))?;
            named.push((element, vec![item]));
        }
        named.sort_by(|(left, _), (right, _)| left.cmp(right));
        named.dedup_by(|(later, items), (first, all)| {
            let same = later == first;
            if same {
                all.append(items);
            }
            same
        });
        Ok(named)
    }
}

fn differ(older: Option<&Value>, newer: Option<&Value>) -> bool {
    matches!((older, newer), (Some(older), Some(newer)) if !values::equal(older, newer))
}
