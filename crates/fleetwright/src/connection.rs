//! How commands reach a cluster.

use std::path::PathBuf;

use anyhow::{Context, bail};
use fleetwright_api::names::MACHINE_NAMESPACE;
use fleetwright_runtime::{
    RequestRate,
    config::{ClientConfig, Identities},
};
use fleetwright_world::access;
use http::{HeaderName, HeaderValue, Request, header::USER_AGENT};
use kube::{
    Client, Config,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};
use tower::ServiceBuilder;

const IMPERSONATE_USER: HeaderName = HeaderName::from_static("impersonate-user");

/// Flags of every command that reads a cluster.
#[derive(clap::Args)]
pub(crate) struct Connection {
    /// The kubeconfig to use [default: as kubectl, KUBECONFIG or ~/.kube/config].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The namespace in which Machines are.
    #[arg(short, long, value_name = "NAMESPACE", default_value = MACHINE_NAMESPACE)]
    pub namespace: String,
}

impl Connection {
    /// The cluster of a kubeconfig.
    pub(crate) fn with_kubeconfig(file: PathBuf) -> Self {
        Self { kubeconfig: Some(file), context: None, namespace: MACHINE_NAMESPACE.to_owned() }
    }

    /// A client for the cluster.
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        client(self.config().await?)
    }

    /// Clients for controllers, each with its own identity and its own limit of requests.
    pub(crate) async fn clients(&self, limits: &ClientConfig) -> anyhow::Result<Clients> {
        let config = self.config().await?;
        let already = config.auth_info.impersonate.as_deref();
        if let (Some(user), Identities::Impersonate) = (already, limits.identities) {
            bail!(
                "the kubeconfig acts as {user}, who cannot act as our ServiceAccounts as well: use \
                 another user, or --set client.identities=Own"
            );
        }
        Ok(Clients { base: client(config)?, limits: limits.clone() })
    }

    /// How the cluster is reached, and as whom.
    pub(crate) async fn config(&self) -> anyhow::Result<Config> {
        let options =
            KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let hint =
            "say which cluster with --kubeconfig FILE or KUBECONFIG (fleetwright up prints one)";
        match &self.kubeconfig {
            Some(path) => {
                let file = Kubeconfig::read_from(path)
                    .with_context(|| format!("cannot read the kubeconfig {}", path.display()))?;
                Config::from_custom_kubeconfig(file, &options)
                    .await
                    .with_context(|| format!("cannot use the kubeconfig {}", path.display()))
            }
            None if self.context.is_some() => Config::from_kubeconfig(&options).await.context(hint),
            None => Config::infer().await.context(hint),
        }
    }
}

fn client(mut config: Config) -> anyhow::Result<Client> {
    // Controllers have their own patience: an eviction that a budget refuses is no fault.
    config.default_retry = false;
    // Proxies of the environment are for the clouds; the cluster is reached directly.
    config.proxy_url = None;
    Client::try_from(config).context("cannot make a client for the cluster")
}

/// Clients of a cluster by the names of those who use them. They share connections.
#[derive(Clone)]
pub(crate) struct Clients {
    base: Client,
    limits: ClientConfig,
}

impl Clients {
    /// As the user that we are, without a limit: for what is done once, at the start.
    pub(crate) fn installer(&self) -> Client {
        self.base.clone()
    }

    /// As one of [`access::IDENTITIES`].
    pub(crate) fn of(&self, name: &str) -> Client {
        let base = self.base.clone();
        let send = tower::service_fn(move |request| {
            let base = base.clone();
            async move { base.send(request).await }
        });
        let acting = name != access::PROCESS && self.limits.identities == Identities::Impersonate;
        let user = acting.then(|| header(&access::user(name)));
        let agent = header(&format!("fleetwright/{} ({name})", env!("CARGO_PKG_VERSION")));
        let service = ServiceBuilder::new()
            .layer(RequestRate::new(self.limits.qps, self.limits.burst))
            .map_request(move |mut request: Request<Body>| {
                let headers = request.headers_mut();
                headers.insert(USER_AGENT, agent.clone());
                if let Some(user) = &user {
                    headers.insert(IMPERSONATE_USER, user.clone());
                }
                request
            })
            .service(send);
        Client::new(service, self.base.default_namespace())
    }
}

/// Names are letters, and a header takes them.
fn header(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static("fleetwright"))
}

/// Runs a command that talks to a cluster.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?
        .block_on(work)
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Arc, sync::Mutex, time::Duration};

    use http::Response;
    use tokio::time::Instant;

    use super::*;

    type Seen = Arc<Mutex<Vec<(Option<String>, String)>>>;

    /// Clients of something that notes as whom it is asked.
    fn clients(identities: Identities) -> (Clients, Seen) {
        let seen = Seen::default();
        let noted = Arc::clone(&seen);
        let base = tower::service_fn(move |request: Request<Body>| {
            let text = |name: &HeaderName| {
                request.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
            };
            let agent = text(&USER_AGENT).unwrap_or_default();
            noted.lock().unwrap().push((text(&IMPERSONATE_USER), agent));
            async { Ok::<_, Infallible>(Response::new(Body::from(b"{}".to_vec()))) }
        });
        let limits = ClientConfig { qps: 10.0, burst: 2, identities };
        (Clients { base: Client::new(base, "default"), limits }, seen)
    }

    async fn ask(client: &Client) {
        client.send(Request::new(Body::empty())).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn each_controller_is_somebody() {
        let (impersonating, seen) = clients(Identities::Impersonate);
        ask(&impersonating.of("machine")).await;
        ask(&impersonating.of(access::PROCESS)).await;
        let (own, seen_own) = clients(Identities::Own);
        ask(&own.of("machine")).await;
        let user = "system:serviceaccount:fleetwright-system:fleetwright-machine".to_owned();
        let agent = |name: &str| format!("fleetwright/{} ({name})", env!("CARGO_PKG_VERSION"));
        assert_eq!(
            *seen.lock().unwrap(),
            [(Some(user), agent("machine")), (None, agent("fleetwright"))]
        );
        assert_eq!(*seen_own.lock().unwrap(), [(None, agent("machine"))]);
    }

    #[tokio::test(start_paused = true)]
    async fn each_controller_has_its_own_limit() {
        let (clients, _) = clients(Identities::Impersonate);
        let (busy, other) = (clients.of("machine"), clients.of("machineset"));
        let start = Instant::now();
        for _ in 0..5 {
            ask(&busy).await;
        }
        let waited = start.elapsed();
        assert!(waited >= Duration::from_millis(290), "{waited:?}");
        let start = Instant::now();
        ask(&other).await;
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}
