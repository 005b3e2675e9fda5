//! Whether a schema is structural: every field has a type outside of value validations.

use crate::field::{FieldError, Path};
use crate::schema::{Additional, Schema};

/// Why a schema cannot even be looked at for structure.
pub(super) fn unsupported(schema: &Schema) -> Option<&'static str> {
    let found = &schema.unsupported;
    let here = if !found.id.is_empty() {
        Some("OpenAPIV3Schema 'id' is not supported")
    } else if !found.schema.is_empty() {
        Some("OpenAPIV3Schema 'schema' is not supported")
    } else if found.reference.as_deref().is_some_and(|reference| !reference.is_empty()) {
        Some("OpenAPIV3Schema '$ref' is not supported")
    } else if found.pattern_properties {
        Some("OpenAPIV3Schema 'patternProperties' is not supported")
    } else if found.dependencies {
        Some("OpenAPIV3Schema 'dependencies' is not supported")
    } else if found.additional_items {
        Some("OpenAPIV3Schema 'additionalItems' is not supported")
    } else if found.definitions {
        Some("OpenAPIV3Schema 'definitions' is not supported")
    } else if schema.preserve_unknown_fields == Some(false) {
        Some("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined")
    } else if found.items_list {
        Some("OpenAPIV3Schema 'items' must be a schema, but is an array")
    } else {
        None
    };
    here.or_else(|| parts(schema).find_map(unsupported))
}

/// All schemas directly inside a schema.
pub(super) fn parts(schema: &Schema) -> impl Iterator<Item = &Schema> {
    schema
        .not
        .as_deref()
        .into_iter()
        .chain(&schema.all_of)
        .chain(&schema.any_of)
        .chain(&schema.one_of)
        .chain(schema.items.as_deref())
        .chain(schema.properties.values())
        .chain(schema.additional_schema())
}

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Checks that a schema is structural. The errors are sorted.
pub(super) fn validate(schema: &Schema, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    invariants(schema, Level::Root, path, &mut errors);
    complete_combinations(schema, schema, path, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

fn invariants(schema: &Schema, level: Level, path: &Path, errors: &mut Vec<FieldError>) {
    if schema.type_name == "array" && schema.items.is_none() {
        errors.push(FieldError::required(&path.child("items"), "must be specified"));
    }
    if let Some(items) = &schema.items {
        invariants(items, Level::Item, &path.child("items"), errors);
    }
    for (name, property) in &schema.properties {
        invariants(property, Level::Field, &path.child("properties").key(name), errors);
    }
    if let Some(additional) = &schema.additional_properties {
        let place = path.child("additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(&place, "must not be used at the root"));
        }
        if let Additional::Schema(additional) = additional {
            invariants(additional, Level::Field, &place, errors);
        }
    }
    extensions(schema, path, errors);
    let skip_any_of = is_int_or_string(&schema.any_of);
    let skip_first = schema.all_of.first().is_some_and(|first| is_int_or_string(&first.any_of));
    value_validation(schema, skip_any_of, skip_first, path, errors);
    types(schema, level, path, errors);
    metadata(schema, level, path, errors);
}

fn extensions(schema: &Schema, path: &Path, errors: &mut Vec<FieldError>) {
    let detail = "must be false if x-kubernetes-int-or-string is true";
    if schema.int_or_string && schema.preserves_unknown_fields() {
        let place = path.child("x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(&place, true, detail));
    }
    if schema.int_or_string && schema.embedded_resource {
        let place = path.child("x-kubernetes-embedded-resource");
        errors.push(FieldError::invalid(&place, true, detail));
    }
}

fn types(schema: &Schema, level: Level, path: &Path, errors: &mut Vec<FieldError>) {
    let place = path.child("type");
    let type_name = schema.type_name.as_str();
    if schema.embedded_resource && type_name != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if type_name.is_empty() {
            FieldError::required(&place, detail)
        } else {
            FieldError::invalid(&place, type_name, detail)
        });
    } else if type_name.is_empty() && !schema.int_or_string && !schema.preserves_unknown_fields() {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(&place, detail));
    }
    if schema.embedded_resource && schema.additional_properties.is_some() {
        errors.push(FieldError::forbidden(
            &path.child("additionalProperties"),
            "must not be used if x-kubernetes-embedded-resource is set",
        ));
    }
    if level == Level::Root && !type_name.is_empty() && type_name != "object" {
        errors.push(FieldError::invalid(&place, type_name, "must be object at the root"));
    }
}

fn metadata(schema: &Schema, level: Level, path: &Path, errors: &mut Vec<FieldError>) {
    let is_object = level == Level::Root || schema.embedded_resource;
    let properties = path.child("properties");
    for name in ["kind", "apiVersion"] {
        if let Some(property) = schema.properties.get(name)
            && is_object
            && property.type_name != "string"
        {
            let place = properties.key(name).child("type");
            errors.push(FieldError::invalid(&place, property.type_name.as_str(), "must be string"));
        }
    }
    if let Some(metadata) = schema.properties.get("metadata") {
        let place = properties.key("metadata");
        if is_object && metadata.type_name != "object" {
            let value = metadata.type_name.as_str();
            errors.push(FieldError::invalid(&place.child("type"), value, "must be object"));
        }
        if level == Level::Root && !restricts_names_only(metadata) {
            errors.push(FieldError::forbidden(
                &place,
                "must not specify anything other than name and generateName, but metadata is \
                 implicitly specified",
            ));
        }
    }
    if schema.embedded_resource
        && !schema.preserves_unknown_fields()
        && schema.properties.is_empty()
    {
        errors.push(FieldError::required(
            &properties,
            "must not be empty if x-kubernetes-embedded-resource is true without \
             x-kubernetes-preserve-unknown-fields",
        ));
    }
}

fn restricts_names_only(metadata: &Schema) -> bool {
    let names = metadata.properties.keys();
    names.into_iter().all(|name| name == "name" || name == "generateName")
        && has_only_type_default_and_properties(metadata)
}

/// Whether nothing but `type`, `default` and `properties` is set.
fn has_only_type_default_and_properties(schema: &Schema) -> bool {
    schema.description.is_empty()
        && schema.title.is_empty()
        && !schema.nullable
        && schema.example.is_none()
        && schema.external_docs.is_none()
        && schema.items.is_none()
        && schema.additional_properties.is_none()
        && has_no_extensions(schema)
        && has_no_value_validation(schema)
}

fn has_no_extensions(schema: &Schema) -> bool {
    schema.preserve_unknown_fields.is_none()
        && !schema.embedded_resource
        && !schema.int_or_string
        && schema.list_map_keys.is_empty()
        && schema.list_type.is_none()
        && schema.map_type.is_none()
        && schema.validations.is_empty()
}

fn has_no_value_validation(schema: &Schema) -> bool {
    schema.format.is_empty()
        && schema.maximum.is_none()
        && !schema.exclusive_maximum
        && schema.minimum.is_none()
        && !schema.exclusive_minimum
        && schema.max_length.is_none()
        && schema.min_length.is_none()
        && schema.pattern.is_none()
        && schema.max_items.is_none()
        && schema.min_items.is_none()
        && !schema.unique_items
        && schema.multiple_of.is_none()
        && schema.enum_values.is_empty()
        && schema.max_properties.is_none()
        && schema.min_properties.is_none()
        && schema.required.is_empty()
        && schema.all_of.is_empty()
        && schema.any_of.is_empty()
        && schema.one_of.is_empty()
        && schema.not.is_none()
}

/// Whether alternatives are the two types of an int-or-string and nothing else.
fn is_int_or_string(any_of: &[Schema]) -> bool {
    let bare = |schema: &Schema, type_name: &str| {
        schema.type_name == type_name
            && schema.default.is_none()
            && schema.properties.is_empty()
            && has_only_type_default_and_properties(schema)
    };
    matches!(any_of, [a, b] if bare(a, "integer") && bare(b, "string"))
}

fn value_validation(
    schema: &Schema,
    skip_any_of: bool,
    skip_first_all_of: bool,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    if !skip_any_of {
        for (i, part) in schema.any_of.iter().enumerate() {
            nested(part, false, &path.child("anyOf").index(i), errors);
        }
    }
    for (i, part) in schema.all_of.iter().enumerate() {
        nested(part, skip_first_all_of && i == 0, &path.child("allOf").index(i), errors);
    }
    for (i, part) in schema.one_of.iter().enumerate() {
        nested(part, false, &path.child("oneOf").index(i), errors);
    }
    if let Some(not) = &schema.not {
        nested(not, false, &path.child("not"), errors);
    }
    if let Some(pattern) = &schema.pattern
        && let Some(error) = pattern.error()
    {
        errors.push(FieldError::invalid(
            &path.child("pattern"),
            pattern.source(),
            format!("must be a valid regular expression, but isn't: {error}"),
        ));
    }
}

/// Value validations may not say what only the structure may say.
fn nested(schema: &Schema, skip_any_of: bool, path: &Path, errors: &mut Vec<FieldError>) {
    value_validation(schema, skip_any_of, false, path, errors);
    if let Some(items) = &schema.items {
        nested(items, false, &path.child("items"), errors);
    }
    for (name, property) in &schema.properties {
        nested(property, false, &path.child("properties").key(name), errors);
    }
    let empty = "must be empty to be structural";
    let undefined = "must be undefined to be structural";
    let unset = "must be false to be structural";
    let additional = schema.additional_properties.as_ref().is_some_and(Additional::allows);
    let forbidden = [
        (!schema.type_name.is_empty(), "type", empty),
        (additional, "additionalProperties", undefined),
        (schema.default.is_some(), "default", undefined),
        (!schema.title.is_empty(), "title", empty),
        (!schema.description.is_empty(), "description", empty),
        (schema.nullable, "nullable", unset),
        (schema.preserves_unknown_fields(), "x-kubernetes-preserve-unknown-fields", unset),
        (schema.embedded_resource, "x-kubernetes-embedded-resource", unset),
        (schema.int_or_string, "x-kubernetes-int-or-string", unset),
        (!schema.list_map_keys.is_empty(), "x-kubernetes-list-map-keys", empty),
        (schema.list_type.is_some(), "x-kubernetes-list-type", undefined),
        (schema.map_type.is_some(), "x-kubernetes-map-type", undefined),
        (!schema.validations.is_empty(), "x-kubernetes-validations", empty),
    ];
    for (present, name, detail) in forbidden {
        if present {
            errors.push(FieldError::forbidden(&path.child(name), detail));
        }
    }
    if schema.properties.contains_key("metadata") {
        errors.push(FieldError::forbidden(
            &path.child("properties").key("metadata"),
            "must not be specified in a nested context",
        ));
    }
}

/// Fields that value validations mention must be in the structure.
fn complete_combinations(
    validation: &Schema,
    structure: &Schema,
    structure_path: &Path,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    if let Some(not) = &validation.not {
        complete(not, Some(structure), structure_path, &path.child("not"), errors);
    }
    let groups = [
        (&validation.all_of, "allOf"),
        (&validation.any_of, "anyOf"),
        (&validation.one_of, "oneOf"),
    ];
    for (parts, name) in groups {
        for (i, part) in parts.iter().enumerate() {
            let place = path.child(name).index(i);
            complete(part, Some(structure), structure_path, &place, errors);
        }
    }
}

fn complete(
    validation: &Schema,
    structure: Option<&Schema>,
    structure_path: &Path,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    let Some(structure) = structure else {
        let detail = format!("because it is defined in {path}");
        errors.push(FieldError::required(structure_path, detail));
        return;
    };
    complete_combinations(validation, structure, structure_path, path, errors);
    if let Some(items) = &validation.items {
        let (place, within) = (structure_path.child("items"), path.child("items"));
        complete(items, structure.items.as_deref(), &place, &within, errors);
    }
    for (name, property) in &validation.properties {
        let place = structure_path.child("properties").key(name);
        let within = path.child("properties").key(name);
        complete(property, structure.properties.get(name), &place, &within, errors);
    }
}
