//! Does a value conform to its schema?

use std::collections::BTreeSet;

use serde_json::{Map as JsonMap, Value};

use super::element::{check_element, list_element};
use super::{Duplicates, Kind, Kinds, ValidationErrors, invalid_atom, resolve};
use crate::fieldpath::PathElement;
use crate::schema::{List, Map, Scalar, Schema, TypeId};
use crate::{MAX_DEPTH, goformat};

pub(super) fn validate(
    schema: &Schema,
    value: &Value,
    duplicates: Duplicates,
) -> Result<(), ValidationErrors> {
    let mut errors = ValidationErrors::default();
    Walk { schema, duplicates }.value(Some(schema.root()), value, 0, &mut errors);
    errors.into_result()
}

struct Walk<'s> {
    schema: &'s Schema,
    duplicates: Duplicates,
}

impl Walk<'_> {
    fn value(&self, id: Option<TypeId>, value: &Value, depth: usize, out: &mut ValidationErrors) {
        if Schema::is_opaque(id) {
            return;
        }
        if depth > MAX_DEPTH {
            out.append(ValidationErrors::one("exceeded max depth"));
            return;
        }
        let atom = match resolve(self.schema, id) {
            Ok(atom) => atom,
            Err(errors) => return out.append(errors),
        };
        match Kinds::of(atom, Some(value)).first() {
            Some(Kind::Map) => {
                if let Some(map) = &atom.map {
                    match value {
                        Value::Null => {}
                        Value::Object(fields) => self.fields(map, fields, depth, out),
                        other => out.append(unexpected("map", other)),
                    }
                }
            }
            Some(Kind::Scalar) => {
                if let Some(problem) = atom.scalar.and_then(|scalar| scalar_problem(scalar, value))
                {
                    out.append(ValidationErrors::one(problem));
                }
            }
            Some(Kind::List) => {
                if let Some(list) = &atom.list {
                    match value {
                        Value::Null => {}
                        Value::Array(items) => self.items(list, items, depth, out),
                        other => out.append(unexpected("list", other)),
                    }
                }
            }
            None => out.append(invalid_atom(Some(atom))),
        }
    }

    fn fields(
        &self,
        map: &Map,
        fields: &JsonMap<String, Value>,
        depth: usize,
        out: &mut ValidationErrors,
    ) {
        for (name, value) in fields {
            let id = map.type_of(name);
            let element = || PathElement::field(name.as_str());
            if id.is_none() {
                let undeclared = ValidationErrors::one("field not declared in schema");
                return out.append(undeclared.below(&element()));
            }
            let mut errors = ValidationErrors::default();
            self.value(id, value, depth + 1, &mut errors);
            if !errors.0.is_empty() {
                out.append(errors.below(&element()));
            }
        }
    }

    fn items(&self, list: &List, items: &[Value], depth: usize, out: &mut ValidationErrors) {
        let mut seen = BTreeSet::new();
        for (i, item) in items.iter().enumerate() {
            if list.associative
                && let Err(error) = check_element(self.schema, list, item)
            {
                return out.append(ValidationErrors::one(format!("element {i}: {error}")));
            }
            // Names are made only where they are needed: every write passes here.
            let element = || {
                let index = PathElement::Index(i64::try_from(i).unwrap_or(i64::MAX));
                list_element(self.schema, list, item).unwrap_or(index)
            };
            if list.associative && self.duplicates == Duplicates::Refused {
                let element = element();
                if seen.contains(&element) {
                    let text = format!("duplicate entries for key {element}");
                    out.append(ValidationErrors::one(text));
                }
                seen.insert(element);
            }
            let mut errors = ValidationErrors::default();
            self.value(list.element, item, depth + 1, &mut errors);
            if !errors.0.is_empty() {
                out.append(errors.below(&element()));
            }
        }
    }
}

fn unexpected(kind: &str, found: &Value) -> ValidationErrors {
    ValidationErrors::one(format!("expected {kind}, got &{{{}}}", fleetwright_gotext::plain(found)))
}

/// What keeps a value from being a scalar of a type. Nulls are always fine.
pub(super) fn scalar_problem(scalar: Scalar, value: &Value) -> Option<String> {
    match (scalar, value) {
        (_, Value::Null)
        | (Scalar::Numeric, Value::Number(_))
        | (Scalar::String, Value::String(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Untyped, Value::Number(_) | Value::String(_) | Value::Bool(_)) => None,
        (Scalar::Numeric, other) => {
            Some(format!("expected numeric (int or float), got {}", goformat::type_name(other)))
        }
        (Scalar::String, other) => Some(format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            goformat::source(other)
        )),
        (Scalar::Boolean, other) => {
            Some(format!("expected boolean, got &{{{}}}", fleetwright_gotext::plain(other)))
        }
        (Scalar::Untyped, other) => {
            Some(format!("expected any scalar, got &{{{}}}", fleetwright_gotext::plain(other)))
        }
    }
}
