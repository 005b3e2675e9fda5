//! The rules as webhooks: names, paths, and where the facts come from.

use std::sync::Arc;
use std::time::Duration;

use fleetwright_admission::{
    FailurePolicy, Operation, Registry, Request, Rule, RuleFuture, Stage, Verdict, Webhook,
};
use fleetwright_api::aws::AWSMachineProviderConfig;
use fleetwright_api::config::{Infrastructure, PlatformType};
use fleetwright_api::machine::{Machine, MachineSet, ProviderSpec};
use fleetwright_api::names;
use fleetwright_api::placement::AWSPlacementGroup;
use fleetwright_clock::Clock;
use fleetwright_runtime::{Informer, ObjectKey, config::WebhooksConfig};
use k8s_openapi::api::core::v1::Secret;
use kube::core::PartialObjectMeta;
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use super::{Facts, InterruptibleControlPlane, Updates, defaults, group, machine, machine_set};

/// Names that users see in refusals and configurations.
pub mod name {
    /// Both configurations.
    pub const CONFIGURATION: &str = "machine-api";
    /// The Service that API servers reach the webhooks by.
    pub const SERVICE: &str = "machine-api-operator-webhook";
    /// The port of that Service.
    pub const SERVICE_PORT: u16 = 443;
    /// Fills in a Machine.
    pub const DEFAULT_MACHINE: &str = "default.machine.machine.openshift.io";
    /// Fills in a MachineSet.
    pub const DEFAULT_MACHINE_SET: &str = "default.machineset.machine.openshift.io";
    /// Checks a Machine.
    pub const VALIDATE_MACHINE: &str = "validation.machine.machine.openshift.io";
    /// Checks a MachineSet.
    pub const VALIDATE_MACHINE_SET: &str = "validation.machineset.machine.openshift.io";
    /// Checks an AWSPlacementGroup.
    pub const VALIDATE_GROUP: &str = "validation.awsplacementgroup.machine.openshift.io";
}

/// What the webhooks go by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The namespace whose groups are looked after.
    pub machine_namespace: String,
    /// What an update is held to.
    pub updates: Updates,
    /// What becomes of Machines of the control plane on interruptible instances.
    pub interruptible_control_plane: InterruptibleControlPlane,
}

impl Settings {
    /// What the configuration says, for the Machines of a namespace.
    pub fn of(config: &WebhooksConfig, machine_namespace: &str) -> Self {
        Self {
            machine_namespace: machine_namespace.to_owned(),
            updates: config.updates,
            interruptible_control_plane: config.interruptible_control_plane,
        }
    }
}

/// How long a review waits for the cache after a start; the API server waits ten seconds for us.
const PATIENCE: Duration = Duration::from_secs(5);

/// The webhooks of this crate. The cluster is looked up in `infrastructures`, which somebody has to
/// run; what an object names is read with `client`, because it may just have been written.
pub fn webhooks(
    client: Client,
    infrastructures: Informer<Infrastructure>,
    clock: Clock,
    settings: Settings,
) -> Registry {
    const CREATE: &[Operation] = &[Operation::Create];
    const WRITE: &[Operation] = &[Operation::Create, Operation::Update];
    let source = Arc::new(Source { client, infrastructures, clock, settings });
    let webhook = |name, path, stage, operations, (version, resources), check| Webhook {
        name,
        path,
        stage,
        operations,
        group: "machine.openshift.io",
        version,
        resources,
        // Machines must be made while the webhooks are away: the controllers check again.
        failure_policy: FailurePolicy::Ignore,
        rule: Arc::new(Checked { source: Arc::clone(&source), check }),
    };
    let machines: (_, &'static [_]) = ("v1beta1", &["machines"]);
    let sets: (_, &'static [_]) = ("v1beta1", &["machinesets"]);
    let groups: (_, &'static [_]) = ("v1", &["awsplacementgroups"]);
    Registry::new([
        webhook(
            name::DEFAULT_MACHINE,
            "/mutate-machine-openshift-io-v1beta1-machine",
            Stage::Mutate,
            CREATE,
            machines,
            Check::DefaultMachine,
        ),
        webhook(
            name::DEFAULT_MACHINE_SET,
            "/mutate-machine-openshift-io-v1beta1-machineset",
            Stage::Mutate,
            CREATE,
            sets,
            Check::DefaultMachineSet,
        ),
        webhook(
            name::VALIDATE_MACHINE,
            "/validate-machine-openshift-io-v1beta1-machine",
            Stage::Validate,
            WRITE,
            machines,
            Check::Machine,
        ),
        webhook(
            name::VALIDATE_MACHINE_SET,
            "/validate-machine-openshift-io-v1beta1-machineset",
            Stage::Validate,
            WRITE,
            sets,
            Check::MachineSet,
        ),
        webhook(
            name::VALIDATE_GROUP,
            "/validate-machine-openshift-io-v1-awsplacementgroup",
            Stage::Validate,
            WRITE,
            groups,
            Check::Group,
        ),
    ])
}

/// Where facts come from.
struct Source {
    client: Client,
    infrastructures: Informer<Infrastructure>,
    clock: Clock,
    settings: Settings,
}

#[derive(Debug, Clone, Copy)]
enum Check {
    DefaultMachine,
    DefaultMachineSet,
    Machine,
    MachineSet,
    Group,
}

struct Checked {
    source: Arc<Source>,
    check: Check,
}

impl Rule for Checked {
    fn review<'a>(&'a self, request: &'a Request) -> RuleFuture<'a> {
        Box::pin(async move {
            let object = request.object.clone().ok_or("the review has no object")?;
            match self.check {
                Check::DefaultMachine => {
                    Ok(defaults::machine(object, &self.source.cluster().await?))
                }
                Check::DefaultMachineSet => {
                    Ok(defaults::machine_set(object, &self.source.cluster().await?))
                }
                Check::Machine => {
                    let (new, old) = both::<Machine>(object, request)?;
                    let facts =
                        self.source.about(&new.spec.provider_spec, &request.namespace).await?;
                    Ok(machine::validate(&new, old.as_ref(), &facts))
                }
                Check::MachineSet => {
                    let (new, old) = both::<MachineSet>(object, request)?;
                    let spec = &new.spec.template.spec.provider_spec;
                    let facts = self.source.about(spec, &request.namespace).await?;
                    Ok(machine_set::validate(&new, old.as_ref(), &facts))
                }
                Check::Group => {
                    let (new, old) = both::<AWSPlacementGroup>(object, request)?;
                    Ok(self.group(&new, old.as_ref()))
                }
            }
        })
    }
}

impl Checked {
    fn group(&self, new: &AWSPlacementGroup, old: Option<&AWSPlacementGroup>) -> Verdict {
        group::validate(new, old, &self.source.bare(None))
    }
}

/// The object and what it was before.
fn both<K: DeserializeOwned>(object: Value, request: &Request) -> Result<(K, Option<K>), String> {
    let read = |value: Value| {
        serde_json::from_value(value).map_err(|error| format!("cannot read the object: {error}"))
    };
    Ok((read(object)?, request.old_object.clone().map(read).transpose()?))
}

impl Source {
    fn bare(&self, infrastructure: Option<&Infrastructure>) -> Facts {
        let Settings { machine_namespace, updates, interruptible_control_plane } = &self.settings;
        Facts {
            updates: *updates,
            interruptible_control_plane: *interruptible_control_plane,
            ..Facts::of(infrastructure, machine_namespace, self.clock.now())
        }
    }

    /// What is known of the cluster.
    async fn cluster(&self) -> Result<Facts, String> {
        timeout(PATIENCE, self.infrastructures.wait_synced())
            .await
            .map_err(|_| "Infrastructure cluster is not known yet: try again".to_owned())?;
        let infrastructure = self.infrastructures.get(&ObjectKey::cluster(names::INFRASTRUCTURE));
        Ok(self.bare(infrastructure.as_deref()))
    }

    /// What is known of the things that a provider spec names.
    async fn about(&self, spec: &ProviderSpec, namespace: &str) -> Result<Facts, String> {
        let mut facts = self.cluster().await?;
        // Machines elsewhere are nobody's, and what is there is none of our business.
        let ours = namespace == self.settings.machine_namespace;
        if !ours || facts.platform != Some(PlatformType::Aws) {
            return Ok(facts);
        }
        let Ok(config) = AWSMachineProviderConfig::read(spec) else { return Ok(facts) };
        if let Some(secret) = config.credentials_secret.as_ref().filter(|s| !s.name.is_empty()) {
            // Only whether it is there: what is in it is none of our business here.
            let secrets: Api<PartialObjectMeta<Secret>> =
                Api::namespaced(self.client.clone(), namespace);
            let found = secrets
                .get_metadata_opt(&secret.name)
                .await
                .map_err(|error| format!("cannot look for secret {}: {error}", secret.name))?;
            if found.is_none() {
                facts.missing_secrets.insert(secret.name.clone());
            }
        }
        if let Ok(Some(name)) = config.group_name() {
            let groups: Api<AWSPlacementGroup> = Api::namespaced(self.client.clone(), namespace);
            let found = groups
                .get_opt(name)
                .await
                .map_err(|error| format!("cannot look for AWSPlacementGroup {name}: {error}"))?;
            facts.groups.insert(name.to_owned(), found);
        }
        Ok(facts)
    }
}
