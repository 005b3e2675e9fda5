//! A spot instance with its Node, and a handler on it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use fleetwright_api::names::{annotation, condition};
use fleetwright_apiserver::{
    embedded::{Embedded, Running},
    service::KnownUser,
    user::{AUTHENTICATED, MASTERS, UserInfo},
};
use fleetwright_clock::{Clock, Random};
use fleetwright_cloud::transport::{Transport, TransportError};
use fleetwright_node::{
    access::Access,
    aws::{AwsSettings, AwsSource},
    handler::{Handler, Settings as HandlerSettings},
    metadata::{ENDPOINT, Metadata},
    report::Report,
};
use fleetwright_simcloud::{
    NoAnswer,
    aws::{
        Aws,
        model::settings::{Settings as AwsCloudSettings, Throttling},
        seed::Installer,
    },
};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use kube::{Api, Client, ResourceExt as _, api::PostParams, client::Body};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

pub(crate) const NODE: &str = "spot-1";

/// What a server does to requests before it takes them.
#[derive(Clone, Default)]
pub(crate) struct Door {
    /// So many writes are refused with this status.
    pub(crate) refuse: Arc<(AtomicU32, AtomicU32)>,
}

impl Door {
    pub(crate) fn refuse(&self, times: u32, status: u16) {
        self.refuse.1.store(status.into(), Ordering::SeqCst);
        self.refuse.0.store(times, Ordering::SeqCst);
    }

    fn refusal(&self, request: &Request<Body>) -> Option<Response<Body>> {
        let writes = request.method() != http::Method::GET;
        let left = &self.refuse.0;
        let taken = writes
            && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok();
        taken.then(|| {
            let code = u16::try_from(self.refuse.1.load(Ordering::SeqCst)).unwrap();
            let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                "message": "asked for", "reason": "AskedFor", "code": code});
            Response::builder()
                .status(StatusCode::from_u16(code).unwrap())
                .header("content-type", "application/json")
                .body(Body::from(body.to_string().into_bytes()))
                .unwrap()
        })
    }
}

pub(crate) struct Yard {
    pub(crate) clock: Clock,
    pub(crate) aws: Aws,
    pub(crate) instance: String,
    pub(crate) door: Door,
    pub(crate) report: Report,
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: JoinSet<()>,
    running: Running,
}

impl Yard {
    /// A worker, and a handler that has begun to look.
    pub(crate) async fn new() -> Self {
        let mut yard = Self::without_handler(json!({})).await;
        yard.start(AwsSettings { rebalance: true, ..AwsSettings::default() });
        yard.pass(10).await;
        yard
    }

    pub(crate) async fn without_handler(labels: Value) -> Self {
        let clock = Clock::simulated("2026-01-01T00:00:00Z".parse().unwrap());
        let running = Embedded::in_memory(&clock, Random::seeded(1), |_| false).await.unwrap();
        let cloud = AwsCloudSettings {
            signatures: false,
            throttling: Throttling::off(),
            ..AwsCloudSettings::default()
        };
        let installer = Installer::new("demo", Random::seeded(1)).settings(cloud);
        let (aws, installed) = installer.install(clock.clone());
        let call = format!(
            "Version=2016-11-15&Action=RunInstances&ImageId={}&InstanceType=m5.large&MinCount=1\
             &MaxCount=1&SubnetId={}&InstanceMarketOptions.MarketType=spot",
            installed.images["x86_64"], installed.subnets["us-east-1a"]
        );
        let call = Request::post("http://ec2/").body(Bytes::from(call)).unwrap();
        assert_eq!(aws.clone().oneshot(call).await.unwrap().status(), 200);
        let instance = aws.with(|region, _| region.instances().next().unwrap().id.clone());
        let mut tasks = JoinSet::new();
        let runs = aws.clone();
        tasks.spawn(async move { runs.run().await });
        let yard = Self {
            report: Report::new(clock.clone()),
            clock,
            aws,
            instance,
            door: Door::default(),
            stop: CancellationToken::new(),
            tasks,
            running,
        };
        let node = json!({"metadata": {"name": NODE, "labels": labels},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let node: Node = serde_json::from_value(node).unwrap();
        yard.nodes().create(&PostParams::default(), &node).await.unwrap();
        yard
    }

    pub(crate) fn client(&self, user: UserInfo) -> Client {
        let user = Arc::new(user);
        let (server, door) = (self.running.server().clone(), self.door.clone());
        let service = tower::service_fn(move |mut request: Request<Body>| {
            request.extensions_mut().insert(KnownUser(Arc::clone(&user)));
            let (server, refusal) = (server.clone(), door.refusal(&request));
            async move {
                if let Some(refusal) = refusal {
                    return Ok::<_, tower::BoxError>(refusal);
                }
                let (head, body) = server.oneshot(request).await?.into_parts();
                let body = body.collect().await?.to_bytes();
                Ok(Response::from_parts(head, Body::from(body.to_vec())))
            }
        });
        Client::new(service, "default")
    }

    pub(crate) fn kubelet(&self, node: &str) -> Client {
        let name = format!("system:node:{node}");
        self.client(UserInfo::new(&name, &["system:nodes", AUTHENTICATED]))
    }

    pub(crate) fn nodes(&self) -> Api<Node> {
        Api::all(self.client(UserInfo::new("admin", &[MASTERS])))
    }

    pub(crate) fn metadata(&self) -> Metadata {
        let service = self.aws.metadata(&self.instance).map_err(|error: NoAnswer| match error {
            NoAnswer::NotSent => TransportError::NotSent(error.to_string()),
            NoAnswer::Lost => TransportError::AnswerLost(error.to_string()),
        });
        Metadata::through(ENDPOINT, Transport::new(service))
    }

    pub(crate) fn start(&mut self, settings: AwsSettings) {
        let access = Access::with_client(self.kubelet(NODE));
        self.start_with(settings, access, self.clock.clone());
    }

    pub(crate) fn start_with(&mut self, settings: AwsSettings, access: Access, clock: Clock) {
        let handler = Handler::new(
            HandlerSettings { node: NODE.to_owned(), interval: Duration::from_secs(2) },
            Box::new(AwsSource::new(self.metadata(), settings, clock.clone())),
            access,
            clock,
            Random::seeded(7),
            self.report.clone(),
        );
        self.tasks.spawn(handler.run(self.stop.clone()));
    }

    pub(crate) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    pub(crate) fn interrupt(&self) {
        use fleetwright_simcloud::aws::model::lifecycle::Strike;
        self.aws.with(|region, now| region.strike(now, &self.instance, Strike::Interrupt)).unwrap();
    }

    pub(crate) async fn node(&self) -> Node {
        self.nodes().get(NODE).await.unwrap()
    }

    pub(crate) async fn condition(&self, kind: &str) -> Option<NodeCondition> {
        let conditions = self.node().await.status.unwrap().conditions.unwrap_or_default();
        conditions.into_iter().find(|condition| condition.type_ == kind)
    }

    pub(crate) async fn is_marked(&self) -> bool {
        self.condition(condition::TERMINATING).await.is_some_and(|c| c.status == "True")
    }

    pub(crate) async fn deadline(&self) -> Option<String> {
        self.node().await.annotations().get(annotation::TERMINATION_DEADLINE).cloned()
    }

    /// A number of the metrics.
    pub(crate) fn metric(&self, line: &str) -> Option<f64> {
        let text = self.report.text().unwrap();
        let line = format!("fleetwright_termination_handler_{line} ");
        text.lines().find_map(|found| found.strip_prefix(&line)?.parse().ok())
    }

    /// What `/readyz` says.
    pub(crate) fn ready(&self) -> u16 {
        let request = Request::get("/readyz").body(()).unwrap();
        fleetwright_runtime::metrics::answer_health(&self.report.health(), &request)
            .status()
            .as_u16()
    }
}
