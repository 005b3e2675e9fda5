//! The termination handler on simulated nodes: the real one, with the metadata service of the
//! node's instance and the rights of its kubelet.

use std::{sync::Arc, time::Duration};

use fleetwright_api::names::label;
use fleetwright_apiserver::{
    Server,
    user::{AUTHENTICATED, UserInfo},
};
use fleetwright_clock::{Clock, Random};
use fleetwright_cloud::transport::{Transport, TransportError};
use fleetwright_node::{
    access::Access,
    aws::{AwsSettings, AwsSource},
    handler::{Handler, Settings},
    metadata::{ENDPOINT, Metadata},
    report::Report,
};
use fleetwright_simcloud::{NoAnswer, aws::Aws};
use fleetwright_simnode::{Agent, Host};
use futures::FutureExt as _;
use kube::Client;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::client::in_process;

/// The user that a kubelet is.
pub const NODE_USER: &str = "system:node:";
/// The group of all kubelets.
pub const NODE_GROUP: &str = "system:nodes";
/// How often handlers ask, unless somebody says otherwise.
const INTERVAL: Duration = Duration::from_secs(2);

/// Clients of the Kubernetes API by the node as which they act.
pub type NodeClients = Arc<dyn Fn(&str) -> Option<Client> + Send + Sync>;

/// Clients in the same process.
pub fn node_clients(server: &Server) -> NodeClients {
    let server = server.clone();
    Arc::new(move |node| {
        let user = UserInfo::new(&format!("{NODE_USER}{node}"), &[NODE_GROUP, AUTHENTICATED]);
        Some(in_process(&server, user, "default"))
    })
}

/// The handler as an agent of the nodes that the cloud may take back.
pub(crate) fn agent(aws: Aws, clients: NodeClients, clock: Clock, random: Random) -> Agent {
    let run = move |host: &Host| {
        let Some(client) = clients(&host.name) else {
            return futures::future::pending().boxed();
        };
        // `aws:///zone/instance`.
        let instance = host.provider_id.rsplit('/').next().unwrap_or_default();
        let service = aws.metadata(instance).map_err(|error: NoAnswer| match error {
            NoAnswer::NotSent => TransportError::NotSent(error.to_string()),
            NoAnswer::Lost => TransportError::AnswerLost(error.to_string()),
        });
        let metadata = Metadata::through(ENDPOINT, Transport::new(service));
        // Everything that can be seen is shown: what comes of it is up to health checks.
        let settings = AwsSettings { rebalance: true, ..AwsSettings::default() };
        let handler = Handler::new(
            Settings { node: host.name.clone(), interval: INTERVAL },
            Box::new(AwsSource::new(metadata, settings, clock.clone())),
            Access::with_client(client),
            clock.clone(),
            random.fork(),
            Report::new(clock.clone()),
        );
        // Nobody stops it: it ends with its machine.
        handler.run(CancellationToken::new()).boxed()
    };
    Agent { label: label::INTERRUPTIBLE.to_owned(), run: Arc::new(run) }
}
