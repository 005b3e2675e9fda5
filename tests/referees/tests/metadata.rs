//! AWS's own mock of the instance metadata service judges the termination handler.

use std::{net::TcpListener, path::Path, time::Duration};

use fleetwright_apiserver::{
    embedded::{Embedded, Running},
    user::{AUTHENTICATED, MASTERS, UserInfo},
};
use fleetwright_clock::{Clock, Random};
use fleetwright_node::{
    access::Access,
    aws::{AwsSettings, AwsSource},
    handler::{Handler, Settings as HandlerSettings},
    metadata::Metadata,
    report::Report,
};
use fleetwright_referees::{
    Access as ClusterAccess, Cluster as _, EmbeddedCluster, RealCluster, Request as HttpRequest,
    cluster::binaries, process::Supervised,
};
use fleetwright_world::{client::in_process, handlers::node_clients};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use kube::{Api, Client, ResourceExt as _, api::PostParams};
use serde_json::json;
use tokio_util::sync::CancellationToken;

const NODE: &str = "spot-1";
/// Only a hang reaches it.
const PATIENCE: Duration = Duration::from_mins(2);

/// The API with one Node.
async fn cluster() -> anyhow::Result<(Running, Api<Node>)> {
    let clock = Clock::system();
    let running = Embedded::in_memory(&clock, Random::seeded(1), |_| false).await?;
    let user = UserInfo::new("admin", &[MASTERS, AUTHENTICATED]);
    let client: Client = in_process(running.server(), user, "default");
    let nodes: Api<Node> = Api::all(client);
    let node = serde_json::from_value(json!({"metadata": {"name": NODE}}))?;
    nodes.create(&PostParams::default(), &node).await?;
    Ok((running, nodes))
}

fn condition(node: &Node, kind: &str) -> Option<NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind).cloned()
}

/// Runs the mock and a handler on it until the Node is as `wanted`.
async fn handled(
    arguments: &[&str],
    wanted: impl Fn(&Node) -> bool,
) -> anyhow::Result<(Node, String)> {
    let mock = binaries::metadata_mock()?;
    let folder = tempfile::tempdir()?;
    // Free a moment ago is free enough: the mock cannot be asked to choose one.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let common = ["--imdsv2", "--hostname", "127.0.0.1", "--port", &port];
    let arguments: Vec<&str> = arguments.iter().copied().chain(common).collect();
    let _mock = Supervised::start("mock", Path::new(&mock), &arguments, folder.path())?;
    let (running, nodes) = cluster().await?;
    let clock = Clock::system();
    let metadata = Metadata::at(&format!("http://127.0.0.1:{port}"));
    let settings = AwsSettings { rebalance: true, ..AwsSettings::default() };
    let report = Report::new(clock.clone());
    let client = node_clients(running.server())(NODE).expect("in the same process");
    let handler = Handler::new(
        HandlerSettings { node: NODE.to_owned(), interval: Duration::from_secs(1) },
        Box::new(AwsSource::new(metadata, settings, clock.clone())),
        Access::with_client(client),
        clock,
        Random::seeded(1),
        report.clone(),
    );
    let observed = async {
        loop {
            let node = nodes.get(NODE).await?;
            if wanted(&node) {
                // A little longer, to see that nothing more happens.
                tokio::time::sleep(Duration::from_secs(4)).await;
                return anyhow::Ok(nodes.get(NODE).await?);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let node = tokio::select! {
        () = handler.run(CancellationToken::new()) => anyhow::bail!("the handler ended"),
        observed = tokio::time::timeout(PATIENCE, observed) => observed??,
    };
    Ok((node, report.text()?))
}

fn in_minutes(minutes: i64) -> String {
    let time: Timestamp = Clock::system().now() + SignedDuration::from_mins(minutes);
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn is_marked(node: &Node) -> bool {
    condition(node, "Terminating").is_some_and(|condition| condition.status == "True")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spot_interruption_at_a_time() -> anyhow::Result<()> {
    let time = in_minutes(2);
    let arguments = ["spot", "--action", "terminate", "--time", &time];
    let (node, report) = handled(&arguments, is_marked).await?;
    let annotations = node.annotations();
    assert_eq!(annotations["machine.openshift.io/termination-deadline"], time);
    assert_eq!(annotations["machine.openshift.io/termination-source"], "aws/spot-instance-action");
    assert_eq!(node.spec.and_then(|spec| spec.unschedulable), Some(true));
    assert!(!report.contains("result=\"error\""), "{report}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spot_interruption_whose_time_moves_on_is_written_once() -> anyhow::Result<()> {
    for action in ["stop", "hibernate"] {
        let (_, report) = handled(&["spot", "--action", action], is_marked).await?;
        let once = "fleetwright_termination_handler_notices_total{kind=\"termination\"} 1\n";
        assert!(report.contains(once), "{report}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebalance_recommendation_before_the_interruption() -> anyhow::Result<()> {
    // The interruption itself comes later than this test ends.
    let arguments = ["spot", "--mock-delay-sec", "3600"];
    let recommended = |node: &Node| condition(node, "RebalanceRecommended").is_some();
    let (node, _) = handled(&arguments, recommended).await?;
    assert!(!is_marked(&node), "{node:?}");
    assert_eq!(node.spec.and_then(|spec| spec.unschedulable), None);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scheduled_events() -> anyhow::Result<()> {
    let near = in_minutes(5);
    for code in ["instance-retirement", "instance-stop"] {
        let arguments = ["events", "--code", code, "--not-before", &near];
        let (node, _) = handled(&arguments, is_marked).await?;
        let annotations = node.annotations();
        assert_eq!(annotations["machine.openshift.io/termination-deadline"], near);
        assert_eq!(annotations["machine.openshift.io/termination-source"], "aws/scheduled-event");
    }
    let far = in_minutes(60 * 24);
    for arguments in [
        ["events", "--code", "system-reboot", "--not-before", &near, "--state", "active"],
        ["events", "--code", "instance-stop", "--not-before", &far, "--state", "active"],
        ["events", "--code", "instance-stop", "--not-before", &near, "--state", "canceled"],
    ] {
        let (node, report) = handled(&arguments, |_| true).await?;
        assert!(!is_marked(&node), "{arguments:?}");
        assert!(report.contains("looks_total{result=\"ok\"}"), "{report}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_itself() -> anyhow::Result<()> {
    program_on(EmbeddedCluster::start().await?.access()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_itself_with_the_rights_that_kube_apiserver_gives_a_node() -> anyhow::Result<()>
{
    program_on(RealCluster::start().await?.access()).await
}

/// The program as a DaemonSet runs it: the rights of a node, a proxy in its environment that must
/// not be used, and credentials that are rotated.
async fn program_on(access: &ClusterAccess) -> anyhow::Result<()> {
    const NODE: &str = "nodes-a";
    let admin = fleetwright_referees::Client::new(access)?;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}});
    let create = HttpRequest::new("POST", "/api/v1/nodes").json(&node.to_string());
    let made = admin.send(&create).await?;
    anyhow::ensure!(made.status == 201, "{}", made.text());

    let folder = tempfile::tempdir()?;
    let file = |name: &str| folder.path().join(name);
    let token = &access.tokens["system:node:nodes-a"];
    std::fs::write(file("token"), "an-old-token")?;
    std::fs::write(file("authority.pem"), &access.authority)?;
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster":
            {"server": access.url, "certificate-authority": "authority.pem"}}],
        "users": [{"name": "u", "user": {"tokenFile": file("token")}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    });
    std::fs::write(file("kubeconfig"), config.to_string())?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let mock = binaries::metadata_mock()?;
    let arguments = ["spot", "--imdsv2", "--hostname", "127.0.0.1", "--port", &port];
    let _mock = Supervised::start("mock", &mock, &arguments, folder.path())?;
    let mut command = std::process::Command::new(binaries::fleetwright()?);
    for proxy in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"] {
        command.env(proxy, "http://127.0.0.1:1");
    }
    command
        .current_dir(folder.path())
        .args(["termination-handler", "--node-name", NODE, "--poll-interval-seconds", "1"])
        .args(["--logtostderr=true", "--v=3", "--namespace=openshift-machine-api"])
        .args(["--metadata-endpoint", &format!("http://127.0.0.1:{port}")])
        .args(["--listen", "127.0.0.1:0"])
        .arg("--kubeconfig")
        .arg(file("kubeconfig"));
    let mut handler = Supervised::spawn("handler", &mut command, folder.path())?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    handler.check()?;
    let marked = async || -> anyhow::Result<bool> {
        let answer = admin.send(&HttpRequest::get("/api/v1/nodes/nodes-a")).await?;
        Ok(answer.text().contains("\"TerminationRequested\""))
    };
    assert!(!marked().await?, "nobody knows the old token");
    std::fs::write(file("token"), token)?;
    let until = async {
        while !marked().await? {
            handler.check()?;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        anyhow::Ok(())
    };
    let ended = tokio::time::timeout(PATIENCE, until).await;
    anyhow::ensure!(ended.is_ok(), "not marked: {}", handler.log_tail());
    ended??;
    let status = std::fs::read_to_string(format!("/proc/{}/status", handler.id()))?;
    let resident = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    eprintln!("the termination handler: {resident}");
    Ok(())
}
