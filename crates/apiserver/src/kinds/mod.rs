//! What a kind adds to the generic handler.
//!
//! The handler does everything that all kinds share (names, metadata, generations, finalizers,
//! managed fields, storage, watches). A [`Kind`] says what is special about one: its defaults,
//! its validation, the fields that its endpoints may not touch, the columns of its table.
//!
//! The order in which the handler calls them, as the real server does. Create: `default`
//! (managed fields are computed from this), admission, `admit_create`, `allocate`, `prepare_create`
//! (uid and creation time are set already), the name is generated, `validate_create`, `warnings`,
//! `canonicalize`. Update: `default`, `admit_update`, `allocate`, `prepare_update` or
//! `prepare_status_update`, validation, `warnings`, `canonicalize`.

mod admissionregistration;
pub mod age;
mod apps;
mod batch;
mod check;
mod coordination;
mod core;
mod discovery;
mod events;
mod internal;
mod policy;
pub mod quantity;
mod rbac;
#[cfg(test)]
mod recorded;
mod resource;
pub(crate) mod scheduling;
mod shape;
mod storage;
mod tables;

use std::collections::BTreeSet;

use fleetwright_clock::Random;
use fleetwright_kschema::{Verdict, field::FieldError};
use serde_json::Value;

use crate::{gvk::GroupVersionKind, request::Context};

/// How long an object that is deleted stays, and what is shown meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grace {
    /// Seconds until the object goes by itself; 0: at once.
    pub seconds: i64,
}

/// Looks up cluster-wide objects.
pub trait Find {
    /// The one of this kind and name.
    fn named(&self, kind: &GroupVersionKind, name: &str) -> Option<Value>;

    /// All of this kind.
    fn all(&self, kind: &GroupVersionKind) -> Vec<Value>;
}

/// What the objects of a kind share.
pub struct Pool<'a> {
    /// What others hold.
    pub taken: &'a BTreeSet<String>,
    /// Chance.
    pub random: &'a Random,
}

/// Why an object does not get its share.
#[derive(Debug)]
pub enum NotAllocated {
    /// It asks for what it cannot have.
    Invalid(Vec<FieldError>),
    /// There is nothing left.
    Internal(String),
}

/// What is special about one kind. Every method has the behaviour of an ordinary object as its
/// default.
pub trait Kind: Send + Sync + 'static {
    /// Fills in what the client left out. Runs on every decoded object and must be idempotent.
    fn default(&self, _object: &mut Value) {}

    /// What the real server's own admission makes of a new object, before it is prepared. An
    /// error is the reason of a refusal, which the client sees after "... is forbidden: ".
    fn admit_create(&self, _object: &mut Value, _find: &dyn Find) -> Result<(), String> {
        Ok(())
    }

    /// The same for an update.
    fn admit_update(&self, _new: &Value, _find: &dyn Find) -> Result<(), String> {
        Ok(())
    }

    /// Whether the objects share something of which each needs its own: addresses, ports.
    fn allocates(&self) -> bool {
        false
    }

    /// What an object holds of it.
    fn holds(&self, _object: &Value) -> Vec<String> {
        Vec::new()
    }

    /// Gives an object its share, before it is prepared and validated.
    fn allocate(
        &self,
        _new: &mut Value,
        _old: Option<&Value>,
        _pool: &Pool<'_>,
    ) -> Result<(), NotAllocated> {
        Ok(())
    }

    /// Prepares an object for creation: drops what clients may not set (usually `status`), sets
    /// what only the server may. `metadata.generation` is set to 1 by the handler when
    /// [`Kind::has_generation`].
    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        if self.has_status() {
            crate::object::remove(object, &["status"]);
        }
    }

    /// Prepares an update of the main resource: usually the old status stays.
    fn prepare_update(&self, _context: &Context, new: &mut Value, old: &Value) {
        if self.has_status() {
            keep(new, old, "status");
        }
    }

    /// Prepares an update of the status subresource: everything but the status stays.
    fn prepare_status_update(&self, _context: &Context, new: &mut Value, old: &Value) {
        for key in keys(new, old) {
            if !matches!(key.as_str(), "status" | "metadata" | "apiVersion" | "kind") {
                keep(new, old, &key);
            }
        }
    }

    /// What is wrong with a new object. Metadata is checked by the handler.
    fn validate_create(&self, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// What is wrong with a change of the main resource.
    fn validate_update(&self, new: &Value, _old: &Value) -> Vec<FieldError> {
        self.validate_create(new)
    }

    /// What is wrong with a change of the status.
    fn validate_status_update(&self, _new: &Value, _old: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Everything that is wrong with a new object; `found` is what is wrong with its metadata.
    fn check_create(&self, object: &Value, mut found: Vec<FieldError>) -> Verdict {
        found.extend(self.validate_create(object));
        found.into()
    }

    /// Everything that is wrong with a change of the main resource.
    fn check_update(&self, new: &Value, old: &Value, mut found: Vec<FieldError>) -> Verdict {
        found.extend(self.validate_update(new, old));
        found.into()
    }

    /// Everything that is wrong with a change of the status.
    fn check_status_update(&self, new: &Value, old: &Value, mut found: Vec<FieldError>) -> Verdict {
        found.extend(self.validate_status_update(new, old));
        found.into()
    }

    /// Warnings for a created or updated object, sent in the `Warning` header.
    fn warnings(&self, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// The last touch before an object is stored, when its name is known.
    fn canonicalize(&self, _object: &mut Value) {}

    /// What a name must look like.
    fn name_rule(&self) -> NameRule {
        NameRule::Subdomain
    }

    /// Whether `metadata.generation` counts changes of everything but metadata and status.
    fn has_generation(&self) -> bool {
        self.has_status()
    }

    /// Whether a change of the main resource counts as a new generation. Called after the
    /// object is prepared, for kinds with generations.
    fn generation_changes(&self, new: &Value, old: &Value) -> bool {
        keys(new, old).iter().any(|key| {
            !matches!(key.as_str(), "status" | "metadata" | "apiVersion" | "kind")
                && new.get(key) != old.get(key)
        })
    }

    /// Whether there is a `status` that only its own subresource changes.
    fn has_status(&self) -> bool {
        false
    }

    /// Whether an update may leave out the resourceVersion.
    fn allows_unconditional_update(&self) -> bool {
        true
    }

    /// Whether a PUT may create the object.
    fn allows_create_on_update(&self) -> bool {
        false
    }

    /// How a deletion proceeds (only pods are graceful). `requested` is the client's
    /// `gracePeriodSeconds`.
    fn grace(&self, _object: &Value, _requested: Option<i64>) -> Grace {
        Grace { seconds: 0 }
    }

    /// Whether dependents are orphaned when the client does not say otherwise.
    fn orphans_by_default(&self) -> bool {
        false
    }

    /// The kind whose objects this is another view of, stored in its place.
    fn stored_as(&self) -> Option<GroupVersionKind> {
        None
    }

    /// Rewrites an object of this kind as the kind that is stored.
    fn to_stored(&self, _object: &mut Value) {}

    /// Rewrites a stored object as this kind.
    #[expect(clippy::wrong_self_convention, reason = "the counterpart of `to_stored`")]
    fn from_stored(&self, _object: &mut Value) {}

    /// The value of a selectable field beyond `metadata.name` and `metadata.namespace`; `None`
    /// when the field is not selectable for this kind.
    fn selectable_field(&self, _object: &Value, _field: &str) -> Option<String> {
        None
    }

    /// The columns of the kind's table, beginning with `Name`; `None` for the generic
    /// `Name`, `Created At`.
    fn columns(&self) -> Option<Vec<Column>> {
        None
    }

    /// The cells of a row, one for each column.
    fn cells(&self, _object: &Value, _now: jiff::Timestamp) -> Vec<Value> {
        Vec::new()
    }

    /// The `conditions` of a row: whether the object is done.
    fn row_conditions(&self, _object: &Value) -> Vec<Value> {
        Vec::new()
    }
}

/// What an object's name must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS subdomain (RFC 1123).
    Subdomain,
    /// A DNS label (RFC 1123).
    Label,
    /// A DNS label (RFC 1035).
    Rfc1035Label,
    /// Anything that fits in a path.
    PathSegment,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub kind: &'static str,
    /// `name` for the first column, else usually empty.
    pub format: String,
    /// What the column shows.
    pub description: String,
    /// 0: always shown; 1: with `-o wide`.
    pub priority: i32,
}

/// A built-in kind, to be registered.
pub struct Builtin {
    /// Its group, version and kind.
    pub gvk: GroupVersionKind,
    /// Its plural name.
    pub plural: &'static str,
    /// Its singular name.
    pub singular: &'static str,
    /// Short names for kubectl.
    pub short_names: &'static [&'static str],
    /// Categories for kubectl, such as `all`.
    pub categories: &'static [&'static str],
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Its subresources that change part of the object: `status`, `scale`.
    pub subresources: &'static [&'static str],
    /// What is special about it.
    pub kind: std::sync::Arc<dyn Kind>,
}

impl Builtin {
    fn cluster_wide(mut self) -> Self {
        self.namespaced = false;
        self
    }

    /// Part of `kubectl get all`.
    fn in_all(mut self) -> Self {
        self.categories = &["all"];
        self
    }
}

/// Every built-in kind.
pub fn builtins() -> Vec<Builtin> {
    [
        core::builtins(),
        events::builtins(),
        coordination::builtins(),
        policy::builtins(),
        apps::builtins(),
        batch::builtins(),
        storage::builtins(),
        rbac::builtins(),
        admissionregistration::builtins(),
        scheduling::builtins(),
        discovery::builtins(),
        resource::builtins(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn keys(new: &Value, old: &Value) -> BTreeSet<String> {
    [new, old].iter().filter_map(|o| o.as_object()).flat_map(|map| map.keys().cloned()).collect()
}

/// Takes away the status of a new object; what stays is its zero value.
fn clear_status(kind: &str, object: &mut Value) {
    crate::object::remove(object, &["status"]);
    shape::complete(kind, object);
}

fn keep(new: &mut Value, old: &Value, key: &str) {
    match old.get(key) {
        Some(value) => crate::object::set(new, &[key], value.clone()),
        None => {
            crate::object::remove(new, &[key]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{request::RequestInfo, user::UserInfo};

    /// A request, for tests of kinds.
    pub(crate) fn context() -> Context {
        Context {
            user: Arc::new(UserInfo::new("admin", &["system:masters"])),
            info: Arc::new(RequestInfo::default()),
            user_agent: "test".into(),
        }
    }

    #[test]
    fn every_kind_has_its_own_name_and_a_full_table() {
        let mut seen = BTreeSet::new();
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        for builtin in builtins() {
            assert!(seen.insert(builtin.gvk.clone()), "{:?}", builtin.gvk);
            let mut object = serde_json::json!({"metadata": {"name": "x"}});
            builtin.kind.default(&mut object);
            builtin.kind.prepare_create(&context(), &mut object);
            builtin.kind.validate_create(&object);
            if let Some(columns) = builtin.kind.columns() {
                assert_eq!(
                    builtin.kind.cells(&object, now).len(),
                    columns.len(),
                    "{:?}",
                    builtin.gvk
                );
            }
        }
    }
}
