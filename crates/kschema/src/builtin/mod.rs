//! The built-in kinds: their OpenAPI documents and schemas, and the typed decoding of bodies.
//!
//! kube-apiserver decodes a built-in kind into a Go struct. That decides which fields are
//! unknown, which types are wrong and in which words, what is left out when empty, and how
//! quantities and times are written. [`decode()`] does the same from generated descriptions of
//! those structs. The OpenAPI documents are the server's own, byte for byte.

pub mod body;
mod decode;
mod gobase64;
pub mod gojson;
mod quantity;
pub mod unstructured;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::{LazyLock, OnceLock};

use fleetwright_kproto::types::Types;
use serde_json::{Map, Value};

pub use decode::{
    DecodeError, Decoded, MetaError, STRICT_PREFIX, TypeMeta, check, decode, decode_value,
    normalise, strict_error, type_meta,
};
pub use quantity::{Quantity, QuantityError};

const FILES: &[(&str, &[u8])] = include!("openapi/files.rs");
const COMPONENTS: &[u8] = include_bytes!("openapi/components.json.gz");

/// Descriptions of the built-in kinds, unpacked when first used and then shared.
pub struct Builtins {
    documents: BTreeMap<&'static str, Document>,
    components: OnceLock<Components>,
}

struct Document {
    compressed: &'static [u8],
    plain: OnceLock<Vec<u8>>,
}

struct Components {
    schemas: Map<String, Value>,
    by_kind: BTreeMap<String, BTreeMap<String, String>>,
}

impl Builtins {
    /// The descriptions of the Kubernetes version that this build serves.
    pub fn shared() -> &'static Builtins {
        static SHARED: LazyLock<Builtins> = LazyLock::new(|| Builtins {
            documents: FILES
                .iter()
                .map(|(path, compressed)| (*path, Document { compressed, plain: OnceLock::new() }))
                .collect(),
            components: OnceLock::new(),
        });
        &SHARED
    }

    /// All kinds as (`apiVersion`, kind), lists and options among them.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        Types::builtin().kinds().map(|(api_version, kind, _)| (api_version, kind))
    }

    /// Whether a kind is built in.
    pub fn contains(&self, api_version: &str, kind: &str) -> bool {
        Types::builtin().kind(api_version, kind).is_some()
    }

    /// Paths of the OpenAPI documents under `/openapi/v3/`, such as `apis/apps/v1`.
    pub fn document_paths(&self) -> impl Iterator<Item = &'static str> {
        self.documents.keys().copied()
    }

    /// The document of a path, as the real server writes it.
    pub fn document(&self, path: &str) -> Option<&[u8]> {
        let document = self.documents.get(path)?;
        Some(document.plain.get_or_init(|| inflate(document.compressed)))
    }

    /// The document of a path, compressed with gzip.
    pub fn compressed_document(&self, path: &str) -> Option<&'static [u8]> {
        self.documents.get(path).map(|document| document.compressed)
    }

    /// The OpenAPI schema of a kind, without descriptions.
    pub fn schema_for(&self, api_version: &str, kind: &str) -> Option<&Value> {
        let components = self.components();
        components.schemas.get(components.by_kind.get(api_version)?.get(kind)?)
    }

    /// The name of a kind's schema, such as `io.k8s.api.core.v1.Pod`.
    pub fn schema_name(&self, api_version: &str, kind: &str) -> Option<&str> {
        self.components().by_kind.get(api_version)?.get(kind).map(String::as_str)
    }

    /// The schema behind a reference such as `#/components/schemas/io.k8s.api.core.v1.Pod`.
    pub fn resolve_ref(&self, reference: &str) -> Option<&Value> {
        let name = reference.strip_prefix("#/components/schemas/").unwrap_or(reference);
        self.components().schemas.get(name)
    }

    fn components(&self) -> &Components {
        self.components.get_or_init(|| {
            let schemas: Map<String, Value> = serde_json::from_slice(&inflate(COMPONENTS))
                .expect("the generated components are JSON: a test reads them");
            let mut by_kind: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
            for (name, schema) in &schemas {
                let kinds = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
                for kind in kinds.into_iter().flatten() {
                    let text = |field| kind.get(field).and_then(Value::as_str).unwrap_or_default();
                    let api_version = match text("group") {
                        "" => text("version").to_owned(),
                        group => format!("{group}/{}", text("version")),
                    };
                    by_kind
                        .entry(api_version)
                        .or_default()
                        .insert(text("kind").to_owned(), name.clone());
                }
            }
            Components { schemas, by_kind }
        })
    }
}

fn inflate(compressed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(compressed)
        .read_to_end(&mut plain)
        .expect("the generated files are gzip: a test reads them all");
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_is_json() {
        let builtins = Builtins::shared();
        assert!(builtins.document_paths().count() > 30);
        for path in builtins.document_paths() {
            let document: Value = serde_json::from_slice(builtins.document(path).unwrap()).unwrap();
            assert_eq!(document["openapi"], "3.0.0", "{path}");
        }
        assert!(builtins.document("apis/nothing/v1").is_none());
    }

    #[test]
    fn every_kind_has_a_schema() {
        let builtins = Builtins::shared();
        for (api_version, kind) in builtins.kinds() {
            assert!(builtins.schema_for(api_version, kind).is_some(), "{api_version} {kind}");
        }
        assert!(builtins.contains("apps/v1", "Deployment"));
        assert!(!builtins.contains("apps/v2", "Deployment"));
    }

    #[test]
    fn references_resolve() {
        fn check(builtins: &Builtins, schema: &Value) {
            match schema {
                Value::Object(fields) => {
                    if let Some(Value::String(reference)) = fields.get("$ref") {
                        assert!(builtins.resolve_ref(reference).is_some(), "{reference}");
                    }
                    fields.values().for_each(|field| check(builtins, field));
                }
                Value::Array(list) => list.iter().for_each(|field| check(builtins, field)),
                _ => {}
            }
        }
        let builtins = Builtins::shared();
        for (api_version, kind) in builtins.kinds() {
            check(builtins, builtins.schema_for(api_version, kind).unwrap());
        }
        let pod = builtins.resolve_ref("#/components/schemas/io.k8s.api.core.v1.PodSpec").unwrap();
        assert_eq!(pod["properties"]["containers"]["x-kubernetes-patch-merge-key"], "name");
    }
}
