//! The service account `default`, in every namespace.

use std::sync::Arc;

use fleetwright_kstore::Key;
use serde_json::json;

use super::{
    AGENT, NAMESPACES,
    driver::{Controller, Next, Seen},
    namespaces::takes_objects,
    queue::Queue,
};
use crate::{internal::InternalClient, server::Server, status::Result};

const SERVICE_ACCOUNTS: &str = "/serviceaccounts";
const NAME: &str = "default";

/// Keeps the default accounts.
pub(super) struct ServiceAccounts {
    server: Server,
    client: InternalClient,
}

impl ServiceAccounts {
    pub(super) fn new(server: &Server) -> Self {
        Self { server: server.clone(), client: InternalClient::new(server, AGENT) }
    }
}

impl Controller for ServiceAccounts {
    type Key = Arc<str>;
    const NAME: &'static str = "service accounts";
    const FOLLOWS: &'static [&'static str] = &[NAMESPACES, SERVICE_ACCOUNTS];

    fn observe(&self, seen: &Seen<'_>, queue: &mut Queue<Arc<str>>) {
        let key = &seen.object.key;
        if seen.is(NAMESPACES) {
            if !seen.is_gone() {
                queue.add(key.name.clone());
            }
        } else if seen.is_gone() && &*key.name == NAME {
            queue.add(key.namespace.clone());
        }
    }

    async fn reconcile(&self, namespace: &Arc<str>) -> Result<Next> {
        let key = Key::new(SERVICE_ACCOUNTS, namespace.clone(), NAME);
        if !takes_objects(&self.server, namespace) || self.server.storage().get(&key).is_some() {
            return Ok(Next::Rest);
        }
        let account = json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": NAME, "namespace": &**namespace},
        });
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        match self.client.post(&path, &account).await {
            Err(error)
                if error.reason() != "AlreadyExists" && takes_objects(&self.server, namespace) =>
            {
                Err(error)
            }
            _ => Ok(Next::Rest),
        }
    }
}
