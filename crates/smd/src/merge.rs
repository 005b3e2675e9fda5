//! Who owns which fields, across applies and updates.
//!
//! An apply states everything its manager wants to own. Fields that others own and that it
//! would change are conflicts; fields it stated last time and no longer states are removed
//! unless somebody else owns them. An update owns what it changes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::fieldpath::{FieldFilter, Path, Set};
use crate::schema::Schema;
use crate::typed::{Comparison, Duplicates, Typed};
use crate::values;

/// The fields that a manager owns, in one version of the kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionedSet {
    /// The fields.
    pub set: Set,
    /// The version that they are named in.
    pub api_version: String,
    /// Whether they were applied rather than updated.
    pub applied: bool,
}

/// What each manager owns.
pub type Managers = BTreeMap<String, VersionedSet>;

/// The other versions of a kind, in which managers may have written.
pub trait Versions {
    /// The schema of a version; `None` if it is not served (any more).
    fn schema(&self, api_version: &str) -> Option<&Schema>;
    /// The fields that the endpoint may own in a version.
    fn filter(&self, api_version: &str) -> &FieldFilter;
    /// An object in another version.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String>;
}

/// A field that could not be applied because somebody else owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldConflict {
    /// The key of the owner in [`Managers`].
    pub manager: String,
    /// The field.
    pub path: Path,
}

/// Why ownership could not be settled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// Others own some of the fields. Never empty.
    #[error("{} conflicts", .0.len())]
    Conflicts(Vec<FieldConflict>),
    /// An object could not be converted or does not conform to its schema.
    #[error("{0}")]
    Failed(String),
}

/// The rules of one kind in the version of a request.
#[derive(Clone, Copy)]
pub struct Updater<'a> {
    /// The schema of the version.
    pub schema: &'a Schema,
    /// The version.
    pub api_version: &'a str,
    /// The fields that the endpoint may own.
    pub filter: &'a FieldFilter,
    /// The other versions of the kind, if there are any.
    pub versions: Option<&'a dyn Versions>,
}

/// An object in one of the versions of its kind.
#[derive(Clone)]
struct Versioned<'a> {
    typed: Typed<'a>,
    api_version: Cow<'a, str>,
}

enum ConvertError {
    /// The version is not served.
    Missing,
    Failed(String),
}

impl<'a> Updater<'a> {
    /// Records that `manager` changed the object from `live` to `new`.
    pub fn update(
        &self,
        live: &Typed<'a>,
        new: &Typed<'a>,
        managers: &mut Managers,
        manager: &str,
    ) -> Result<(), MergeError> {
        let live = self.in_versions(live, managers)?;
        self.reconcile(managers)?;
        let changes = self.take_over(&live, &self.own(new.clone()), managers, manager, true)?;
        let mut set = managers.remove(manager).map(|entry| entry.set).unwrap_or_default();
        set.subtract(&changes.removed);
        set.unite(changes.modified);
        set.unite(changes.added);
        self.filter.apply(&mut set);
        if !set.is_empty() {
            let api_version = self.api_version.to_owned();
            managers.insert(manager.to_owned(), VersionedSet { set, api_version, applied: false });
        }
        Ok(())
    }

    /// Applies what `manager` wants to `live`. Gives the new object, or `None` if it is the
    /// same as before.
    pub fn apply(
        &self,
        live: &Typed<'a>,
        config: &Typed<'a>,
        managers: &mut Managers,
        manager: &str,
        force: bool,
    ) -> Result<Option<Value>, MergeError> {
        let versions_of_live = self.in_versions(live, managers)?;
        self.reconcile(managers)?;
        let merged = live.merge(config).map_err(failed("failed to merge config"))?;
        let last = managers.remove(manager);
        let mut set = config.to_field_set().map_err(failed("failed to get field set"))?;
        self.filter.apply(&mut set);
        let api_version = self.api_version.to_owned();
        managers.insert(manager.to_owned(), VersionedSet { set, api_version, applied: true });
        let new = self
            .prune(self.own(merged), managers, last)
            .map_err(|error| MergeError::Failed(format!("failed to prune fields: {error}")))?;
        self.take_over(&versions_of_live, &new, managers, manager, force)?;
        if values::equal(live.value(), new.typed.value()) {
            return Ok(None);
        }
        Ok(Some(new.typed.into_value()))
    }

    /// The stored object in the version of the request and in those in which managers have
    /// written. Managers whose version is no longer served are dropped.
    fn in_versions(
        &self,
        live: &Typed<'a>,
        managers: &mut Managers,
    ) -> Result<BTreeMap<String, Versioned<'a>>, MergeError> {
        let own = self.own(live.clone());
        let mut versions = BTreeMap::new();
        managers.retain(|_, entry| self.schema_of(&entry.api_version).is_some());
        for entry in managers.values() {
            if entry.api_version == self.api_version || versions.contains_key(&entry.api_version) {
                continue;
            }
            match self.convert(&own, &entry.api_version) {
                Ok(converted) => {
                    versions.insert(entry.api_version.clone(), converted);
                }
                Err(ConvertError::Missing) => {}
                Err(ConvertError::Failed(error)) => return Err(MergeError::Failed(error)),
            }
        }
        versions.insert(self.api_version.to_owned(), own);
        Ok(versions)
    }

    /// Takes the fields that changed away from everybody but `manager`.
    fn take_over(
        &self,
        live: &BTreeMap<String, Versioned<'a>>,
        new: &Versioned<'a>,
        managers: &mut Managers,
        manager: &str,
        force: bool,
    ) -> Result<Comparison, MergeError> {
        let mut changes: BTreeMap<&str, Comparison> = BTreeMap::new();
        for (version, live) in live {
            let new = match self.convert(new, version) {
                Ok(converted) => converted,
                Err(ConvertError::Missing) => continue,
                Err(ConvertError::Failed(error)) => {
                    let text = format!("failed to convert new object: {error}");
                    return Err(MergeError::Failed(text));
                }
            };
            let compared = live.typed.compare(&new.typed);
            let mut compared = compared.map_err(failed("failed to compare objects"))?;
            compared.filter(self.filter_of(version));
            changes.insert(version, compared);
        }
        managers.retain(|name, entry| {
            name == manager || changes.contains_key(entry.api_version.as_str())
        });
        if !force {
            let conflicts = find_conflicts(managers, manager, &changes);
            if !conflicts.is_empty() {
                return Err(MergeError::Conflicts(conflicts));
            }
        }
        for (_, entry) in managers.iter_mut().filter(|(name, _)| *name != manager) {
            if let Some(changes) = changes.get(entry.api_version.as_str()) {
                entry.set.subtract(&changes.modified);
                entry.set.subtract(&changes.added);
                entry.set.subtract(&changes.removed);
            }
        }
        managers.retain(|_, entry| !entry.set.is_empty());
        Ok(changes.remove(self.api_version).unwrap_or_default())
    }

    /// Removes what the manager stated last time, no longer states, and nobody else owns.
    fn prune(
        &self,
        merged: Versioned<'a>,
        managers: &Managers,
        last: Option<VersionedSet>,
    ) -> Result<Versioned<'a>, String> {
        let Some(last) = last.filter(|last| !last.set.is_empty()) else { return Ok(merged) };
        let merged_then = match self.convert(&merged, &last.api_version) {
            Ok(converted) => converted,
            Err(ConvertError::Missing) => return Ok(merged),
            Err(ConvertError::Failed(error)) => {
                return Err(format!(
                    "failed to convert merged object to last applied version: {error}"
                ));
            }
        };
        let mut stated = last.set;
        merged_then.typed.ensure_named_fields_are_members(&mut stated);
        let pruned = Versioned {
            typed: merged_then.typed.remove_items(&stated),
            api_version: merged_then.api_version.clone(),
        };
        let pruned = self
            .add_back_owned(merged_then.clone(), pruned, &last.api_version, managers)
            .map_err(|error| format!("failed add back owned items: {error}"))?;
        let pruned = self
            .add_back_dangling(&merged_then, &pruned, &stated, &last.api_version)
            .map_err(|error| format!("failed add back dangling items: {error}"))?;
        match self.convert(&pruned, self.api_version) {
            Ok(converted) => Ok(converted),
            Err(ConvertError::Missing) => Err("version is not served".to_owned()),
            Err(ConvertError::Failed(error)) => Err(error),
        }
    }

    /// Puts back what was pruned although some manager, the applying one included, owns it.
    fn add_back_owned(
        &self,
        mut merged: Versioned<'a>,
        mut pruned: Versioned<'a>,
        pruned_version: &str,
        managers: &Managers,
    ) -> Result<Versioned<'a>, String> {
        let mut owned: BTreeMap<&str, Set> = BTreeMap::new();
        for entry in managers.values() {
            owned.entry(&entry.api_version).or_default().unite(entry.set.clone());
        }
        // The pruned version goes first: its fields may be needed to convert to others.
        let first = owned.remove_entry(pruned_version);
        for (version, mut owned) in first.into_iter().chain(owned) {
            let at = |what| {
                move |error| {
                    format!("failed to convert {what} object at version {version}: {error}")
                }
            };
            let convert = |object: &Versioned<'a>, what| match self.convert(object, version) {
                Ok(converted) => Ok(Some(converted)),
                Err(ConvertError::Missing) => Ok(None),
                Err(ConvertError::Failed(error)) => Err(at(what)(error)),
            };
            let Some(merged_here) = convert(&merged, "merged")? else { continue };
            merged = merged_here;
            let Some(pruned_here) = convert(&pruned, "pruned")? else { continue };
            let field_set = |object: &Versioned<'a>, what| {
                let mut set = object.typed.to_field_set().map_err(|error| {
                    format!("failed to create field set from {what} object at version {version}: {error}")
                })?;
                merged.typed.ensure_named_fields_are_members(&mut set);
                Ok::<_, String>(set)
            };
            let mut unowned = field_set(&merged, "merged")?;
            unowned.subtract(&field_set(&pruned_here, "pruned")?);
            merged.typed.ensure_named_fields_are_members(&mut owned);
            unowned.subtract(&owned);
            pruned = Versioned {
                typed: merged.typed.remove_items(&unowned),
                api_version: merged.api_version.clone(),
            };
        }
        Ok(pruned)
    }

    /// Puts back what was pruned although the manager did not state it last time.
    fn add_back_dangling(
        &self,
        merged: &Versioned<'a>,
        pruned: &Versioned<'a>,
        stated: &Set,
        version: &str,
    ) -> Result<Versioned<'a>, String> {
        let pruned = match self.convert(pruned, version) {
            Ok(converted) => converted,
            Err(ConvertError::Missing) => return Ok(merged.clone()),
            Err(ConvertError::Failed(error)) => {
                return Err(format!(
                    "failed to convert pruned object to last applied version: {error}"
                ));
            }
        };
        let field_set = |object: &Versioned<'a>, what| {
            let mut set = object.typed.to_field_set().map_err(|error| {
                format!(
                    "failed to create field set from {what} object in last applied version: {error}"
                )
            })?;
            merged.typed.ensure_named_fields_are_members(&mut set);
            Ok::<_, String>(set)
        };
        let mut removed = field_set(merged, "merged")?;
        removed.subtract(&field_set(&pruned, "pruned")?);
        let removed = removed.intersection(stated);
        Ok(Versioned {
            typed: merged.typed.remove_items(&removed),
            api_version: merged.api_version.clone(),
        })
    }

    /// Brings recorded sets in line with the schemas of today.
    fn reconcile(&self, managers: &mut Managers) -> Result<(), MergeError> {
        for entry in managers.values_mut() {
            if let Some(schema) = self.schema_of(&entry.api_version) {
                schema
                    .reconcile(&mut entry.set)
                    .map_err(failed("errors reconciling field set with schema"))?;
            }
        }
        Ok(())
    }

    fn schema_of(&self, api_version: &str) -> Option<&'a Schema> {
        if api_version == self.api_version {
            Some(self.schema)
        } else {
            self.versions?.schema(api_version)
        }
    }

    fn filter_of(&self, api_version: &str) -> &'a FieldFilter {
        match self.versions {
            Some(versions) if api_version != self.api_version => versions.filter(api_version),
            _ => self.filter,
        }
    }

    fn own(&self, typed: Typed<'a>) -> Versioned<'a> {
        Versioned { typed, api_version: Cow::Borrowed(self.api_version) }
    }

    fn convert(
        &self,
        object: &Versioned<'a>,
        api_version: &str,
    ) -> Result<Versioned<'a>, ConvertError> {
        if object.api_version == api_version {
            return Ok(object.clone());
        }
        let (Some(versions), Some(schema)) = (self.versions, self.schema_of(api_version)) else {
            return Err(ConvertError::Missing);
        };
        let value =
            versions.convert(object.typed.value(), api_version).map_err(ConvertError::Failed)?;
        let typed = Typed::new(Cow::Owned(value), schema, Duplicates::Refused)
            .map_err(|errors| ConvertError::Failed(errors.to_string()))?;
        Ok(Versioned { typed, api_version: Cow::Owned(api_version.to_owned()) })
    }
}

fn find_conflicts(
    managers: &Managers,
    manager: &str,
    changes: &BTreeMap<&str, Comparison>,
) -> Vec<FieldConflict> {
    let mut conflicts = Vec::new();
    for (name, entry) in managers.iter().filter(|(name, _)| *name != manager) {
        let Some(changes) = changes.get(entry.api_version.as_str()) else { continue };
        let mut disputed = entry.set.intersection(&changes.modified);
        disputed.unite(entry.set.intersection(&changes.added));
        let paths = disputed.paths().into_iter();
        conflicts.extend(paths.map(|path| FieldConflict { manager: name.clone(), path }));
    }
    conflicts
}

fn failed<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> MergeError {
    move |error| MergeError::Failed(format!("{what}: {error}"))
}
