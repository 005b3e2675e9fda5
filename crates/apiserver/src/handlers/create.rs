//! POST: create.

use fleetwright_kstore::{Change, Expect, Write, WriteError};
use http::StatusCode;
use serde_json::Value;

use super::{
    Call, Reply,
    written::{Owners, Written},
};
use crate::{
    object,
    options::WriteOptions,
    request::Operation,
    status::{ApiError, Cause, Details, Result},
};

/// How often a generated name is drawn again when it is taken.
const NAME_ATTEMPTS: usize = 8;
/// How many characters are added to a `generateName`.
const SUFFIX_LENGTH: usize = 5;
/// Longest prefix that leaves room for the suffix.
const MAX_PREFIX: usize = 63 - SUFFIX_LENGTH;

impl Call {
    pub(crate) async fn create(&mut self) -> Result<Reply> {
        let options = WriteOptions::parse(&self.query, "CreateOptions")?;
        let mut value = self.decode_object(options.field_validation)?;
        wipe_system_fields(&mut value);
        self.ensure_namespace(&mut value)?;
        let created = self.create_object(value, &options).await?;
        self.answer(StatusCode::CREATED, created)
    }

    /// Creates a decoded and defaulted object.
    pub(crate) async fn create_object(
        &mut self,
        mut value: Value,
        options: &WriteOptions,
    ) -> Result<Written> {
        self.dedup_owners(&mut value, false);
        let manager = self.manager(&options.field_manager);
        value = self.manage_update(&Value::Null, value, &manager, "");
        self.create_managed(value, options, Owners::Forgotten).await
    }

    /// Creates an object whose managed fields are recorded already.
    pub(crate) async fn create_managed(
        &mut self,
        mut value: Value,
        options: &WriteOptions,
        owners: Owners,
    ) -> Result<Written> {
        self.admit(Operation::Create, &mut value, None, options).await?;
        self.dedup_owners(&mut value, true);
        if !object::resource_version(&value).is_empty() {
            return Err(ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "",
                "resourceVersion should not be set on objects to be created",
                None,
            ));
        }
        let prefix = object::text(&value, &["metadata", "generateName"]).to_owned();
        if !object::name(&value).is_empty() || prefix.is_empty() {
            return self.try_create(value, options, owners).await;
        }
        for _ in 1..NAME_ATTEMPTS {
            let mut candidate = value.clone();
            object::set(&mut candidate, &["metadata", "name"], self.generate_name(&prefix));
            match self.try_create(candidate, options, owners).await {
                Err(error) if error.reason() == "AlreadyExists" => {}
                result => return result,
            }
        }
        object::set(&mut value, &["metadata", "name"], self.generate_name(&prefix));
        self.try_create(value, options, owners).await
    }

    async fn try_create(
        &mut self,
        mut value: Value,
        options: &WriteOptions,
        owners: Owners,
    ) -> Result<Written> {
        self.fill_system_fields(&mut value);
        let generated = !object::text(&value, &["metadata", "generateName"]).is_empty();
        if self.resource.kind.has_generation() {
            object::set(&mut value, &["metadata", "generation"], 1);
        }
        self.resource.kind.admit_create(&mut value, &self.server).map_err(|why| {
            ApiError::forbidden(&self.resource.group_resource(), object::name(&value), &why)
        })?;
        // Until it is written, what it got is nobody else's.
        let _held = self.allocate(&mut value, None)?;
        self.resource.kind.prepare_create(&self.context, &mut value);
        let errors = self.validate_create(&value);
        if !errors.is_empty() {
            return Err(self.invalid(&value, &errors));
        }
        self.warnings.extend(self.resource.kind.warnings(&value, None));
        self.resource.kind.canonicalize(&mut value);
        self.review(Operation::Create, Some(&value), None, options).await?;

        let name = object::name(&value).to_owned();
        let key = self.key(&name);
        let taken = || {
            let resource = self.resource.group_resource();
            let mut error = ApiError::already_exists(&resource, &name);
            if generated {
                error = ApiError::new(
                    StatusCode::CONFLICT,
                    "AlreadyExists",
                    format!(
                        "{resource} {} already exists, the server was not able to generate a unique name for the object",
                        fleetwright_kschema::gotext::quote(&name)
                    ),
                    Some(Details {
                        group: resource.group.to_string(),
                        kind: resource.resource.to_string(),
                        name: name.clone(),
                        retry_after_seconds: 1,
                        ..Details::default()
                    }),
                );
            }
            let existing = self.server.storage().get(&key);
            let deleting = existing.is_some_and(|existing| existing.meta.is_terminating());
            if deleting { error.prefixed("object is being deleted: ") } else { error }
        };
        if options.dry_run {
            if self.server.storage().get(&key).is_some() {
                return Err(taken());
            }
            return Ok(Written::Shown(value));
        }
        let body = self.store_body(value, owners)?;
        let write = Write { key: key.clone(), expect: Expect::Absent, change: Change::Put(body) };
        match self.server.storage().write(write).await {
            Ok(stored) => Ok(Written::Stored(stored)),
            Err(WriteError::AlreadyExists | WriteError::Conflict { .. }) => Err(taken()),
            Err(WriteError::NotFound) => Err(ApiError::internal("a new object was not found")),
            Err(WriteError::Unavailable(why)) => Err(ApiError::unavailable(why)),
        }
    }

    /// Puts the object into the request's namespace, or refuses another one.
    pub(crate) fn ensure_namespace(&self, value: &mut Value) -> Result<()> {
        let wanted = self.namespace();
        let found = object::namespace(value);
        if found == wanted {
            return Ok(());
        }
        if wanted.is_empty() {
            object::remove(value, &["metadata", "namespace"]);
        } else if found.is_empty() {
            let wanted = wanted.to_owned();
            object::set(value, &["metadata", "namespace"], wanted);
        } else {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        Ok(())
    }

    fn fill_system_fields(&self, value: &mut Value) {
        object::set(value, &["metadata", "creationTimestamp"], self.timestamp());
        object::set(value, &["metadata", "uid"], self.server.random().uuid().to_string());
    }

    fn generate_name(&self, prefix: &str) -> String {
        let mut end = prefix.len().min(MAX_PREFIX);
        while !prefix.is_char_boundary(end) {
            end -= 1;
        }
        format!("{}{}", &prefix[..end], self.server.random().name_suffix(SUFFIX_LENGTH))
    }

    /// Removes owner references that appear twice, with a warning.
    pub(crate) fn dedup_owners(&mut self, value: &mut Value, after_admission: bool) {
        let Some(owners) =
            value.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut)
        else {
            return;
        };
        let mut seen: Vec<Value> = Vec::new();
        let mut repeated: Vec<String> = Vec::new();
        owners.retain(|owner| {
            if seen.contains(owner) {
                repeated.push(object::text(owner, &["uid"]).to_owned());
                return false;
            }
            seen.push(owner.clone());
            true
        });
        if let Some(first) = repeated.first() {
            let when = if after_admission { " after mutating admission happens" } else { "" };
            self.warnings.push(format!(
                ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {first}"
            ));
        }
    }
}

/// Drops what only the server may set.
pub(crate) fn wipe_system_fields(value: &mut Value) {
    for field in
        ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"]
    {
        object::remove(value, &["metadata", field]);
    }
    object::ensure_map(value, &["metadata"]);
}

/// A new object in a namespace that is going away.
pub(crate) fn namespace_terminating(call: &Call, name: &str, namespace: &str) -> ApiError {
    ApiError::forbidden(
        &call.resource.group_resource(),
        name,
        &format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        ),
    )
    .with_cause(Cause {
        reason: "NamespaceTerminating".to_owned(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".to_owned(),
    })
}
