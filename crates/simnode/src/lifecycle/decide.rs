//! What a node's conditions and taints should be.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Node, NodeCondition, Taint},
    apimachinery::pkg::apis::meta::v1::Time,
};

use crate::{
    cluster::{after, at},
    facts::taints::{
        self, DISK_PRESSURE, MEMORY_PRESSURE, NETWORK_UNAVAILABLE, NO_EXECUTE, NO_SCHEDULE,
        NOT_READY, PID_PRESSURE, UNREACHABLE, UNSCHEDULABLE,
    },
    kubelet::{PRESSURES, READY},
};

const SILENT: &str = "NodeStatusUnknown";
const SILENT_MESSAGE: &str = "Kubelet stopped posting node status.";
const NEVER: &str = "NodeStatusNeverUpdated";
const NEVER_MESSAGE: &str = "Kubelet never posted node status.";
/// A node that has not reported yet gets a little longer.
const STARTUP_EXTRA: Duration = Duration::from_secs(20);

/// The taints that follow from conditions: condition, its status, key of the taint.
const FROM_CONDITIONS: [(&str, &str, &str); 6] = [
    (READY, "False", NOT_READY),
    (READY, "Unknown", UNREACHABLE),
    ("MemoryPressure", "True", MEMORY_PRESSURE),
    ("DiskPressure", "True", DISK_PRESSURE),
    ("PIDPressure", "True", PID_PRESSURE),
    ("NetworkUnavailable", "True", NETWORK_UNAVAILABLE),
];

/// What to change about a node, and when to look again.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) conditions: Option<Vec<NodeCondition>>,
    /// All taints, if they are not right.
    pub(super) taints: Option<Vec<Taint>>,
    pub(super) next: Timestamp,
}

pub(super) fn judge(
    node: &Node,
    renewed: Option<Timestamp>,
    grace: Duration,
    now: Timestamp,
) -> Verdict {
    let ready = condition(node, READY);
    let heard = [renewed, ready.and_then(|ready| at(ready.last_heartbeat_time.as_ref()))];
    let created = at(node.metadata.creation_timestamp.as_ref()).unwrap_or(now);
    let silent_at = match heard.into_iter().flatten().max() {
        Some(heard) => after(heard, grace),
        None => after(created, grace + STARTUP_EXTRA),
    };
    let silent = now >= silent_at;
    let conditions = silent.then(|| unknown(node, now)).filter(|changed| !changed.is_empty());
    // A silent node is looked at when somebody writes to it; until then nothing can change.
    let next = if silent { after(now, grace) } else { silent_at };
    Verdict { conditions, taints: right_taints(node, now), next }
}

fn condition<'a>(node: &'a Node, kind: &str) -> Option<&'a NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// The conditions that a kubelet reports and that nobody knows any more.
fn unknown(node: &Node, now: Timestamp) -> Vec<NodeCondition> {
    let kinds = std::iter::once(READY).chain(PRESSURES);
    let changed = kinds.filter_map(|kind| {
        let known = condition(node, kind);
        if known.is_some_and(|known| known.status == "Unknown") {
            return None;
        }
        let (reason, message) =
            if known.is_some() { (SILENT, SILENT_MESSAGE) } else { (NEVER, NEVER_MESSAGE) };
        Some(NodeCondition {
            type_: kind.to_owned(),
            status: "Unknown".to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: known.and_then(|known| known.last_heartbeat_time.clone()),
            last_transition_time: Some(Time(now)),
        })
    });
    changed.collect()
}

/// The taints that the node should have, if it has others. Taints of other people stay.
fn right_taints(node: &Node, now: Timestamp) -> Option<Vec<Taint>> {
    let spec = node.spec.as_ref();
    let current = spec.and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let mut wanted = Vec::new();
    for (kind, status, key) in FROM_CONDITIONS {
        let holds = condition(node, kind).is_some_and(|known| known.status == status);
        if holds {
            wanted.push(taints::taint(key, NO_SCHEDULE));
            if matches!(key, NOT_READY | UNREACHABLE) {
                let added = Some(Time(now));
                wanted.push(Taint { time_added: added, ..taints::taint(key, NO_EXECUTE) });
            }
        }
    }
    if spec.is_some_and(|spec| spec.unschedulable == Some(true)) {
        wanted.push(Taint {
            time_added: Some(Time(now)),
            ..taints::taint(UNSCHEDULABLE, NO_SCHEDULE)
        });
    }
    let ours = |taint: &Taint| {
        let key = taint.key.as_str();
        (taint.effect == NO_SCHEDULE || taint.effect == NO_EXECUTE)
            && (key == UNSCHEDULABLE || FROM_CONDITIONS.iter().any(|(_, _, known)| *known == key))
    };
    let stays = |taint: &&Taint| !ours(taint) || wanted.iter().any(|new| taints::same(new, taint));
    let mut right: Vec<Taint> = current.iter().filter(stays).cloned().collect();
    for taint in wanted {
        if !right.iter().any(|known| taints::same(known, &taint)) {
            right.push(taint);
        }
    }
    (right != current).then_some(right)
}
