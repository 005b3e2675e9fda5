//! Which pods a drain removes: kubectl's filters, in kubectl's order, with kubectl's words.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use super::{Existence, Pod, Wish};

/// DaemonSet pods come back at once, so a drain without this flag refuses them.
pub const DAEMON_SET_FATAL: &str = "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)";
/// What is said of those that stay.
pub const DAEMON_SET_WARNING: &str = "ignoring DaemonSet-managed Pods";
/// Data would be lost.
pub const LOCAL_STORAGE_FATAL: &str =
    "Pods with local storage (use --delete-emptydir-data to override)";
/// What is said of those whose data is lost.
pub const LOCAL_STORAGE_WARNING: &str = "deleting Pods with local storage";
/// Nobody would make it anew.
pub const UNMANAGED_FATAL: &str =
    "cannot delete Pods that declare no controller (use --force to override)";
/// What is said of those that nobody makes anew.
pub const UNMANAGED_WARNING: &str = "deleting Pods that declare no controller";

/// Which pods may go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Also pods that nobody makes anew.
    pub force: bool,
    /// Leave DaemonSet pods instead of refusing.
    pub ignore_daemon_sets: bool,
    /// Also pods that lose data.
    pub delete_empty_dir_data: bool,
    /// Do not wait for pods that should have been gone for longer than this.
    pub skip_after_deletion: Option<Duration>,
}

/// What becomes of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes; this is worth saying.
    Remove {
        /// What kubectl would warn of.
        warnings: Vec<String>,
    },
    /// It stays; this is worth saying.
    Leave {
        /// What kubectl would warn of.
        warning: Option<String>,
    },
    /// The drain cannot begin.
    Refuse(String),
}

/// What one filter says; the first that does not let a pod pass wins.
enum Passage {
    Pass,
    PassWarning(String),
    Stop(Verdict),
}

/// Judges a pod.
pub fn judge(filter: &Filter, pod: &Pod, now: Timestamp) -> Verdict {
    let filters = [skip_deleted, daemon_set, mirror, local_storage, unreplicated, wish];
    let mut warnings = Vec::new();
    for judge in filters {
        match judge(filter, pod, now) {
            Passage::Pass => {}
            Passage::PassWarning(warning) => warnings.push(warning),
            Passage::Stop(verdict) => return verdict,
        }
    }
    Verdict::Remove { warnings }
}

const LEAVE: Passage = Passage::Stop(Verdict::Leave { warning: None });

fn refuse(message: &str) -> Passage {
    Passage::Stop(Verdict::Refuse(message.to_owned()))
}

fn skip_deleted(filter: &Filter, pod: &Pod, now: Timestamp) -> Passage {
    let Some((skip, deletion)) = filter.skip_after_deletion.zip(pod.deletion) else {
        return Passage::Pass;
    };
    // Whole seconds, as kubectl counts them; a pod that still has time is younger than nothing.
    let over = now.duration_since(deletion).as_secs();
    if !skip.is_zero() && u64::try_from(over).is_ok_and(|over| over > skip.as_secs()) {
        return LEAVE;
    }
    Passage::Pass
}

fn daemon_set(filter: &Filter, pod: &Pod, _now: Timestamp) -> Passage {
    let Some(controller) = pod.controller.as_ref().filter(|owner| owner.is_daemon_set()) else {
        return Passage::Pass;
    };
    match &controller.existence {
        _ if pod.finished => Passage::Pass,
        Existence::Absent(message) if filter.force => Passage::PassWarning(message.clone()),
        Existence::Absent(message) | Existence::Unknown(message) => refuse(message),
        Existence::Exists if filter.ignore_daemon_sets => {
            Passage::Stop(Verdict::Leave { warning: Some(DAEMON_SET_WARNING.to_owned()) })
        }
        Existence::Exists => refuse(DAEMON_SET_FATAL),
    }
}

fn mirror(_filter: &Filter, pod: &Pod, _now: Timestamp) -> Passage {
    if pod.mirror { LEAVE } else { Passage::Pass }
}

fn local_storage(filter: &Filter, pod: &Pod, _now: Timestamp) -> Passage {
    match (pod.local_storage && !pod.finished, filter.delete_empty_dir_data) {
        (false, _) => Passage::Pass,
        (true, true) => Passage::PassWarning(LOCAL_STORAGE_WARNING.to_owned()),
        (true, false) => refuse(LOCAL_STORAGE_FATAL),
    }
}

fn unreplicated(filter: &Filter, pod: &Pod, _now: Timestamp) -> Passage {
    match (pod.finished || pod.controller.is_some(), filter.force) {
        (true, _) => Passage::Pass,
        (false, true) => Passage::PassWarning(UNMANAGED_WARNING.to_owned()),
        (false, false) => refuse(UNMANAGED_FATAL),
    }
}

/// Ours, after kubectl's: what the owner asks for.
fn wish(_filter: &Filter, pod: &Pod, _now: Timestamp) -> Passage {
    match pod.wish {
        Wish::Skip => LEAVE,
        // It leaves the drain's sight when it is over.
        Wish::WaitCompleted if pod.finished => LEAVE,
        Wish::WaitCompleted | Wish::Drain => Passage::Pass,
    }
}

/// Verdicts put together as kubectl tells them: pods by message.
#[derive(Debug, Default)]
pub(super) struct Judged {
    warnings: BTreeMap<String, Vec<String>>,
    refusals: BTreeMap<String, Vec<String>>,
}

impl Judged {
    pub(super) fn add(&mut self, pod: &Pod, verdict: &Verdict) {
        let (list, messages) = match verdict {
            Verdict::Remove { warnings } => (&mut self.warnings, warnings.as_slice()),
            Verdict::Leave { warning } => (&mut self.warnings, warning.as_slice()),
            Verdict::Refuse(message) => (&mut self.refusals, std::slice::from_ref(message)),
        };
        for message in messages {
            list.entry(message.clone()).or_default().push(pod.to_string());
        }
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        let line =
            |(message, pods): (&String, &Vec<String>)| format!("{message}: {}", pods.join(", "));
        self.warnings.iter().map(line).collect()
    }

    /// The pods that are refused.
    pub(super) fn refused(&self) -> Vec<String> {
        self.refusals.values().flatten().cloned().collect()
    }

    pub(super) fn refusal(&self) -> Option<String> {
        let line = |(message, pods): (&String, &Vec<String>)| {
            format!("cannot delete {message}: {}", pods.join(", "))
        };
        let lines: Vec<String> = self.refusals.iter().map(line).collect();
        (!lines.is_empty()).then(|| lines.join("; "))
    }
}
