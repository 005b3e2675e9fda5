//! `fleetwright sim`: the simulated clouds, from outside.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use bytes::Bytes;
use clap::Subcommand;
use fleetwright_api::{aws::AWSMachineProviderStatus, machine::Machine};
use fleetwright_clock::{Clock, Random};
use fleetwright_cloud::{HttpOptions, http_client};
use fleetwright_runtime::Tasks;
use fleetwright_world::{
    embedded::{SIMULATION, SIMULATION_URL, tell_where},
    handlers::{NODE_GROUP, NODE_USER, NodeClients},
    seed::{self, SYSTEM_NAMESPACE},
    simulation::{NODE_NAMES, Pace, Simulation},
};
use http::{Method, Request};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::{
    connection::{Connection, block_on},
    print_line,
    signals::run_until_signal,
};

/// Every part of simulated nodes.
const ALL_PARTS: &str = "*";
/// How long simulated nodes may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(10);

#[derive(clap::Args)]
#[command(after_help = "Examples:
  fleetwright sim instances
  fleetwright sim terminate machine/worker-abc12        the instance is gone, and nobody asked for it
  fleetwright sim interrupt machine/spot-abc12          EC2's two-minute notice
  fleetwright sim spot-price m5.large us-east-1a 0.09   who pays less is interrupted
  fleetwright sim fail-node machine/worker-abc12        its kubelet is silent, its instance runs
  fleetwright sim drain-capacity us-east-1a m5.large    no more of this type in this zone
  fleetwright sim restore-capacity
  fleetwright sim fail RunInstances --code RequestLimitExceeded --status 503 --times 3
  fleetwright sim calls")]
pub(crate) struct SimArguments {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: SimCommand,
}

#[derive(Subcommand)]
enum SimCommand {
    /// Serve simulated clouds, and nodes for their instances, to a cluster that has neither.
    Serve {
        /// Listen on this address; port 0 takes a free one.
        #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
        listen: SocketAddr,
        /// How many times as fast as usual simulated things happen.
        #[arg(long, value_name = "TIMES", default_value_t = 1.0)]
        speed: f64,
        /// Parts of simulated nodes to run, or * for all; the rest must be in the cluster.
        #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "kubelet")]
        parts: Vec<String>,
    },
    /// List the instances of the cloud.
    Instances,
    /// List the placement groups of the cloud.
    Groups,
    /// Count the calls that the cloud has answered.
    Calls,
    /// Terminate an instance behind everybody's back.
    Terminate {
        /// machine/NAME or an instance.
        target: String,
    },
    /// Stop an instance behind everybody's back.
    Stop {
        /// machine/NAME or an instance.
        target: String,
    },
    /// Interrupt a spot instance: it is given its notice, and taken back at its end.
    Interrupt {
        /// machine/NAME or an instance.
        target: String,
    },
    /// Recommend to move away from a spot instance.
    Rebalance {
        /// machine/NAME or an instance.
        target: String,
    },
    /// Set a spot price: instances that pay less are interrupted, and new ones refused.
    SpotPrice {
        /// The instance type.
        instance_type: String,
        /// The zone.
        zone: String,
        /// Dollars for an hour.
        price: String,
    },
    /// Let a node fall silent while its instance runs on.
    FailNode {
        /// machine/NAME or an instance.
        target: String,
        /// Let it start again instead.
        #[arg(long)]
        recover: bool,
    },
    /// Let no more instances start in a zone.
    DrainCapacity {
        /// The zone.
        zone: String,
        /// Of this type only.
        instance_type: Option<String>,
        /// In this placement group only.
        #[arg(long)]
        group: Option<String>,
        /// Of spot instances only.
        #[arg(long)]
        spot: bool,
    },
    /// Let instances start again.
    RestoreCapacity,
    /// Let the next calls of an action fail.
    Fail {
        /// The action, such as RunInstances.
        action: String,
        /// The error's code.
        #[arg(long, default_value = "InternalError")]
        code: String,
        /// The HTTP status.
        #[arg(long, default_value_t = 500)]
        status: u16,
        /// How often.
        #[arg(long, default_value_t = 1)]
        times: u32,
    },
}

pub(crate) fn run(arguments: SimArguments) -> anyhow::Result<()> {
    let SimArguments { connection, command } = arguments;
    block_on(async {
        let client = connection.client().await?;
        match command {
            SimCommand::Serve { listen, speed, parts } => {
                let nodes = node_clients(connection.config().await?);
                serve(client, nodes, listen, speed, parts).await
            }
            other => {
                let surface = Surface::find(&client).await?;
                surface.carry_out(&client, &connection.namespace, other).await
            }
        }
    })
}

/// The control surface of the simulated clouds.
struct Surface {
    url: String,
}

impl Surface {
    async fn find(client: &Client) -> anyhow::Result<Self> {
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
        let found = api.get_opt(SIMULATION).await.context("cannot read where the clouds are")?;
        let url = found.and_then(|map| map.data?.remove(SIMULATION_URL)).context(
            "this cluster has no simulated clouds: fleetwright up and fleetwright sim serve have",
        )?;
        Ok(Self { url })
    }

    async fn carry_out(
        &self,
        client: &Client,
        namespace: &str,
        command: SimCommand,
    ) -> anyhow::Result<()> {
        let strike = async |target: &str, kind: &str| {
            let id = self.instance(client, namespace, target).await?;
            self.ask(Method::POST, &format!("instances/{id}"), Some(json!({"strike": kind}))).await
        };
        let answer = match command {
            SimCommand::Serve { .. } => bail!("already served"),
            SimCommand::Instances => self.ask(Method::GET, "instances", None).await?,
            SimCommand::Groups => self.ask(Method::GET, "groups", None).await?,
            SimCommand::Calls => self.ask(Method::GET, "counts", None).await?,
            SimCommand::Terminate { target } => strike(&target, "terminate").await?,
            SimCommand::Stop { target } => strike(&target, "stop").await?,
            SimCommand::Interrupt { target } => strike(&target, "interrupt").await?,
            SimCommand::Rebalance { target } => strike(&target, "rebalance").await?,
            SimCommand::FailNode { target, recover: false } => strike(&target, "freeze").await?,
            SimCommand::FailNode { target, recover: true } => strike(&target, "thaw").await?,
            SimCommand::SpotPrice { instance_type, zone, price } => {
                let set = json!({"instanceType": instance_type, "zone": zone, "price": price});
                self.ask(Method::POST, "spot-price", Some(set)).await?
            }
            SimCommand::DrainCapacity { zone, instance_type, group, spot } => {
                let mut limit = json!({"zone": zone, "limit": 0});
                if let Some(instance_type) = instance_type {
                    limit["instanceType"] = json!(instance_type);
                }
                if let Some(group) = group {
                    limit["group"] = json!(group);
                }
                if spot {
                    limit["spot"] = json!(true);
                }
                self.ask(Method::POST, "capacity", Some(limit)).await?
            }
            SimCommand::RestoreCapacity => self.ask(Method::DELETE, "capacity", None).await?,
            SimCommand::Fail { action, code, status, times } => {
                let fault = json!({
                    "action": action,
                    "times": times,
                    "effect": {"error": {"code": code, "status": status, "message": "asked for"}},
                });
                self.ask(Method::POST, "faults", Some(fault)).await?
            }
        };
        if answer == json!({}) {
            return Ok(());
        }
        print_line(&serde_json::to_string_pretty(&answer)?)
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> anyhow::Result<Value> {
        let uri = format!("{}/_fleetwright/{path}", self.url);
        let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let request = Request::builder().method(method).uri(&uri).body(body)?;
        let answer = http_client(&HttpOptions::default())?
            .oneshot(request)
            .await
            .with_context(|| format!("the simulated clouds do not answer at {}", self.url))?;
        let value: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
        if !answer.status().is_success() {
            bail!("{}", value["error"].as_str().unwrap_or("the simulated clouds refuse"));
        }
        Ok(value)
    }

    /// The instance of a Machine, or the one that is named. A Machine that is gone, or that knows
    /// of no instance yet, has left its name on the instance.
    async fn instance(
        &self,
        client: &Client,
        namespace: &str,
        target: &str,
    ) -> anyhow::Result<String> {
        let Some(name) = target.strip_prefix("machine/") else { return Ok(target.to_owned()) };
        let api: Api<Machine> = Api::namespaced(client.clone(), namespace);
        let machine = api.get_opt(name).await.with_context(|| format!("cannot read {target}"))?;
        let status = machine.and_then(|machine| machine.status?.provider_status);
        if let Some(id) = AWSMachineProviderStatus::read(status.as_ref()).instance_id {
            return Ok(id);
        }
        let instances = self.ask(Method::GET, "instances", None).await?;
        let named = |instance: &&Value| {
            instance["tags"]["Name"] == *name && instance["state"] != "terminated"
        };
        instances
            .as_array()
            .and_then(|instances| instances.iter().find(named)?["id"].as_str())
            .map(ToOwned::to_owned)
            .with_context(|| format!("Machine {name} has no instance"))
    }
}

/// Clients that act as the kubelets of nodes. Whoever serves simulated nodes may impersonate.
fn node_clients(config: Config) -> NodeClients {
    Arc::new(move |node| {
        let mut config = config.clone();
        config.default_retry = false;
        config.auth_info.impersonate = Some(format!("{NODE_USER}{node}"));
        config.auth_info.impersonate_groups = Some(vec![NODE_GROUP.to_owned()]);
        let made = Client::try_from(config);
        made.inspect_err(|error| tracing::error!(%error, node, "no client for the node")).ok()
    })
}

async fn serve(
    client: Client,
    nodes: NodeClients,
    listen: SocketAddr,
    speed: f64,
    parts: Vec<String>,
) -> anyhow::Result<()> {
    let known = |part: &str| part == ALL_PARTS || NODE_NAMES.contains(&part);
    if let Some(unknown) = parts.iter().find(|part| !known(part)) {
        bail!(
            "--parts: there is no part {unknown}; there are: {}, or * for all",
            NODE_NAMES.join(", ")
        );
    }
    let listener =
        TcpListener::bind(listen).await.with_context(|| format!("cannot listen on {listen}"))?;
    let url = format!("http://{}", listener.local_addr()?);
    let clock = Clock::system();
    let simulation = Simulation::new(clock.clone(), Pace::Times(speed)).with_handlers(nodes);
    seed::definitions(&client).await?;
    seed::installation(&client, &simulation.installation).await?;
    tell_where(&client, &url).await?;
    let stop = CancellationToken::new();
    let mut tasks = Tasks::new(stop.clone());
    simulation.serve(listener, &mut tasks);
    let wanted = move |name: &str| parts.iter().any(|part| part == name || part == ALL_PARTS);
    simulation.start(client, clock, &Random::from_os(), wanted, &mut tasks);
    print_line(&format!("Simulated clouds are at {url}"))?;
    run_until_signal(tasks, &stop, STOP_LIMIT).await
}
