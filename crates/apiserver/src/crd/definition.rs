//! The kind CustomResourceDefinition itself.

use std::sync::Arc;

use fleetwright_kschema::{
    CompiledSchema, Verdict, builtin, columns::Columns, crd, field::FieldError, scale::ScalePaths,
};
use fleetwright_smd::schema::Schema as FieldSchema;
use serde_json::Value;

use super::CustomKind;
use crate::{
    gvk::{GroupVersion, GroupVersionKind},
    kinds::{Column, Kind},
    object,
    registry::{CustomSchema, Resource, Scale, Schema},
    request::Context,
    table::{CREATED_DESCRIPTION, NAME_DESCRIPTION},
};

/// What is special about CustomResourceDefinitions.
pub struct DefinitionKind;

impl Kind for DefinitionKind {
    fn default(&self, object: &mut Value) {
        crd::default_crd(object);
    }

    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        crd::prepare_crd_for_create(object);
        // The empty parts of the status are written out, as clients know them.
        let _ = builtin::normalise("apiextensions.k8s.io/v1", "CustomResourceDefinition", object);
        object::set(object, &["apiVersion"], "apiextensions.k8s.io/v1");
        object::set(object, &["kind"], "CustomResourceDefinition");
    }

    fn prepare_update(&self, _context: &Context, new: &mut Value, old: &Value) {
        crd::prepare_crd_for_update(new, old);
    }

    // The rules for definitions include those for their metadata.
    fn check_create(&self, object: &Value, _found: Vec<FieldError>) -> Verdict {
        crd::validate_crd(object).into()
    }

    fn check_update(&self, new: &Value, old: &Value, mut found: Vec<FieldError>) -> Verdict {
        found.extend(crd::validate_crd_update(new, old));
        found.into()
    }

    fn check_status_update(&self, new: &Value, old: &Value, mut found: Vec<FieldError>) -> Verdict {
        found.extend(crd::validate_crd_status_update(new, old));
        found.into()
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        crd::crd_warnings(object, old)
    }

    fn columns(&self) -> Option<Vec<Column>> {
        let column = |name: &str, kind, format: &str, description: &str, priority| Column {
            name: name.to_owned(),
            kind,
            format: format.to_owned(),
            description: description.to_owned(),
            priority,
        };
        Some(vec![
            column("Name", "string", "name", NAME_DESCRIPTION, 0),
            column("Scope", "string", "", "Cluster/Namespaced", 0),
            column("Versions", "string", "", "Served versions", 0),
            column("Created At", "date", "", CREATED_DESCRIPTION, 0),
            column("Group", "string", "", "API group", 1),
            column("Kind", "string", "", "CustomResource kind", 1),
            column("ShortNames", "string", "", "Short names", 1),
            column("Established", "boolean", "", "Established status", 1),
        ])
    }

    fn cells(&self, object: &Value, _now: jiff::Timestamp) -> Vec<Value> {
        let flag =
            |version: &Value, key: &str| version.get(key).and_then(Value::as_bool) == Some(true);
        let mut versions: Vec<String> = object::list(object, &["spec", "versions"])
            .iter()
            .filter(|version| flag(version, "served"))
            .map(|version| {
                let storage = if flag(version, "storage") { "(storage)" } else { "" };
                format!("{}{storage}", object::text(version, &["name"]))
            })
            .collect();
        versions.sort();
        let short: Vec<&str> = object::list(object, &["spec", "names", "shortNames"])
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let established = object::list(object, &["status", "conditions"]).iter().any(|condition| {
            object::text(condition, &["type"]) == "Established"
                && object::text(condition, &["status"]) == "True"
        });
        vec![
            object::name(object).into(),
            object::text(object, &["spec", "scope"]).into(),
            versions.join(",").into(),
            object::text(object, &["metadata", "creationTimestamp"]).into(),
            object::text(object, &["spec", "group"]).into(),
            object::text(object, &["spec", "names", "kind"]).into(),
            short.join(",").into(),
            established.into(),
        ]
    }

    fn has_status(&self) -> bool {
        true
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}

/// The resources that a definition describes: one for each served version. A version whose
/// schema cannot be compiled is left out; validation has refused it before.
pub fn resources_of(definition: &Value) -> Vec<Resource> {
    let spec = &definition["spec"];
    let names = &spec["names"];
    let text = |value: &Value, key: &str| object::text(value, &[key]).to_owned();
    let list = |key: &str| -> Vec<String> {
        object::list(names, &[key]).iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let group = text(spec, "group");
    let versions = object::list(spec, &["versions"]);
    let storage_version = versions
        .iter()
        .find(|v| v.get("storage").and_then(Value::as_bool) == Some(true))
        .map(|v| text(v, "name"))
        .unwrap_or_default();
    let plural = text(names, "plural");
    let storage: Arc<str> = format!("{group}/{plural}").into();
    versions
        .iter()
        .filter(|v| v.get("served").and_then(Value::as_bool) == Some(true))
        .filter_map(|version| {
            let (schema, status) = schema_of(version)?;
            let name = text(version, "name");
            let columns = Columns::new(object::list(version, &["additionalPrinterColumns"]));
            let scale =
                object::get(version, &["subresources", "scale"]).and_then(ScalePaths::parse);
            let gvk = GroupVersionKind::new(&group, &name, &text(names, "kind"));
            let kind = CustomKind {
                gvk: gvk.clone(),
                schema: Arc::clone(&schema),
                status,
                scale,
                columns,
            };
            Some(Resource {
                gvk,
                plural: plural.as_str().into(),
                singular: text(names, "singular").into(),
                list_kind: text(names, "listKind").into(),
                short_names: list("shortNames"),
                categories: list("categories"),
                namespaced: text(spec, "scope") == "Namespaced",
                storage: Arc::clone(&storage),
                storage_version: GroupVersion::new(&group, &storage_version),
                schema: Schema::Custom(schema),
                status,
                scale: scale_of(version),
                deprecation: deprecation_of(version, &group, &text(names, "kind")),
                kind: Arc::new(kind),
            })
        })
        .collect()
}

fn schema_of(version: &Value) -> Option<(Arc<CustomSchema>, bool)> {
    let status = object::get(version, &["subresources", "status"]).is_some_and(|s| !s.is_null());
    let openapi = object::get(version, &["schema", "openAPIV3Schema"])?;
    let compiled = CompiledSchema::new(openapi).ok()?;
    let managed = FieldSchema::for_custom_resource(Some(openapi), false)
        .unwrap_or_else(|_| FieldSchema::deduced());
    let selectable = object::list(version, &["selectableFields"])
        .iter()
        .map(|field| object::text(field, &["jsonPath"]).to_owned())
        .collect();
    Some((Arc::new(CustomSchema { compiled, managed, selectable }), status))
}

fn deprecation_of(version: &Value, group: &str, kind: &str) -> Option<String> {
    let deprecated = version.get("deprecated").and_then(Value::as_bool) == Some(true);
    deprecated.then(|| match version.get("deprecationWarning").and_then(Value::as_str) {
        Some(warning) => warning.to_owned(),
        None => format!("{group}/{} {kind} is deprecated", object::text(version, &["name"])),
    })
}

fn scale_of(version: &Value) -> Option<Scale> {
    let scale = object::get(version, &["subresources", "scale"]).filter(|s| !s.is_null())?;
    let text = |key: &str| object::text(scale, &[key]).to_owned();
    Some(Scale {
        spec_replicas: text("specReplicasPath"),
        status_replicas: text("statusReplicasPath"),
        selector: text("labelSelectorPath"),
        selector_is_object: false,
    })
}
