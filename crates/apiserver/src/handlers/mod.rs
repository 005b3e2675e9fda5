//! The generic handler: what happens for each verb, for every kind.

mod admit;
mod allocate;
mod bind;
mod collection;
mod create;
mod decode;
mod delete;
mod eviction;
mod list;
mod modify;
mod patch;
mod respond;
mod scale;
mod token;
mod watch;
mod webhooks;
mod written;

use std::sync::Arc;

use bytes::Bytes;
use fleetwright_kstore::Key;
use http::{HeaderMap, Method};
use serde_json::Value;

pub(crate) use allocate::Reservations;
pub(crate) use respond::{Body, Encoding, Reply, Shape, metadata_only, negotiate};
use written::Written;

use crate::{
    query::Query,
    registry::Resource,
    request::Context,
    server::Server,
    status::{ApiError, Result},
    storage::{self, StoredObject},
};

/// A request for a resource, ready to be handled.
pub(crate) struct Call {
    pub server: Server,
    pub resource: Arc<Resource>,
    pub context: Context,
    pub query: Query,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// What the client wants to get back.
    pub shape: Shape,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Whether admission is done with: it was asked about what the client sent, and what is
    /// written follows from that.
    pub admitted: bool,
}

/// The part of an object that a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Main,
    Status,
    Finalize,
    Binding,
}

impl Part {
    /// The name of the subresource.
    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
            Self::Finalize => "finalize",
            Self::Binding => "binding",
        }
    }
}

impl Call {
    /// Handles the request.
    pub(crate) async fn handle(&mut self, method: &Method) -> Result<Reply> {
        let info = Arc::clone(&self.context.info);
        if info.extra_segments > 0 {
            return Err(ApiError::path_not_found());
        }
        match info.subresource.as_str() {
            "" => self.handle_main(method).await,
            "status" if self.resource.status => self.handle_part(method, Part::Status).await,
            "scale" if self.resource.scale.is_some() => self.handle_scale(method).await,
            "finalize" if *self.resource.storage == *"/namespaces" && method == Method::PUT => {
                self.handle_part(method, Part::Finalize).await
            }
            "eviction" if *self.resource.storage == *"/pods" => self.handle_eviction(method).await,
            "binding" if *self.resource.storage == *"/pods" => self.handle_binding(method).await,
            "token" if *self.resource.storage == *"/serviceaccounts" => {
                self.handle_token(method).await
            }
            "log"
            | "exec"
            | "attach"
            | "portforward"
            | "proxy"
            | "ephemeralcontainers"
            | "resize"
                if matches!(&*self.resource.storage, "/pods" | "/nodes" | "/services") =>
            {
                self.existing()?;
                Err(ApiError::not_implemented(format!(
                    "{}/{} is not served: the nodes of this API server are simulated and run no containers",
                    self.resource.plural, info.subresource
                )))
            }
            "status" | "scale" if self.resource.is_custom() => {
                Err(ApiError::not_found(&self.resource.group_resource(), &info.name))
            }
            _ => Err(ApiError::path_not_found()),
        }
    }

    async fn handle_main(&mut self, method: &Method) -> Result<Reply> {
        let verb = self.context.info.verb.clone();
        let has_name_in_path = self.has_name_in_path();
        if self.resource.namespaced && self.context.info.namespace.is_empty() && has_name_in_path {
            return Err(ApiError::path_not_found());
        }
        if !self.resource.namespaced
            && !self.context.info.namespace.is_empty()
            && *self.resource.storage != *"/namespaces"
        {
            return Err(if self.resource.is_custom() {
                ApiError::page_not_found()
            } else {
                ApiError::path_not_found()
            });
        }
        let everywhere = self.resource.namespaced && self.context.info.namespace.is_empty();
        let collection = *self.resource.storage != *"/namespaces";
        match (method, has_name_in_path) {
            (&Method::POST, false) if everywhere => Err(ApiError::method_not_allowed()),
            (&Method::DELETE, false) if everywhere || !collection => {
                Err(ApiError::method_not_allowed())
            }
            (&Method::GET, _) if verb == "watch" => self.watch().await,
            (&Method::GET, false) => self.list().await,
            (&Method::GET, true) => self.get(),
            (&Method::POST, false) => self.create().await,
            (&Method::PUT, true) => self.update(Part::Main).await,
            (&Method::PATCH, true) => self.patch(Part::Main).await,
            (&Method::DELETE, true) => self.delete().await,
            (&Method::DELETE, false) => self.delete_collection().await,
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    async fn handle_part(&mut self, method: &Method, part: Part) -> Result<Reply> {
        match *method {
            Method::GET | Method::HEAD if part == Part::Status => self.get(),
            Method::PUT => self.update(part).await,
            Method::PATCH if part == Part::Status => self.patch(part).await,
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    /// Whether the path names one object. A list whose field selector does is still a list.
    fn has_name_in_path(&self) -> bool {
        let info = &self.context.info;
        !info.name.is_empty()
            && !matches!(info.verb.as_str(), "list" | "watch" | "deletecollection")
            || (info.verb == "watch"
                && info.path.trim_end_matches('/').ends_with(&format!("/{}", info.name)))
    }

    /// The namespace that objects of this request are in.
    pub(crate) fn namespace(&self) -> &str {
        if self.resource.namespaced { &self.context.info.namespace } else { "" }
    }

    /// The key of the object that the path names.
    pub(crate) fn key(&self, name: &str) -> Key {
        Key::new(self.resource.storage.clone(), self.namespace(), name)
    }

    /// The object that the path names, or 404.
    pub(crate) fn existing(&self) -> Result<StoredObject> {
        let name = &self.context.info.name;
        self.server
            .storage()
            .get(&self.key(name))
            .ok_or_else(|| ApiError::not_found(&self.resource.group_resource(), name))
    }

    /// A stored object in the version of this request.
    pub(crate) fn read(&self, stored: &StoredObject) -> Result<Value> {
        read_stored(&self.resource, stored)
    }

    fn get(&self) -> Result<Reply> {
        self.answer(http::StatusCode::OK, Written::Stored(self.existing()?))
    }

    /// Whether the stored bytes can be sent as they are.
    pub(crate) fn is_in_version(&self, stored: &StoredObject) -> bool {
        let gv = &self.resource.gvk;
        if !self.resource.is_custom() {
            return self.resource.group_version() == self.resource.storage_version;
        }
        match stored.meta.api_version.split_once('/') {
            Some((group, version)) => *gv.group == *group && *gv.version == *version,
            None => gv.group.is_empty() && *gv.version == *stored.meta.api_version,
        }
    }

    /// The name that managed fields are recorded under.
    pub(crate) fn manager(&self, requested: &str) -> String {
        if !requested.is_empty() {
            return requested.to_owned();
        }
        manager_of_agent(&self.context.user_agent)
    }

    /// The current time as it is written in metadata.
    pub(crate) fn timestamp(&self) -> String {
        timestamp(self.server.now())
    }
}

/// A time with seconds, as Kubernetes writes it.
pub(crate) fn timestamp(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A stored object in the version of `resource`.
pub(crate) fn read_stored(resource: &Resource, stored: &StoredObject) -> Result<Value> {
    let mut value = storage::parse(&stored.json)?;
    crate::convert::from_stored(resource, &mut value);
    Ok(value)
}

/// The name that managed fields are recorded under when the client gives none.
pub(crate) fn manager_of_agent(agent: &str) -> String {
    let prefix: String = agent
        .split('/')
        .next()
        .unwrap_or_default()
        .chars()
        .filter(|c| !c.is_control())
        .take(128)
        .collect();
    if prefix.is_empty() { "unknown".to_owned() } else { prefix }
}
