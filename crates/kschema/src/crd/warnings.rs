//! What users are warned about when they create or change a definition.

use serde_json::Value;

use super::spec::list;
use crate::schema::Schema;

/// Warnings about formats that are not checked, of schemas that are new or changed.
pub fn crd_warnings(crd: &Value, old: Option<&Value>) -> Vec<String> {
    let schema_of = |crd: &Value, name: &Value| {
        let versions = list(crd.get("spec").unwrap_or(&Value::Null), "versions");
        let version = versions.into_iter().find(|version| version.get("name") == Some(name))?;
        version.pointer("/schema/openAPIV3Schema").cloned()
    };
    let mut warnings = Vec::new();
    for version in list(crd.get("spec").unwrap_or(&Value::Null), "versions") {
        let name = version.get("name").cloned().unwrap_or_default();
        let Some(schema) = version.pointer("/schema/openAPIV3Schema") else { continue };
        if old.and_then(|old| schema_of(old, &name)).as_ref() == Some(schema) {
            continue;
        }
        if let Ok(schema) = Schema::parse(schema) {
            unknown_formats(&schema, &mut warnings);
        }
    }
    warnings.dedup();
    warnings
}

fn unknown_formats(schema: &Schema, warnings: &mut Vec<String>) {
    if !schema.format.is_empty() && schema.checked_format.is_none() {
        let warning = format!("unrecognized format \"{}\"", schema.format);
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    let parts = schema
        .items
        .as_deref()
        .into_iter()
        .chain(schema.properties.values())
        .chain(schema.additional_schema());
    for part in parts {
        unknown_formats(part, warnings);
    }
}
