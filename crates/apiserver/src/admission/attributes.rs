//! What is about to happen to which object.

use std::{fmt, sync::Arc};

use serde_json::Value;

use crate::{gvk::GroupVersionKind, request::Operation, user::UserInfo};

/// The operation as webhooks and their rules call it.
pub(super) fn operation_name(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
    }
}

/// A group, version and resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupVersionResource {
    /// The API group.
    pub group: Arc<str>,
    /// The version.
    pub version: Arc<str>,
    /// The plural name of the resource.
    pub resource: Arc<str>,
}

impl GroupVersionResource {
    /// A group, version and resource.
    pub fn new(group: &str, version: &str, resource: &str) -> Self {
        Self { group: group.into(), version: version.into(), resource: resource.into() }
    }

    /// Whether these are namespaces.
    pub(super) fn is_namespaces(&self) -> bool {
        self.group.is_empty() && &*self.resource == "namespaces"
    }
}

impl fmt::Display for GroupVersionResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Resource={}", self.group, self.version, self.resource)
    }
}

/// A request, as webhooks see it. The object itself is passed along with it.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// Who asks.
    pub user: &'a UserInfo,
    /// What for.
    pub operation: Operation,
    /// The kind of the object in the request.
    pub kind: &'a GroupVersionKind,
    /// The resource in the request's path.
    pub resource: &'a GroupVersionResource,
    /// The subresource, or empty.
    pub subresource: &'a str,
    /// The name in the path; if empty, the object's name counts.
    pub name: &'a str,
    /// The namespace in the path.
    pub namespace: &'a str,
    /// The object before the request, for updates and deletions.
    pub old_object: Option<&'a Value>,
    /// The options of the request: CreateOptions, UpdateOptions, PatchOptions, DeleteOptions.
    pub options: &'a Value,
    /// Whether nothing is to be stored.
    pub dry_run: bool,
}

impl Attributes<'_> {
    /// The name of the object, from the path or from the object itself. Objects that are
    /// deleted together are not named.
    pub(super) fn name_of<'o>(&'o self, object: Option<&'o Value>) -> &'o str {
        if self.name.is_empty() {
            object.map(crate::object::name).unwrap_or_default()
        } else {
            self.name
        }
    }

    /// The namespace; a Namespace is in itself.
    pub(super) fn namespace_of<'o>(&'o self, object: Option<&'o Value>) -> &'o str {
        if self.namespace.is_empty() && self.resource.is_namespaces() {
            self.name_of(object)
        } else {
            self.namespace
        }
    }
}

/// Another version in which a resource is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equivalent {
    /// The resource in that version.
    pub resource: GroupVersionResource,
    /// The kind in that version.
    pub kind: GroupVersionKind,
}

/// What admission needs to know about the kind of an object. A closure that decodes and
/// defaults objects is one, for kinds with a single version.
pub trait Hooks: Sync {
    /// Completes an object that a webhook changed: drops what the kind does not have and sets
    /// defaults. The error says why it is no object of its kind.
    fn normalize(&self, object: &mut Value) -> Result<(), String>;

    /// The other versions of the resource (with the same subresource).
    fn equivalents(&self) -> Vec<Equivalent> {
        Vec::new()
    }

    /// The object in another version.
    fn convert(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, String> {
        let _ = object;
        Err(format!("cannot convert to {}", kind.group_version()))
    }
}

impl<F: Fn(&mut Value) -> Result<(), String> + Sync> Hooks for F {
    fn normalize(&self, object: &mut Value) -> Result<(), String> {
        self(object)
    }
}
