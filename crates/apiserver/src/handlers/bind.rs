//! `pods/binding`: the scheduler's decision.

use fleetwright_kschema::field::{FieldError, Path, aggregate_message};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Call, Part, Reply, modify::Modification};
use crate::{
    object,
    options::WriteOptions,
    status::{ApiError, Result},
};

struct Bind {
    node: String,
    annotations: Value,
    uid: String,
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
        if !self.uid.is_empty() && self.uid != object::uid(&old) {
            return Err(conflict(format!(
                "Precondition failed: UID in precondition: {}, UID in object meta: {}",
                self.uid,
                object::uid(&old)
            )));
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
        let mut new = old.clone();
        object::set(&mut new, &["spec", "nodeName"], self.node.as_str());
        if let Some(annotations) = self.annotations.as_object() {
            let existing = object::ensure_map(&mut new, &["metadata", "annotations"]);
            existing.extend(annotations.clone());
        }
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
        let binding = self.read_loose()?;
        let node = object::text(&binding, &["target", "name"]).to_owned();
        let errors = check(&binding);
        if let Some(message) = aggregate_message(&errors) {
            // Kubernetes forgets to say that the request is to blame.
            return Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message, None));
        }
        let bind = Bind {
            node,
            annotations: object::get(&binding, &["metadata", "annotations"])
                .cloned()
                .unwrap_or_default(),
            uid: object::uid(&binding).to_owned(),
            manager: self.manager(&options.field_manager),
            now: self.timestamp(),
        };
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
