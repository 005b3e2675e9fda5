//! Field management for an API server: objects in, objects with `managedFields` out.

mod cap;
mod conflict;
mod entries;
mod last_applied;
mod scale;
#[cfg(test)]
mod tests;
mod timestamps;

use std::borrow::Cow;
use std::sync::LazyLock;

use serde_json::Value;

use crate::fieldpath::{FieldFilter, Path, Set};
use crate::merge::{MergeError, Updater, Versions};
use crate::schema::Schema;
use crate::typed::{Duplicates, Typed};
use entries::{Identity, Managed, asks_for_reset};

pub use conflict::{
    Conflict, ConflictCause, FIELD_MANAGER_CONFLICT, conflict_causes, conflict_message,
};
pub use entries::{DecodeError, validate_managed_fields};
pub use last_applied::LAST_APPLIED;
pub use scale::{ReplicasPaths, scale_to_parent, scale_to_subresource};
pub use timestamps::ignore_changed_timestamps;

/// The manager of the running request while its changes are worked out.
const CURRENT_OPERATION: &str = "current-operation";

/// Owns what was in an object before it was first applied to.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Stands in for a manager without a name.
const UNKNOWN_MANAGER: &str = "unknown";

/// Fields that are nobody's: they identify the object or belong to the server.
static STRIPPED: LazyLock<Set> = LazyLock::new(|| {
    let in_metadata = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let top = ["apiVersion", "kind", "metadata"].map(|name| Path::fields([name]));
    let below = in_metadata.map(|name| Path::fields(["metadata", name]));
    top.into_iter().chain(below).collect()
});

/// Why an apply failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Others own some of the fields: 409 Conflict. Never empty.
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Conflict>),
    /// The request is wrong: 400 Bad Request.
    #[error("{0}")]
    BadRequest(String),
    /// An object does not conform to its schema or cannot be converted: the real server
    /// answers 500 with this message.
    #[error("{0}")]
    Failed(String),
}

/// The field management of one endpoint.
#[derive(Clone, Copy)]
pub struct FieldManager<'a> {
    /// The schema of the kind in the version of the endpoint.
    pub schema: &'a Schema,
    /// The version of the endpoint, such as `apps/v1`.
    pub api_version: &'a str,
    /// The kind of the objects.
    pub kind: &'a str,
    /// The subresource of the endpoint; empty for the main resource.
    pub subresource: &'a str,
    /// The fields that requests to the endpoint may own.
    pub filter: &'a FieldFilter,
    /// What an object is before it is created: see [`crate::schema::zero_object`]. For
    /// custom resources an empty map.
    pub empty: &'a Value,
    /// The other versions of the kind, if there are any.
    pub versions: Option<&'a dyn Versions>,
}

impl FieldManager<'_> {
    /// Sets `managedFields` of an object that is about to be created (`live` is null then),
    /// updated or patched. If that cannot be done they stay as they are in `live`.
    #[must_use]
    pub fn update(&self, live: &Value, mut new: Value, manager: &str, now: &str) -> Value {
        let live = if live.is_null() { self.empty } else { live };
        let book = self.book_for_update(live, &new);
        take_managed_fields(&mut new);
        let entries = match self.track_update(live, &new, book, manager, now) {
            Ok(book) => book.encode(),
            Err(error) => {
                tracing::error!(
                    object = describe(&new),
                    error,
                    "managedFields could not be updated and stay as they were"
                );
                managed_fields(live).cloned()
            }
        };
        set_managed_fields(&mut new, entries);
        new
    }

    /// Applies a configuration to an object, or to none if `live` is null.
    pub fn apply(
        &self,
        live: &Value,
        patch: &Value,
        manager: &str,
        force: bool,
        now: &str,
    ) -> Result<Value, ApplyError> {
        let live = if live.is_null() { self.empty } else { live };
        let book = Managed::decode(managed_fields(live)).map_err(|error| {
            ApplyError::Failed(format!("failed to decode managed fields: {error}"))
        })?;
        let asked_for = |name: &str| patch.get(name).and_then(Value::as_str).unwrap_or_default();
        if (asked_for("apiVersion"), asked_for("kind")) != (self.api_version, self.kind) {
            let found = group_version_kind(patch);
            return Err(ApplyError::BadRequest(format!("invalid object type: {found}")));
        }

        let is_kubectl = manager == last_applied::KUBECTL;
        let spare = (is_kubectl && !force).then(|| book.clone());
        let mut outcome = self.apply_once(live, patch, book, manager, force, now);
        if let (Err(ApplyError::Conflicts(conflicts)), Some(book)) = (&mut outcome, spare)
            && let Some(own) =
                last_applied::unchanged_since_last_applied(live, self.schema, self.api_version)
        {
            conflicts.retain(|conflict| !own.contains(&conflict.path));
            if conflicts.is_empty() {
                outcome = self.apply_once(live, patch, book, manager, true, now);
            }
        }
        let (mut object, book) = outcome?;
        if is_kubectl {
            last_applied::record_last_applied(&mut object, patch);
        }
        set_managed_fields(&mut object, book.encode());
        Ok(object)
    }

    /// The new object, without `managedFields`, and its book.
    fn apply_once(
        &self,
        live: &Value,
        patch: &Value,
        mut book: Managed,
        manager: &str,
        force: bool,
        now: &str,
    ) -> Result<(Value, Managed), ApplyError> {
        if book.managers.is_empty() {
            book = self.record_update(self.empty, live, book, BEFORE_FIRST_APPLY, now).map_err(
                |error| {
                    ApplyError::Failed(format!(
                        "failed to create manager for existing fields: {error}"
                    ))
                },
            )?;
        }
        if managed_fields(patch).is_some_and(Value::is_array) {
            let text = "metadata.managedFields must be nil".to_owned();
            return Err(ApplyError::BadRequest(text));
        }
        let typed = |what, object, duplicates| {
            Typed::new(Cow::Borrowed(object), self.schema, duplicates).map_err(|errors| {
                let object = describe(object);
                ApplyError::Failed(format!(
                    "failed to create typed {what} object ({object}): {errors}"
                ))
            })
        };
        let config = typed("patch", patch, Duplicates::Refused)?;
        let typed_live = typed("live", live, Duplicates::Allowed)?;
        let key = book.introduce(self.identity(manager, "Apply"));
        let new = self
            .updater()
            .apply(&typed_live, &config, &mut book.managers, &key, force)
            .map_err(|error| match error {
                MergeError::Conflicts(conflicts) => ApplyError::Conflicts(
                    conflicts.into_iter().map(|conflict| Conflict::new(conflict, &book)).collect(),
                ),
                MergeError::Failed(error) => ApplyError::Failed(error),
            })?;
        strip(&mut book, &key);
        let mut object = if let Some(object) = new {
            book.times.insert(key, now.to_owned());
            object
        } else {
            live.clone()
        };
        take_managed_fields(&mut object);
        Ok((object, book))
    }

    /// The book that an update starts from: that of the request, unless the endpoint is a
    /// subresource or the request's is not usable, then that of the stored object.
    fn book_for_update(&self, live: &Value, new: &Value) -> Managed {
        let stored = || Managed::decode(managed_fields(live)).unwrap_or_default();
        if !self.subresource.is_empty() {
            return stored();
        }
        let entries = managed_fields(new);
        if asks_for_reset(entries) {
            return Managed::default();
        }
        match Managed::decode(entries) {
            Ok(book) if !book.managers.is_empty() => book,
            _ => stored(),
        }
    }

    /// Tracks an update, unless it is one of an object that is not tracked so far.
    fn track_update(
        &self,
        live: &Value,
        new: &Value,
        book: Managed,
        manager: &str,
        now: &str,
    ) -> Result<Managed, String> {
        let exists = live
            .get("metadata")
            .and_then(|metadata| metadata.get("uid"))
            .and_then(Value::as_str)
            .is_some_and(|uid| !uid.is_empty());
        if book.managers.is_empty() && exists {
            return Ok(book);
        }
        self.record_update(live, new, book, manager, now)
    }

    fn record_update(
        &self,
        live: &Value,
        new: &Value,
        mut book: Managed,
        manager: &str,
        now: &str,
    ) -> Result<Managed, String> {
        let typed = |what, object| {
            Typed::new(Cow::Borrowed(object), self.schema, Duplicates::Allowed).map_err(|errors| {
                let object = describe(object);
                format!("failed to convert {what} object ({object}) to smd typed: {errors}")
            })
        };
        let new_typed = typed("new", new)?;
        let live_typed = typed("live", live)?;
        self.updater()
            .update(&live_typed, &new_typed, &mut book.managers, CURRENT_OPERATION)
            .map_err(|error| {
                format!("failed to update ManagedFields ({}): {error}", describe(new))
            })?;
        strip(&mut book, CURRENT_OPERATION);
        // Only who changed something gets an entry, or a new time on the one it has.
        if let Some(mut entry) = book.managers.remove(CURRENT_OPERATION) {
            let key = book.introduce(self.identity(manager, "Update"));
            if let Some(previous) = book.managers.remove(&key) {
                entry.set.unite(previous.set);
            }
            book.managers.insert(key.clone(), entry);
            book.times.insert(key, now.to_owned());
        }
        cap::cap_updaters(&mut book);
        Ok(book)
    }

    fn updater(&self) -> Updater<'_> {
        Updater {
            schema: self.schema,
            api_version: self.api_version,
            filter: self.filter,
            versions: self.versions,
        }
    }

    fn identity(&self, manager: &str, operation: &str) -> Identity {
        let manager = if manager.is_empty() { UNKNOWN_MANAGER } else { manager };
        let api_version = if operation == "Apply" { "" } else { self.api_version };
        Identity {
            manager: manager.to_owned(),
            operation: operation.to_owned(),
            api_version: api_version.to_owned(),
            subresource: self.subresource.to_owned(),
        }
    }
}

/// Takes the fields that are nobody's from a manager.
fn strip(book: &mut Managed, key: &str) {
    if let Some(entry) = book.managers.get_mut(key) {
        entry.set.subtract(&STRIPPED);
        if entry.set.is_empty() {
            book.managers.remove(key);
        }
    }
}

fn managed_fields(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

fn take_managed_fields(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

fn set_managed_fields(object: &mut Value, entries: Option<Value>) {
    let Some(object) = object.as_object_mut() else { return };
    let Some(entries) = entries else {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        return;
    };
    let metadata = object.entry("metadata").or_insert(Value::Null);
    if metadata.is_null() {
        *metadata = Value::Object(serde_json::Map::new());
    }
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("managedFields".to_owned(), entries);
    }
}

/// An object as the server's messages name it: `namespace/name; group/version, Kind=kind`.
fn describe(object: &Value) -> String {
    let metadata = |name: &str| {
        let metadata = object.get("metadata");
        metadata.and_then(|m| m.get(name)).and_then(Value::as_str).unwrap_or_default()
    };
    format!("{}/{}; {}", metadata("namespace"), metadata("name"), group_version_kind(object))
}

fn group_version_kind(object: &Value) -> String {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let api_version = text("apiVersion");
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={}", text("kind"))
}
