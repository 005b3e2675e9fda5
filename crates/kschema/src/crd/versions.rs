//! The spec of a definition and its versions.

use std::collections::BTreeSet;

use serde_json::Value;

use super::spec::{Spec, Version, text};
use super::{conversion, names, openapi_rules, render, structural};
use crate::cel::{PathOptions, resolve_field_path};
use crate::field::{BadValue, FieldError, Path};
use crate::gotext;
use crate::names::{dns_1035_label, dns_1123_subdomain};
use crate::schema::Schema;

const MAX_SELECTABLE_FIELDS: usize = 8;
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// Checks the spec. `established` tells that the definition is in use already.
pub(super) fn validate_spec(spec: &Spec, established: bool) -> Vec<FieldError> {
    let path = Path::new("spec");
    let mut errors = Vec::new();
    group_and_scope(spec, &path, &mut errors);
    schemas_present(spec, &path, &mut errors);
    if spec.preserve_unknown_fields && has_defaults(spec) {
        let detail = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid(&path.child("preserveUnknownFields"), true, detail));
    }
    let versions_path = path.child("versions");
    let mut seen = BTreeSet::new();
    let mut unique = true;
    for (i, version) in spec.versions.iter().enumerate() {
        unique &= seen.insert(version.name.as_str());
        let place = versions_path.index(i);
        let reasons = dns_1035_label(&version.name);
        if !reasons.is_empty() {
            let name = version.name.as_str();
            errors.push(FieldError::invalid(&place.child("name"), name, reasons.join(",")));
        }
        validate_version(version, spec.has_status(version), &place, &mut errors);
    }
    let shown = || {
        if spec.has_versions {
            BadValue::Rendered(render::versions(&spec.versions))
        } else {
            BadValue::Json(Value::Null)
        }
    };
    if !unique {
        let detail = "must contain unique version names";
        errors.push(FieldError::invalid(&versions_path, shown(), detail));
    }
    if spec.versions.iter().filter(|version| version.storage).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(&versions_path, shown(), detail));
    }
    if let Some(first) = spec.versions.first() {
        let reasons = dns_1035_label(&first.name);
        if !first.name.is_empty() && !reasons.is_empty() {
            let name = first.name.as_str();
            errors.push(FieldError::invalid(&path.child("version"), name, reasons.join(",")));
        }
    }
    let names_path = path.child("names");
    for (value, name) in [
        (&spec.names.plural, "plural"),
        (&spec.names.singular, "singular"),
        (&spec.names.kind, "kind"),
        (&spec.names.list_kind, "listKind"),
    ] {
        if value.is_empty() {
            errors.push(FieldError::required(&names_path.child(name), ""));
        }
    }
    names::validate(&spec.names, &names_path, &mut errors);
    let validation_path = path.child("validation");
    openapi_rules::validate_schema(
        spec.validation.as_ref(),
        spec.has_any_status(),
        &validation_path,
        &mut errors,
    );
    subresources(spec.subresources.as_ref(), &path.child("subresources"), &mut errors);
    columns(&spec.columns, &path.child("additionalPrinterColumns"), &mut errors);
    selectable_fields(
        &spec.selectable_fields,
        spec.validation.as_ref(),
        &path.child("selectableFields"),
        "may only be set when validations.schema is included",
        &mut errors,
    );
    if let Some(conversion) = &spec.conversion {
        let strategy = text(conversion, "strategy");
        if spec.preserve_unknown_fields && strategy != "None" {
            let detail = "must be None if spec.preserveUnknownFields is true";
            let place = path.child("conversion").child("strategy");
            errors.push(FieldError::invalid(&place, strategy, detail));
        }
        conversion::validate(conversion, established, &path.child("conversion"), &mut errors);
    }
    errors
}

fn group_and_scope(spec: &Spec, path: &Path, errors: &mut Vec<FieldError>) {
    let place = path.child("group");
    let group = spec.group.as_str();
    let reasons = dns_1123_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required(&place, ""));
    } else if !reasons.is_empty() {
        errors.push(FieldError::invalid(&place, group, reasons.join(",")));
    } else if !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        errors.push(FieldError::invalid(&place, group, detail));
    }
    let place = path.child("scope");
    match spec.scope.as_str() {
        "" => errors.push(FieldError::required(&place, "")),
        "Cluster" | "Namespaced" => {}
        other => {
            errors.push(FieldError::not_supported(&place, other, &["Cluster", "Namespaced"]));
        }
    }
}

fn has_schema(validation: Option<&Value>) -> bool {
    validation.and_then(|v| v.get("openAPIV3Schema")).is_some_and(|schema| !schema.is_null())
}

/// Whether some schema has a default anywhere.
fn has_defaults(spec: &Spec) -> bool {
    fn in_schema(schema: &Schema) -> bool {
        schema.default.is_some() || structural::parts(schema).any(in_schema)
    }
    let validations = spec.versions.iter().map(|version| version.schema.as_ref());
    validations
        .chain([spec.validation.as_ref()])
        .flatten()
        .filter_map(|validation| validation.get("openAPIV3Schema"))
        .filter_map(|schema| Schema::parse(schema).ok())
        .any(|schema| in_schema(&schema))
}

fn schemas_present(spec: &Spec, path: &Path, errors: &mut Vec<FieldError>) {
    if has_schema(spec.validation.as_ref()) {
        return;
    }
    for (i, version) in spec.versions.iter().enumerate() {
        if !has_schema(version.schema.as_ref()) {
            let place = path.child("versions").index(i).child("schema").child("openAPIV3Schema");
            errors.push(FieldError::required(&place, ""));
        }
    }
}

fn validate_version(
    version: &Version,
    has_status: bool,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    deprecation(version, &path.child("deprecationWarning"), errors);
    let schema_path = path.child("schema");
    openapi_rules::validate_schema(version.schema.as_ref(), has_status, &schema_path, errors);
    subresources(version.subresources.as_ref(), &path.child("subresources"), errors);
    columns(&version.columns, &path.child("additionalPrinterColumns"), errors);
    selectable_fields(
        &version.selectable_fields,
        version.schema.as_ref(),
        &path.child("selectableFields"),
        "may only be set when `version.schema.openAPIV3Schema` is not included",
        errors,
    );
}

fn deprecation(version: &Version, path: &Path, errors: &mut Vec<FieldError>) {
    let Some(warning) = &version.deprecation_warning else { return };
    let mut fail = |detail: String| {
        errors.push(FieldError::invalid(path, warning.as_str(), detail));
    };
    if !version.deprecated {
        fail("can only be set for deprecated versions".to_owned());
        return;
    }
    if warning.len() > 256 {
        fail("must be <= 256 characters long".to_owned());
    }
    if warning.is_empty() {
        fail("must not be an empty string".to_owned());
    }
    if let Some((i, _)) = warning.char_indices().find(|(_, c)| !gotext::is_printable(*c)) {
        fail(format!(
            "must only contain printable UTF-8 characters; non-printable character found at \
             index {i}"
        ));
    }
}

fn simple_path(text: &str, path: &Path) -> Option<FieldError> {
    if text.is_empty() {
        Some(FieldError::invalid(path, text, "must not be empty"))
    } else if !text.starts_with('.') {
        Some(FieldError::invalid(path, text, "must be a simple json path starting with ."))
    } else {
        None
    }
}

fn subresources(subresources: Option<&Value>, path: &Path, errors: &mut Vec<FieldError>) {
    let Some(scale) = subresources.and_then(|s| s.get("scale")).filter(|s| s.is_object()) else {
        return;
    };
    for (name, prefix) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let value = text(scale, name);
        let place = path.child("scale").child(name);
        if value.is_empty() {
            errors.push(FieldError::required(&place, ""));
        } else if let Some(error) = simple_path(&value, &place) {
            errors.push(error);
        } else if !value.starts_with(prefix) {
            let detail = format!("should be a json path under {}", prefix.trim_end_matches('.'));
            errors.push(FieldError::invalid(&place, value, detail));
        }
    }
    let value = text(scale, "labelSelectorPath");
    let place = path.child("scale").child("labelSelectorPath");
    if !value.is_empty() {
        if let Some(error) = simple_path(&value, &place) {
            errors.push(error);
        } else if !value.starts_with(".spec.") && !value.starts_with(".status.") {
            let detail = "should be a json path under either .spec or .status";
            errors.push(FieldError::invalid(&place, value, detail));
        }
    }
}

fn columns(columns: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    for (i, column) in columns.iter().enumerate() {
        let path = path.index(i);
        if text(column, "name").is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        let type_name = text(column, "type");
        let types = format!("must be one of {}", COLUMN_TYPES.join(","));
        if type_name.is_empty() {
            errors.push(FieldError::required(&path.child("type"), types));
        } else if !COLUMN_TYPES.contains(&type_name.as_str()) {
            errors.push(FieldError::invalid(&path.child("type"), type_name, types));
        }
        let format = text(column, "format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format.as_str()) {
            let formats = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.push(FieldError::invalid(&path.child("format"), format, formats));
        }
        let json_path = text(column, "jsonPath");
        let place = path.child("JSONPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(&place, ""));
        } else {
            errors.extend(simple_path(&json_path, &place));
        }
    }
}

fn selectable_fields(
    fields: &[Value],
    validation: Option<&Value>,
    path: &Path,
    without_schema: &str,
    errors: &mut Vec<FieldError>,
) {
    if fields.is_empty() {
        return;
    }
    let schema = validation.and_then(|v| v.get("openAPIV3Schema")).map(Schema::parse);
    let Some(Ok(schema)) = schema else {
        errors.push(FieldError::invalid(path, "", without_schema));
        return;
    };
    let mut seen = BTreeSet::new();
    for (i, selectable) in fields.iter().enumerate() {
        let place = path.index(i).child("jsonPath");
        let json_path = text(selectable, "jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(&place, ""));
            continue;
        }
        let found = resolve_field_path(&json_path, &schema, PathOptions { brackets: false });
        let (resolved, found) = match found {
            Ok(found) => found,
            Err(reason) => {
                let detail = format!("is an invalid path: {reason}");
                errors.push(FieldError::invalid(&place, json_path, detail));
                continue;
            }
        };
        if resolved.as_str() == "metadata" || resolved.as_str().starts_with("metadata.") {
            let detail = "must not point to fields in metadata";
            errors.push(FieldError::invalid(&place, json_path.as_str(), detail));
        }
        if !matches!(found.type_name.as_str(), "string" | "boolean" | "integer") {
            let detail = "must point to a field of type string, boolean or integer. Enum string \
                          fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(&place, json_path.as_str(), detail));
        }
        if !seen.insert(resolved) {
            errors.push(FieldError::duplicate(&place, json_path));
        }
    }
    if seen.len() > MAX_SELECTABLE_FIELDS {
        errors.push(FieldError::too_many(path, Some(seen.len()), MAX_SELECTABLE_FIELDS));
    }
}
