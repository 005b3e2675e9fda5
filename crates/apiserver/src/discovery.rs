//! Discovery: which groups, versions and resources there are.

use std::{collections::BTreeMap, sync::Arc};

use http::{HeaderMap, header::ACCEPT};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{gvk::GroupVersion, registry::Resource, reviews};

/// What a client of discovery understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One document for everything, of this version of `apidiscovery.k8s.io`.
    Aggregated(&'static str),
    /// The documents of old.
    Plain,
}

impl Format {
    /// Reads the `Accept` header.
    pub fn of(headers: &HeaderMap) -> Self {
        let accept = headers.get(ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
        for clause in accept.split(',') {
            let has = |part: &str| clause.split(';').any(|p| p.trim() == part);
            if has("as=APIGroupDiscoveryList")
                && has("g=apidiscovery.k8s.io")
                && has("application/json")
            {
                if has("v=v2") {
                    return Self::Aggregated("v2");
                }
                if has("v=v2beta1") {
                    return Self::Aggregated("v2beta1");
                }
            } else if has("application/json") || has("*/*") {
                return Self::Plain;
            }
        }
        Self::Plain
    }

    /// The content type of the answer.
    pub fn content_type(self) -> String {
        match self {
            Self::Aggregated(version) => format!(
                "application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
            ),
            Self::Plain => "application/json".to_owned(),
        }
    }
}

/// A stable name for a document.
pub fn etag(document: &Value) -> String {
    let digest = Sha256::digest(document.to_string());
    let mut hex = String::with_capacity(digest.len() * 2);
    for byte in digest {
        use std::fmt::Write as _;
        let _ = write!(hex, "{byte:02X}");
    }
    hex
}

/// The groups and versions that are served, in the order that kubectl prefers them.
pub fn groups(resources: &[Arc<Resource>]) -> Vec<(Arc<str>, Vec<GroupVersion>)> {
    let mut groups: BTreeMap<Arc<str>, Vec<GroupVersion>> = BTreeMap::new();
    let reviewed = reviews::RESOURCES.iter().map(|r| GroupVersion::new(r.group, r.version));
    for version in resources.iter().map(|r| r.group_version()).chain(reviewed) {
        let versions = groups.entry(version.group.clone()).or_default();
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    for versions in groups.values_mut() {
        versions.sort_by_key(|v| std::cmp::Reverse(version_priority(&v.version)));
    }
    let mut sorted: Vec<_> = groups.into_iter().collect();
    sorted.sort_by_key(|(group, _)| group_priority(group));
    sorted
}

/// The place of a group among all: the built-in ones as the API server lists them, then others
/// by name.
fn group_priority(group: &str) -> (usize, String) {
    const ORDER: &[&str] = &[
        "",
        "apiregistration.k8s.io",
        "apps",
        "events.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "networking.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "storage.k8s.io",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "scheduling.k8s.io",
        "coordination.k8s.io",
        "node.k8s.io",
        "discovery.k8s.io",
        "resource.k8s.io",
    ];
    let at = ORDER.iter().position(|g| *g == group).unwrap_or(ORDER.len());
    (at, group.to_owned())
}

/// Kubernetes' order of versions: `v2` before `v1` before `v1beta2` before `v1alpha1`, then the
/// rest by name.
pub fn version_priority(version: &str) -> (u8, u64, u64, std::cmp::Reverse<String>) {
    let other = || (0, 0, 0, std::cmp::Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else { return other() };
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let end = digits(rest);
    let Ok(major) = rest[..end].parse::<u64>() else { return other() };
    let stage = &rest[end..];
    let parts = if stage.is_empty() {
        Some((3, 0))
    } else if let Some(minor) = stage.strip_prefix("beta") {
        minor.parse().ok().map(|minor| (2, minor))
    } else if let Some(minor) = stage.strip_prefix("alpha") {
        minor.parse().ok().map(|minor| (1, minor))
    } else {
        None
    };
    match parts {
        Some((level, minor)) => (level, major, minor, std::cmp::Reverse(String::new())),
        None => other(),
    }
}

const VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// The same for custom kinds, in the order that they are listed in.
const CUSTOM_VERBS: &[&str] =
    &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
/// Namespaces go one by one.
const NAMESPACE_VERBS: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
const READ_WRITE: &[&str] = &["get", "patch", "update"];
const CONNECT: &[&str] = &["create", "get"];
const PROXY: &[&str] = &["create", "delete", "get", "patch", "update"];

fn verbs(resource: &Resource) -> &'static [&'static str] {
    match &*resource.storage {
        "/namespaces" => NAMESPACE_VERBS,
        _ if resource.is_custom() => CUSTOM_VERBS,
        _ => VERBS,
    }
}

/// The subresources of a resource: name, kind, its group and version where they differ, verbs.
fn subresources(
    resource: &Resource,
) -> Vec<(&'static str, GroupVersion, String, &'static [&'static str])> {
    let own = || (resource.group_version(), resource.gvk.kind.to_string());
    let core = |kind: &str| (GroupVersion::new("", "v1"), kind.to_owned());
    let mut found = Vec::new();
    let mut add =
        |name, (version, kind): (GroupVersion, String), verbs: &'static [&'static str]| {
            found.push((name, version, kind, verbs));
        };
    match &*resource.storage {
        "/pods" => {
            add("attach", core("PodAttachOptions"), CONNECT);
            add("binding", core("Binding"), &["create"]);
            add("ephemeralcontainers", own(), READ_WRITE);
            add(
                "eviction",
                (GroupVersion::new("policy", "v1"), "Eviction".to_owned()),
                &["create"],
            );
            add("exec", core("PodExecOptions"), CONNECT);
            add("log", own(), &["get"]);
            add("portforward", core("PodPortForwardOptions"), CONNECT);
            add("proxy", core("PodProxyOptions"), PROXY);
            add("resize", own(), READ_WRITE);
        }
        "/nodes" => add("proxy", core("NodeProxyOptions"), PROXY),
        "/services" => add("proxy", core("ServiceProxyOptions"), PROXY),
        "/namespaces" => add("finalize", own(), &["update"]),
        "/serviceaccounts" => add(
            "token",
            (GroupVersion::new("authentication.k8s.io", "v1"), "TokenRequest".to_owned()),
            &["create"],
        ),
        _ => {}
    }
    if resource.is_custom() && resource.status {
        add("status", own(), READ_WRITE);
    }
    if resource.scale.is_some() {
        add("scale", (GroupVersion::new("autoscaling", "v1"), "Scale".to_owned()), READ_WRITE);
    }
    if !resource.is_custom() {
        if resource.status {
            add("status", own(), READ_WRITE);
        }
        found.sort_by_key(|(name, ..)| *name);
    }
    found
}

/// `/apis/<group>/<version>`: the resources of one version.
pub fn resource_list(version: &GroupVersion, resources: &[Arc<Resource>]) -> Value {
    let mut list: Vec<(String, Value)> = Vec::new();
    for resource in resources.iter().filter(|r| r.group_version() == *version) {
        let mut entry = json!({
            "name": &*resource.plural,
            "singularName": &*resource.singular,
            "namespaced": resource.namespaced,
            "kind": &*resource.gvk.kind,
            "verbs": verbs(resource),
            "storageVersionHash": storage_hash(resource),
        });
        if !resource.short_names.is_empty() {
            entry["shortNames"] = resource.short_names.clone().into();
        }
        if !resource.categories.is_empty() {
            entry["categories"] = resource.categories.clone().into();
        }
        list.push((resource.plural.to_string(), entry));
        for (name, other, kind, verbs) in subresources(resource) {
            let mut entry = json!({
                "name": format!("{}/{name}", resource.plural),
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": kind,
                "verbs": verbs,
            });
            if other != *version {
                entry["group"] = (*other.group).into();
                entry["version"] = (*other.version).into();
            }
            list.push((format!("{}/{name}", resource.plural), entry));
        }
    }
    for review in reviews::RESOURCES {
        if GroupVersion::new(review.group, review.version) == *version {
            list.push((
                review.plural.to_owned(),
                json!({
                    "name": review.plural,
                    "singularName": review.singular,
                    "namespaced": review.namespaced,
                    "kind": review.kind,
                    "verbs": ["create"],
                }),
            ));
        }
    }
    // Custom kinds keep their subresources in the order of the definition.
    list.sort_by(|a, b| plural_of(&a.0).cmp(plural_of(&b.0)));
    let entries: Vec<Value> = list.into_iter().map(|(_, entry)| entry).collect();
    let mut document = json!({"kind": "APIResourceList", "groupVersion": version.to_string(), "resources": entries});
    if !version.group.is_empty() {
        document["apiVersion"] = "v1".into();
    }
    document
}

fn plural_of(name: &str) -> &str {
    name.split('/').next().unwrap_or_default()
}

fn storage_hash(resource: &Resource) -> String {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let stored = &resource.storage_version;
    // The real server keeps definitions in the version that they began with.
    let version = match &*resource.storage {
        crate::crd::STORAGE => "v1beta1",
        _ => &stored.version,
    };
    let text = format!("{}/{version}/{}", stored.group, resource.gvk.kind);
    let digest = Sha256::digest(text);
    BASE64_STANDARD.encode(&digest[..8])
}

/// One group, as it is listed in `/apis`.
pub fn group(name: &str, versions: &[GroupVersion]) -> Value {
    let entry = |v: &GroupVersion| json!({"groupVersion": v.to_string(), "version": &*v.version});
    json!({
        "name": name,
        "versions": versions.iter().map(entry).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map(entry),
    })
}

/// `/api` or `/apis` in the aggregated form.
pub fn aggregated(resources: &[Arc<Resource>], core: bool, api_version: &str) -> Value {
    let items: Vec<Value> = groups(resources)
        .iter()
        .filter(|(group, _)| group.is_empty() == core)
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|version| {
                    json!({
                        "version": &*version.version,
                        "resources": aggregated_resources(version, resources),
                        "freshness": "Current",
                    })
                })
                .collect();
            let metadata = if group.is_empty() { json!({}) } else { json!({"name": &**group}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{api_version}"),
        "metadata": {},
        "items": items,
    })
}

fn aggregated_resources(version: &GroupVersion, resources: &[Arc<Resource>]) -> Vec<Value> {
    let own = version;
    let response = |version: &GroupVersion, kind: &str, custom: bool| {
        // Built-in kinds leave out what is the same as around them.
        if version == own && !custom {
            return json!({"group": "", "version": "", "kind": kind});
        }
        json!({"group": &*version.group, "version": &*version.version, "kind": kind})
    };
    let scope = |namespaced| if namespaced { "Namespaced" } else { "Cluster" };
    let mut list: Vec<(String, Value)> = Vec::new();
    for resource in resources.iter().filter(|r| r.group_version() == *version) {
        let mut entry = json!({
            "resource": &*resource.plural,
            "responseKind": response(version, &resource.gvk.kind, resource.is_custom()),
            "scope": scope(resource.namespaced),
            "singularResource": &*resource.singular,
            "verbs": verbs(resource),
        });
        if !resource.short_names.is_empty() {
            entry["shortNames"] = resource.short_names.clone().into();
        }
        if !resource.categories.is_empty() {
            entry["categories"] = resource.categories.clone().into();
        }
        let subresources: Vec<Value> = subresources(resource)
            .iter()
            .map(|(name, version, kind, verbs)| {
                json!({
                    "subresource": name,
                    "responseKind": response(version, kind, resource.is_custom()),
                    "verbs": verbs,
                })
            })
            .collect();
        if !subresources.is_empty() {
            entry["subresources"] = subresources.into();
        }
        list.push((resource.plural.to_string(), entry));
    }
    for review in reviews::RESOURCES {
        if GroupVersion::new(review.group, review.version) == *version {
            list.push((
                review.plural.to_owned(),
                json!({
                    "resource": review.plural,
                    "responseKind": response(version, review.kind, false),
                    "scope": scope(review.namespaced),
                    "singularResource": review.singular,
                    "verbs": ["create"],
                }),
            ));
        }
    }
    list.sort_by(|a, b| a.0.cmp(&b.0));
    list.into_iter().map(|(_, entry)| entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_kubernetes_does() {
        let mut versions =
            ["v1alpha1", "foo", "v1", "v10", "v1beta2", "v2", "v1beta1", "v11alpha2", "bar"];
        versions.sort_by_key(|version| std::cmp::Reverse(version_priority(version)));
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v1beta2", "v1beta1", "v11alpha2", "v1alpha1", "bar", "foo"]
        );
    }
}
