//! What a Machine waits for, why, and what a person can do about it.

use fleetwright_api::{
    aws::AWSMachineProviderConfig,
    machine::{Condition, Machine, Phase},
    names::{annotation, condition, reason},
};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use crate::Snapshot;

/// A Machine does not have what it should have yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// One word, as in a condition.
    pub reason: String,
    /// What it waits for.
    pub for_what: String,
    /// Why, in the words of whoever said so.
    pub why: String,
    /// What to do; empty when time does it.
    pub fix: String,
}

/// What a Machine waits for; none when it is as it should be.
pub(crate) fn waiting(machine: &Machine, snapshot: &Snapshot) -> Option<Waiting> {
    if machine.metadata.deletion_timestamp.is_some() {
        return Some(leaving(machine));
    }
    let status = machine.status.as_ref();
    match status.and_then(|status| status.phase.as_ref()) {
        Some(Phase::Failed) => {
            let status = status?;
            Some(Waiting {
                reason: status.error_reason.clone().unwrap_or_else(|| "Failed".to_owned()),
                for_what: "nothing: it has failed for good".to_owned(),
                why: status.error_message.clone().unwrap_or_default(),
                fix: format!(
                    "delete it (kubectl delete machine {}); its MachineSet makes another",
                    machine.name_any()
                ),
            })
        }
        Some(Phase::Running) => {
            let name = status?.node_ref.as_ref()?.name.clone().unwrap_or_default();
            unready_node(snapshot.node(&name), &name)
        }
        Some(Phase::Provisioned) => Some(Waiting {
            reason: "WaitingForNode".to_owned(),
            for_what: "its Node to join the cluster".to_owned(),
            why: format!(
                "the instance runs, and no Node has the provider ID {} or one of its addresses",
                machine.spec.provider_id.as_deref().unwrap_or("(none)")
            ),
            fix: String::new(),
        }),
        _ => Some(launching(machine)),
    }
}

fn launching(machine: &Machine) -> Waiting {
    let Some(created) = find(machine, condition::MACHINE_CREATED).filter(|c| !c.is_true()) else {
        let exists = find(machine, condition::INSTANCE_EXISTS).filter(|c| c.is_true());
        return Waiting {
            reason: if exists.is_some() { "Starting" } else { "Launching" }.to_owned(),
            for_what: if exists.is_some() {
                "its instance to start".to_owned()
            } else {
                "its instance to be launched".to_owned()
            },
            ..Waiting::default()
        };
    };
    let word = created.reason.clone().unwrap_or_default();
    let (for_what, fix) = match word.as_str() {
        reason::INSUFFICIENT_CAPACITY => (
            "capacity in the cloud".to_owned(),
            "wait, or let the MachineSet ask for another zone or instance type".to_owned(),
        ),
        reason::SPREAD_LIMIT_REACHED => (
            "room in its spread placement group".to_owned(),
            "a spread group holds seven instances in a zone: scale down, or use another zone or \
             group"
                .to_owned(),
        ),
        reason::QUOTA_EXCEEDED => (
            "the account's quota".to_owned(),
            "raise the quota with the cloud, or remove instances".to_owned(),
        ),
        reason::THROTTLED => ("the cloud to take requests again".to_owned(), String::new()),
        reason::CREDENTIALS_REJECTED => (
            "credentials that are allowed to launch".to_owned(),
            "check the credentials Secret and the permissions of its user".to_owned(),
        ),
        reason::PLACEMENT_GROUP_NOT_READY => {
            let group = group_of(machine).unwrap_or_default();
            (
                format!("placement group {group} to be ready"),
                format!("fleetwright explain awsplacementgroup/{group} tells why it is not"),
            )
        }
        _ => ("its instance to be launched".to_owned(), String::new()),
    };
    Waiting { reason: word, for_what, why: created.message.clone().unwrap_or_default(), fix }
}

fn leaving(machine: &Machine) -> Waiting {
    let blocked = |type_: &str| find(machine, type_).filter(|c| c.status == Condition::FALSE);
    let drained = find(machine, condition::DRAINED).is_some_and(Condition::is_true);
    let hooked = if drained { condition::TERMINABLE } else { condition::DRAINABLE };
    if let Some(hook) = blocked(hooked) {
        return Waiting {
            reason: hook.reason.clone().unwrap_or_default(),
            for_what: "the owner of a lifecycle hook to remove it".to_owned(),
            why: hook.message.clone().unwrap_or_default(),
            fix: "see spec.lifecycleHooks for who put it there".to_owned(),
        };
    }
    if !drained {
        let drain = blocked(condition::DRAINED);
        return Waiting {
            reason: drain.and_then(|c| c.reason.clone()).unwrap_or_else(|| "Draining".to_owned()),
            for_what: "its Node to be drained".to_owned(),
            why: drain.and_then(|c| c.message.clone()).unwrap_or_default(),
            fix: String::new(),
        };
    }
    let state = machine.annotations().get(annotation::INSTANCE_STATE).cloned().unwrap_or_default();
    Waiting {
        reason: "Terminating".to_owned(),
        for_what: "its instance to be gone".to_owned(),
        why: if state.is_empty() { state } else { format!("the instance is {state}") },
        fix: String::new(),
    }
}

fn unready_node(node: Option<&Node>, name: &str) -> Option<Waiting> {
    let Some(node) = node else {
        return Some(Waiting {
            reason: "NodeMissing".to_owned(),
            for_what: format!("Node {name}"),
            why: "the Node that it is linked to does not exist".to_owned(),
            fix: String::new(),
        });
    };
    let ready = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref())
        .and_then(|conditions| conditions.iter().find(|c| c.type_ == "Ready"));
    match ready {
        Some(ready) if ready.status == Condition::TRUE => None,
        ready => Some(Waiting {
            reason: "NodeNotReady".to_owned(),
            for_what: format!("Node {name} to be ready"),
            why: ready.and_then(|ready| ready.message.clone()).unwrap_or_default(),
            fix: String::new(),
        }),
    }
}

/// The condition of a type.
pub(crate) fn find<'a>(machine: &'a Machine, type_: &str) -> Option<&'a Condition> {
    machine.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == type_)
}

/// The placement group that a Machine asks for.
pub(crate) fn group_of(machine: &Machine) -> Option<String> {
    let spec = AWSMachineProviderConfig::read(&machine.spec.provider_spec).ok()?;
    spec.placed().ok()?.group
}
