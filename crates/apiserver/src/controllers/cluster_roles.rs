//! Keeps aggregated cluster roles up to date.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::{
    AGENT,
    driver::{Controller, Next, Seen},
    queue::Queue,
};
use crate::{
    auth::{
        ObjectSource,
        rbac::{CLUSTER_ROLES, aggregate},
    },
    internal::InternalClient,
    object,
    server::Server,
    status::Result,
};

const API_VERSION: &str = "rbac.authorization.k8s.io/v1";
const MANAGER: &str = "clusterrole-aggregation-controller";

/// Keeps the rules of aggregated roles.
pub(super) struct ClusterRoles {
    server: Server,
    client: InternalClient,
}

impl ClusterRoles {
    pub(super) fn new(server: &Server) -> Self {
        Self { server: server.clone(), client: InternalClient::new(server, AGENT) }
    }
}

impl Controller for ClusterRoles {
    // Any role may be part of any other, and there are few: they are looked at together.
    type Key = ();
    const NAME: &'static str = "cluster role aggregation";
    const FOLLOWS: &'static [&'static str] = &[CLUSTER_ROLES];

    fn observe(&self, _: &Seen<'_>, queue: &mut Queue<()>) {
        queue.add(());
    }

    async fn reconcile(&self, (): &()) -> Result<Next> {
        let roles: Vec<Arc<Value>> = self.server.access().objects().list(CLUSTER_ROLES, None);
        let mut failure = None;
        for role in &roles {
            let all = roles.iter().map(|role| &**role);
            let Some(rules) = aggregate::missing(role, all) else { continue };
            match self.apply(object::name(role), rules).await {
                Err(error) if error.reason() != "NotFound" => failure = Some(error),
                _ => {}
            }
        }
        failure.map_or(Ok(Next::Rest), Err)
    }
}

impl ClusterRoles {
    async fn apply(&self, name: &str, rules: Vec<Value>) -> Result<Value> {
        let mut role = json!({
            "apiVersion": API_VERSION,
            "kind": "ClusterRole",
            "metadata": {"name": name},
        });
        if !rules.is_empty() {
            object::set(&mut role, &["rules"], rules);
        }
        let path =
            format!("/apis/{API_VERSION}/clusterroles/{name}?fieldManager={MANAGER}&force=true");
        self.client.send(Method::PATCH, &path, "application/apply-patch+yaml", Some(&role)).await
    }
}
