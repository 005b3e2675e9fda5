//! Schemas from OpenAPI documents, by the rules of kube-openapi's `schemaconv`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::object_meta::{OBJECT_META, object_meta};
use super::{Atom, Field, List, Map, Scalar, Schema, TypeId, UNTYPED_ATOMIC, UNTYPED_DEDUCED};
use crate::MAX_DEPTH;

/// Finds the definition that a `$ref` names.
pub type Resolve<'r> = dyn Fn(&str) -> Option<Cow<'r, Value>> + 'r;

/// Quantities are scalars of any kind, whatever the document says.
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
/// Raw extensions are anything, owned as a whole, whatever the document says.
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// How many definitions may refer to each other without saying anything themselves.
const MAX_ALIASES: usize = 8;

/// Why a document cannot be used as a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// `type` is not one of OpenAPI's.
    #[error("{at}: unrecognized type: '{found}'")]
    Type {
        /// The definition it was found in.
        at: String,
        /// What was found.
        found: String,
    },
    /// `x-kubernetes-list-type`, a patch strategy or its keys cannot be understood.
    #[error("{at}: {problem}")]
    ListType {
        /// The definition it was found in.
        at: String,
        /// What is wrong.
        problem: String,
    },
    /// `x-kubernetes-map-type` is neither atomic nor granular.
    #[error("{at}: unknown map type {found}")]
    MapType {
        /// The definition it was found in.
        at: String,
        /// What was found.
        found: String,
    },
    /// An array does not say what it holds.
    #[error("{at}: `items` must be specified on arrays")]
    Items {
        /// The definition it was found in.
        at: String,
    },
    /// Definitions are nested beyond [`MAX_DEPTH`].
    #[error("{at}: nested too deeply")]
    TooDeep {
        /// The definition it was found in.
        at: String,
    },
}

impl Schema {
    /// The schema of the objects that an OpenAPI definition describes.
    ///
    /// `preserve_unknown_fields` admits undeclared fields everywhere, as the field of that
    /// name in CRDs does.
    pub fn from_openapi(
        root: &Value,
        resolve: &Resolve<'_>,
        preserve_unknown_fields: bool,
    ) -> Result<Self, SchemaError> {
        let mut conversion = Conversion {
            schema: Self::deduced(),
            named: BTreeMap::new(),
            pending: Vec::new(),
            preserve_unknown_fields,
        };
        let context = Context { at: "root", preserve: preserve_unknown_fields, depth: 0 };
        conversion.schema.root = conversion.reference(root, context)?;
        while let Some(pending) = conversion.pending.pop() {
            conversion.define(&pending, resolve)?;
        }
        Ok(conversion.schema)
    }

    /// The schema of a custom resource from `openAPIV3Schema` of its definition, with the
    /// metadata that every object has. Without a schema everything is deduced.
    pub fn for_custom_resource(
        schema: Option<&Value>,
        preserve_unknown_fields: bool,
    ) -> Result<Self, SchemaError> {
        let Some(schema) = schema else {
            return Self::from_openapi(&json!({"type": "object"}), &|_| None, true);
        };
        let mut root = schema.clone();
        if let Value::Object(root) = &mut root {
            let properties = root.entry("properties").or_insert_with(|| json!({}));
            if let Value::Object(properties) = properties {
                properties.insert("apiVersion".to_owned(), json!({"type": "string"}));
                properties.insert("kind".to_owned(), json!({"type": "string"}));
                properties.insert("metadata".to_owned(), json!({"$ref": OBJECT_META}));
            }
        }
        Self::from_openapi(&root, &|_| None, preserve_unknown_fields)
    }
}

/// Where in the document the conversion stands.
#[derive(Clone, Copy)]
struct Context<'a> {
    at: &'a str,
    preserve: bool,
    depth: usize,
}

/// A named type that is referred to but not yet defined.
struct Pending {
    id: TypeId,
    reference: String,
    name: String,
    atomic: Option<bool>,
}

struct Conversion {
    schema: Schema,
    /// Named types by name and by what a reference overrides.
    named: BTreeMap<(String, Option<bool>), TypeId>,
    pending: Vec<Pending>,
    preserve_unknown_fields: bool,
}

impl Conversion {
    /// The type of a place in the document: a named one or one made for this place.
    fn reference(&mut self, place: &Value, context: Context<'_>) -> Result<TypeId, SchemaError> {
        let Some(target) = reference_target(place) else {
            let atom = self.parse(place, context)?;
            return Ok(self.schema.push(atom));
        };
        let name = target.rsplit('/').next().unwrap_or(target).to_owned();
        let atomic = map_relationship(place, context)?;
        if let Some(id) = self.named.get(&(name.clone(), atomic)) {
            return Ok(*id);
        }
        let id = self.schema.push(Atom { name: Some(name.clone()), ..Atom::default() });
        self.named.insert((name.clone(), atomic), id);
        self.pending.push(Pending { id, reference: target.to_owned(), name, atomic });
        Ok(id)
    }

    fn define(&mut self, pending: &Pending, resolve: &Resolve<'_>) -> Result<(), SchemaError> {
        let mut atom = match pending.name.as_str() {
            QUANTITY => Atom { scalar: Some(Scalar::Untyped), ..Atom::default() },
            RAW_EXTENSION => self.schema.atom(Some(UNTYPED_ATOMIC)).cloned().unwrap_or_default(),
            name => match definition(&pending.reference, name, resolve) {
                Some(document) => {
                    let preserve = self.preserve_unknown_fields;
                    self.parse(&document, Context { at: name, preserve, depth: 0 })?
                }
                None => Atom { missing: true, ..Atom::default() },
            },
        };
        if let Some(atomic) = pending.atomic {
            match (&mut atom.map, &mut atom.list) {
                (Some(map), _) => map.atomic = atomic,
                (None, Some(list)) => list.associative = !atomic,
                (None, None) => atom.missing = true,
            }
        }
        if pending.name == OBJECT_META
            && let Some(field) =
                atom.map.as_mut().and_then(|map| map.fields.get_mut("managedFields"))
        {
            // The book itself is checked where it is decoded, not on every walk.
            field.type_id = UNTYPED_ATOMIC;
        }
        atom.name = Some(pending.name.clone());
        let slot = usize::try_from(pending.id.0).ok();
        if let Some(slot) = slot.and_then(|at| self.schema.atoms.get_mut(at)) {
            *slot = atom;
        }
        Ok(())
    }

    fn parse(&mut self, document: &Value, context: Context<'_>) -> Result<Atom, SchemaError> {
        if context.depth > MAX_DEPTH {
            return Err(SchemaError::TooDeep { at: context.at.to_owned() });
        }
        let preserve =
            context.preserve || is_true(document, "x-kubernetes-preserve-unknown-fields");
        let context = Context { preserve, depth: context.depth + 1, ..context };
        let type_name = match document.get("type") {
            Some(Value::Array(names)) => names.first().and_then(Value::as_str),
            other => other.and_then(Value::as_str),
        };
        let mut atom = Atom::default();
        match type_name.unwrap_or_default() {
            "" => {
                atom.scalar = Some(Scalar::Untyped);
                atom.list = Some(self.parse_list(document, context, false)?);
                atom.map = Some(self.parse_map(document, context)?);
            }
            "object" => atom.map = Some(self.parse_map(document, context)?),
            "array" => atom.list = Some(self.parse_list(document, context, true)?),
            "integer" | "number" => atom.scalar = Some(Scalar::Numeric),
            "boolean" => atom.scalar = Some(Scalar::Boolean),
            "string" => {
                let format = document.get("format").and_then(Value::as_str).unwrap_or_default();
                let plain = matches!(format, "" | "byte");
                atom.scalar = Some(if plain { Scalar::String } else { Scalar::Untyped });
            }
            other => {
                let found = other.to_owned();
                return Err(SchemaError::Type { at: context.at.to_owned(), found });
            }
        }
        Ok(atom)
    }

    fn parse_map(&mut self, document: &Value, context: Context<'_>) -> Result<Map, SchemaError> {
        let mut fields = BTreeMap::new();
        let properties = document.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let type_id = self.reference(property, context)?;
            let default = property.get("default").filter(|value| !value.is_null()).cloned();
            fields.insert(name.clone(), Field { type_id, default });
        }
        if is_true(document, "x-kubernetes-embedded-resource") {
            for (name, place) in [
                ("apiVersion", json!({"type": "string"})),
                ("kind", json!({"type": "string"})),
                ("metadata", json!({"$ref": OBJECT_META})),
            ] {
                let type_id = self.reference(&place, context)?;
                fields.insert(name.to_owned(), Field { type_id, default: None });
            }
        }
        let element = match document.get("additionalProperties") {
            // A map that says nothing about its fields may have any.
            None | Some(Value::Null) => {
                (context.preserve || fields.is_empty()).then_some(UNTYPED_DEDUCED)
            }
            Some(Value::Bool(allowed)) => allowed.then_some(UNTYPED_DEDUCED),
            Some(schema) => Some(self.reference(schema, context)?),
        };
        let atomic = map_relationship(document, context)?.unwrap_or(false);
        Ok(Map { fields, element, atomic })
    }

    fn parse_list(
        &mut self,
        document: &Value,
        context: Context<'_>,
        must_have_items: bool,
    ) -> Result<List, SchemaError> {
        let (associative, keys) = list_relationship(document)
            .map_err(|problem| SchemaError::ListType { at: context.at.to_owned(), problem })?;
        let element = match document.get("items") {
            Some(items) => self.reference(items, context)?,
            None if must_have_items => {
                return Err(SchemaError::Items { at: context.at.to_owned() });
            }
            None => UNTYPED_ATOMIC,
        };
        Ok(List { element: Some(element), associative, keys })
    }
}

/// The reference at a place, plain or wrapped in `allOf` to carry further keywords.
pub(super) fn reference_target(place: &Value) -> Option<&str> {
    let direct = place.get("$ref").and_then(Value::as_str);
    let wrapped = || match place.get("allOf").and_then(Value::as_array)?.as_slice() {
        [only] => only.get("$ref").and_then(Value::as_str),
        _ => None,
    };
    direct.or_else(wrapped).filter(|target| !target.is_empty())
}

/// The definition that a reference leads to.
pub(super) fn definition<'r>(
    reference: &str,
    name: &str,
    resolve: &Resolve<'r>,
) -> Option<Cow<'r, Value>> {
    let Some(mut found) = resolve(reference) else {
        return (name == OBJECT_META).then(|| Cow::Owned(object_meta()));
    };
    for _ in 0..MAX_ALIASES {
        let Some(next) = found.get("$ref").and_then(Value::as_str) else { return Some(found) };
        found = resolve(next)?;
    }
    None
}

fn is_true(document: &Value, keyword: &str) -> bool {
    document.get(keyword).and_then(Value::as_bool).unwrap_or(false)
}

/// Whether a map is said to be owned as a whole; `None` if nothing is said.
fn map_relationship(place: &Value, context: Context<'_>) -> Result<Option<bool>, SchemaError> {
    match place.get("x-kubernetes-map-type") {
        None => Ok(None),
        Some(Value::String(kind)) if kind == "atomic" => Ok(Some(true)),
        Some(Value::String(kind)) if kind == "granular" => Ok(Some(false)),
        Some(other) => {
            let found = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
            Err(SchemaError::MapType { at: context.at.to_owned(), found })
        }
    }
}

/// Whether a list is owned by element, and by which keys.
fn list_relationship(document: &Value) -> Result<(bool, Vec<String>), String> {
    let text = |keyword| document.get(keyword).map(|value| value.as_str().unwrap_or_default());
    if let Some(kind) = text("x-kubernetes-list-type") {
        return match kind {
            "atomic" => Ok((false, Vec::new())),
            "set" => Ok((true, Vec::new())),
            "map" => match document.get("x-kubernetes-list-map-keys") {
                Some(Value::Array(keys)) => {
                    let keys = keys.iter().filter_map(Value::as_str).map(str::to_owned);
                    Ok((true, keys.collect()))
                }
                Some(other) => Err(format!("uninterpreted map keys: {other}")),
                None => Err("missing map keys".to_owned()),
            },
            other => Err(format!("unknown list type {other}")),
        };
    }
    match text("x-kubernetes-patch-strategy") {
        Some("merge" | "merge,retainKeys") => match document.get("x-kubernetes-patch-merge-key") {
            Some(Value::String(key)) => Ok((true, vec![key.clone()])),
            Some(other) => Err(format!("uninterpreted merge key: {other}")),
            None => Ok((true, Vec::new())),
        },
        Some("retainKeys") | None => Ok((false, Vec::new())),
        Some(other) => Err(format!("unknown patch strategy {other}")),
    }
}
