//! The fields that a value mentions.

use serde_json::Value;

use super::element::list_element;
use super::{Kind, Kinds, ValidationErrors, invalid_atom, resolve};
use crate::fieldpath::{Node, PathElement, Set};
use crate::schema::{List, Map, Schema, TypeId};

pub(super) fn to_field_set(schema: &Schema, value: &Value) -> Result<Set, ValidationErrors> {
    Ok(fields_of(schema, Some(schema.root()), value)?.below)
}

/// The fields of one value.
struct Fields {
    /// Whether the value itself is one: a scalar or something owned as a whole.
    leaf: bool,
    below: Set,
}

fn fields_of(
    schema: &Schema,
    id: Option<TypeId>,
    value: &Value,
) -> Result<Fields, ValidationErrors> {
    let atom = resolve(schema, id)?;
    let leaf = Fields { leaf: true, below: Set::new() };
    let below = match Kinds::of(atom, Some(value)).first() {
        Some(Kind::Map) => match (&atom.map, value) {
            (Some(map), _) if map.atomic => return Ok(leaf),
            (Some(map), Value::Object(fields)) => map_fields(schema, map, fields)?,
            _ => Set::new(),
        },
        Some(Kind::Scalar) => return Ok(leaf),
        Some(Kind::List) => match (&atom.list, value) {
            (Some(list), _) if !list.associative => return Ok(leaf),
            (Some(list), Value::Array(items)) => list_fields(schema, list, items)?,
            _ => Set::new(),
        },
        None => return Err(invalid_atom(Some(atom))),
    };
    Ok(Fields { leaf: false, below })
}

fn map_fields(
    schema: &Schema,
    map: &Map,
    fields: &serde_json::Map<String, Value>,
) -> Result<Set, ValidationErrors> {
    let mut nodes = Vec::with_capacity(fields.len());
    for (name, value) in fields {
        let found = fields_of(schema, map.type_of(name), value)?;
        // Struct fields are there by nature; map entries, nulls and empty maps by choice.
        let by_choice = value.is_null()
            || value.as_object().is_some_and(serde_json::Map::is_empty)
            || !map.fields.contains_key(name);
        let element = PathElement::field(name.as_str());
        nodes.push(Node { element, member: found.leaf || by_choice, children: found.below });
    }
    Ok(Set::from_nodes(nodes))
}

fn list_fields(schema: &Schema, list: &List, items: &[Value]) -> Result<Set, ValidationErrors> {
    let mut elements = Vec::with_capacity(items.len());
    for item in items {
        let element = list_element(schema, list, item).map_err(ValidationErrors::one)?;
        elements.push((element, item));
    }
    elements.sort_by(|(left, _), (right, _)| left.cmp(right));
    let mut nodes = Vec::with_capacity(elements.len());
    let mut rest = elements.into_iter().peekable();
    while let Some((element, item)) = rest.next() {
        let mut duplicated = false;
        while rest.next_if(|(next, _)| *next == element).is_some() {
            duplicated = true;
        }
        // Elements that share a name are owned together, as a whole.
        let children =
            if duplicated { Set::new() } else { fields_of(schema, list.element, item)?.below };
        nodes.push(Node { element, member: true, children });
    }
    Ok(Set::from_nodes(nodes))
}
