//! How the server's own controllers talk to it: as any client does, but without a socket.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use crate::{
    object,
    registry::Resource,
    server::Server,
    service,
    status::{ApiError, Result},
    user::{AUTHENTICATED, MASTERS, UserInfo},
};

/// A client in the same process.
#[derive(Clone)]
pub struct InternalClient {
    server: Server,
    user: Arc<UserInfo>,
    agent: &'static str,
}

impl InternalClient {
    /// A client that may do everything, known as `agent` in managed fields.
    pub fn new(server: &Server, agent: &'static str) -> Self {
        let user = UserInfo::new("system:apiserver", &[MASTERS, AUTHENTICATED]);
        Self { server: server.clone(), user: Arc::new(user), agent }
    }

    /// The path of one object.
    pub fn path(resource: &Resource, namespace: &str, name: &str) -> String {
        format!("{}/{name}", Self::collection(resource, namespace))
    }

    /// The path of a collection.
    pub fn collection(resource: &Resource, namespace: &str) -> String {
        let gvk = &resource.gvk;
        let root = if gvk.group.is_empty() {
            format!("/api/{}", gvk.version)
        } else {
            format!("/apis/{}/{}", gvk.group, gvk.version)
        };
        if namespace.is_empty() {
            format!("{root}/{}", resource.plural)
        } else {
            format!("{root}/namespaces/{namespace}/{}", resource.plural)
        }
    }

    /// Sends a request and reads the answer.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Value> {
        let bytes = body.map(|b| Bytes::from(b.to_string())).unwrap_or_default();
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, content_type)
            .header(header::USER_AGENT, self.agent)
            .body(Full::new(bytes))
            .map_err(ApiError::internal)?;
        request.extensions_mut().insert(service::KnownUser(Arc::clone(&self.user)));
        // A controller's request may lead to further requests, so the future is boxed.
        let response = Box::pin(service::handle(self.server.clone(), request)).await;
        let status = response.status();
        let bytes = match response.into_body().collect().await {
            Ok(collected) => collected.to_bytes(),
            Err(never) => match never {},
        };
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if status.is_success() {
            return Ok(value);
        }
        Err(ApiError::new(
            status,
            service::reason_of(&value),
            object::text(&value, &["message"]),
            None,
        ))
    }

    /// Reads one object.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.send(Method::GET, path, "application/json", None).await
    }

    /// Replaces one object (or its status, by the path).
    pub async fn put(&self, path: &str, value: &Value) -> Result<Value> {
        self.send(Method::PUT, path, "application/json", Some(value)).await
    }

    /// Creates one object.
    pub async fn post(&self, path: &str, value: &Value) -> Result<Value> {
        self.send(Method::POST, path, "application/json", Some(value)).await
    }

    /// Applies a JSON merge patch.
    pub async fn merge(&self, path: &str, patch: &Value) -> Result<Value> {
        self.send(Method::PATCH, path, "application/merge-patch+json", Some(patch)).await
    }

    /// Deletes one object, if it still has the UID.
    pub async fn delete(&self, path: &str, uid: &str, propagation: Option<&str>) -> Result<Value> {
        let mut options = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
        if !uid.is_empty() {
            options["preconditions"] = json!({"uid": uid});
        }
        if let Some(propagation) = propagation {
            options["propagationPolicy"] = propagation.into();
        }
        self.send(Method::DELETE, path, "application/json", Some(&options)).await
    }

    /// Removes a finalizer, if it is there. Says whether the object still exists.
    pub async fn remove_finalizer(&self, path: &str, finalizer: &str) -> Result<()> {
        loop {
            let object = match self.get(path).await {
                Ok(object) => object,
                Err(error) if error.reason() == "NotFound" => return Ok(()),
                Err(error) => return Err(error),
            };
            let left: Vec<&str> =
                object::finalizers(&object).filter(|name| *name != finalizer).collect();
            if left.len() == object::finalizers(&object).count() {
                return Ok(());
            }
            let patch = json!({"metadata": {
                "resourceVersion": object::resource_version(&object),
                "finalizers": if left.is_empty() { Value::Null } else { json!(left) },
            }});
            match self.merge(path, &patch).await {
                Ok(_) => return Ok(()),
                Err(error) if error.reason() == "NotFound" => return Ok(()),
                Err(error) if error.reason() == "Conflict" => {}
                Err(error) => return Err(error),
            }
        }
    }
}
