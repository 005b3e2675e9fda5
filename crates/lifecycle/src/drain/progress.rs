//! The text that says what a drain waits for. It names pods and budgets, and changes only when
//! they do, since every change is a write.

use std::{collections::BTreeMap, fmt::Write as _};

use jiff::Timestamp;

use super::Pod;

/// How many pods a line names.
const PODS_PER_LINE: usize = 3;
/// How many reasons are told.
const REASONS: usize = 5;
/// How the API begins when a budget forbids.
const BUDGET: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
const BUDGET_LOWER: &str = "cannot evict pod as it would violate the pod's disruption budget.";

/// What a drain waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// When it began.
    pub started: Timestamp,
    /// Why it cannot begin at all.
    pub refusal: Option<String>,
    /// Pods on their way out.
    pub terminating: Vec<String>,
    /// Pods that were refused, by reason.
    pub failed: BTreeMap<String, Vec<String>>,
    /// Pods that are let come to their end.
    pub completing: Vec<String>,
    /// Pods whose turn comes.
    pub later: Vec<String>,
}

impl Progress {
    /// Nothing yet.
    pub fn new(started: Timestamp) -> Self {
        Self {
            started,
            refusal: None,
            terminating: Vec::new(),
            failed: BTreeMap::new(),
            completing: Vec::new(),
            later: Vec::new(),
        }
    }

    pub(super) fn failed(&mut self, why: &str, pod: &Pod) {
        self.failed.entry(why.to_owned()).or_default().push(pod.to_string());
    }

    /// Whether it waits for nothing.
    pub fn is_empty(&self) -> bool {
        self.refusal.is_none() && self.pods().is_empty()
    }

    /// Every pod that it waits for, sorted.
    pub fn pods(&self) -> Vec<String> {
        let lists = [&self.terminating, &self.completing, &self.later];
        let mut pods: Vec<String> =
            lists.into_iter().chain(self.failed.values()).flatten().cloned().collect();
        pods.sort();
        pods
    }

    /// The text; empty when it waits for nothing.
    pub fn message(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let mut text =
            format!("Drain not completed yet (started at {}):", self.started.strftime("%FT%TZ"));
        let mut line = |pods: &[String], what: &str| {
            if !pods.is_empty() {
                let kind = if pods.len() == 1 { "Pod" } else { "Pods" };
                let _ = write!(text, "\n* {kind} {}: {what}", some_of(pods));
            }
        };
        if let Some(refusal) = &self.refusal {
            let _ = write!(text, "\n* {refusal}");
            return text;
        }
        line(&self.terminating, "deletionTimestamp set, but still not removed from the Node");
        for (why, pods) in self.failed.iter().take(REASONS) {
            let why = why.replace(BUDGET, BUDGET_LOWER);
            if why.starts_with(BUDGET_LOWER) {
                line(pods, &why);
            } else {
                line(pods, &format!("failed to evict Pod, {why}"));
            }
        }
        match self.failed.values().skip(REASONS).map(Vec::len).sum() {
            0 => {}
            1 => text.push_str("\n* 1 Pod with other issues"),
            more => {
                let _ = write!(text, "\n* {more} Pods with other issues");
            }
        }
        if !self.completing.is_empty() {
            let kind = if self.completing.len() == 1 { "Pod" } else { "Pods" };
            let _ =
                write!(text, "\n* {kind} {}: waiting for completion", some_of(&self.completing));
        }
        if !self.later.is_empty() {
            let _ = write!(
                text,
                "\nAfter above Pods have been removed from the Node, the following Pods will be \
                 evicted: {}",
                some_of(&self.later)
            );
        }
        text
    }
}

/// The first few, and how many more there are.
pub fn some_of(pods: &[String]) -> String {
    let named = pods.iter().take(PODS_PER_LINE).cloned().collect::<Vec<_>>().join(", ");
    match pods.len().saturating_sub(PODS_PER_LINE) {
        0 => named,
        more => format!("{named}, ... ({more} more)"),
    }
}
