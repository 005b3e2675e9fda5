//! From the spot market to the Node, through the real handler: one thread, virtual time, no I/O.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which fail by panicking")]

use std::time::Duration;

use bytes::Bytes;
use fleetwright_api::names::{annotation, condition, label};
use fleetwright_apiserver::{
    embedded::{Embedded, Running},
    user::{AUTHENTICATED, MASTERS, UserInfo},
};
use fleetwright_clock::{Clock, Random};
use fleetwright_runtime::Tasks;
use fleetwright_simcloud::aws::model::{
    lifecycle::Strike,
    settings::{Settings as AwsSettings, Throttling},
};
use fleetwright_world::{
    client::in_process,
    handlers::node_clients,
    simulation::{Pace, Simulation},
};
use http::Request;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

struct World {
    simulation: Simulation,
    nodes: Api<Node>,
    _tasks: Tasks,
    _running: Running,
}

impl World {
    /// A cluster with spot instances, whose Nodes are labelled.
    async fn with_instances(count: u32) -> Self {
        let clock = Clock::simulated("2026-01-01T00:00:00Z".parse().unwrap());
        let running = Embedded::in_memory(&clock, Random::seeded(1), |_| true).await.unwrap();
        let user = UserInfo::new("admin", &[MASTERS, AUTHENTICATED]);
        let client = in_process(running.server(), user, "default");
        let aws = AwsSettings {
            signatures: false,
            throttling: Throttling::off(),
            ..AwsSettings::default()
        };
        let simulation = Simulation::with(aws, Random::seeded(1), clock.clone(), Pace::Times(1.0))
            .with_handlers(node_clients(running.server()));
        let mut tasks = Tasks::new(CancellationToken::new());
        simulation.start(client.clone(), clock, &Random::seeded(2), |_| true, &mut tasks);
        let world = Self { simulation, nodes: Api::all(client), _tasks: tasks, _running: running };
        world.launch(count).await;
        world.pass(60).await;
        for node in world.nodes().await {
            let patch = json!({"metadata": {"labels": {label::INTERRUPTIBLE: ""}}});
            let patch = Patch::Merge(patch);
            let params = PatchParams::default();
            world.nodes.patch(&node.name_any(), &params, &patch).await.unwrap();
        }
        world.pass(10).await;
        world
    }

    async fn launch(&self, count: u32) {
        let intel = "DescribeImages&Filter.1.Name=architecture&Filter.1.Value.1=x86_64";
        let image = text(&self.call(intel).await, "imageId");
        let zone = "DescribeSubnets&Filter.1.Name=availability-zone&Filter.1.Value.1=us-east-1a";
        let subnet = text(&self.call(zone).await, "subnetId");
        self.call(&format!(
            "RunInstances&ImageId={image}&InstanceType=m5.large&MinCount={count}&MaxCount={count}\
             &SubnetId={subnet}&InstanceMarketOptions.MarketType=spot"
        ))
        .await;
    }

    async fn call(&self, call: &str) -> String {
        let call = format!("Version=2016-11-15&Action={call}");
        let call = Request::post("http://ec2/").body(Bytes::from(call)).unwrap();
        let answer = self.simulation.aws.clone().oneshot(call).await.unwrap();
        assert_eq!(answer.status(), 200, "{answer:?}");
        String::from_utf8_lossy(answer.body()).into_owned()
    }

    async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    async fn nodes(&self) -> Vec<Node> {
        self.nodes.list(&ListParams::default()).await.unwrap().items
    }

    fn strike(&self, node: &Node, how: Strike) {
        let provider = node.spec.as_ref().unwrap().provider_id.as_deref().unwrap();
        let id = provider.rsplit('/').next().unwrap();
        self.simulation.aws.with(|region, now| region.strike(now, id, how)).unwrap();
    }
}

/// The text of the first element of a name.
fn text(body: &str, name: &str) -> String {
    let rest = body.split(&format!("<{name}>")).nth(1).unwrap_or_default();
    rest.split('<').next().unwrap_or_default().to_owned()
}

fn found(node: &Node, kind: &str) -> Option<NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind).cloned()
}

fn status(node: &Node, kind: &str) -> String {
    found(node, kind).map(|condition| condition.status).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_notice_reaches_its_node_and_no_other() {
    let world = World::with_instances(3).await;
    let nodes = world.nodes().await;
    assert_eq!(nodes.len(), 3);
    world.strike(&nodes[1], Strike::Interrupt);
    world.pass(3).await;
    let after = world.nodes().await;
    let marked: Vec<String> =
        after.iter().map(|node| status(node, condition::TERMINATING)).collect();
    assert_eq!(marked, ["", "True", ""]);
    // Launched at 0, labelled at 60, interrupted at 70.
    let deadline = &after[1].annotations()[annotation::TERMINATION_DEADLINE];
    assert_eq!(deadline, "2026-01-01T00:03:10Z");
    assert_eq!(after[1].spec.as_ref().unwrap().unschedulable, Some(true));
    // The kubelet goes on, and leaves the mark alone.
    world.pass(100).await;
    let after = world.nodes().await;
    assert_eq!(status(&after[1], condition::TERMINATING), "True");
    assert_eq!(status(&after[1], "Ready"), "True");
    // At its deadline the instance goes, and its Node with it.
    world.pass(120).await;
    assert_eq!(world.nodes().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_fails_is_silent_while_its_instance_runs() {
    let world = World::with_instances(2).await;
    let nodes = world.nodes().await;
    world.strike(&nodes[0], Strike::Freeze);
    world.pass(70).await;
    let after = world.nodes().await;
    assert_eq!(status(&after[0], "Ready"), "Unknown");
    assert_eq!(status(&after[1], "Ready"), "True");
    // Nobody is there to see a notice.
    world.strike(&nodes[0], Strike::Interrupt);
    world.pass(20).await;
    assert_eq!(status(&world.nodes().await[0], condition::TERMINATING), "");
    world.strike(&nodes[0], Strike::Thaw);
    world.pass(20).await;
    let after = world.nodes().await;
    assert_eq!(status(&after[0], "Ready"), "True");
    assert_eq!(status(&after[0], condition::TERMINATING), "True", "the handler is back, too");
}
