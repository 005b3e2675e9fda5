//! The rules for a Machine.

use fleetwright_admission::{FieldError, Verdict};
use fleetwright_api::aws::{AWSMachineProviderConfig, AWSMachineProviderStatus};
use fleetwright_api::config::PlatformType;
use fleetwright_api::machine::{LifecycleHook, Machine};
use fleetwright_api::names::label;

use super::Facts;
use super::findings::Findings;
use super::platform::{self, Owner};

/// Checks a Machine; `old` is what it was before an update.
pub fn validate(new: &Machine, old: Option<&Machine>, facts: &Facts) -> Verdict {
    if old.is_some_and(|old| only_finalizers_go(new, old)) {
        return Verdict::allowed();
    }
    let mut findings = Findings::default();
    if let Some(old) = old {
        hooks(new, old, &mut findings);
    }
    let mut provider = check_provider(new, facts);
    if let Some(old) = old {
        provider.hold_to(facts.updates, &check_provider(old, facts));
        if facts.platform == Some(PlatformType::Aws) {
            moved(new, old, &mut provider);
        }
    }
    findings.append(provider);
    findings.into()
}

fn check_provider(machine: &Machine, facts: &Facts) -> Findings {
    let owner = Owner { control_plane: is_control_plane(machine) };
    platform::check(&machine.spec.provider_spec, owner, facts)
}

/// Whether a Machine belongs to the control plane: its role or its type says so.
fn is_control_plane(machine: &Machine) -> bool {
    let labels = machine.metadata.labels.as_ref();
    [label::MACHINE_ROLE, label::MACHINE_TYPE]
        .iter()
        .any(|key| labels.and_then(|labels| labels.get(*key)).is_some_and(|v| v == label::MASTER))
}

/// A Machine on its way out that is wrong must still be able to go.
fn only_finalizers_go(new: &Machine, old: &Machine) -> bool {
    let finalizers = |machine: &Machine| machine.metadata.finalizers.clone().unwrap_or_default();
    if new.metadata.deletion_timestamp.is_none()
        || finalizers(old).is_empty()
        || !finalizers(new).is_empty()
    {
        return false;
    }
    let plain = |machine: &Machine| {
        let mut machine = machine.clone();
        machine.metadata.finalizers = None;
        // What the server writes on every update.
        machine.metadata.managed_fields = None;
        machine.metadata.resource_version = None;
        machine.metadata.generation = None;
        machine
    };
    plain(new) == plain(old)
}

/// Hooks of a Machine on its way out may be taken away and not added.
fn hooks(new: &Machine, old: &Machine, findings: &mut Findings) {
    if new.metadata.deletion_timestamp.is_none() {
        return;
    }
    let (new, old) = (&new.spec.lifecycle_hooks, &old.spec.lifecycle_hooks);
    let lists = [
        ("preDrain", "pre-drain", &new.pre_drain, &old.pre_drain),
        ("preTerminate", "pre-terminate", &new.pre_terminate, &old.pre_terminate),
    ];
    for (field, name, new, old) in lists {
        let changed: Vec<String> =
            new.iter().filter(|hook| !old.contains(hook)).map(LifecycleHook::to_string).collect();
        if !changed.is_empty() {
            findings.error(FieldError::forbidden(
                format!("spec.lifecycleHooks.{field}"),
                format!(
                    "{name} hooks are immutable when machine is marked for deletion: the following \
                     hooks are new or changed: [{}]",
                    changed.join(" ")
                ),
            ));
        }
    }
}

/// Where an instance is placed is decided once.
fn moved(new: &Machine, old: &Machine, findings: &mut Findings) {
    let status = old.status.as_ref().and_then(|status| status.provider_status.as_ref());
    let instance = AWSMachineProviderStatus::read(status).instance_id;
    let instance = instance.or_else(|| {
        // `aws:///zone/i-…`
        let id = old.spec.provider_id.as_deref()?.rsplit('/').next()?;
        (!id.is_empty()).then(|| id.to_owned())
    });
    let Some(instance) = instance else { return };
    let read = |machine: &Machine| AWSMachineProviderConfig::read(&machine.spec.provider_spec).ok();
    let (Some(new), Some(old)) = (read(new), read(old)) else { return };
    if new.placement != old.placement || new.placed() != old.placed() {
        findings.warn(format!(
            "providerSpec.placement: instance {instance} is already running and does not move: the \
             new placement has no effect on this Machine"
        ));
    }
}
