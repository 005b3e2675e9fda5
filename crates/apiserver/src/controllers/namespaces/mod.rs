//! Empties namespaces that are deleted, then lets them go.
//!
//! The real controller waits five seconds before it begins, for the sake of other API servers
//! that have not heard of the deletion. Here there is one.

mod conditions;
mod content;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fleetwright_kstore::{Key, Scope};
use parking_lot::Mutex;
use serde_json::{Value, json};

use self::{conditions::update, content::Content};
use super::{
    AGENT, NAMESPACES, PODS,
    driver::{Controller, Next, Seen},
    queue::Queue,
};
use crate::{
    handlers::timestamp,
    internal::InternalClient,
    object,
    server::Server,
    status::{ApiError, Result},
    storage,
};

/// What this controller takes off a namespace.
const FINALIZER: &str = "kubernetes";
/// A request that was let in before the deletion may have been with a webhook since, which may
/// take half a minute.
const STRAYS_AFTER: Duration = Duration::from_secs(40);

/// Whether objects can be created in a namespace.
pub(super) fn takes_objects(server: &Server, name: &str) -> bool {
    let Some(stored) = server.storage().get(&Key::new(NAMESPACES, "", name)) else { return false };
    storage::parse(&stored.json).is_ok_and(|namespace| {
        !object::is_terminating(&namespace)
            && object::text(&namespace, &["status", "phase"]) != "Terminating"
    })
}

/// Ends namespaces.
pub(super) struct Namespaces {
    server: Server,
    client: InternalClient,
    /// Namespaces on their way out: when the last pod leaves, it is time for another look.
    ending: Mutex<BTreeSet<Arc<str>>>,
}

impl Namespaces {
    pub(super) fn new(server: &Server) -> Self {
        Self {
            server: server.clone(),
            client: InternalClient::new(server, AGENT),
            ending: Mutex::default(),
        }
    }
}

impl Controller for Namespaces {
    type Key = Arc<str>;
    const NAME: &'static str = "namespaces";
    const FOLLOWS: &'static [&'static str] = &[NAMESPACES, PODS];
    const WORKERS: usize = 10;
    const LONGEST_BACKOFF: Duration = Duration::from_mins(1);

    fn observe(&self, seen: &Seen<'_>, queue: &mut Queue<Arc<str>>) {
        let key = &seen.object.key;
        if seen.is(PODS) {
            let ending = seen.is_gone() && self.ending.lock().contains(&key.namespace);
            let pods = Scope::in_namespace(PODS, key.namespace.clone());
            if ending && self.server.storage().count(&pods) == 0 {
                queue.add(key.namespace.clone());
            }
        } else if seen.is_gone() {
            self.ending.lock().remove(&key.name);
            queue.add_after(key.name.clone(), STRAYS_AFTER);
        } else if storage::parse(&seen.object.json).is_ok_and(|ns| object::is_terminating(&ns)) {
            self.ending.lock().insert(key.name.clone());
            queue.add(key.name.clone());
        }
    }

    async fn reconcile(&self, name: &Arc<str>) -> Result<Next> {
        if self.server.storage().get(&Key::new(NAMESPACES, "", name.clone())).is_none() {
            let _ = Content::new(&self.server, &self.client, name).sweep(None).await;
            return Ok(Next::Rest);
        }
        match self.end(name).await {
            Err(error) if error.reason() == "NotFound" => Ok(Next::Rest),
            other => other,
        }
    }
}

impl Namespaces {
    async fn end(&self, name: &str) -> Result<Next> {
        let path = format!("/api/v1/namespaces/{name}");
        let mut namespace = self.client.get(&path).await?;
        if !object::is_terminating(&namespace) {
            return Ok(Next::Rest);
        }
        if object::text(&namespace, &["status", "phase"]) != "Terminating" {
            object::set(&mut namespace, &["status", "phase"], "Terminating");
            namespace = self.client.put(&format!("{path}/status"), &namespace).await?;
        }
        if object::list(&namespace, &["spec", "finalizers"]).is_empty() {
            return Ok(Next::Rest);
        }
        let content = Content::new(&self.server, &self.client, name);
        let swept = content.sweep(deleted_at(&namespace)).await;
        let now = timestamp(self.server.now());
        if update(&mut namespace, &swept.findings(), &now)
            && let Err(error) = self.client.put(&format!("{path}/status"), &namespace).await
        {
            tracing::debug!(namespace = name, error = error.message(), "conditions not written");
        }
        if let Some(error) = swept.errors.first() {
            return Err(ApiError::internal(error));
        }
        if swept.estimate > 0 {
            return Ok(Next::After(Duration::from_secs(swept.estimate / 2 + 1)));
        }
        self.finalize(&path).await
    }

    /// Takes the finalizer off, with which the namespace goes unless somebody else holds it.
    async fn finalize(&self, path: &str) -> Result<Next> {
        let mut namespace = self.client.get(path).await?;
        let left: Vec<&Value> = object::list(&namespace, &["spec", "finalizers"])
            .iter()
            .filter(|finalizer| *finalizer != FINALIZER)
            .collect();
        let spec = if left.is_empty() { json!({}) } else { json!({"finalizers": left}) };
        object::set(&mut namespace, &["spec"], spec);
        match self.client.put(&format!("{path}/finalize"), &namespace).await {
            Err(error) => Err(error),
            Ok(_) => Ok(Next::Rest),
        }
    }
}

fn deleted_at(namespace: &Value) -> Option<jiff::Timestamp> {
    object::text(namespace, &["metadata", "deletionTimestamp"]).parse().ok()
}
