//! The notation of the initial policy.
//!
//! ```text
//! role NAME [> ROLES it is part of] [< what it gathers]
//!   VERBS GROUPS RESOURCES [= NAMES]
//!   VERBS @ PATHS
//! binding NAME [to ROLE]: SUBJECTS
//! ```
//!
//! Names start with `namespace/` where the object has one. `core` is the group `""`; `read` and
//! `write` stand for the verbs of readers and writers.

use serde_json::{Map, Value, json};

use super::PolicyObject;
use crate::{
    auth::rbac::{CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, GROUP, PolicyRule, ROLE_BINDINGS, ROLES},
    object,
};

const READ: &str = "get,list,watch";
const WRITE: &str = "create,delete,deletecollection,patch,update";
const READ_WRITE: &str = "create,delete,deletecollection,get,list,patch,update,watch";
const AGGREGATE: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// Reads a text in the notation. Lines that are not in it are left out; the tests count what
/// remains.
pub(super) fn read(text: &str) -> Vec<PolicyObject> {
    let mut objects: Vec<PolicyObject> = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("role ") {
            objects.extend(role(rest));
        } else if let Some(rest) = line.strip_prefix("binding ") {
            objects.extend(binding(rest));
        } else if let (Some(rule), Some(last)) = (rule(line), objects.last_mut())
            && let Some(rules) = last.object.get_mut("rules")
        {
            if rules.is_null() {
                *rules = json!([]);
            }
            rules.as_array_mut().into_iter().for_each(|rules| rules.push(rule.to_value()));
        }
    }
    objects
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn role(text: &str) -> Option<PolicyObject> {
    let (text, gathers) = text.split_once(" < ").unwrap_or((text, ""));
    let (name, part_of) = text.split_once(" > ").unwrap_or((text, ""));
    let mut object = skeleton(name, "Role")?;
    for target in part_of.split_whitespace() {
        let label = format!("{AGGREGATE}{target}");
        object::set(&mut object.object, &["metadata", "labels", &label], "true");
    }
    let selectors: Vec<Value> = gathers
        .split_whitespace()
        .map(|source| json!({"matchLabels": {format!("{AGGREGATE}{source}"): "true"}}))
        .collect();
    if !selectors.is_empty() {
        object.object["aggregationRule"] = json!({"clusterRoleSelectors": selectors});
    }
    object.object["rules"] = Value::Null;
    Some(object)
}

fn rule(line: &str) -> Option<PolicyRule> {
    let (verbs, rest) = line.strip_prefix("  ")?.split_once(' ')?;
    let verbs = match verbs {
        "read" => READ,
        "write" => WRITE,
        "read+write" => READ_WRITE,
        other => other,
    };
    let verbs = verbs.split(',').map(str::to_owned).collect();
    let (groups, rest) = rest.split_once(' ')?;
    if groups == "@" {
        return Some(PolicyRule { verbs, non_resource_urls: words(rest), ..PolicyRule::default() });
    }
    let (resources, names) = rest.split_once(" = ").unwrap_or((rest, ""));
    Some(PolicyRule {
        verbs,
        api_groups: groups
            .split(',')
            .map(|group| if group == "core" { String::new() } else { group.to_owned() })
            .collect(),
        resources: words(resources),
        resource_names: words(names),
        ..PolicyRule::default()
    })
}

fn binding(text: &str) -> Option<PolicyObject> {
    // Names hold colons too; only the last part's end in a space or the end of the line.
    let (head, subjects) =
        text.strip_suffix(':').map_or_else(|| text.split_once(": "), |head| Some((head, "")))?;
    let (name, role) = head.split_once(" to ").unwrap_or((head, head));
    let role = role.split_once('/').map_or(role, |(_, role)| role);
    let mut object = skeleton(name, "RoleBinding")?;
    let kind = if object.resource == ROLE_BINDINGS { "Role" } else { "ClusterRole" };
    object.object["roleRef"] = json!({"apiGroup": GROUP, "kind": kind, "name": role});
    let subjects: Vec<Value> = subjects.split_whitespace().filter_map(subject).collect();
    if !subjects.is_empty() {
        object.object["subjects"] = subjects.into();
    }
    Some(object)
}

fn subject(text: &str) -> Option<Value> {
    let (kind, name) = text.split_once(':')?;
    Some(match kind {
        "user" => json!({"apiGroup": GROUP, "kind": "User", "name": name}),
        "group" => json!({"apiGroup": GROUP, "kind": "Group", "name": name}),
        _ => {
            let (namespace, name) = name.split_once('/')?;
            json!({"kind": "ServiceAccount", "namespace": namespace, "name": name})
        }
    })
}

/// An object with nothing but its name and what all objects of the policy carry.
fn skeleton(name: &str, kind: &str) -> Option<PolicyObject> {
    let (namespace, name) = match name.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, name),
    };
    let resource = match (kind, namespace) {
        ("Role", None) => CLUSTER_ROLES,
        ("Role", Some(_)) => ROLES,
        ("RoleBinding", None) => CLUSTER_ROLE_BINDINGS,
        ("RoleBinding", Some(_)) => ROLE_BINDINGS,
        _ => return None,
    };
    let prefix = if namespace.is_none() { "Cluster" } else { "" };
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), name.into());
    if let Some(namespace) = namespace {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    metadata.insert("labels".to_owned(), json!({"kubernetes.io/bootstrapping": "rbac-defaults"}));
    metadata.insert(
        "annotations".to_owned(),
        json!({"rbac.authorization.kubernetes.io/autoupdate": "true"}),
    );
    Some(PolicyObject {
        resource,
        object: json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": format!("{prefix}{kind}"),
            "metadata": metadata,
        }),
    })
}
