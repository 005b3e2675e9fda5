//! Whether the defaults of a schema are values that the schema accepts.

use serde_json::{Map, Value};

use crate::cel::Rules;
use crate::field::{FieldError, Path, aggregate_message};
use crate::schema::Schema;
use crate::{objectmeta, prune, validate as values};

/// Checks all defaults, except in additional properties, where values decide.
pub(super) fn validate(schema: &Schema, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let object = Object { schema, trail: Vec::new() };
    node(schema, true, path, &object, false, &mut errors);
    errors
}

/// The object around a default, for defaults inside of its metadata.
#[derive(Clone)]
struct Object<'a> {
    schema: &'a Schema,
    trail: Vec<Step<'a>>,
}

#[derive(Clone)]
enum Step<'a> {
    Field(&'a str),
    Item,
}

impl<'a> Object<'a> {
    fn inside(&self, step: Step<'a>) -> Self {
        let mut trail = self.trail.clone();
        trail.push(step);
        Self { schema: self.schema, trail }
    }

    /// An object that has the value at this place and nothing else.
    fn around(&self, value: Value) -> Value {
        let mut value = value;
        for step in self.trail.iter().rev() {
            value = match step {
                Step::Field(name) => Value::Object(Map::from_iter([((*name).to_owned(), value)])),
                Step::Item => Value::Array(vec![value]),
            };
        }
        if let Some(fields) = value.as_object_mut() {
            fields.entry("kind").or_insert_with(|| Value::from("Validation"));
            fields.entry("apiVersion").or_insert_with(|| Value::from("validation/v1"));
        }
        value
    }
}

fn node(
    schema: &Schema,
    is_root: bool,
    path: &Path,
    object: &Object<'_>,
    inside_meta: bool,
    errors: &mut Vec<FieldError>,
) {
    let is_object = is_root || schema.embedded_resource;
    let own = Object { schema, trail: Vec::new() };
    let (object, inside_meta) = if is_object { (&own, false) } else { (object, inside_meta) };
    if let Some(default) = &schema.default {
        let place = path.child("default");
        if inside_meta {
            default_in_metadata(default, schema, &place, object, errors);
        } else {
            default_value(default, schema, &place, is_object, errors);
        }
    }
    if let Some(items) = &schema.items {
        let inside = object.inside(Step::Item);
        node(items, false, &path.child("items"), &inside, inside_meta, errors);
    }
    for (name, property) in &schema.properties {
        let is_meta = is_object && matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
        let inside = object.inside(Step::Field(name));
        let place = path.child("properties").key(name);
        node(property, false, &place, &inside, inside_meta || is_meta, errors);
    }
}

fn default_value(
    default: &Value,
    schema: &Schema,
    path: &Path,
    is_object: bool,
    errors: &mut Vec<FieldError>,
) {
    let mut pruned = default.clone();
    prune::prune_default(&mut pruned, schema, is_object);
    if pruned != *default {
        let detail = "must not have unknown fields";
        errors.push(FieldError::invalid(path, default.clone(), detail));
    }
    let mut coerced = default.clone();
    if let Err(error) = objectmeta::coerce_default(&mut coerced, schema, path, is_object) {
        errors.push(error);
        return;
    }
    let found = objectmeta::validate(&coerced, schema, path, is_object);
    if found.is_empty() {
        accepted(&coerced, schema, path, is_object, errors);
    } else {
        errors.extend(found);
    }
}

fn default_in_metadata(
    default: &Value,
    schema: &Schema,
    path: &Path,
    object: &Object<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mut whole = object.around(default.clone());
    let root = Path::root();
    let reason = match objectmeta::coerce_default(&mut whole, object.schema, &root, true) {
        Err(error) => Some(error.to_string()),
        Ok(()) => aggregate_message(&objectmeta::validate(&whole, object.schema, &root, true)),
    };
    match reason {
        Some(reason) => {
            let detail = format!("must result in valid metadata: {reason}");
            errors.push(FieldError::invalid(path, default.clone(), detail));
        }
        None => accepted(default, schema, path, false, errors),
    }
}

/// Checks the value against its schema and the rules in it, as a change of nothing and as a new
/// value.
fn accepted(
    default: &Value,
    schema: &Schema,
    path: &Path,
    is_object: bool,
    errors: &mut Vec<FieldError>,
) {
    let found = values::validate(default, schema, path);
    if !found.is_empty() {
        errors.extend(found);
        return;
    }
    let Some(rules) = Rules::compile_part(schema, is_object) else { return };
    let mut found = rules.validate_default(schema, default, Some(default), path);
    if found.is_empty() {
        found = rules.validate_default(schema, default, None, path);
    }
    errors.extend(found);
}
