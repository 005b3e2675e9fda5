//! Two values made into one.

use std::collections::BTreeSet;

use serde_json::{Map as JsonMap, Value};

use super::element::list_element;
use super::validate::scalar_problem;
use super::{Kind, Kinds, ValidationErrors, as_list, invalid_atom, is_empty_map, resolve};
use crate::fieldpath::PathElement;
use crate::schema::{Atom, List, Map, Schema, TypeId};

pub(super) fn merge(
    schema: &Schema,
    base: &Value,
    patch: &Value,
) -> Result<Value, ValidationErrors> {
    merge_values(schema, Some(schema.root()), base, patch).map(Option::unwrap_or_default)
}

/// Merges two values that are both there; `None` if nothing is left of them.
fn merge_values(
    schema: &Schema,
    id: Option<TypeId>,
    base: &Value,
    patch: &Value,
) -> Result<Option<Value>, ValidationErrors> {
    let atom = resolve(schema, id)?;
    let before = Kinds::of(atom, Some(base));
    let after = Kinds::of(atom, Some(patch));
    if before != after {
        // The kind changes: the base must make sense as what it was, but the patch rules.
        by_kind(schema, before, atom, base, patch)?;
    }
    by_kind(schema, after, atom, base, patch)
}

fn by_kind(
    schema: &Schema,
    kinds: Kinds,
    atom: &Atom,
    base: &Value,
    patch: &Value,
) -> Result<Option<Value>, ValidationErrors> {
    match kinds.first() {
        Some(Kind::Map) => match &atom.map {
            Some(map)
                if !(map.atomic || (is_empty_map(Some(base)) && is_empty_map(Some(patch)))) =>
            {
                merge_maps(schema, map, base, patch)
            }
            _ => Ok(Some(patch.clone())),
        },
        Some(Kind::Scalar) => {
            let problem = |value| atom.scalar.and_then(|scalar| scalar_problem(scalar, value));
            if let (Some(left), Some(right)) = (problem(base), problem(patch)) {
                let mut errors = ValidationErrors::one(format!("lhs: {left}"));
                errors.append(ValidationErrors::one(format!("rhs: {right}")));
                return Err(errors);
            }
            Ok(Some(patch.clone()))
        }
        Some(Kind::List) => {
            let (left, right) = (as_list(Some(base)), as_list(Some(patch)));
            match &atom.list {
                Some(list) if list.associative && !(left.is_empty() && right.is_empty()) => {
                    merge_lists(schema, list, left, right)
                }
                _ => Ok(Some(patch.clone())),
            }
        }
        None => Err(invalid_atom(Some(atom))),
    }
}

fn merge_maps(
    schema: &Schema,
    map: &Map,
    base: &Value,
    patch: &Value,
) -> Result<Option<Value>, ValidationErrors> {
    let empty = JsonMap::new();
    let base = base.as_object().unwrap_or(&empty);
    let patch = patch.as_object().unwrap_or(&empty);
    let mut out = JsonMap::new();
    let mut errors = ValidationErrors::default();
    for (name, value) in base {
        let merged = match patch.get(name) {
            None => Ok(Some(value.clone())),
            Some(patch) => merge_values(schema, map.type_of(name), value, patch),
        };
        match merged {
            Ok(Some(merged)) => {
                out.insert(name.clone(), merged);
            }
            Ok(None) => {}
            Err(found) => errors.append(found.below(&PathElement::field(name.as_str()))),
        }
    }
    for (name, value) in patch.iter().filter(|(name, _)| !base.contains_key(*name)) {
        out.insert(name.clone(), value.clone());
    }
    errors.into_result()?;
    Ok((!out.is_empty()).then_some(Value::Object(out)))
}

/// An element of a list and its name.
struct Item<'v> {
    element: PathElement,
    value: &'v Value,
}

/// Merges associative lists. The patch decides the order of the elements it names; the
/// others keep their places among those around them.
fn merge_lists(
    schema: &Schema,
    list: &List,
    base: &[Value],
    patch: &[Value],
) -> Result<Option<Value>, ValidationErrors> {
    let patch = named(schema, list, patch)?;
    let base = named(schema, list, base)?;
    let in_patch = Index::new(&patch);
    let in_base = Index::new(&base);
    if let Some(element) = in_patch.repeated() {
        let text = format!("duplicate entries for key {element}");
        return Err(ValidationErrors::one(text));
    }

    let merged = |element: &PathElement, patch: &Value| match in_base.get(element) {
        // Elements that share a name are not merged with, they are replaced.
        Some(Found::Several) => merge_values(schema, list.element, &Value::Null, patch),
        Some(Found::One(base)) => merge_values(schema, list.element, base, patch),
        None => Ok(Some(patch.clone())),
    };
    let mut shared =
        patch.iter().map(|item| &item.element).filter(|e| in_base.get(e).is_some()).peekable();
    let mut taken: BTreeSet<&PathElement> = BTreeSet::new();
    let mut out = Vec::with_capacity(base.len().max(patch.len()));
    let (mut left, mut right) = (0, 0);
    while left < base.len() || right < patch.len() {
        if let (Some(l), Some(r)) = (base.get(left), patch.get(right)) {
            if l.element == r.element {
                out.extend(merged(&r.element, r.value).unwrap_or_default());
                taken.insert(&r.element);
                left += 1;
                right += 1;
                shared.next();
                continue;
            }
            let awaited = shared.peek().is_some_and(|next| **next != l.element);
            if awaited && in_patch.get(&l.element).is_some() {
                left += 1;
                continue;
            }
        }
        if let Some(l) = base.get(left) {
            if in_patch.get(&l.element).is_none() {
                out.push(l.value.clone());
                left += 1;
                continue;
            } else if taken.contains(&l.element) {
                left += 1;
            }
        }
        if let Some(r) = patch.get(right) {
            out.extend(merged(&r.element, r.value).unwrap_or_default());
            taken.insert(&r.element);
            right += 1;
            shared.next_if(|next| **next == r.element);
        }
    }
    Ok((!out.is_empty()).then_some(Value::Array(out)))
}

fn named<'v>(
    schema: &Schema,
    list: &List,
    items: &'v [Value],
) -> Result<Vec<Item<'v>>, ValidationErrors> {
    let mut errors = ValidationErrors::default();
    let mut out = Vec::with_capacity(items.len());
    for (i, value) in items.iter().enumerate() {
        match list_element(schema, list, value) {
            Ok(element) => out.push(Item { element, value }),
            Err(error) => errors.append(ValidationErrors::one(format!("element {i}: {error}"))),
        }
    }
    errors.into_result()?;
    Ok(out)
}

/// The elements of a list, to be found by name.
struct Index<'v> {
    sorted: Vec<(&'v PathElement, Found<'v>)>,
}

#[derive(Clone, Copy)]
enum Found<'v> {
    One(&'v Value),
    Several,
}

impl<'v> Index<'v> {
    fn new(items: &'v [Item<'v>]) -> Self {
        let mut sorted: Vec<_> =
            items.iter().map(|item| (&item.element, Found::One(item.value))).collect();
        sorted.sort_by_key(|(element, _)| *element);
        sorted.dedup_by(|(later, _), (first, found)| {
            let same = later == first;
            if same {
                *found = Found::Several;
            }
            same
        });
        Self { sorted }
    }

    fn get(&self, element: &PathElement) -> Option<Found<'v>> {
        let at = self.sorted.binary_search_by(|(name, _)| (*name).cmp(element)).ok()?;
        self.sorted.get(at).map(|(_, found)| *found)
    }

    fn repeated(&self) -> Option<&PathElement> {
        self.sorted
            .iter()
            .find(|(_, found)| matches!(found, Found::Several))
            .map(|(element, _)| *element)
    }
}
