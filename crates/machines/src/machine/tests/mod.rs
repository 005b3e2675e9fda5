//! The whole controller on an embedded API server and a small cloud, on virtual time.

mod crash;
mod ec2;
mod gang;
mod interruption;
mod life;
mod trouble;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fleetwright_api::{
    machine::{Condition, Machine},
    names::condition,
};
use fleetwright_clock::Clock;
use fleetwright_cloud::{Cloud, InstanceState};
use fleetwright_runtime::{Informer, config::DrainConfig};
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

use self::ec2::Ec2;
use super::{MachineController, Parts, nodes::Nodes};
use crate::{
    clouds::Clouds,
    group::testbed::{Bed, Process, Supervised},
    launch::settings::LaunchConfig,
};

const ZONE: &str = "us-east-1a";

/// An API server, a cloud, and those who make Nodes of its instances.
struct Yard {
    bed: Bed,
    ec2: Ec2,
    config: LaunchConfig,
    process: Option<Supervised>,
    _kubelets: JoinSet<()>,
}

impl Yard {
    /// Everything but the controller.
    async fn new() -> Self {
        Self::on(Bed::start().await, None).await
    }

    /// Everything but the controller, in an account that may be there already.
    async fn on(bed: Bed, account: Option<Ec2>) -> Self {
        let ec2 = account.unwrap_or_else(|| Ec2::new(bed.clock.clone()));
        bed.create::<Secret>(json!({
            "metadata": {"name": "worker-user-data"}, "stringData": {"userData": "#!/bin/true"},
        }))
        .await;
        let mut kubelets = JoinSet::new();
        kubelets.spawn(join_nodes(Api::all(bed.user.clone()), ec2.clone()));
        Self { bed, ec2, config: LaunchConfig::default(), process: None, _kubelets: kubelets }
    }

    /// Everything.
    async fn started() -> Self {
        Self::new().await.start()
    }

    fn start(mut self) -> Self {
        let (ec2, config, writes) =
            (self.ec2.clone(), self.config.clone(), self.bed.writes.clone());
        self.process = Some(self.bed.process(move |process| {
            controllers(process, ec2.harmed_by(writes.clone()), config.clone());
        }));
        self
    }

    /// The process ends.
    async fn stop(mut self) -> Self {
        if let Some(process) = self.process.take() {
            process.stop().await;
        }
        self
    }

    /// The process ends, and another one begins.
    async fn restart(self) -> Self {
        self.stop().await.start()
    }

    async fn create(&self, name: &str, more: Value) -> Machine {
        self.bed.create(machine(name, more)).await
    }

    async fn get(&self, name: &str) -> Option<Machine> {
        self.bed.api().get_opt(name).await.unwrap()
    }

    async fn phase(&self, name: &str, phase: &str) -> Machine {
        self.bed
            .until(&format!("{name} is {phase}"), || async {
                self.get(name).await.filter(|machine| phase_of(machine) == phase)
            })
            .await
    }

    /// Waits for the condition MachineCreated to have this reason.
    async fn says(&self, name: &str, reason: &str) -> Machine {
        self.bed
            .until(&format!("{name} says {reason}"), || async {
                let machine = self.get(name).await?;
                let said = created(&machine)?.reason.clone();
                (said.as_deref() == Some(reason)).then_some(machine)
            })
            .await
    }

    async fn delete(&self, name: &str) {
        self.bed.api::<Machine>().delete(name, &DeleteParams::default()).await.unwrap();
    }

    async fn gone(&self, name: &str) {
        self.bed
            .until(&format!("{name} is gone"), || async {
                self.get(name).await.is_none().then_some(())
            })
            .await;
    }

    async fn nodes(&self) -> Vec<Node> {
        let api: Api<Node> = Api::all(self.bed.user.clone());
        api.list(&ListParams::default()).await.unwrap().items
    }

    /// Nothing is left, and every Machine had one instance.
    async fn assert_clean(&self, made: usize) {
        let alive: Vec<_> = self.ec2.alive().into_iter().map(|instance| instance.id).collect();
        assert!(alive.is_empty(), "left: {alive:?}");
        assert!(self.ec2.state().hosts.is_empty(), "hosts that nobody needs");
        assert_eq!(self.ec2.all().len(), made, "instances that were ever made");
        assert!(self.nodes().await.is_empty());
    }
}

fn controllers(process: &mut Process, ec2: Ec2, config: LaunchConfig) {
    let infrastructures = process.watch("infrastructures", Api::all(process.client.clone()));
    let secrets: Informer<Secret> = process.informer("secrets");
    let nodes = process.watch("nodes", Api::all(process.client.clone()));
    let clouds = Clouds::new(Arc::new(ec2), infrastructures, secrets.clone());
    let controller = MachineController::new(Parts {
        client: process.client.clone(),
        machines: process.informer("machines"),
        sets: process.informer("machinesets"),
        groups: process.informer("groups"),
        secrets,
        nodes: Nodes::new(
            process.client.clone(),
            nodes,
            DrainConfig::default(),
            process.clock.clone(),
        ),
        clouds,
        placement: None,
        config,
        workers: 4,
        clock: process.clock.clone(),
        events: process.events.clone(),
        metrics: process.metrics.clone(),
    });
    process.run(async move {
        controller.run(CancellationToken::new()).await.unwrap();
    });
}

/// A cloud that nobody asks.
pub(super) fn no_cloud() -> Arc<dyn Cloud> {
    Arc::new(Ec2::new(Clock::system()))
}

/// Instances that run join as Nodes.
async fn join_nodes(api: Api<Node>, ec2: Ec2) {
    let mut joined = BTreeSet::new();
    loop {
        sleep(Duration::from_secs(1)).await;
        for instance in ec2.alive() {
            if instance.state != InstanceState::Running || !joined.insert(instance.id.clone()) {
                continue;
            }
            let node = json!({
                "metadata": {"name": format!("node-{}", instance.id)},
                "spec": {"providerID": instance.provider_id},
            });
            let node: Node = serde_json::from_value(node).unwrap();
            api.create(&PostParams::default(), &node).await.unwrap();
        }
    }
}

fn machine(name: &str, more: Value) -> Value {
    let mut machine = json!({
        "metadata": {
            "name": name,
            "labels": {"machine.openshift.io/cluster-api-cluster": "mycluster-abc12"},
        },
        "spec": {"providerSpec": {"value": {
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "AWSMachineProviderConfig",
            "ami": {"id": "ami-1"},
            "instanceType": "m5.large",
            "placement": {"region": "us-east-1", "availabilityZone": ZONE},
            "userDataSecret": {"name": "worker-user-data"},
        }}},
    });
    merge(&mut machine, more);
    machine
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

fn provider(more: &Value) -> Value {
    json!({"spec": {"providerSpec": {"value": more}}})
}

fn phase_of(machine: &Machine) -> &str {
    let phase = machine.status.as_ref().and_then(|status| status.phase.as_ref());
    phase.map_or("", |phase| phase.as_str())
}

fn said<'a>(machine: &'a Machine, kind: &str) -> Option<&'a Condition> {
    machine.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == kind)
}

fn created(machine: &Machine) -> Option<&Condition> {
    said(machine, condition::MACHINE_CREATED)
}

fn error(machine: &Machine) -> (&str, &str) {
    let status = machine.status.as_ref().unwrap();
    (
        status.error_reason.as_deref().unwrap_or_default(),
        status.error_message.as_deref().unwrap_or_default(),
    )
}

fn reasons(events: &[(String, String)]) -> Vec<&str> {
    events.iter().map(|(reason, _)| reason.as_str()).collect()
}

fn id_of(machine: &Machine) -> String {
    super::instance_id(machine).unwrap_or_else(|| panic!("{} has no instance", machine.name_any()))
}

/// On a host that is allocated for it alone.
fn on_own_host() -> Value {
    let host = json!({"affinity": "DedicatedHost",
        "dedicatedHost": {"allocationStrategy": "Dynamic"}});
    provider(&json!({"placement": {"tenancy": "host", "host": host}}))
}
