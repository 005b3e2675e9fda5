//! `fleetwright termination-handler` and `fleetwright manifests`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use fleetwright_api::names::MACHINE_NAMESPACE;
use fleetwright_clock::{Clock, Random};
use fleetwright_node::{
    access::Access,
    aws::{AwsSettings, AwsSource},
    azure::AzureSource,
    gcp::GcpSource,
    handler::{Handler, Settings},
    manifests::{self, Choices},
    metadata::{AWS_ENDPOINT_IPV6, ENDPOINT, Metadata},
    report::Report,
    source::Source,
};
use fleetwright_runtime::metrics::serve;
use jiff::SignedDuration;
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{connection::block_on, print_line, signals::stop_signal};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Provider {
    Aws,
    Gcp,
    Azure,
}

#[derive(Args)]
#[command(after_help = "Examples:
  fleetwright termination-handler --node-name ip-10-0-1-7.ec2.internal
  fleetwright termination-handler --node-name n --metadata-endpoint http://127.0.0.1:1338 --kubeconfig ./kubeconfig
  fleetwright manifests | kubectl apply -f -          runs it on every node that the cloud may take back")]
pub(crate) struct HandlerArguments {
    /// The Node on which it runs.
    #[arg(long, value_name = "NAME", env = "NODE_NAME")]
    node_name: String,
    /// The kubelet's kubeconfig: it is read again when its certificates are rotated.
    #[arg(long, value_name = "FILE", env = "KUBECONFIG", default_value = manifests::KUBECONFIG)]
    kubeconfig: PathBuf,
    /// The cloud.
    #[arg(long, value_name = "CLOUD", default_value = "aws")]
    provider: Provider,
    /// How often the metadata service is asked.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 2,
        value_parser = clap::value_parser!(u64).range(1..=60)
    )]
    poll_interval_seconds: u64,
    /// Where the metadata service answers [default: http://169.254.169.254].
    #[arg(long, value_name = "URL", value_parser = endpoint, conflicts_with = "metadata_ipv6")]
    metadata_endpoint: Option<String>,
    /// Ask the metadata service of AWS on IPv6, http://[fd00:ec2::254].
    #[arg(long)]
    metadata_ipv6: bool,
    /// Give the Node the condition RebalanceRecommended when AWS recommends to move away.
    #[arg(long)]
    rebalance: bool,
    /// Leave scheduled events of AWS that stop or retire the instance alone.
    #[arg(long)]
    no_scheduled_events: bool,
    /// How long before a scheduled event the instance counts as terminating.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    scheduled_event_lead_seconds: u32,
    /// Answer /healthz, /readyz and /metrics on this address.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = manifests::LISTEN)]
    listen: SocketAddr,
    /// Accepted from older manifests, and without a meaning here.
    #[arg(long, hide = true)]
    namespace: Option<String>,
    /// The same.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true")]
    logtostderr: Option<bool>,
    /// The same.
    #[arg(long, hide = true, value_name = "LEVEL")]
    v: Option<u8>,
}

/// Reads a value for `--metadata-endpoint`.
fn endpoint(text: &str) -> Result<String, String> {
    let uri: http::Uri = text.parse().map_err(|error| format!("{error}"))?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http"), Some(_)) => Ok(text.to_owned()),
        _ => {
            Err("say an address such as http://169.254.169.254: it is asked without TLS".to_owned())
        }
    }
}

pub(crate) fn run(arguments: &HandlerArguments) -> anyhow::Result<()> {
    block_on(handle(arguments))
}

async fn handle(arguments: &HandlerArguments) -> anyhow::Result<()> {
    let clock = Clock::system();
    let report = Report::new(clock.clone());
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    // A port that is taken is no reason to miss a notice.
    match TcpListener::bind(arguments.listen).await {
        Ok(listener) => {
            let (health, report, stop) = (report.health(), report.clone(), stop.clone());
            tasks.spawn(async move {
                let answered =
                    serve(listener, move |request| report.answer(&health, request), stop).await;
                if let Err(error) = answered {
                    tracing::warn!(%error, "health and metrics are no longer served");
                }
            });
        }
        Err(error) => {
            tracing::warn!(address = %arguments.listen, %error, "health and metrics are not served");
        }
    }
    let settings = Settings {
        node: arguments.node_name.clone(),
        interval: Duration::from_secs(arguments.poll_interval_seconds),
    };
    let access = Access::with_kubeconfig(&arguments.kubeconfig);
    let source = source(arguments, &clock);
    tracing::info!(node = settings.node, cloud = source.cloud(), "looking for notices");
    let handler = Handler::new(settings, source, access, clock, Random::from_os(), report);
    let handling = handler.run(stop.clone());
    tokio::pin!(handling);
    tokio::select! {
        () = &mut handling => {}
        signal = stop_signal() => {
            signal?;
            stop.cancel();
            handling.await;
        }
    }
    while tasks.join_next().await.is_some() {}
    Ok(())
}

fn source(arguments: &HandlerArguments, clock: &Clock) -> Box<dyn Source> {
    let usual = if arguments.metadata_ipv6 { AWS_ENDPOINT_IPV6 } else { ENDPOINT };
    let metadata = Metadata::at(arguments.metadata_endpoint.as_deref().unwrap_or(usual));
    match arguments.provider {
        Provider::Aws => {
            let settings = AwsSettings {
                rebalance: arguments.rebalance,
                scheduled: !arguments.no_scheduled_events,
                scheduled_lead: SignedDuration::from_secs(
                    arguments.scheduled_event_lead_seconds.into(),
                ),
            };
            Box::new(AwsSource::new(metadata, settings, clock.clone()))
        }
        Provider::Gcp => Box::new(GcpSource::new(metadata)),
        Provider::Azure => Box::new(AzureSource::new(metadata)),
    }
}

#[derive(Args)]
#[command(after_help = "Examples:
  fleetwright manifests --image registry.example/fleetwright:1.0 | kubectl apply -f -
  fleetwright manifests --without-scc                 for a cluster that is not OpenShift")]
pub(crate) struct ManifestsArguments {
    /// The image with this program.
    #[arg(long, value_name = "IMAGE", default_value = "fleetwright:latest")]
    image: String,
    /// The namespace in which Machines are.
    #[arg(short, long, value_name = "NAMESPACE", default_value = MACHINE_NAMESPACE)]
    namespace: String,
    /// The cloud.
    #[arg(long, value_name = "CLOUD", default_value = "aws")]
    provider: Provider,
    /// Leave out the SecurityContextConstraints, which only OpenShift knows.
    #[arg(long)]
    without_scc: bool,
}

pub(crate) fn run_manifests(arguments: ManifestsArguments) -> anyhow::Result<()> {
    let provider = match arguments.provider {
        Provider::Aws => "aws",
        Provider::Gcp => "gcp",
        Provider::Azure => "azure",
    };
    let choices = Choices {
        namespace: arguments.namespace,
        image: arguments.image,
        provider: provider.to_owned(),
    };
    let mut text = String::new();
    for (name, document) in documents(&choices)? {
        if !(arguments.without_scc && name == CONSTRAINTS) {
            text.push_str("---\n");
            text.push_str(&document);
        }
    }
    print_line(text.trim_end())
}

const CONSTRAINTS: &str = "security-context-constraints.yaml";

/// The manifests by the names of their files in `deploy/termination-handler`.
fn documents(choices: &Choices) -> anyhow::Result<Vec<(&'static str, String)>> {
    let yaml = |value: Value| -> anyhow::Result<String> { Ok(serde_saphyr::to_string(&value)?) };
    Ok(vec![
        ("namespace.yaml", yaml(manifests::namespace(choices))?),
        ("service-account.yaml", yaml(manifests::service_account(choices))?),
        (CONSTRAINTS, manifests::SECURITY_CONTEXT_CONSTRAINTS.to_owned()),
        ("daemon-set.yaml", yaml(manifests::daemon_set(choices))?),
    ])
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    /// `UPDATE_GOLDEN=1` writes them.
    #[test]
    fn the_manifests_in_the_repository_are_up_to_date() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/termination-handler");
        for (name, text) in documents(&Choices::default()).unwrap() {
            let path = folder.join(name);
            if std::env::var_os("UPDATE_GOLDEN").is_some() {
                fs::create_dir_all(&folder).unwrap();
                fs::write(&path, &text).unwrap();
            }
            let found = fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(found, text, "run this test with UPDATE_GOLDEN=1: {}", path.display());
            let parsed: Value = serde_saphyr::from_str(&text).unwrap();
            assert!(parsed["kind"].is_string(), "{name}");
        }
    }

    #[test]
    fn endpoints() {
        for good in ["http://169.254.169.254", "http://[fd00:ec2::254]", "http://localhost:1338/x"]
        {
            assert!(endpoint(good).is_ok(), "{good}");
        }
        for bad in ["https://169.254.169.254", "169.254.169.254", "", "/x", "http://"] {
            assert!(endpoint(bad).is_err(), "{bad}");
        }
    }
}
