//! Values with fields taken out, or with nothing but some fields.

use serde_json::{Map as JsonMap, Value};

use super::element::list_element;
use super::{Kind, Kinds};
use crate::fieldpath::{PathElement, Set};
use crate::schema::{List, Map, Schema, TypeId};

pub(super) fn remove_items(schema: &Schema, value: &Value, items: &Set) -> Value {
    let walk = Walk { schema, extract: false };
    walk.value(Some(schema.root()), value, items)
}

pub(super) fn extract_items(schema: &Schema, value: &Value, items: &Set) -> Value {
    let walk = Walk { schema, extract: true };
    walk.value(Some(schema.root()), value, items)
}

struct Walk<'s> {
    schema: &'s Schema,
    extract: bool,
}

impl Walk<'_> {
    /// What remains of a value; null if nothing does.
    fn value(&self, id: Option<TypeId>, value: &Value, items: &Set) -> Value {
        let Some(atom) = self.schema.atom(id).filter(|atom| !atom.missing) else {
            return Value::Null;
        };
        let whole = || if self.extract { value.clone() } else { Value::Null };
        match (Kinds::of(atom, Some(value)).first(), value) {
            (Some(Kind::Scalar), _) => value.clone(),
            (Some(Kind::List), Value::Array(elements)) => match &atom.list {
                Some(list) if list.associative && !elements.is_empty() => {
                    self.elements(list, elements, items)
                }
                _ => whole(),
            },
            (Some(Kind::Map), Value::Object(fields)) => match &atom.map {
                Some(map) if !map.atomic && !fields.is_empty() => self.fields(map, fields, items),
                _ => whole(),
            },
            _ => Value::Null,
        }
    }

    fn elements(&self, list: &List, elements: &[Value], items: &Set) -> Value {
        let mut out = Vec::new();
        for value in elements {
            let element = list_element(self.schema, list, value).ok();
            let named = element.as_ref().is_some_and(|element| items.has(element));
            let below = element.as_ref().and_then(|element| items.below(element));
            match (self.extract, named, below) {
                (false, true, _) | (true, false, None) => {}
                (_, _, Some(below)) => out.push(self.value(list.element, value, below)),
                (_, _, None) => out.push(value.clone()),
            }
        }
        if out.is_empty() { Value::Null } else { Value::Array(out) }
    }

    fn fields(&self, map: &Map, fields: &JsonMap<String, Value>, items: &Set) -> Value {
        let mut out = JsonMap::new();
        for (name, value) in fields {
            let element = PathElement::field(name.as_str());
            let id = map.type_of(name);
            let below = items.below(&element);
            let kept = match (items.has(&element), below) {
                // The whole set, not what is below: extraction has always been that generous.
                (true, _) if self.extract => self.value(id, value, items),
                (true, _) => continue,
                (false, Some(below)) => self.value(id, value, below),
                (false, None) if self.extract => continue,
                (false, None) => value.clone(),
            };
            out.insert(name.clone(), kept);
        }
        if out.is_empty() { Value::Null } else { Value::Object(out) }
    }
}
