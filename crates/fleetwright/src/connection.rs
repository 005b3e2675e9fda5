//! How commands reach a cluster.

use std::path::PathBuf;

use anyhow::Context;
use fleetwright_api::names::MACHINE_NAMESPACE;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

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
        let mut config = self.config().await?;
        // Controllers have their own patience: an eviction that a budget refuses is no fault.
        config.default_retry = false;
        Client::try_from(config).context("cannot make a client for the cluster")
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

/// Runs a command that talks to a cluster.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?
        .block_on(work)
}
