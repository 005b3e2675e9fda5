//! `pods/binding`: the scheduler's decision.

use fleetwright_kschema::field::{FieldError, Path, aggregate_message};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Call, Part, Reply, modify::Modification};
use crate::{
    gvk::GroupVersionKind,
    object,
    options::WriteOptions,
    status::{ApiError, Result},
};

struct Bind {
    binding: Value,
    manager: String,
    now: String,
}

impl Modification for Bind {
    fn apply(&self, call: &mut Call, current: Option<&Value>) -> Result<Value> {
        let old = current.cloned().unwrap_or_default();
        let name = object::name(&old).to_owned();
        let conflict = |why: String| {
            ApiError::conflict(&crate::gvk::GroupResource::new("", "pods/binding"), &name, &why)
        };
        let uid = object::uid(&self.binding);
        if !uid.is_empty() && uid != object::uid(&old) {
            return Err(call.precondition_failed("UID", uid, object::uid(&old)));
        }
        let version = object::resource_version(&self.binding);
        if !version.is_empty() && version != object::resource_version(&old) {
            let live = object::resource_version(&old);
            return Err(call.precondition_failed("ResourceVersion", version, live));
        }
        if object::is_terminating(&old) {
            return Err(conflict(format!(
                "pod {name} is being deleted, cannot be assigned to a host"
            )));
        }
        let bound = object::text(&old, &["spec", "nodeName"]);
        if !bound.is_empty() {
            return Err(conflict(format!("pod {name} is already assigned to node \"{bound}\"")));
        }
        if !object::list(&old, &["spec", "schedulingGates"]).is_empty() {
            return Err(conflict(format!("pod {name} has non-empty .spec.schedulingGates")));
        }
        let mut new = old.clone();
        let node = object::text(&self.binding, &["target", "name"]);
        object::set(&mut new, &["spec", "nodeName"], node);
        for part in ["annotations", "labels"] {
            let path = ["metadata", part];
            if let Some(given) = object::get(&self.binding, &path).and_then(Value::as_object)
                && !given.is_empty()
            {
                object::ensure_map(&mut new, &path).extend(given.clone());
            }
        }
        object::remove(&mut new, &["status", "nominatedNodeName"]);
        let mut conditions = object::list(&new, &["status", "conditions"]).to_vec();
        conditions.retain(|c| object::text(c, &["type"]) != "PodScheduled");
        conditions.push(json!({
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": null,
            "lastTransitionTime": self.now,
        }));
        object::set(&mut new, &["status", "conditions"], conditions);
        Ok(call.manage_update(&old, new, &self.manager, "binding"))
    }
}

impl Call {
    pub(crate) async fn handle_binding(&mut self, method: &Method) -> Result<Reply> {
        if method != Method::POST {
            return Err(ApiError::method_not_allowed());
        }
        let options = WriteOptions::parse(&self.query, "CreateOptions")?;
        let mut binding = self.read_loose()?;
        let kind = GroupVersionKind::new("", "v1", "Binding");
        self.admit_given(&kind, &mut binding, &options).await?;
        if object::name(&binding) != self.context.info.name {
            return Err(ApiError::bad_request("name in URL does not match name in Binding object"));
        }
        let errors = check(&binding);
        if let Some(message) = aggregate_message(&errors) {
            // Kubernetes forgets to say that the request is to blame.
            return Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message, None));
        }
        self.review_given(&kind, &binding, &options).await?;
        let bind =
            Bind { binding, manager: self.manager(&options.field_manager), now: self.timestamp() };
        self.modify(Part::Binding, &options, &bind).await?;
        Ok(Reply::json(
            StatusCode::CREATED,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
        ))
    }
}

fn check(binding: &Value) -> Vec<FieldError> {
    let target = Path::new("target");
    let mut errors = Vec::new();
    let kind = object::text(binding, &["target", "kind"]);
    if !matches!(kind, "" | "Node") {
        errors.push(FieldError::not_supported(&target.child("kind"), kind, &["Node", "<empty>"]));
    }
    if object::text(binding, &["target", "name"]).is_empty() {
        errors.push(FieldError::required(&target.child("name"), ""));
    }
    errors
}
