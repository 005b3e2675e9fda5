//! PUT, and what every change of an existing object has in common.

use std::sync::Arc;

use fleetwright_kschema::{
    field::{FieldError, Path},
    names::{self, NameValidator},
};
use fleetwright_kstore::{Change, Expect, Write, WriteError};
use fleetwright_smd::managed::ignore_changed_timestamps;
use http::StatusCode;
use serde_json::Value;

use super::{
    Call, Part, Reply,
    create::wipe_system_fields,
    written::{Owners, Written},
};
use crate::{
    gvk::GroupVersionKind,
    kinds::NameRule,
    object,
    options::WriteOptions,
    request::Operation,
    status::{ApiError, Result},
    storage::StoredObject,
};

/// What the API says when an object changed since it was read.
pub(crate) const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// A change of one object, computed from its current state (`None`: it does not exist).
pub(crate) trait Modification: Send + Sync {
    /// The object as it should be, with managed fields.
    fn apply(&self, call: &mut Call, current: Option<&Value>) -> Result<Value>;

    /// Whether an object that does not exist is created.
    fn creates(&self) -> bool {
        false
    }

    /// What becomes of `managedFields` when the object is too large with them.
    fn owners(&self) -> Owners {
        Owners::Forgotten
    }

    /// Whether the client sent the whole object, so that its UID is a precondition.
    fn is_replacement(&self) -> bool {
        false
    }
}

struct Replace {
    object: Value,
    part: Part,
    manager: String,
    creates: bool,
}

impl Modification for Replace {
    fn apply(&self, call: &mut Call, current: Option<&Value>) -> Result<Value> {
        let live = current.unwrap_or(&Value::Null);
        Ok(call.manage_update(live, self.object.clone(), &self.manager, self.part.subresource()))
    }

    fn creates(&self) -> bool {
        self.creates
    }

    fn is_replacement(&self) -> bool {
        true
    }
}

impl Call {
    pub(crate) async fn update(&mut self, part: Part) -> Result<Reply> {
        let options = WriteOptions::parse(&self.query, "UpdateOptions")?;
        let mut value = self.decode_object(options.field_validation)?;
        self.ensure_namespace(&mut value)?;
        self.check_name(&value)?;
        self.dedup_owners(&mut value, false);
        let replace = Replace {
            object: value,
            part,
            manager: self.manager(&options.field_manager),
            creates: part == Part::Main && self.resource.kind.allows_create_on_update(),
        };
        let (object, created) = self.modify(part, &options, &replace).await?;
        self.answer(if created { StatusCode::CREATED } else { StatusCode::OK }, object)
    }

    /// The object's name must be the one in the path.
    pub(crate) fn check_name(&self, value: &Value) -> Result<()> {
        let (found, wanted) = (object::name(value), &self.context.info.name);
        if found.is_empty() {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({wanted} based on URL) was undeterminable: name must be provided"
            )));
        }
        if found != wanted {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({found}) does not match the name on the URL ({wanted})"
            )));
        }
        Ok(())
    }

    /// Applies a modification, again and again while others write the same object. Returns the
    /// object and whether it was created.
    pub(crate) async fn modify(
        &mut self,
        part: Part,
        options: &WriteOptions,
        modification: &dyn Modification,
    ) -> Result<(Written, bool)> {
        let name = self.context.info.name.clone();
        let key = self.key(&name);
        let warnings = self.warnings.len();
        loop {
            self.warnings.truncate(warnings);
            let Some(stored) = self.server.storage().get(&key) else {
                if !modification.creates() {
                    return Err(ApiError::not_found(&self.resource.group_resource(), &name));
                }
                let created = self.create_by_modification(options, modification).await;
                match created {
                    Err(error) if error.reason() == "AlreadyExists" => continue,
                    Err(error) => return Err(error),
                    Ok(object) => return Ok((object, true)),
                }
            };
            match self.try_modify(part, options, modification, &stored).await? {
                Outcome::Done(object) => return Ok((object, false)),
                Outcome::Again => {}
            }
        }
    }

    async fn create_by_modification(
        &mut self,
        options: &WriteOptions,
        modification: &dyn Modification,
    ) -> Result<Written> {
        let mut value = modification.apply(self, None)?;
        let uid = object::uid(&value);
        if !uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(ApiError::conflict(
                &self.resource.group_resource(),
                &self.context.info.name,
                &why,
            ));
        }
        self.authorize_create()?;
        self.ensure_namespace(&mut value)?;
        self.check_name(&value)?;
        wipe_system_fields(&mut value);
        object::remove(&mut value, &["metadata", "resourceVersion"]);
        self.create_managed(value, options, modification.owners()).await
    }

    async fn try_modify(
        &mut self,
        part: Part,
        options: &WriteOptions,
        modification: &dyn Modification,
        stored: &StoredObject,
    ) -> Result<Outcome> {
        let old = self.read(stored)?;
        let mut new = modification.apply(self, Some(&old))?;
        self.ensure_namespace(&mut new)?;
        self.check_name(&new)?;
        if modification.is_replacement() {
            self.check_uid(&new, &old)?;
        }
        self.admit(Operation::Update, &mut new, Some(&old), options).await?;
        self.dedup_owners(&mut new, true);

        let unconditional = object::resource_version(&new).is_empty();
        self.check_version(&new, &old)?;
        let _held = if part == Part::Main {
            self.resource.kind.admit_update(&new, &self.server).map_err(|why| {
                ApiError::forbidden(&self.resource.group_resource(), object::name(&new), &why)
            })?;
            self.allocate(&mut new, Some(&old))?
        } else {
            None
        };
        self.prepare_update(part, &mut new, &old);
        let errors = self.validate_update(part, &new, &old);
        if !errors.is_empty() {
            return Err(self.invalid(&new, &errors));
        }
        if part == Part::Main {
            self.warnings.extend(self.resource.kind.warnings(&new, Some(&old)));
        }
        self.resource.kind.canonicalize(&mut new);
        self.review(Operation::Update, Some(&new), Some(&old), options).await?;

        ignore_changed_timestamps(&mut new, &old);
        let deletes = deletes_object(&new, &old) && self.finalized(&new);
        if new == old && !deletes {
            return Ok(Outcome::Done(Written::Stored(Arc::clone(stored))));
        }
        if options.dry_run {
            return Ok(Outcome::Done(Written::Shown(new)));
        }
        let (change, last) = if deletes {
            // Who removes the last finalizer gets the object as it was sent.
            (Change::Delete { last: None }, Some(Written::Shown(new)))
        } else {
            (Change::Put(self.store_body(new, modification.owners())?), None)
        };
        let write =
            Write { key: stored.key.clone(), expect: Expect::Revision(stored.revision), change };
        match self.server.storage().write(write).await {
            Ok(stored) => Ok(Outcome::Done(last.unwrap_or(Written::Stored(stored)))),
            Err(WriteError::Conflict { .. } | WriteError::NotFound) if unconditional => {
                Ok(Outcome::Again)
            }
            Err(WriteError::NotFound) => {
                Err(ApiError::not_found(&self.resource.group_resource(), &self.context.info.name))
            }
            // The next round finds out whether the version still fits.
            Err(WriteError::Conflict { .. } | WriteError::AlreadyExists) => Ok(Outcome::Again),
            Err(WriteError::Unavailable(why)) => Err(ApiError::unavailable(why)),
        }
    }

    /// Namespaces go only when their own finalizers are gone as well.
    fn finalized(&self, new: &Value) -> bool {
        *self.resource.storage != *"/namespaces"
            || object::list(new, &["spec", "finalizers"]).is_empty()
    }

    fn check_uid(&self, new: &Value, old: &Value) -> Result<()> {
        let (given, live) = (object::uid(new), object::uid(old));
        if given.is_empty() || given == live {
            return Ok(());
        }
        Err(self.precondition_failed("UID", given, live))
    }

    /// What the store says when an object is not the one that is meant.
    pub(crate) fn precondition_failed(&self, what: &str, given: &str, live: &str) -> ApiError {
        ApiError::conflict(
            &self.resource.group_resource(),
            &self.context.info.name,
            &format!(
                "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {what} in precondition: {given}, {what} in object meta: {live}",
                self.registry_key()
            ),
        )
    }

    /// Where etcd would have the object; messages of Kubernetes name it.
    fn registry_key(&self) -> String {
        let mut key = "/registry".to_owned();
        let group = if self.resource.is_custom() { &*self.resource.gvk.group } else { "" };
        let name = &self.context.info.name;
        for part in [group, &self.resource.plural, self.namespace(), name] {
            if !part.is_empty() {
                key.push('/');
                key.push_str(part);
            }
        }
        key
    }

    fn check_version(&self, new: &Value, old: &Value) -> Result<()> {
        let given = object::resource_version(new);
        if given.is_empty() || given == "0" {
            if self.resource.kind.allows_unconditional_update() {
                return Ok(());
            }
            let resource = &self.resource;
            return Err(ApiError::invalid(
                &GroupVersionKind::new(&resource.gvk.group, "", &resource.plural),
                &self.context.info.name,
                &[FieldError::invalid(
                    &Path::new("metadata").child("resourceVersion"),
                    0,
                    "must be specified for an update",
                )],
            ));
        }
        if given.parse::<u64>().is_err() {
            return Err(ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "",
                format!(
                    "strconv.ParseUint: parsing {}: invalid syntax",
                    fleetwright_kschema::gotext::quote(given)
                ),
                None,
            ));
        }
        if given == object::resource_version(old) {
            return Ok(());
        }
        Err(ApiError::conflict(&self.resource.group_resource(), &self.context.info.name, MODIFIED))
    }

    fn prepare_update(&self, part: Part, new: &mut Value, old: &Value) {
        object::set(new, &["metadata", "resourceVersion"], object::resource_version(old));
        keep_metadata(new, old, "generation");
        let kind = &self.resource.kind;
        match part {
            Part::Main => kind.prepare_update(&self.context, new, old),
            Part::Status => kind.prepare_status_update(&self.context, new, old),
            // The modification itself changed what a binding changes, and nothing else.
            Part::Binding => {}
            Part::Finalize => {
                // Only the namespace's finalizers may change here.
                let finalizers = object::get(new, &["spec", "finalizers"]).cloned();
                let metadata = new.get("metadata").cloned();
                *new = old.clone();
                if let Some(metadata) = metadata {
                    object::set(new, &["metadata"], metadata);
                }
                match finalizers {
                    Some(finalizers) => object::set(new, &["spec", "finalizers"], finalizers),
                    None => {
                        object::remove(new, &["spec", "finalizers"]);
                    }
                }
            }
        }
        if object::uid(new).is_empty() {
            keep_metadata(new, old, "uid");
        }
        keep_metadata(new, old, "creationTimestamp");
        if object::is_terminating(old) {
            keep_metadata(new, old, "deletionTimestamp");
            if object::get(new, &["metadata", "deletionGracePeriodSeconds"]).is_none() {
                keep_metadata(new, old, "deletionGracePeriodSeconds");
            }
        }
        if part == Part::Main && kind.has_generation() && kind.generation_changes(new, old) {
            object::set(new, &["metadata", "generation"], object::generation(old) + 1);
        }
    }

    /// The refusal of an object. It names the kind that the object claims to be, in the group
    /// that it is stored in.
    pub(crate) fn invalid(&self, value: &Value, errors: &[FieldError]) -> ApiError {
        let kind = object::text(value, &["kind"]);
        let group = &self.resource.storage_version.group;
        ApiError::invalid(&GroupVersionKind::new(group, "", kind), object::name(value), errors)
    }

    /// What is wrong with a new object: what its kind says, then the rules for all.
    pub(crate) fn validate_create(&mut self, value: &Value) -> Vec<FieldError> {
        let path = Path::new("metadata");
        let namespaced = self.resource.namespaced;
        let mut found = names::validate_object_meta(
            value.get("metadata").unwrap_or(&Value::Null),
            namespaced,
            name_validator(self.resource.kind.name_rule()),
            &path,
        );
        if !self.resource.is_custom() {
            found.extend(unqualified_finalizers(value, &path));
        }
        let verdict = self.resource.kind.check_create(value, found);
        self.warnings.extend(verdict.warnings);
        verdict.errors
    }

    fn validate_update(&mut self, part: Part, new: &Value, old: &Value) -> Vec<FieldError> {
        let path = Path::new("metadata");
        let (new_meta, old_meta) = (&new["metadata"], &old["metadata"]);
        let mut found = names::validate_object_meta(
            new_meta,
            self.resource.namespaced,
            names::name_is_path_segment,
            &path,
        );
        for error in names::validate_object_meta_update(new_meta, old_meta, &path) {
            if !found.contains(&error) {
                found.push(error);
            }
        }
        let verdict = match part {
            Part::Main | Part::Finalize => self.resource.kind.check_update(new, old, found),
            Part::Status => self.resource.kind.check_status_update(new, old, found),
            Part::Binding => found.into(),
        };
        self.warnings.extend(verdict.warnings);
        verdict.errors
    }
}

enum Outcome {
    Done(Written),
    Again,
}

/// Whether this change removes the last finalizer of an object that waits for deletion.
fn deletes_object(new: &Value, old: &Value) -> bool {
    let grace = object::integer(old, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
    object::finalizers(new).next().is_none() && object::is_terminating(old) && grace == 0
}

fn keep_metadata(new: &mut Value, old: &Value, field: &str) {
    match object::get(old, &["metadata", field]) {
        Some(value) => object::set(new, &["metadata", field], value.clone()),
        None => {
            object::remove(new, &["metadata", field]);
        }
    }
}

fn name_validator(rule: NameRule) -> NameValidator {
    match rule {
        NameRule::Subdomain => names::name_is_dns_subdomain,
        NameRule::Label => names::name_is_dns_label,
        NameRule::Rfc1035Label => names::name_is_dns_1035_label,
        NameRule::PathSegment => names::name_is_path_segment,
    }
}

/// Finalizers of built-in kinds must have a prefix, unless Kubernetes itself handles them.
fn unqualified_finalizers(value: &Value, path: &Path) -> Vec<FieldError> {
    const STANDARD: &[&str] = &["kubernetes", names::ORPHAN, names::FOREGROUND];
    object::finalizers(value)
        .enumerate()
        .filter(|(_, name)| !name.contains('/') && !STANDARD.contains(name))
        .map(|(index, name)| {
            FieldError::invalid(
                &path.child("finalizers").index(index),
                name,
                "name is neither a standard finalizer name nor is it fully qualified",
            )
        })
        .collect()
}
