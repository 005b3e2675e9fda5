//! The `scale` subresource.

use fleetwright_kschema::{
    builtin::body,
    field::{self, FieldError},
    names, scale as paths,
};
use fleetwright_smd::{
    fieldpath::Path,
    managed::{ReplicasPaths, scale_to_parent, scale_to_subresource},
};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Call, Part, Reply, modify::Modification, patch::PatchType};
use crate::{
    gvk::GroupVersionKind,
    object,
    options::WriteOptions,
    registry::Scale,
    selector::LabelSelector,
    status::{ApiError, Result},
};

/// A change of the number of replicas.
struct SetReplicas {
    patch: Option<PatchType>,
    scale: Option<Value>,
    options: WriteOptions,
    manager: String,
}

impl Modification for SetReplicas {
    fn apply(&self, call: &mut Call, current: Option<&Value>) -> Result<Value> {
        let current = current.ok_or_else(|| {
            ApiError::not_found(&call.resource.group_resource(), &call.context.info.name)
        })?;
        let mut live = call.scale_of(current)?;
        let replica_paths = call.replica_paths();
        let owners = object::get(current, &["metadata", "managedFields"]);
        let shown =
            scale_to_subresource(owners, &replica_paths).map_err(|e| ApiError::internal(&e))?;
        if let Some(shown) = shown {
            object::set(&mut live, &["metadata", "managedFields"], shown);
        }
        let wanted = self.wanted(call, &live)?;
        let replicas = object::integer(&wanted, &["spec", "replicas"]).unwrap_or(0);
        call.check_scale(&wanted, replicas)?;

        let mut new = current.clone();
        let version = object::resource_version(&wanted).to_owned();
        if version.is_empty() {
            object::remove(&mut new, &["metadata", "resourceVersion"]);
        } else {
            object::set(&mut new, &["metadata", "resourceVersion"], version);
        }
        let scale = call.scale_paths()?;
        paths::set(&mut new, &scale.spec_replicas, replicas.into()).map_err(ApiError::internal)?;
        let merged = scale_to_parent(
            owners,
            object::get(&wanted, &["metadata", "managedFields"]),
            &call.resource.group_version().to_string(),
            &replica_paths,
        )
        .map_err(|e| ApiError::internal(&e))?;
        match merged {
            Some(merged) => object::set(&mut new, &["metadata", "managedFields"], merged),
            None => {
                object::remove(&mut new, &["metadata", "managedFields"]);
            }
        }
        Ok(new)
    }
}

impl SetReplicas {
    /// The scale as it should be, with its managed fields.
    fn wanted(&self, call: &mut Call, live: &Value) -> Result<Value> {
        if self.patch == Some(PatchType::Apply) {
            let configuration = call.configuration(self.options.field_validation)?;
            return call.apply_scale(live, &configuration, &self.manager, self.options.force);
        }
        let mut new = match (self.patch, &self.scale) {
            (Some(kind), _) => call.patched(kind, live, self.options.field_validation)?.object,
            (None, Some(scale)) => scale.clone(),
            (None, None) => live.clone(),
        };
        for field in ["namespace", "uid", "creationTimestamp"] {
            if let Some(value) = object::get(live, &["metadata", field]) {
                object::default(&mut new, &["metadata", field], value.clone());
            }
        }
        Ok(call.update_scale(live, new, &self.manager))
    }
}

impl Call {
    pub(crate) async fn handle_scale(&mut self, method: &Method) -> Result<Reply> {
        match *method {
            Method::GET | Method::HEAD => {
                let stored = self.existing()?;
                let object = self.read(&stored)?;
                let paths = self.scale_paths()?;
                let replicas = paths::get_integer(&object, &paths.spec_replicas).ok().flatten();
                if self.resource.is_custom() && replicas.is_none() {
                    return Err(ApiError::internal(format!(
                        "the spec replicas field {} does not exist",
                        go_quote(&paths.spec_replicas)
                    )));
                }
                Ok(Reply::json(StatusCode::OK, self.scale_of(&object)?))
            }
            Method::PUT => {
                let options = WriteOptions::parse(&self.query, "UpdateOptions")?;
                let scale = self.read_loose().map_err(|error| {
                    let why = error.message();
                    ApiError::bad_request(body::refusal("Scale", None, why, &self.body))
                })?;
                self.check_name(&scale)?;
                let manager = self.manager(&options.field_manager);
                self.set_replicas(SetReplicas { patch: None, scale: Some(scale), options, manager })
                    .await
            }
            Method::PATCH => {
                let kind = PatchType::of(self)?;
                let options = WriteOptions::parse_patch(&self.query, kind == PatchType::Apply)?;
                let manager = self.manager(&options.field_manager);
                self.set_replicas(SetReplicas { patch: Some(kind), scale: None, options, manager })
                    .await
            }
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    async fn set_replicas(&mut self, change: SetReplicas) -> Result<Reply> {
        let (written, _) = self.modify(Part::Main, &change.options, &change).await?;
        Ok(Reply::json(StatusCode::OK, self.scale_of(&self.shown(written)?)?))
    }

    /// Where each served version of the kind keeps its replicas.
    fn replica_paths(&self) -> ReplicasPaths {
        let mut paths = ReplicasPaths::new();
        for other in self.server.registry().all() {
            if other.storage == self.resource.storage {
                let path = other.scale.as_ref().map(|scale| {
                    Path::fields(scale.spec_replicas.trim_start_matches('.').split('.'))
                });
                paths.insert(other.group_version().to_string(), path);
            }
        }
        paths
    }

    fn scale_paths(&self) -> Result<Scale> {
        self.resource.scale.clone().ok_or_else(ApiError::path_not_found)
    }

    /// The `Scale` of an object.
    pub(crate) fn scale_of(&self, object: &Value) -> Result<Value> {
        let scale = self.scale_paths()?;
        let number = |path: &str| paths::get_integer(object, path).ok().flatten();
        let mut metadata = json!({});
        for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            if let Some(value) = object::get(object, &["metadata", field]) {
                metadata[field] = value.clone();
            }
        }
        let mut spec = json!({});
        if let Some(replicas) = number(&scale.spec_replicas).filter(|&r| r != 0) {
            spec["replicas"] = replicas.into();
        }
        let mut status = json!({"replicas": number(&scale.status_replicas).unwrap_or(0)});
        let selector = if scale.selector_is_object {
            LabelSelector::from_object(paths::get(object, &scale.selector).ok().flatten())
                .map(|s| s.to_string())
        } else {
            paths::get_text(object, &scale.selector).ok().flatten().map(str::to_owned)
        };
        if let Some(selector) = selector.filter(|s| !s.is_empty()) {
            status["selector"] = selector.into();
        }
        Ok(json!({
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": metadata,
            "spec": spec,
            "status": status,
        }))
    }

    fn check_scale(&self, scale: &Value, replicas: i64) -> Result<()> {
        let mut errors = names::validate_object_meta(
            &scale["metadata"],
            self.resource.namespaced,
            names::name_is_dns_subdomain,
            &field::Path::new("metadata"),
        );
        if replicas < 0 {
            errors.push(FieldError::invalid(
                &field::Path::new("spec").child("replicas"),
                replicas,
                "must be greater than or equal to 0",
            ));
        }
        if errors.is_empty() {
            return Ok(());
        }
        Err(ApiError::invalid(
            &GroupVersionKind::new("autoscaling", "v1", "Scale"),
            object::name(scale),
            &errors,
        ))
    }
}

fn go_quote(text: &str) -> String {
    fleetwright_kschema::gotext::quote(text)
}
