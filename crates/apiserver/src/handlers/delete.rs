//! DELETE of one object.

use fleetwright_kschema::names::{FOREGROUND, ORPHAN};
use fleetwright_kstore::{Change, Expect, Write, WriteError};
use http::StatusCode;
use serde_json::{Value, json};

use super::{Call, Reply, timestamp, written::Owners};
use crate::{
    crd,
    gvk::GroupResource,
    object,
    options::{DeleteOptions, Propagation},
    request::Operation,
    status::{ApiError, Result},
    storage::StoredObject,
};

/// What is answered with the deleted object instead of a `Status`.
const RETURNED: &[&str] = &[
    "/namespaces",
    "/persistentvolumeclaims",
    "/persistentvolumes",
    "/pods",
    "/resourcequotas",
    "/serviceaccounts",
    "/services",
    "resource.k8s.io/deviceclasses",
    "resource.k8s.io/resourceclaims",
    "resource.k8s.io/resourceclaimtemplates",
    "resource.k8s.io/resourceslices",
    "storage.k8s.io/csidrivers",
    "storage.k8s.io/csinodes",
    "storage.k8s.io/storageclasses",
    "storage.k8s.io/volumeattachments",
];

/// What became of a deletion.
pub(crate) enum Deletion {
    /// The object is gone; this was its last state.
    Gone(Value),
    /// The object waits for finalizers or its grace period.
    Pending(Value),
}

impl Call {
    pub(crate) async fn delete(&mut self) -> Result<Reply> {
        let body = self.delete_body()?;
        let options = DeleteOptions::parse(body.as_ref(), &self.query)?;
        let stored = self.existing()?;
        match self.delete_object(stored, &options).await? {
            Deletion::Gone(object) if RETURNED.contains(&&*self.resource.storage) => {
                Ok(self.reply(StatusCode::OK, object))
            }
            Deletion::Gone(object) => Ok(Reply::json(StatusCode::OK, self.success(&object))),
            Deletion::Pending(object) => {
                let accepted = options.orphan_dependents == Some(false);
                Ok(self.reply(if accepted { StatusCode::ACCEPTED } else { StatusCode::OK }, object))
            }
        }
    }

    /// The `DeleteOptions` in the body, if there is one.
    pub(crate) fn delete_body(&self) -> Result<Option<Value>> {
        if self.body.is_empty() {
            return Ok(None);
        }
        let value = self.read_loose()?;
        let kind = object::text(&value, &["kind"]);
        if !kind.is_empty() && kind != "DeleteOptions" {
            return Err(ApiError::bad_request(format!(
                "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
                fleetwright_kschema::gotext::quote(kind),
                fleetwright_kschema::gotext::quote(object::text(&value, &["apiVersion"])),
            )));
        }
        Ok(Some(value))
    }

    /// The answer to a finished deletion.
    fn success(&self, object: &Value) -> Value {
        let mut details = json!({
            "name": object::name(object),
            "kind": *self.resource.plural,
            "uid": object::uid(object),
        });
        if !self.resource.gvk.group.is_empty() {
            details["group"] = (*self.resource.gvk.group).into();
        }
        json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details,
        })
    }

    /// Deletes an object, or marks it when something must happen first.
    pub(crate) async fn delete_object(
        &mut self,
        mut stored: StoredObject,
        options: &DeleteOptions,
    ) -> Result<Deletion> {
        let name = stored.key.name.to_string();
        loop {
            let object = self.read(&stored)?;
            self.check_preconditions(&object, options)?;
            self.review_delete(&object, options).await?;
            let Some(step) = self.next_step(&object, options) else {
                return Ok(Deletion::Pending(object));
            };
            if options.dry_run {
                return Ok(match step {
                    Step::Remove => Deletion::Gone(object),
                    Step::MarkAndRemove(marked) => Deletion::Gone(marked),
                    Step::Mark(marked) => Deletion::Pending(marked),
                });
            }
            let removes = matches!(step, Step::MarkAndRemove(_));
            let (change, gone) = match step {
                Step::Remove => (Change::Delete { last: None }, true),
                Step::Mark(marked) | Step::MarkAndRemove(marked) => {
                    (Change::Put(self.store_body(marked, Owners::Kept)?), false)
                }
            };
            let write = Write {
                key: stored.key.clone(),
                expect: Expect::Revision(stored.revision),
                change,
            };
            match self.server.storage().write(write).await {
                Ok(written) if gone => return Ok(Deletion::Gone(self.read(&written)?)),
                Ok(written) if removes => return self.remove_marked(written).await,
                Ok(written) => return Ok(Deletion::Pending(self.read(&written)?)),
                Err(WriteError::Conflict { current }) => stored = current,
                Err(WriteError::NotFound | WriteError::AlreadyExists) => {
                    return Err(ApiError::not_found(&self.resource.group_resource(), &name));
                }
                Err(WriteError::Unavailable(why)) => return Err(ApiError::unavailable(why)),
            }
        }
    }

    /// Removes an object whose grace period was cut to nothing.
    async fn remove_marked(&self, marked: StoredObject) -> Result<Deletion> {
        let write = Write {
            key: marked.key.clone(),
            expect: Expect::Any,
            change: Change::Delete { last: None },
        };
        match self.server.storage().write(write).await {
            // Others may have been faster, which is as good.
            Ok(_) | Err(WriteError::NotFound) => Ok(Deletion::Gone(self.read(&marked)?)),
            Err(error) => Err(ApiError::unavailable(error.to_string())),
        }
    }

    pub(crate) fn check_preconditions(
        &self,
        object: &Value,
        options: &DeleteOptions,
    ) -> Result<()> {
        // The message names the kind where others name the resource.
        let resource = GroupResource::new(&self.resource.gvk.group, &self.resource.gvk.kind);
        let conflict = |why: String| ApiError::conflict(&resource, object::name(object), &why);
        if let Some(wanted) = &options.uid
            && wanted != object::uid(object)
        {
            return Err(conflict(format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({}). The object might have been deleted and then recreated",
                object::uid(object)
            )));
        }
        if let Some(wanted) = &options.resource_version
            && wanted != object::resource_version(object)
        {
            return Err(conflict(format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({}). The object might have been modified",
                object::resource_version(object)
            )));
        }
        Ok(())
    }

    /// What a deletion does to the object now; `None` if it is under way already.
    fn next_step(&self, object: &Value, options: &DeleteOptions) -> Option<Step> {
        if *self.resource.storage == *"/namespaces" {
            return self.next_namespace_step(object, options);
        }
        if *self.resource.storage == *crd::STORAGE && !object::is_terminating(object) {
            return Some(Step::Mark(self.terminating_definition(object, options)));
        }
        let requested = options.grace_period_seconds.map(|s| if s < 0 { 1 } else { s });
        let mut marked = object.clone();
        let graceful = match self.graceful_mark(&mut marked, requested) {
            GracefulMark::Pending => return None,
            GracefulMark::Marked => true,
            GracefulMark::NotGraceful => false,
        };
        self.set_finalizers(&mut marked, options);
        let waits = object::finalizers(&marked).next().is_some();
        if !graceful && waits {
            self.mark_deleting(&mut marked);
        }
        let grace =
            object::integer(&marked, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
        if marked == *object && (waits || grace > 0) {
            return None;
        }
        if waits || (graceful && grace > 0) {
            return Some(Step::Mark(marked));
        }
        Some(if graceful { Step::MarkAndRemove(marked) } else { Step::Remove })
    }

    /// Namespaces are emptied by their controller before they go.
    fn next_namespace_step(&self, object: &Value, options: &DeleteOptions) -> Option<Step> {
        let finalizers = object::list(object, &["spec", "finalizers"]);
        if object::is_terminating(object) && !finalizers.is_empty() {
            return None;
        }
        let mut marked = object.clone();
        self.set_finalizers(&mut marked, options);
        if finalizers.is_empty() && object::finalizers(&marked).next().is_none() {
            return Some(Step::Remove);
        }
        if object::is_terminating(object) {
            return None;
        }
        object::set(&mut marked, &["metadata", "deletionTimestamp"], self.timestamp());
        object::set(&mut marked, &["status", "phase"], "Terminating");
        Some(Step::Mark(marked))
    }

    /// A definition waits until its objects are gone.
    fn terminating_definition(&self, object: &Value, options: &DeleteOptions) -> Value {
        let mut marked = object.clone();
        self.set_finalizers(&mut marked, options);
        let mut finalizers: Vec<Value> =
            object::list(&marked, &["metadata", "finalizers"]).to_vec();
        if !finalizers.iter().any(|f| f == crd::CLEANUP_FINALIZER) {
            finalizers.push(crd::CLEANUP_FINALIZER.into());
        }
        object::set(&mut marked, &["metadata", "finalizers"], finalizers);
        self.mark_deleting(&mut marked);
        crd::set_condition(
            object::ensure_value(&mut marked, &["status"]),
            &self.timestamp(),
            "Terminating",
            true,
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        );
        marked
    }

    fn graceful_mark(&self, object: &mut Value, requested: Option<i64>) -> GracefulMark {
        let now = self.server.now();
        if object::is_terminating(object) {
            let current =
                object::integer(object, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
            if current == 0 {
                return GracefulMark::NotGraceful;
            }
            // Only a shorter grace period may be asked for.
            let Some(mut period) = requested.filter(|&period| period < current) else {
                return GracefulMark::Pending;
            };
            let began = object::text(object, &["metadata", "deletionTimestamp"])
                .parse::<jiff::Timestamp>()
                .unwrap_or(now);
            let mut ends = began - jiff::SignedDuration::from_secs(current - period);
            if ends < now {
                ends = now;
                if period != 0 {
                    period = 1;
                }
            }
            object::set(object, &["metadata", "deletionTimestamp"], timestamp(ends));
            object::set(object, &["metadata", "deletionGracePeriodSeconds"], period);
            return GracefulMark::Marked;
        }
        if *self.resource.storage != *"/pods" {
            return GracefulMark::NotGraceful;
        }
        let grace = self.resource.kind.grace(object, requested).seconds.max(0);
        let ends = now + jiff::SignedDuration::from_secs(grace);
        object::set(object, &["metadata", "deletionTimestamp"], timestamp(ends));
        object::set(object, &["metadata", "deletionGracePeriodSeconds"], grace);
        bump_generation(object);
        GracefulMark::Marked
    }

    /// Sets the garbage collector's finalizers as the options ask.
    fn set_finalizers(&self, object: &mut Value, options: &DeleteOptions) {
        if *self.resource.storage == *"/events" {
            return;
        }
        let has = |name: &str| object::finalizers(object).any(|f| f == name);
        let (orphan, foreground) = match (options.orphan_dependents, options.propagation) {
            (Some(orphan), _) => (orphan, false),
            (None, Some(Propagation::Orphan)) => (true, false),
            (None, Some(Propagation::Foreground)) => (false, true),
            (None, Some(Propagation::Background)) => (false, false),
            (None, None) if has(ORPHAN) || has(FOREGROUND) => (has(ORPHAN), has(FOREGROUND)),
            (None, None) => (self.resource.kind.orphans_by_default(), false),
        };
        if orphan == has(ORPHAN) && foreground == has(FOREGROUND) {
            return;
        }
        let mut finalizers: Vec<Value> = object::finalizers(object)
            .filter(|f| *f != ORPHAN && *f != FOREGROUND)
            .map(Value::from)
            .collect();
        if orphan {
            finalizers.push(ORPHAN.into());
        }
        if foreground {
            finalizers.push(FOREGROUND.into());
        }
        if finalizers.is_empty() {
            object::remove(object, &["metadata", "finalizers"]);
        } else {
            object::set(object, &["metadata", "finalizers"], finalizers);
        }
    }

    fn mark_deleting(&self, object: &mut Value) {
        if !object::is_terminating(object) {
            bump_generation(object);
            object::set(object, &["metadata", "deletionTimestamp"], self.timestamp());
        }
        object::set(object, &["metadata", "deletionGracePeriodSeconds"], 0);
    }

    async fn review_delete(&mut self, object: &Value, options: &DeleteOptions) -> Result<()> {
        const IMMORTAL: &[&str] = &["default", "kube-system", "kube-public"];
        if *self.resource.storage == *"/namespaces" && IMMORTAL.contains(&object::name(object)) {
            return Err(ApiError::forbidden(
                &self.resource.group_resource(),
                object::name(object),
                "this namespace may not be deleted",
            ));
        }
        if self.admitted {
            return Ok(());
        }
        self.restrict_node(Operation::Delete, None, Some(object))?;
        let shown = |_: &Self| options.to_value();
        self.call_validating_webhooks(Operation::Delete, None, Some(object), options.dry_run, shown)
            .await
    }
}

enum Step {
    Remove,
    Mark(Value),
    /// Both, one after the other: a pod whose grace period is nothing.
    MarkAndRemove(Value),
}

enum GracefulMark {
    NotGraceful,
    Pending,
    Marked,
}

fn bump_generation(object: &mut Value) {
    let generation = object::generation(object);
    if generation > 0 {
        object::set(object, &["metadata", "generation"], generation + 1);
    }
}
