//! The rules behind an API server that calls them in this process.

use std::sync::Arc;
use std::time::Duration;

use fleetwright_admission::{Endpoint, Service};
use fleetwright_api::config::Infrastructure;
use fleetwright_api::machine::{Machine, MachineSet};
use fleetwright_api::names;
use fleetwright_api::placement::AWSPlacementGroup;
use fleetwright_apiserver::Limits;
use fleetwright_apiserver::auth::authn::signing::SigningKey;
use fleetwright_apiserver::embedded::{
    Embedded, Running, Settings as ServerSettings, StoreLocation,
};
use fleetwright_apiserver::service::KnownUser;
use fleetwright_apiserver::user::{MASTERS, UserInfo};
use fleetwright_clock::{Clock, Random};
use fleetwright_runtime::{Informer, Metrics, config::WebhooksConfig};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceBuilder;

use super::{InterruptibleControlPlane, Settings, Updates, name, webhooks};

const NAMESPACE: &str = names::MACHINE_NAMESPACE;

struct Cluster {
    client: Client,
    running: Running,
    watching: JoinSet<()>,
}

impl Cluster {
    /// A server with our kinds, on AWS, whose webhooks are in this process.
    async fn start() -> Self {
        Self::configured(&WebhooksConfig::default()).await
    }

    async fn configured(config: &WebhooksConfig) -> Self {
        let clock = Clock::simulated("2026-01-01T00:00:00Z".parse().expect("a time"));
        let settings = ServerSettings {
            clock: clock.clone(),
            random: Random::seeded(1),
            limits: Limits::default(),
            tokens: String::new(),
            service_account_key: SigningKey::generate().expect("a key").pkcs8().to_vec(),
            authority: "the authority".to_owned(),
            controllers: Box::new(|_| true),
        };
        let embedded = Embedded::open(StoreLocation::Memory, &clock).expect("a store");
        let running = embedded.start(settings).await.expect("a server");
        let user = Arc::new(UserInfo::new("fleetwright", &[MASTERS]));
        let service = ServiceBuilder::new()
            .map_request(move |mut request: http::Request<kube::client::Body>| {
                request.extensions_mut().insert(KnownUser(Arc::clone(&user)));
                request
            })
            .service(running.server().clone());
        let client = Client::new(service, NAMESPACE);
        let mut cluster = Self { client, running, watching: JoinSet::new() };
        cluster.furnish(clock, config).await;
        cluster
    }

    async fn furnish(&mut self, clock: Clock, config: &WebhooksConfig) {
        for crd in fleetwright_api::crds() {
            make::<CustomResourceDefinition>(&Api::all(self.client.clone()), &crd).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        make(&namespaces, &json!({"metadata": {"name": NAMESPACE}})).await;
        let infrastructures: Api<Infrastructure> = Api::all(self.client.clone());
        make(
            &infrastructures,
            &json!({
                "apiVersion": "config.openshift.io/v1", "kind": "Infrastructure",
                "metadata": {"name": "cluster"}, "spec": {},
            }),
        )
        .await;
        let status = json!({"status": {
            "infrastructureName": "demo", "apiServerURL": "", "apiServerInternalURI": "", "etcdDiscoveryDomain": "",
            "platformStatus": {"type": "AWS", "aws": {"region": "us-east-1"}},
        }});
        infrastructures
            .patch_status("cluster", &PatchParams::default(), &Patch::Merge(status))
            .await
            .expect("a status");

        let settings = Settings::of(config, NAMESPACE);
        let known =
            Informer::new("infrastructures", Api::all(self.client.clone()), &Metrics::new());
        self.watching.spawn(known.clone().run(Random::seeded(2), CancellationToken::new()));
        let registry = webhooks(self.client.clone(), known, clock, settings);
        let endpoint = Endpoint::Service {
            namespace: NAMESPACE.to_owned(),
            name: name::SERVICE.to_owned(),
            port: name::SERVICE_PORT,
        };
        let mutating = registry.mutating(name::CONFIGURATION, &endpoint, b"");
        let validating = registry.validating(name::CONFIGURATION, &endpoint, b"");
        make::<MutatingWebhookConfiguration>(&Api::all(self.client.clone()), &mutating).await;
        make::<ValidatingWebhookConfiguration>(&Api::all(self.client.clone()), &validating).await;
        self.running.webhooks().register_service(
            NAMESPACE,
            name::SERVICE,
            name::SERVICE_PORT,
            Service::new(registry),
        );
    }

    fn of<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }
}

async fn make<K>(api: &Api<K>, object: &(impl Serialize + Sync)) -> K
where
    K: Resource + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    try_make(api, object).await.expect("is made")
}

/// Makes an object; the error is what a user reads.
async fn try_make<K>(api: &Api<K>, object: &(impl Serialize + Sync)) -> Result<K, String>
where
    K: Resource + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    let object = serde_json::from_value(json!(object)).expect("an object");
    match api.create(&PostParams::default(), &object).await {
        Ok(made) => Ok(made),
        Err(kube::Error::Api(status)) => Err(status.message),
        Err(error) => Err(error.to_string()),
    }
}

fn machine(name: &str, value: &Value) -> Value {
    json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": {"name": name}, "spec": {"providerSpec": {"value": value}},
    })
}

#[tokio::test(start_paused = true)]
async fn users_are_told_by_the_server() {
    let cluster = Cluster::start().await;
    let machines = cluster.of::<Machine>();

    let made =
        make(&machines, &machine("good", &json!({"ami": {"id": "ami-1"}, "later": 1}))).await;
    let value = made.spec.provider_spec.value.expect("a value");
    assert_eq!(
        value["instanceType"],
        if cfg!(target_arch = "aarch64") { "m6g.large" } else { "m5.large" }
    );
    assert_eq!(value["placement"], json!({"region": "us-east-1"}));
    assert_eq!(value["later"], 1);
    let labels = made.metadata.labels.expect("labels");
    assert_eq!(labels[names::label::CLUSTER], "demo");

    assert_eq!(
        try_make(&machines, &machine("bad", &json!({}))).await.expect_err("is refused"),
        "admission webhook \"validation.machine.machine.openshift.io\" denied the request: providerSpec.ami: Required value: expected providerSpec.ami.id to be populated"
    );
    let nothing = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine", "metadata": {"name": "none"},
    });
    assert_eq!(
        try_make(&machines, &nothing).await.expect_err("is refused"),
        "admission webhook \"default.machine.machine.openshift.io\" denied the request: providerSpec.value: Required value: a value must be provided"
    );

    let sets = cluster.of::<MachineSet>();
    let set = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "metadata": {"name": "s"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"spec": {"providerSpec": {"value": {"ami": {"id": "ami-1"}}}}},
        },
    });
    assert_eq!(
        try_make(&sets, &set).await.expect_err("is refused"),
        "admission webhook \"validation.machineset.machine.openshift.io\" denied the request: spec.template.metadata.labels: Invalid value: {}: `selector` does not match template `labels`"
    );
    cluster.running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_group_is_checked_with_its_machines() {
    let cluster = Cluster::start().await;
    let groups = cluster.of::<AWSPlacementGroup>();
    let group = |name: &str, spec: Value| {
        json!({
            "apiVersion": "machine.openshift.io/v1", "kind": "AWSPlacementGroup",
            "metadata": {"name": name}, "spec": {"managementSpec": spec},
        })
    };
    let refused = try_make(&groups, &group("g", json!({"managementState": "Managed"}))).await;
    let text = refused.expect_err("is refused");
    assert!(text.contains("managed is required when managementState is Managed"), "{text}");

    make(
        &groups,
        &group("g", json!({"managementState": "Managed", "managed": {"groupType": "Cluster"}})),
    )
    .await;
    let in_partition = json!({
        "ami": {"id": "ami-1"}, "placement": {"group": {"name": "g"}, "partitionNumber": 1},
    });
    let refused = try_make(&cluster.of::<Machine>(), &machine("m", &in_partition)).await;
    let text = refused.expect_err("is refused");
    assert!(
        text.contains(
            "may only be set when used with a AWSPlacementGroup with groupType \"Partition\""
        ),
        "{text}"
    );

    make(&groups, &group("u", json!({"managementState": "Unmanaged"}))).await;
    let managed = json!({"spec": {"managementSpec": {
        "managementState": "Managed", "managed": {"groupType": "Cluster"},
    }}});
    let changed = groups.patch("u", &PatchParams::default(), &Patch::Merge(managed)).await;
    let text = changed.expect_err("is refused").to_string();
    assert!(text.contains("an unmanaged placement group cannot become managed"), "{text}");
    cluster.running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_configuration_decides_on_a_control_plane_on_spot() {
    let mut master = machine("m", &json!({"ami": {"id": "ami-1"}, "spotMarketOptions": {}}));
    master["metadata"]["labels"] = json!({names::label::MACHINE_ROLE: names::label::MASTER});
    for (switch, refused) in
        [(InterruptibleControlPlane::Refuse, true), (InterruptibleControlPlane::Warn, false)]
    {
        let config =
            WebhooksConfig { interruptible_control_plane: switch, ..WebhooksConfig::default() };
        let cluster = Cluster::configured(&config).await;
        let made = try_make(&cluster.of::<Machine>(), &master).await;
        assert_eq!(made.is_err(), refused, "{switch:?}: {made:?}");
        if let Err(text) = made {
            assert!(text.contains("providerSpec.spotMarketOptions: Forbidden: "), "{text}");
        }
        cluster.running.stop().await;
    }
}

/// A Machine that was right when it was made, and is wrong since its group is there.
#[tokio::test(start_paused = true)]
async fn the_configuration_decides_what_an_update_is_held_to() {
    let in_partition = json!({
        "ami": {"id": "ami-1"}, "placement": {"group": {"name": "g"}, "partitionNumber": 1},
    });
    let group = json!({
        "apiVersion": "machine.openshift.io/v1", "kind": "AWSPlacementGroup",
        "metadata": {"name": "g"}, "spec": {"managementSpec": {
            "managementState": "Managed", "managed": {"groupType": "Cluster"},
        }},
    });
    let note = Patch::Merge(json!({"metadata": {"annotations": {"a": "b"}}}));
    for (updates, refused) in [(Updates::CheckChanges, false), (Updates::CheckAll, true)] {
        let config = WebhooksConfig { updates, ..WebhooksConfig::default() };
        let cluster = Cluster::configured(&config).await;
        let machines = cluster.of::<Machine>();
        make(&machines, &machine("m", &in_partition)).await;
        make(&cluster.of::<AWSPlacementGroup>(), &group).await;
        let noted = machines.patch("m", &PatchParams::default(), &note).await;
        assert_eq!(noted.is_err(), refused, "{updates:?}: {noted:?}");
        cluster.running.stop().await;
    }
}
