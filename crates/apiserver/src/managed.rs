//! Who owns which field: the glue between requests and server-side apply.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use fleetwright_kschema::builtin::Builtins;
use fleetwright_smd::{
    fieldpath::FieldFilter,
    managed::{ApplyError, FieldManager, conflict_causes, conflict_message},
    schema::{Schema as FieldSchema, zero_object},
};
use http::StatusCode;
use parking_lot::RwLock;
use serde_json::{Value, json};

use crate::{
    gvk::{GroupVersion, GroupVersionKind},
    handlers::{Call, timestamp},
    object,
    registry::{Resource, Schema},
    server::Server,
    status::{ApiError, Cause, Result},
};

/// The schema of a built-in kind, and what an object of it is before it is created.
struct Known {
    schema: FieldSchema,
    empty: Value,
}

/// Schemas of built-in kinds, made when they are first needed.
#[derive(Default)]
pub struct FieldSchemas(RwLock<BTreeMap<GroupVersionKind, Arc<Known>>>);

impl FieldSchemas {
    fn of(&self, gvk: &GroupVersionKind) -> Arc<Known> {
        if let Some(known) = self.0.read().get(gvk) {
            return Arc::clone(known);
        }
        let builtins = Builtins::shared();
        let resolve = |name: &str| builtins.resolve_ref(name).map(Cow::Borrowed);
        let api_version = gvk.group_version().to_string();
        let named = builtins.schema_name(&api_version, &gvk.kind);
        let known = match (named, named.and_then(|name| builtins.resolve_ref(name))) {
            (Some(name), Some(root)) => Known {
                schema: FieldSchema::from_openapi(root, &resolve, false)
                    .unwrap_or_else(|_| FieldSchema::deduced()),
                empty: zero_object(name, &resolve),
            },
            _ => Known { schema: FieldSchema::deduced(), empty: json!({}) },
        };
        let known = Arc::new(known);
        self.0.write().insert(gvk.clone(), Arc::clone(&known));
        known
    }
}

impl Call {
    fn with_field_manager<T>(
        &self,
        subresource: &str,
        run: impl FnOnce(&FieldManager<'_>) -> T,
    ) -> T {
        let gvk = &self.resource.gvk;
        let api_version = gvk.group_version().to_string();
        let filter = reset_fields(&self.resource, subresource);
        let nothing = json!({});
        let known;
        let (schema, empty) = match &self.resource.schema {
            Schema::Builtin => {
                known = self.server.field_schemas().of(gvk);
                (&known.schema, &known.empty)
            }
            Schema::Custom(custom) => (&custom.managed, &nothing),
        };
        run(&FieldManager {
            schema,
            api_version: &api_version,
            kind: &gvk.kind,
            subresource,
            filter: &filter,
            empty,
            versions: None,
        })
    }

    /// Runs something with the field manager of a scale subresource.
    fn with_scale_manager<T>(&self, run: impl FnOnce(&FieldManager<'_>) -> T) -> T {
        let gvk = GroupVersionKind::new("autoscaling", "v1", "Scale");
        let known = self.server.field_schemas().of(&gvk);
        run(&FieldManager {
            schema: &known.schema,
            api_version: "autoscaling/v1",
            kind: "Scale",
            subresource: "scale",
            filter: &FieldFilter::except([]),
            empty: &known.empty,
            versions: None,
        })
    }

    /// Records who owns the replicas of a changed scale.
    pub(crate) fn update_scale(&self, live: &Value, new: Value, manager: &str) -> Value {
        let now = self.timestamp();
        self.with_scale_manager(|fields| fields.update(live, new, manager, &now))
    }

    /// Merges an apply configuration into a scale.
    pub(crate) fn apply_scale(
        &self,
        live: &Value,
        configuration: &Value,
        manager: &str,
        force: bool,
    ) -> Result<Value> {
        let now = self.timestamp();
        self.with_scale_manager(|fields| fields.apply(live, configuration, manager, force, &now))
            .map_err(apply_error)
    }

    /// Records who owns the fields of a created, replaced or patched object.
    pub(crate) fn manage_update(
        &self,
        live: &Value,
        new: Value,
        manager: &str,
        subresource: &str,
    ) -> Value {
        let now = self.timestamp();
        self.with_field_manager(subresource, |fields| fields.update(live, new, manager, &now))
    }

    /// Merges an apply configuration into an object.
    pub(crate) fn manage_apply(
        &self,
        live: &Value,
        configuration: &Value,
        manager: &str,
        force: bool,
        subresource: &str,
    ) -> Result<Value> {
        let now = self.timestamp();
        self.with_field_manager(subresource, |fields| {
            fields.apply(live, configuration, manager, force, &now)
        })
        .map_err(apply_error)
    }
}

fn apply_error(error: ApplyError) -> ApiError {
    match error {
        ApplyError::Conflicts(conflicts) => {
            let causes = conflict_causes(&conflicts)
                .into_iter()
                .map(|cause| Cause {
                    reason: "FieldManagerConflict".to_owned(),
                    message: cause.message,
                    field: cause.field,
                })
                .collect();
            ApiError::apply_conflict(conflict_message(&conflicts), causes)
        }
        ApplyError::BadRequest(why) => ApiError::bad_request(why),
        ApplyError::Failed(why) => ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", why, None),
    }
}

/// Records who owns the fields of a review, which is answered and forgotten.
pub(crate) fn manage_review(server: &Server, review: Value, manager: &str) -> Value {
    let version = GroupVersion::parse(object::text(&review, &["apiVersion"]))
        .unwrap_or_else(|| GroupVersion::new("", ""));
    let kind = object::text(&review, &["kind"]);
    let gvk = GroupVersionKind::new(&version.group, &version.version, kind);
    let known = server.field_schemas().of(&gvk);
    let now = timestamp(server.now());
    FieldManager {
        schema: &known.schema,
        api_version: &gvk.group_version().to_string(),
        kind: &gvk.kind,
        subresource: "",
        filter: &FieldFilter::except([]),
        empty: &known.empty,
        versions: None,
    }
    .update(&Value::Null, review, manager, &now)
}

/// The fields that an endpoint does not change, and so nobody comes to own through it.
fn reset_fields(resource: &Resource, subresource: &str) -> FieldFilter {
    let paths: &[&str] = match (subresource, &*resource.storage) {
        ("status", _) if resource.is_custom() => &["spec", "metadata"],
        ("status", "resource.k8s.io/resourceclaims") => &["spec", "metadata"],
        ("status", "apps/deployments") => &["spec", "metadata.labels"],
        ("status", "/pods") => &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"],
        ("status", _) => &["spec"],
        ("finalize", _) => &["status"],
        ("", _) if resource.kind.has_status() => &["status"],
        _ => &[],
    };
    FieldFilter::except(paths.iter().copied())
}
