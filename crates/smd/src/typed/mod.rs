//! Operations on values by their schema.
//!
//! A value enters through [`Typed::new`], which validates it; after that the other
//! operations cannot fail on its shape and recursion is bounded by its depth.

mod compare;
mod element;
mod errors;
mod fieldset;
mod merge;
mod reconcile;
mod remove;
#[cfg(test)]
mod tests;
mod validate;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use crate::fieldpath::Set;
use crate::schema::{Atom, Schema, TypeId};

pub use compare::Comparison;
pub use errors::{ValidationError, ValidationErrors};

/// Whether associative lists may hold several elements with the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// They may: stored objects can come from updates, which do not check.
    Allowed,
    /// They may not: an applied configuration must say what it means.
    Refused,
}

/// A value that conforms to a schema. Copies share the value.
#[derive(Clone, Debug)]
pub struct Typed<'a> {
    value: Shared<'a>,
    schema: &'a Schema,
}

#[derive(Clone, Debug)]
enum Shared<'a> {
    Borrowed(&'a Value),
    Owned(Arc<Value>),
}

impl<'a> Typed<'a> {
    /// Checks a value against a schema.
    pub fn new(
        value: impl Into<Cow<'a, Value>>,
        schema: &'a Schema,
        duplicates: Duplicates,
    ) -> Result<Self, ValidationErrors> {
        let value = match value.into() {
            Cow::Borrowed(value) => Shared::Borrowed(value),
            Cow::Owned(value) => Shared::Owned(Arc::new(value)),
        };
        let typed = Self { value, schema };
        validate::validate(schema, typed.value(), duplicates)?;
        Ok(typed)
    }

    fn with(&self, value: Value) -> Self {
        Self { value: Shared::Owned(Arc::new(value)), schema: self.schema }
    }

    /// The value itself.
    pub fn value(&self) -> &Value {
        match &self.value {
            Shared::Borrowed(value) => value,
            Shared::Owned(value) => value,
        }
    }

    /// The value itself, for keeps.
    pub fn into_value(self) -> Value {
        match self.value {
            Shared::Borrowed(value) => value.clone(),
            Shared::Owned(value) => Arc::unwrap_or_clone(value),
        }
    }

    /// Adds what `patch` says. Nothing is removed; where both say something, `patch` wins.
    pub fn merge(&self, patch: &Typed<'_>) -> Result<Typed<'a>, ValidationErrors> {
        Ok(self.with(merge::merge(self.schema, self.value(), patch.value())?))
    }

    /// The fields that differ in `newer`.
    pub fn compare(&self, newer: &Typed<'_>) -> Result<Comparison, ValidationErrors> {
        compare::compare(self.schema, self.value(), newer.value())
    }

    /// Every leaf field, list element and map entry that the value mentions.
    pub fn to_field_set(&self) -> Result<Set, ValidationErrors> {
        fieldset::to_field_set(self.schema, self.value())
    }

    /// The value without these fields.
    #[must_use]
    pub fn remove_items(&self, items: &Set) -> Typed<'a> {
        self.with(remove::remove_items(self.schema, self.value(), items))
    }

    /// The value with nothing but these fields.
    #[must_use]
    pub fn extract_items(&self, items: &Set) -> Typed<'a> {
        self.with(remove::extract_items(self.schema, self.value(), items))
    }

    pub(crate) fn ensure_named_fields_are_members(&self, set: &mut Set) {
        set.ensure_named_fields_are_members(self.schema, Some(self.schema.root()));
    }
}

impl Schema {
    /// Adjusts a set that was recorded under an older schema: parts that have become atomic
    /// since are owned as a whole.
    pub fn reconcile(&self, set: &mut Set) -> Result<(), ValidationErrors> {
        reconcile::reconcile(self, set)
    }
}

/// Finds the atom of a type, or says why there is none.
fn resolve(schema: &Schema, id: Option<TypeId>) -> Result<&Atom, ValidationErrors> {
    match schema.atom(id) {
        Some(atom) if atom.missing => {
            let name = atom.name.as_deref().unwrap_or("inlined type");
            Err(ValidationErrors::one(format!("schema error: no type found matching: {name}")))
        }
        Some(atom) => Ok(atom),
        None => Err(invalid_atom(None)),
    }
}

fn invalid_atom(atom: Option<&Atom>) -> ValidationErrors {
    let name = match atom.and_then(|atom| atom.name.as_deref()) {
        Some(name) => format!("named type: {name}"),
        None => "inlined".to_owned(),
    };
    ValidationErrors::one(format!("schema error: invalid atom: {name}"))
}

/// Which of the kinds that an atom allows are in question for a value.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kinds {
    scalar: bool,
    list: bool,
    map: bool,
}

/// The kind by which a value is handled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scalar,
    List,
    Map,
}

impl Kinds {
    /// Narrows an atom down to the kind of a value. A null, an absent value and one of a
    /// kind that is not allowed leave all of the atom's kinds.
    fn of(atom: &Atom, value: Option<&Value>) -> Self {
        let none = Self { scalar: false, list: false, map: false };
        match value {
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) if atom.scalar.is_some() => {
                Self { scalar: true, ..none }
            }
            Some(Value::Array(_)) if atom.list.is_some() => Self { list: true, ..none },
            Some(Value::Object(_)) if atom.map.is_some() => Self { map: true, ..none },
            _ => Self {
                scalar: atom.scalar.is_some(),
                list: atom.list.is_some(),
                map: atom.map.is_some(),
            },
        }
    }

    /// The kind that is tried: maps before scalars before lists.
    fn first(self) -> Option<Kind> {
        if self.map {
            Some(Kind::Map)
        } else if self.scalar {
            Some(Kind::Scalar)
        } else if self.list {
            Some(Kind::List)
        } else {
            None
        }
    }
}

fn as_list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn is_empty_map(value: Option<&Value>) -> bool {
    value.and_then(Value::as_object).is_none_or(serde_json::Map::is_empty)
}
