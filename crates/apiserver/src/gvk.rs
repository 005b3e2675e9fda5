//! Names of kinds and resources.

use std::{fmt, sync::Arc};

/// An API group and version. The core group is `""`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupVersion {
    /// The API group.
    pub group: Arc<str>,
    /// The version within it.
    pub version: Arc<str>,
}

impl GroupVersion {
    /// A group and version.
    pub fn new(group: &str, version: &str) -> Self {
        Self { group: group.into(), version: version.into() }
    }

    /// Reads an `apiVersion`.
    pub fn parse(api_version: &str) -> Option<Self> {
        match api_version.split_once('/') {
            None if api_version.is_empty() => None,
            None => Some(Self::new("", api_version)),
            Some((group, version)) if !version.contains('/') => Some(Self::new(group, version)),
            Some(_) => None,
        }
    }
}

impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.version)
        } else {
            write!(f, "{}/{}", self.group, self.version)
        }
    }
}

/// A group, version and kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupVersionKind {
    /// The API group.
    pub group: Arc<str>,
    /// The version within it.
    pub version: Arc<str>,
    /// The kind.
    pub kind: Arc<str>,
}

impl GroupVersionKind {
    /// A group, version and kind.
    pub fn new(group: &str, version: &str, kind: &str) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// The `apiVersion` of objects of this kind.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion { group: self.group.clone(), version: self.version.clone() }
    }

    /// The group and kind, as they appear in messages.
    pub fn group_kind(&self) -> String {
        qualified(&self.kind, &self.group)
    }
}

/// A group and resource, shown in messages as `deployments.apps`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupResource {
    /// The API group.
    pub group: Arc<str>,
    /// The plural name of the resource.
    pub resource: Arc<str>,
}

impl GroupResource {
    /// A group and resource.
    pub fn new(group: &str, resource: &str) -> Self {
        Self { group: group.into(), resource: resource.into() }
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&qualified(&self.resource, &self.group))
    }
}

fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}
