//! What an object may hold, and at which grain its parts are owned.
//!
//! A schema is an arena of types. References are resolved when it is built, so recursive
//! types cost nothing and walking a value does no name lookups.

mod object_meta;
mod openapi;
mod zero;

use std::collections::BTreeMap;

use serde_json::Value;

pub use openapi::{Resolve, SchemaError};
pub use zero::zero_object;

/// Index of a type in its [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TypeId(u32);

/// Values of any kind, owned as a whole.
const UNTYPED_ATOMIC: TypeId = TypeId(0);
/// Values of any kind: maps by their keys, lists as a whole.
const UNTYPED_DEDUCED: TypeId = TypeId(1);

/// The type of a kind of objects with all types it refers to.
#[derive(Clone, Debug)]
pub struct Schema {
    atoms: Vec<Atom>,
    root: TypeId,
}

/// The kinds of values that a type allows: any of those that are set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Atom {
    /// The name under which the type is referred to; inlined types have none.
    pub(crate) name: Option<String>,
    /// Set where a reference leads nowhere. Using the type is an error.
    pub(crate) missing: bool,
    pub(crate) scalar: Option<Scalar>,
    pub(crate) list: Option<List>,
    pub(crate) map: Option<Map>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Numeric,
    String,
    Boolean,
    Untyped,
}

#[derive(Clone, Debug)]
pub(crate) struct List {
    pub(crate) element: Option<TypeId>,
    /// Owned by element rather than as a whole.
    pub(crate) associative: bool,
    /// The fields that identify an element; empty for sets of scalars.
    pub(crate) keys: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Map {
    pub(crate) fields: BTreeMap<String, Field>,
    /// The type of fields not named in `fields`; without one they are errors.
    pub(crate) element: Option<TypeId>,
    /// Owned as a whole.
    pub(crate) atomic: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) type_id: TypeId,
    /// Stands in for a list key that an element omits.
    pub(crate) default: Option<Value>,
}

impl Map {
    /// The type of a field, named or not.
    pub(crate) fn type_of(&self, name: &str) -> Option<TypeId> {
        self.fields.get(name).map(|field| field.type_id).or(self.element)
    }
}

impl Schema {
    /// The schema of objects about which nothing is known: maps are owned by key, lists and
    /// scalars as a whole.
    pub fn deduced() -> Self {
        Self { atoms: vec![untyped(UNTYPED_ATOMIC, true), deduced_atom()], root: UNTYPED_DEDUCED }
    }

    pub(crate) fn root(&self) -> TypeId {
        self.root
    }

    /// The atom of a type; `None` for fields that are not declared.
    pub(crate) fn atom(&self, id: Option<TypeId>) -> Option<&Atom> {
        self.atoms.get(usize::try_from(id?.0).ok()?)
    }

    /// Whether a map holds nothing but deduced values, which no schema change can affect.
    pub(crate) fn is_untyped_deduced(&self, map: &Map) -> bool {
        if !map.fields.is_empty() {
            return false;
        }
        map.element == Some(UNTYPED_DEDUCED)
            || self
                .atom(map.element)
                .is_some_and(|atom| atom.name.is_none() && atom.scalar == Some(Scalar::Untyped))
    }

    /// Whether every value conforms to a type and none is looked into.
    pub(crate) fn is_opaque(id: Option<TypeId>) -> bool {
        id == Some(UNTYPED_ATOMIC)
    }

    fn push(&mut self, atom: Atom) -> TypeId {
        let id = TypeId(u32::try_from(self.atoms.len()).unwrap_or(u32::MAX));
        self.atoms.push(atom);
        id
    }
}

fn untyped(below: TypeId, atomic: bool) -> Atom {
    Atom {
        name: Some("__untyped_atomic_".to_owned()),
        missing: false,
        scalar: Some(Scalar::Untyped),
        list: Some(List { element: Some(UNTYPED_ATOMIC), associative: false, keys: Vec::new() }),
        map: Some(Map { fields: BTreeMap::new(), element: Some(below), atomic }),
    }
}

fn deduced_atom() -> Atom {
    Atom { name: Some("__untyped_deduced_".to_owned()), ..untyped(UNTYPED_DEDUCED, false) }
}
