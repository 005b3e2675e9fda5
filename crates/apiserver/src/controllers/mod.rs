//! The controllers that a cluster's users count on: what kube-controller-manager does for objects
//! whose kinds the server itself knows.
//!
//! Each controller is one task. It follows the store, keeps a queue of keys to look at, and acts
//! through [`InternalClient`](crate::internal::InternalClient) as a client would, so that
//! validation, webhooks and managed fields hold for it too. What it decides is in pure functions
//! beside it.

mod cluster_roles;
mod disruption;
mod driver;
mod events;
mod feed;
mod garbage;
mod namespaces;
mod queue;
mod recorder;
mod root_ca;
mod service_accounts;
#[cfg(test)]
mod tests;

use tokio::task::JoinSet;

use crate::server::Server;

/// The name that the real controllers are known by in managed fields.
const AGENT: &str = "kube-controller-manager";
/// Where namespaces are stored.
const NAMESPACES: &str = "/namespaces";
/// Where pods are stored.
const PODS: &str = "/pods";

/// The controllers that there are, by the names that they have in kube-controller-manager.
pub const NAMES: &[&str] = &[
    "clusterrole-aggregation-controller",
    "disruption-controller",
    "event-expiry-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
];

/// Starts the controllers that are wanted; each ends when the server stops. `authority` is the
/// certificate authority (PEM) that is published in every namespace.
pub(crate) fn spawn(
    server: &Server,
    authority: &str,
    wanted: &dyn Fn(&str) -> bool,
    tasks: &mut JoinSet<()>,
) {
    for name in NAMES.iter().filter(|name| wanted(name)) {
        let server = server.clone();
        match *name {
            "garbage-collector-controller" => {
                tasks.spawn(garbage::run(server));
            }
            "namespace-controller" => {
                let namespaces = namespaces::Namespaces::new(&server);
                tasks.spawn(driver::drive(server, namespaces));
            }
            "serviceaccount-controller" => {
                let accounts = service_accounts::ServiceAccounts::new(&server);
                tasks.spawn(driver::drive(server, accounts));
            }
            "root-ca-certificate-publisher-controller" => {
                let publisher = root_ca::RootCa::new(&server, authority);
                tasks.spawn(driver::drive(server, publisher));
            }
            "clusterrole-aggregation-controller" => {
                let roles = cluster_roles::ClusterRoles::new(&server);
                tasks.spawn(driver::drive(server, roles));
            }
            "disruption-controller" => {
                let budgets = disruption::Disruption::new(&server);
                let conditions = disruption::StaleConditions::new(&server);
                tasks.spawn(driver::drive(server.clone(), budgets));
                tasks.spawn(driver::drive(server, conditions));
            }
            _ => {
                let events = events::Events::new(&server);
                tasks.spawn(driver::drive(server, events));
            }
        }
    }
}
