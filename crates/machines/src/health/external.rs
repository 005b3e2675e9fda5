//! Repairs by somebody else: an object is made from a template, and its controller does the rest.

use std::{collections::BTreeMap, sync::Arc};

use fleetwright_api::{
    machine::Machine,
    names::{annotation, condition, reason},
};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, PostParams},
    core::GroupVersionKind,
    discovery::pinned_kind,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Templates end with this, requests do not.
const TEMPLATE_SUFFIX: &str = "Template";

/// Somebody could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ExternalError {
    /// The template is not there.
    #[error("cannot read the remediation template {template}: {source}")]
    Template {
        /// Kind and name.
        template: String,
        /// Why.
        source: kube::Error,
    },
    /// The request could not be read, made or removed.
    #[error("cannot {what} the remediation request {request}: {source}")]
    Request {
        /// What was attempted.
        what: &'static str,
        /// Kind and name.
        request: String,
        /// Why.
        source: kube::Error,
    },
}

impl ExternalError {
    /// The condition that shows it, with its reason.
    pub(super) fn condition(&self) -> (&'static str, &'static str) {
        match self {
            Self::Template { .. } => {
                (condition::EXTERNAL_REMEDIATION_TEMPLATE, reason::EXTERNAL_TEMPLATE_NOT_FOUND)
            }
            Self::Request { .. } => {
                (condition::EXTERNAL_REMEDIATION_REQUEST, reason::EXTERNAL_REQUEST_FAILED)
            }
        }
    }
}

/// Asks others.
#[derive(Clone)]
pub(super) struct External {
    client: Client,
    /// Kinds that were looked up: they do not change while they are served.
    kinds: Arc<Mutex<BTreeMap<(String, String), ApiResource>>>,
}

/// The kind of the requests that are made from a template.
pub fn request_kind(template_kind: &str) -> &str {
    template_kind.strip_suffix(TEMPLATE_SUFFIX).unwrap_or(template_kind)
}

/// The request for the repair of a Machine.
pub fn request(template: &DynamicObject, reference: &ObjectReference, machine: &Machine) -> Value {
    let api_version = reference.api_version.as_deref().unwrap_or_default();
    let template_kind = reference.kind.as_deref().unwrap_or_default();
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let inner = &template.data["spec"]["template"];
    let mut request = json!({
        "apiVersion": api_version,
        "kind": request_kind(template_kind),
        "metadata": {
            "name": machine.name_any(),
            "namespace": machine.namespace(),
            "labels": inner["metadata"]["labels"],
            "annotations": {},
            "ownerReferences": [{
                "apiVersion": Machine::API_VERSION, "kind": Machine::KIND,
                "name": machine.name_any(), "uid": machine.uid(),
            }],
        },
    });
    if let Value::Object(annotations) = &inner["metadata"]["annotations"] {
        request["metadata"]["annotations"] = Value::Object(annotations.clone());
    }
    let annotations = &mut request["metadata"]["annotations"];
    annotations[annotation::CLONED_FROM_NAME] = template.name_any().into();
    annotations[annotation::CLONED_FROM_GROUP_KIND] = format!("{template_kind}.{group}").into();
    if !inner["spec"].is_null() {
        request["spec"] = inner["spec"].clone();
    }
    request
}

impl External {
    pub(super) fn new(client: Client) -> Self {
        Self { client, kinds: Arc::default() }
    }

    async fn api(
        &self,
        reference: &ObjectReference,
        kind: &str,
        namespace: &str,
    ) -> Result<Api<DynamicObject>, kube::Error> {
        let version = reference.api_version.clone().unwrap_or_default();
        let key = (version.clone(), kind.to_owned());
        let known = self.kinds.lock().get(&key).cloned();
        let resource = if let Some(resource) = known {
            resource
        } else {
            let (group, version) = version.rsplit_once('/').unwrap_or(("", &version));
            let wanted = GroupVersionKind::gvk(group, version, kind);
            let (resource, _) = pinned_kind(&self.client, &wanted).await?;
            self.kinds.lock().insert(key, resource.clone());
            resource
        };
        Ok(Api::namespaced_with(self.client.clone(), namespace, &resource))
    }

    async fn requests(
        &self,
        template: &ObjectReference,
        namespace: &str,
    ) -> Result<Api<DynamicObject>, ExternalError> {
        let kind = request_kind(template.kind.as_deref().unwrap_or_default());
        self.api(template, kind, namespace).await.map_err(|source| ExternalError::Request {
            what: "find the kind of",
            request: kind.to_owned(),
            source,
        })
    }

    /// Makes the request for a Machine, unless it is there.
    pub(super) async fn ask(
        &self,
        reference: &ObjectReference,
        machine: &Machine,
    ) -> Result<(), ExternalError> {
        let namespace = machine.namespace().unwrap_or_default();
        let name = machine.name_any();
        let requests = self.requests(reference, &namespace).await?;
        let failed = |what| {
            let kind = request_kind(reference.kind.as_deref().unwrap_or_default());
            let request = format!("{kind} {name}");
            move |source| ExternalError::Request { what, request, source }
        };
        if requests.get_opt(&name).await.map_err(failed("read"))?.is_some() {
            return Ok(());
        }
        let template = self.template(reference, &namespace).await?;
        let request: DynamicObject = serde_json::from_value(request(&template, reference, machine))
            .map_err(|error| failed("write")(kube::Error::SerdeError(error)))?;
        match requests.create(&PostParams::default(), &request).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
            Err(error) => Err(failed("create")(error)),
        }
    }

    async fn template(
        &self,
        reference: &ObjectReference,
        namespace: &str,
    ) -> Result<DynamicObject, ExternalError> {
        let kind = reference.kind.as_deref().unwrap_or_default();
        let name = reference.name.as_deref().unwrap_or_default();
        let failed =
            |source| ExternalError::Template { template: format!("{kind} {name}"), source };
        let api = self.api(reference, kind, namespace).await.map_err(failed)?;
        api.get(name).await.map_err(failed)
    }

    /// Names of the Machines that somebody was asked to repair.
    pub(super) async fn asked(
        &self,
        reference: &ObjectReference,
        namespace: &str,
    ) -> Result<Vec<String>, ExternalError> {
        let requests = self.requests(reference, namespace).await?;
        let found = requests.list_metadata(&ListParams::default()).await.map_err(|source| {
            ExternalError::Request { what: "list", request: String::new(), source }
        })?;
        Ok(found.items.iter().map(ResourceExt::name_any).collect())
    }

    /// Removes the request for a Machine.
    pub(super) async fn withdraw(
        &self,
        reference: &ObjectReference,
        namespace: &str,
        name: &str,
    ) -> Result<(), ExternalError> {
        let requests = self.requests(reference, namespace).await?;
        match requests.delete(name, &DeleteParams::default()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(source) => {
                Err(ExternalError::Request { what: "delete", request: name.to_owned(), source })
            }
        }
    }
}
