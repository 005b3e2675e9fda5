//! What Kubernetes asks of a schema beyond its structure.

use serde_json::Value;

use super::{defaults, render, structural};
use crate::cel::{PathOptions, RuleIssue, check_rules, resolve_field_path, shown_rule};
use crate::field::{BadValue, FieldError, Path};
use crate::schema::{Additional, Rule, Schema};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Checks the `schema` of a version, or what all versions share.
pub(super) fn validate_schema(
    validation: Option<&Value>,
    has_status: bool,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    let raw = validation.and_then(|v| v.get("openAPIV3Schema")).filter(|s| !s.is_null());
    let Some(raw) = raw else { return };
    let path = path.child("openAPIV3Schema");
    let schema = match Schema::parse(raw) {
        Ok(schema) => schema,
        Err(error) => {
            errors.push(FieldError::invalid(&path, "", error.to_string()));
            return;
        }
    };
    let mut found = Vec::new();
    if has_status {
        match render::root_issue(raw) {
            None => {}
            Some(render::RootIssue::Type) => found.push(FieldError::invalid(
                &path.child("type"),
                schema.type_name.as_str(),
                "only \"object\" is allowed as the type at the root of the schema if the status \
                 subresource is enabled",
            )),
            Some(render::RootIssue::Field(detail)) => {
                let value = BadValue::Rendered(render::schema_props(raw));
                found.push(FieldError::invalid(&path, value, detail));
            }
        }
    }
    if schema.nullable {
        let detail = "nullable cannot be true at the root";
        found.push(FieldError::forbidden(&path.child("nullable"), detail));
    }
    let unsupported = structural::unsupported(&schema);
    let mut check_expressions = false;
    if unsupported.is_none() {
        let mut issues = structural::validate(&schema, &path);
        if issues.is_empty() {
            issues = defaults::validate(&schema, &path);
        }
        check_expressions = issues.is_empty();
        found.extend(issues);
    }
    let mut walk = Walk { schema_errors: Vec::new(), rule_errors: Vec::new() };
    let place = Place {
        is_root: true,
        inside_meta: false,
        no_defaults: None,
        uncorrelatable: None,
        check_expressions,
        is_resource: true,
    };
    walk.node(&schema, &path, &place);
    found.extend(walk.schema_errors);
    found.extend(walk.rule_errors);
    if found.is_empty()
        && let Some(reason) = unsupported
    {
        found.push(FieldError::invalid(&path, "", reason));
    }
    errors.extend(found);
}

/// Where in a schema the walk is.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of a place")]
struct Place {
    is_root: bool,
    /// Inside the metadata of an object.
    inside_meta: bool,
    /// Why there may be no defaults.
    no_defaults: Option<String>,
    /// The part of the schema around this one whose values have no old counterpart.
    uncorrelatable: Option<Path>,
    /// Whether expressions are checked here.
    check_expressions: bool,
    /// Whether this is an object with metadata.
    is_resource: bool,
}

impl Place {
    fn inside(&self, part: &Schema) -> Self {
        Self { is_root: false, is_resource: part.embedded_resource, ..self.clone() }
    }

    fn without_rules(&self, part: &Schema) -> Self {
        Self { check_expressions: false, ..self.inside(part) }
    }
}

struct Walk {
    schema_errors: Vec<FieldError>,
    rule_errors: Vec<FieldError>,
}

impl Walk {
    fn forbid(&mut self, path: &Path, name: &str, detail: impl Into<String>) {
        self.schema_errors.push(FieldError::forbidden(&path.child(name), detail));
    }

    fn node(&mut self, schema: &Schema, path: &Path, place: &Place) {
        let before = self.schema_errors.len();
        self.supported(schema, path, place);
        if schema.unique_items {
            self.forbid(
                path,
                "uniqueItems",
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            );
        }
        self.additional(schema, path, place);
        self.properties(schema, path, place);
        if let Some(not) = &schema.not {
            self.node(not, &path.child("not"), &place.without_rules(not));
        }
        let groups =
            [(&schema.all_of, "allOf"), (&schema.one_of, "oneOf"), (&schema.any_of, "anyOf")];
        for (parts, name) in groups {
            for (i, part) in parts.iter().enumerate() {
                self.node(part, &path.child(name).index(i), &place.without_rules(part));
            }
        }
        if let Some(items) = &schema.items {
            let mut inside = place.inside(items);
            if schema.list_type.as_deref() != Some("map") {
                inside.uncorrelatable.get_or_insert_with(|| path.clone());
            }
            self.node(items, &path.child("items"), &inside);
        }
        if schema.preserve_unknown_fields == Some(false) {
            let place = path.child("x-kubernetes-preserve-unknown-fields");
            self.schema_errors.push(FieldError::invalid(
                &place,
                false,
                "must be true or undefined",
            ));
        }
        self.topology(schema, path);
        self.list_map(schema, path);
        self.list_keys(schema, path);
        self.rules(schema, path);
        if !schema.validations.is_empty()
            && self.schema_errors.len() == before
            && place.check_expressions
        {
            self.expressions(schema, path, place);
        }
    }

    /// Keywords that are not supported, or not here.
    fn supported(&mut self, schema: &Schema, path: &Path, place: &Place) {
        let type_name = schema.type_name.as_str();
        if !type_name.is_empty() && !TYPES.contains(&type_name) {
            let place = path.child("type");
            self.schema_errors.push(FieldError::not_supported(&place, type_name, &TYPES));
        }
        if schema.default.is_some()
            && let Some(reason) = &place.no_defaults
        {
            self.forbid(path, "default", format!("must not be set {reason}"));
        }
        let found = &schema.unsupported;
        let unsupported = [
            (!found.id.is_empty(), "id"),
            (found.additional_items, "additionalItems"),
            (found.pattern_properties, "patternProperties"),
            (found.definitions, "definitions"),
            (found.dependencies, "dependencies"),
            (found.reference.is_some(), "$ref"),
        ];
        for (present, name) in unsupported {
            if present {
                self.forbid(path, name, format!("{name} is not supported"));
            }
        }
        if type_name == "null" {
            let detail = "type cannot be set to null, use nullable as an alternative";
            self.forbid(path, "type", detail);
        }
        if found.items_list {
            self.forbid(path, "items", "items must be a schema object and not an array");
        }
        if place.inside_meta && schema.embedded_resource {
            let detail = "must not be used inside of resource meta";
            self.forbid(path, "x-kubernetes-embedded-resource", detail);
        }
    }

    fn additional(&mut self, schema: &Schema, path: &Path, place: &Place) {
        let Some(additional) = &schema.additional_properties else { return };
        let restricts = !matches!(additional, Additional::Allowed(true));
        if !schema.properties.is_empty() && restricts {
            let detail = "additionalProperties and properties are mutual exclusive";
            self.forbid(path, "additionalProperties", detail);
        }
        if let Some(part) = additional.schema() {
            let mut inside = place.inside(part);
            if place.inside_meta {
                let reason = "inside additionalProperties applying to object metadata";
                inside.no_defaults = Some(reason.to_owned());
            }
            self.node(part, &path.child("additionalProperties"), &inside);
        }
    }

    fn properties(&mut self, schema: &Schema, path: &Path, place: &Place) {
        let correlatable = matches!(schema.map_type.as_deref(), None | Some("granular" | "atomic"));
        for (name, property) in &schema.properties {
            let mut inside = place.inside(property);
            if !correlatable {
                inside.uncorrelatable.get_or_insert_with(|| path.clone());
            }
            let is_meta = matches!(name.as_str(), "metadata" | "kind" | "apiVersion");
            if (place.is_root || schema.embedded_resource) && is_meta {
                inside.inside_meta = true;
                if place.is_root {
                    inside.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            self.node(property, &path.child("properties").key(name), &inside);
        }
    }

    /// The types of maps and lists.
    fn topology(&mut self, schema: &Schema, path: &Path) {
        let type_name = schema.type_name.as_str();
        let mut wrong_type = |expected: &str, keyword: &str| {
            let detail = format!("must be {expected} if {keyword} is specified");
            let place = path.child("type");
            self.schema_errors.push(if type_name.is_empty() {
                FieldError::required(&place, detail)
            } else {
                FieldError::invalid(&place, type_name, detail)
            });
        };
        if schema.map_type.is_some() && type_name != "object" {
            wrong_type("object", "x-kubernetes-map-type");
        }
        let list_mismatch = schema.list_type.is_some() && type_name != "array";
        let map_place = path.child("x-kubernetes-map-type");
        if let Some(map_type) = schema.map_type.as_deref()
            && !matches!(map_type, "atomic" | "granular")
        {
            let supported = ["atomic", "granular"];
            self.schema_errors.push(FieldError::not_supported(&map_place, map_type, &supported));
        }
        if list_mismatch {
            let detail = "must be array if x-kubernetes-list-type is specified";
            let place = path.child("type");
            self.schema_errors.push(if type_name.is_empty() {
                FieldError::required(&place, detail)
            } else {
                FieldError::invalid(&place, type_name, detail)
            });
        } else if schema.list_type.as_deref() == Some("set")
            && let Some(items) = &schema.items
        {
            self.set_items(items, &path.child("items"));
        }
        if let Some(list_type) = schema.list_type.as_deref()
            && !matches!(list_type, "atomic" | "set" | "map")
        {
            let place = path.child("x-kubernetes-list-type");
            let supported = ["atomic", "set", "map"];
            self.schema_errors.push(FieldError::not_supported(&place, list_type, &supported));
        }
    }

    /// Items of a set are compared as a whole.
    fn set_items(&mut self, items: &Schema, path: &Path) {
        let shown = items.list_type.clone().map_or(Value::Null, Value::from);
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let list_type = items.list_type.as_deref();
        match items.type_name.as_str() {
            "array" if !matches!(list_type, None | Some("atomic")) => {
                let place = path.child("x-kubernetes-list-type");
                self.schema_errors.push(FieldError::invalid(&place, shown, detail));
            }
            "object" if items.map_type.as_deref() != Some("atomic") => {
                let place = path.child("x-kubernetes-map-type");
                self.schema_errors.push(FieldError::invalid(&place, shown, detail));
            }
            _ => {}
        }
    }

    fn list_map(&mut self, schema: &Schema, path: &Path) {
        let keys = &schema.list_map_keys;
        let type_place = path.child("x-kubernetes-list-type");
        let keys_place = path.child("x-kubernetes-list-map-keys");
        if !keys.is_empty() {
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            match schema.list_type.as_deref() {
                None => self.schema_errors.push(FieldError::required(&type_place, detail)),
                Some("map") => {}
                Some(other) => {
                    self.schema_errors.push(FieldError::invalid(&type_place, other, detail));
                }
            }
        }
        if schema.list_type.as_deref() != Some("map") {
            return;
        }
        if keys.is_empty() {
            let detail = "must not be empty if x-kubernetes-list-type is map";
            self.schema_errors.push(FieldError::required(&keys_place, detail));
        }
        let items_place = path.child("items");
        let Some(items) = &schema.items else {
            let detail = "must have a schema if x-kubernetes-list-type is map";
            self.schema_errors.push(FieldError::required(&items_place, detail));
            return;
        };
        if items.type_name != "object" {
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            let place = items_place.child("type");
            self.schema_errors.push(FieldError::invalid(&place, items.type_name.as_str(), detail));
            return;
        }
        for (i, key) in keys.iter().enumerate() {
            match items.properties.get(key) {
                Some(property) if matches!(property.type_name.as_str(), "array" | "object") => {
                    let place = items_place.child("properties").key(key).child("type");
                    let detail =
                        "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    let value = items.type_name.as_str();
                    self.schema_errors.push(FieldError::invalid(&place, value, detail));
                }
                Some(_) => {}
                None => {
                    let detail = "entries must all be names of item properties";
                    self.schema_errors.push(FieldError::invalid(&keys_place, keys.clone(), detail));
                }
            }
            if keys.get(..i).unwrap_or_default().contains(key) {
                let detail = "must not contain duplicate entries";
                self.schema_errors.push(FieldError::invalid(&keys_place, keys.clone(), detail));
            }
        }
    }

    /// Items and keys that identify must be there.
    fn list_keys(&mut self, schema: &Schema, path: &Path) {
        let (Some(items), Some(list_type @ ("set" | "map"))) =
            (&schema.items, schema.list_type.as_deref())
        else {
            return;
        };
        let path = path.child("items");
        if items.nullable {
            let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            self.forbid(&path, "nullable", detail);
        }
        if list_type == "set" {
            return;
        }
        for key in &schema.list_map_keys {
            let Some(property) = items.properties.get(key) else { continue };
            let place = path.child("properties").key(key);
            if !items.required.contains(key) && property.default.is_none() {
                let detail = "this property is in x-kubernetes-list-map-keys, so it must have a \
                              default or be a required property";
                self.schema_errors.push(FieldError::required(&place.child("default"), detail));
            }
            if property.nullable {
                let detail =
                    "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                self.forbid(&place, "nullable", detail);
            }
        }
    }

    /// The rules as they are written, before their expressions are looked at.
    fn rules(&mut self, schema: &Schema, path: &Path) {
        for (i, rule) in schema.validations.iter().enumerate() {
            let path = path.child("x-kubernetes-validations").index(i);
            self.rule(rule, schema, &path);
        }
    }

    fn rule(&mut self, rule: &Rule, schema: &Schema, path: &Path) {
        let errors = &mut self.schema_errors;
        let has_breaks = |text: &str| text.contains(['\n', '\r']);
        let message = rule.message.trim();
        let message_place = path.child("message");
        if rule.rule.trim().is_empty() {
            errors.push(FieldError::required(&path.child("rule"), "rule is not specified"));
        } else if !rule.message.is_empty() && message.is_empty() {
            let detail = "must be non-empty if specified";
            errors.push(FieldError::invalid(&message_place, rule.message.as_str(), detail));
        } else if has_breaks(message) {
            let detail = "must not contain line breaks";
            errors.push(FieldError::invalid(&message_place, rule.message.as_str(), detail));
        } else if has_breaks(rule.rule.trim()) && message.is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(&message_place, detail));
        }
        if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(&path.child("messageExpression"), detail));
        }
        if let Some(reason) = rule.reason.as_deref()
            && !REASONS.contains(&reason)
        {
            errors.push(FieldError::not_supported(&path.child("reason"), reason, &REASONS));
        }
        let field_path = rule.field_path.as_str();
        let place = path.child("fieldPath");
        if !field_path.is_empty() && field_path.trim().is_empty() {
            errors.push(FieldError::invalid(&place, field_path, "must be non-empty if specified"));
        }
        if has_breaks(field_path) {
            errors.push(FieldError::invalid(&place, field_path, "must not contain line breaks"));
        }
        let options = PathOptions { brackets: true };
        let is_usable = structural::unsupported(schema).is_none();
        if !field_path.is_empty()
            && is_usable
            && resolve_field_path(field_path, schema, options).is_err()
        {
            errors.push(FieldError::invalid(&place, field_path, "must be a valid path"));
        }
    }

    fn expressions(&mut self, schema: &Schema, path: &Path, place: &Place) {
        let path = path.child("x-kubernetes-validations");
        for issue in check_rules(schema, place.is_resource, place.uncorrelatable.is_none()) {
            let rule_at = |i: usize| schema.validations.get(i).cloned().unwrap_or_default();
            self.rule_errors.push(match issue {
                RuleIssue::Untyped => FieldError::internal(
                    &path,
                    "internal error: failed to construct type information for \
                     x-kubernetes-validations rules: unable to convert structural schema to CEL \
                     declarations",
                ),
                RuleIssue::Rule(i, detail) => FieldError::invalid(
                    &path.index(i).child("rule"),
                    shown_rule(&rule_at(i)),
                    detail,
                ),
                RuleIssue::Message(i, detail) => FieldError::invalid(
                    &path.index(i).child("messageExpression"),
                    shown_rule(&rule_at(i)),
                    detail,
                ),
                RuleIssue::UncorrelatableOldSelf(i) => {
                    let within = place.uncorrelatable.clone().unwrap_or_default();
                    FieldError::invalid(
                        &path.index(i).child("rule"),
                        rule_at(i).rule,
                        format!(
                            "oldSelf cannot be used on the uncorrelatable portion of the schema \
                             within {within}"
                        ),
                    )
                }
                RuleIssue::NeedlessOptional(i, value) => FieldError::invalid(
                    &path.index(i).child("optionalOldSelf"),
                    value,
                    "may not be set if oldSelf is not used in rule",
                ),
            });
        }
    }
}
