//! What is read out of the OpenAPI documents: kinds with their Go types, and all schemas at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context, bail};
use serde_json::{Map, Value};

use super::GROUP_VERSIONS;
use super::gosource::TypeName;

const KINDS: &str = "x-kubernetes-group-version-kind";

/// A kind and its Go type.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Described {
    /// `apps/v1`.
    pub(super) api_version: String,
    /// `Deployment`.
    pub(super) kind: String,
    /// `apps/v1.Deployment`.
    pub(super) go_type: TypeName,
}

/// All kinds that the documents name, of the described group versions.
pub(super) fn kinds(documents: &BTreeMap<String, Vec<u8>>) -> anyhow::Result<BTreeSet<Described>> {
    let mut kinds = BTreeSet::new();
    for (path, document) in documents {
        let document: Value =
            serde_json::from_slice(document).with_context(|| format!("document {path}"))?;
        let Some(schemas) = document.pointer("/components/schemas").and_then(Value::as_object)
        else {
            continue;
        };
        for (name, schema) in schemas {
            let Some(Value::Array(gvks)) = schema.get(KINDS) else {
                continue;
            };
            let Some(go_type) = go_type(name) else { continue };
            for gvk in gvks {
                let text = |field| gvk.get(field).and_then(Value::as_str).unwrap_or_default();
                let api_version = match text("group") {
                    "" => text("version").to_owned(),
                    group => format!("{group}/{}", text("version")),
                };
                if GROUP_VERSIONS.contains(&api_version.as_str()) {
                    kinds.insert(Described {
                        api_version,
                        kind: text("kind").to_owned(),
                        go_type: go_type.clone(),
                    });
                }
            }
        }
    }
    Ok(kinds)
}

/// The schemas of all documents without their prose, which only `kubectl explain` reads.
pub(super) fn merged(documents: &BTreeMap<String, Vec<u8>>) -> anyhow::Result<Map<String, Value>> {
    let mut merged = Map::new();
    let mut listed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, document) in documents {
        let mut document: Value =
            serde_json::from_slice(document).with_context(|| format!("document {path}"))?;
        let Some(schemas) = document.pointer_mut("/components/schemas") else { continue };
        let Value::Object(schemas) = schemas.take() else { continue };
        for (name, mut schema) in schemas {
            strip_descriptions(&mut schema);
            // Documents of different servers list different group versions for shared kinds.
            let kinds = schema.as_object_mut().and_then(|fields| fields.remove(KINDS));
            if merged.get(&name).is_some_and(|other| *other != schema) {
                bail!("{name} differs between documents");
            }
            if let Some(Value::Array(kinds)) = kinds {
                listed.entry(name.clone()).or_default().extend(kinds.iter().map(Value::to_string));
            }
            merged.insert(name, schema);
        }
    }
    for (name, kinds) in listed {
        let kinds =
            kinds.iter().map(|text| serde_json::from_str(text)).collect::<Result<_, _>>()?;
        if let Some(Value::Object(fields)) = merged.get_mut(&name) {
            fields.insert(KINDS.to_owned(), Value::Array(kinds));
        }
    }
    Ok(merged)
}

/// A property may be named `description`; its schema is an object, prose is a string.
fn strip_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if matches!(fields.get("description"), Some(Value::String(_))) {
                fields.remove("description");
            }
            fields.values_mut().for_each(strip_descriptions);
        }
        Value::Array(list) => list.iter_mut().for_each(strip_descriptions),
        _ => {}
    }
}

/// The file that holds the document of a path under `/openapi/v3/`.
pub(super) fn file_name(path: &str) -> String {
    format!("{}.json.gz", path.replace('/', "__"))
}

/// Rust source that names every file.
pub(super) fn file_list(documents: &BTreeMap<String, Vec<u8>>) -> String {
    let mut source = "// Written by `cargo xtask generate`; do not edit.\n&[\n".to_owned();
    for path in documents.keys() {
        let _ = writeln!(source, "    ({path:?}, include_bytes!({:?})),", file_name(path));
    }
    source.push_str("]\n");
    source
}

/// `io.k8s.api.apps.v1.Deployment` is `apps/v1.Deployment`.
fn go_type(component: &str) -> Option<TypeName> {
    let (package, name) = component.rsplit_once('.')?;
    let package = package
        .strip_prefix("io.k8s.api.")
        .or_else(|| package.strip_prefix("io.k8s.apimachinery.pkg.apis."))
        .or_else(|| package.strip_prefix("io.k8s.apiextensions-apiserver.pkg.apis."))?;
    Some(TypeName { package: package.replace('.', "/"), name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn prose_is_stripped_and_properties_are_kept() {
        let mut schema = json!({
            "description": "prose",
            "properties": {"description": {"description": "prose", "type": "string"}},
        });
        strip_descriptions(&mut schema);
        assert_eq!(schema, json!({"properties": {"description": {"type": "string"}}}));
    }

    #[test]
    fn components_name_go_types() {
        for (component, expected) in [
            ("io.k8s.api.apps.v1.Deployment", "apps/v1.Deployment"),
            ("io.k8s.apimachinery.pkg.apis.meta.v1.Status", "meta/v1.Status"),
            (
                "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
                "apiextensions/v1.JSON",
            ),
        ] {
            assert_eq!(go_type(component).unwrap().to_string(), expected);
        }
    }
}
