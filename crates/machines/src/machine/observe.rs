//! What a Machine says of its instance.

use std::collections::BTreeMap;

use fleetwright_api::{
    aws::AWSMachineProviderStatus,
    machine::{Machine, MachineSpec, MachineStatus},
    names::{annotation, condition, label, message, reason},
};
use fleetwright_cloud::{AddressKind, Instance, InstanceState};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::NodeAddress,
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use serde_json::Value;

use super::market;

/// A Machine as it is to be written: metadata, spec and status.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Finalizers.
    pub finalizers: Vec<String>,
    /// Spec; only what the controller owns of it changes.
    pub spec: MachineSpec,
    /// Status.
    pub status: MachineStatus,
}

impl Draft {
    /// The Machine as it is.
    pub fn of(machine: &Machine) -> Self {
        let meta = machine.metadata.clone();
        Self {
            labels: meta.labels.unwrap_or_default(),
            annotations: meta.annotations.unwrap_or_default(),
            finalizers: meta.finalizers.unwrap_or_default(),
            spec: machine.spec.clone(),
            status: machine.status.clone().unwrap_or_default(),
        }
    }
}

/// Brings a Machine up to date with its instance.
pub fn observe(draft: &mut Draft, instance: &Instance, now: Timestamp) {
    draft.spec.provider_id = Some(instance.provider_id.clone());
    for (key, value) in [
        (label::REGION, &instance.region),
        (label::ZONE, &instance.zone),
        (label::INSTANCE_TYPE, &instance.instance_type),
    ] {
        if !value.is_empty() {
            draft.labels.insert(key.to_owned(), value.clone());
        }
    }
    draft.labels.extend(crate::group::publish::labels(instance));
    if market::interruptible(&draft.spec.provider_spec, instance) {
        let key = || label::INTERRUPTIBLE.to_owned();
        draft.labels.insert(key(), String::new());
        draft.spec.metadata.labels.insert(key(), String::new());
    }
    record_state(draft, instance.state);
    draft.status.addresses = instance
        .addresses
        .iter()
        .map(|address| NodeAddress {
            type_: address_type(address.kind).to_owned(),
            address: address.address.clone(),
        })
        .collect();
    let mut status = provider_status(draft);
    status.instance_id = Some(instance.id.clone());
    set_creation(&mut status, None, now);
    write_provider_status(draft, &status);
}

/// Writes down what the instance is doing.
pub fn record_state(draft: &mut Draft, state: InstanceState) {
    draft.annotations.insert(annotation::INSTANCE_STATE.to_owned(), state.as_str().to_owned());
    let mut status = provider_status(draft);
    status.instance_state = Some(state.as_str().to_owned());
    write_provider_status(draft, &status);
}

/// Writes down that the instance could not be made.
pub fn record_failure(draft: &mut Draft, why: &str, now: Timestamp) {
    let mut status = provider_status(draft);
    set_creation(&mut status, Some(why), now);
    write_provider_status(draft, &status);
}

/// Writes down which instance it is, before anything is known of it.
pub fn record_instance(draft: &mut Draft, id: &str) {
    let mut status = provider_status(draft);
    status.instance_id = Some(id.to_owned());
    write_provider_status(draft, &status);
}

fn provider_status(draft: &Draft) -> AWSMachineProviderStatus {
    let mut status = AWSMachineProviderStatus::read(draft.status.provider_status.as_ref());
    status.api_version = Some(AWSMachineProviderStatus::API_VERSION.to_owned());
    status.kind = Some(AWSMachineProviderStatus::KIND.to_owned());
    status
}

fn write_provider_status(draft: &mut Draft, status: &AWSMachineProviderStatus) {
    let value = serde_json::to_value(status).unwrap_or(Value::Null);
    draft.status.provider_status = Some(value);
}

/// The condition of the provider status, in the manner of `metav1`: its time moves with its status
/// alone.
fn set_creation(status: &mut AWSMachineProviderStatus, failure: Option<&str>, now: Timestamp) {
    let (holds, why, text) = match failure {
        None => ("True", reason::MACHINE_CREATION_SUCCEEDED, message::MACHINE_CREATED),
        Some(why) => ("False", reason::MACHINE_CREATION_FAILED, why),
    };
    let known = status.conditions.iter_mut().find(|c| c.type_ == condition::MACHINE_CREATION);
    let now = Time(fleetwright_lifecycle::conditions::whole_second(now));
    match known {
        Some(known) => {
            if known.status != holds {
                known.last_transition_time = now;
            }
            holds.clone_into(&mut known.status);
            why.clone_into(&mut known.reason);
            text.clone_into(&mut known.message);
        }
        None => status.conditions.push(Condition {
            type_: condition::MACHINE_CREATION.to_owned(),
            status: holds.to_owned(),
            reason: why.to_owned(),
            message: text.to_owned(),
            last_transition_time: now,
            observed_generation: None,
        }),
    }
}

fn address_type(kind: AddressKind) -> &'static str {
    match kind {
        AddressKind::InternalIp => "InternalIP",
        AddressKind::ExternalIp => "ExternalIP",
        AddressKind::InternalDns => "InternalDNS",
        AddressKind::ExternalDns => "ExternalDNS",
        AddressKind::Hostname => "Hostname",
    }
}
