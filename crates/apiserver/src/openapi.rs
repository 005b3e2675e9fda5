//! OpenAPI v3: what `kubectl explain` and field validation read.
//!
//! Built-in groups come from the published documents of Kubernetes; groups of custom kinds are
//! made from their schemas.

use bytes::Bytes;
use fleetwright_kschema::{
    builtin::Builtins,
    openapi::{Dialect, PublishedKind},
};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{
    discovery,
    gvk::GroupVersion,
    registry::{Resource, Schema},
    server::Server,
};

/// A name for the content of a document.
pub fn hash(document: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut hex = String::new();
    for byte in Sha256::digest(document) {
        let _ = write!(hex, "{byte:02X}");
    }
    hex
}

/// `/openapi/v3`: the documents that there are.
pub fn index(server: &Server) -> Value {
    let mut paths = Map::new();
    for (group, versions) in discovery::groups(&server.registry().all()) {
        for version in versions {
            let root = if group.is_empty() { "api" } else { "apis" };
            let path = format!("{root}/{version}");
            if let Some(document) = document(server, &path) {
                let url = format!("/openapi/v3/{path}?hash={}", hash(&document));
                paths.insert(path, json!({"serverRelativeURL": url}));
            }
        }
    }
    json!({"paths": paths})
}

/// One document, by its path (`apis/apps/v1`).
pub fn document(server: &Server, path: &str) -> Option<Bytes> {
    let version = match path.strip_prefix("apis/") {
        Some(version) => GroupVersion::parse(version)?,
        None => GroupVersion::parse(path.strip_prefix("api/")?)?,
    };
    let resources = server.registry().all();
    let custom: Vec<_> =
        resources.iter().filter(|r| r.is_custom() && r.group_version() == version).collect();
    if custom.is_empty() {
        return Builtins::shared().document(path).map(Bytes::copy_from_slice);
    }
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for resource in custom {
        add_resource(resource, &mut paths, &mut schemas);
    }
    let builtins = Builtins::shared();
    for name in SHARED {
        if let Some(schema) = builtins.resolve_ref(name) {
            schemas.insert((*name).to_owned(), schema.clone());
        }
    }
    let document = json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
        "paths": paths,
        "components": {"schemas": schemas},
    });
    Some(Bytes::from(document.to_string()))
}

/// What the schemas of custom kinds refer to.
const SHARED: &[&str] = &[
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
    "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Preconditions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
    "io.k8s.apimachinery.pkg.apis.meta.v1.StatusCause",
    "io.k8s.apimachinery.pkg.apis.meta.v1.StatusDetails",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
];

/// The parameters of every write.
const WRITE: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];

fn add_resource(
    resource: &Resource,
    paths: &mut Map<String, Value>,
    schemas: &mut Map<String, Value>,
) {
    let Schema::Custom(custom) = &resource.schema else { return };
    let gvk = &resource.gvk;
    let published = PublishedKind {
        group: &gvk.group,
        version: &gvk.version,
        kind: &gvk.kind,
        list_kind: &resource.list_kind,
        plural: &resource.plural,
    };
    let name = published.model_name(&gvk.kind);
    let list_name = published.model_name(&resource.list_kind);
    let schema = published.object_schema(Some(custom.compiled.schema()), Dialect::V3);
    schemas.insert(name.clone(), schema);
    schemas.insert(list_name.clone(), published.list_schema(Dialect::V3));

    let root = format!("/apis/{}/{}", gvk.group, gvk.version);
    let collection = if resource.namespaced {
        format!("{root}/namespaces/{{namespace}}/{}", resource.plural)
    } else {
        format!("{root}/{}", resource.plural)
    };
    let operation = |action: &str, parameters: &[&str], content: &str| {
        json!({
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": {"group": &*gvk.group, "kind": &*gvk.kind, "version": &*gvk.version},
            "parameters": parameters.iter().map(|p| parameter(p)).collect::<Vec<_>>(),
            "responses": {"200": {"description": "OK", "content": {"application/json": {
                "schema": {"$ref": format!("#/components/schemas/{content}")},
            }}}},
        })
    };
    paths.insert(collection.clone(), json!({
        "get": operation("list", &["limit", "continue", "labelSelector", "fieldSelector", "resourceVersion"], &list_name),
        "post": operation("post", WRITE, &name),
    }));
    let item = json!({
        "get": operation("get", &["resourceVersion"], &name),
        "put": operation("put", WRITE, &name),
        "patch": operation("patch", &["dryRun", "fieldManager", "fieldValidation", "force"], &name),
        "delete": operation("delete", &["dryRun", "gracePeriodSeconds", "propagationPolicy"], &name),
    });
    paths.insert(format!("{collection}/{{name}}"), item);
}

fn parameter(name: &str) -> Value {
    let kind = match name {
        "limit" | "gracePeriodSeconds" => "integer",
        "force" => "boolean",
        _ => "string",
    };
    json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}})
}
