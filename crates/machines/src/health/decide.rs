//! What a check does about its Machines, as plain data.

use std::collections::BTreeMap;

use fleetwright_api::{
    machine::{Machine, MachineHealthCheck, MachineHealthCheckStatus},
    names::condition,
};
use fleetwright_lifecycle::{
    backoff::{self, Patient, Settings, State},
    health::Cause,
};
use jiff::Timestamp;
use kube::ResourceExt;

use super::{
    rules::Rules,
    status::{self, Counted},
    target::{Treatment, treatment},
};
use crate::set::decide::controller_of;

/// A Machine that needs a repair.
#[derive(Clone, Debug)]
pub struct Sick<M> {
    /// The Machine.
    pub machine: M,
    /// Why.
    pub cause: Cause,
    /// What its owner makes Machines from.
    pub template: String,
}

/// What to do, and what to say.
#[derive(Clone, Debug)]
pub struct Decision {
    /// What the status is to say.
    pub status: MachineHealthCheckStatus,
    /// What to do about the sick; numbers are places in the list that came in.
    pub treatments: Vec<(usize, Treatment)>,
    /// How many wait, by cause.
    pub deferred: BTreeMap<String, u64>,
    /// When the first of those is due.
    pub next: Option<Timestamp>,
    /// Whether too many are unhealthy, and the user has not heard of it: what to tell.
    pub restricted: Option<String>,
    /// Whether repairs began to wait: what to tell.
    pub waits: Option<String>,
}

/// Decides. `memory` is what is remembered of earlier repairs, and is brought up to date;
/// `chance` gives numbers from -1 to 1.
pub fn decide<M: AsRef<Machine>>(
    check: &MachineHealthCheck,
    rules: &Rules,
    counted: Counted,
    sick: &[Sick<M>],
    (settings, memory): (&Settings, &mut State),
    chance: impl FnMut() -> f64,
    now: Timestamp,
) -> Decision {
    let known = check.status.clone().unwrap_or_default();
    let mut status = status::counted(&known, counted, &rules.limit, &rules.limit_text, now);
    let says = |status: &MachineHealthCheckStatus, kind: &str| {
        status::find(status, kind).and_then(|condition| condition.message.clone())
    };
    if !counted.allowed(&rules.limit) {
        let news = says(&known, condition::REMEDIATION_ALLOWED)
            != says(&status, condition::REMEDIATION_ALLOWED);
        return Decision {
            status,
            treatments: Vec::new(),
            deferred: BTreeMap::new(),
            next: None,
            restricted: news.then(|| restricted(counted, &rules.limit_text)),
            waits: None,
        };
    }
    let chosen: Vec<(usize, Treatment)> = sick
        .iter()
        .enumerate()
        .map(|(place, sick)| (place, treatment(sick.machine.as_ref(), &rules.repair)))
        .collect();
    // Only what makes another Machine can make the same trouble again.
    let (deleted, mut treatments): (Vec<_>, Vec<_>) =
        chosen.into_iter().partition(|(_, treatment)| *treatment == Treatment::Delete);
    let patients: Vec<Patient> = deleted.iter().map(|(place, _)| patient(&sick[*place])).collect();
    let decision = backoff::decide(settings, memory, &patients, chance, now);
    treatments.extend(decision.repair.iter().map(|at| deleted[*at]));
    treatments.sort_unstable_by_key(|(place, _)| *place);
    let mut deferred = BTreeMap::new();
    let mut waiting: BTreeMap<(String, String, Timestamp), usize> = BTreeMap::new();
    for (at, due) in &decision.deferred {
        let sick = &sick[deleted[*at].0];
        *deferred.entry(sick.cause.to_string()).or_default() += 1;
        let owner = owner_text(sick.machine.as_ref());
        *waiting.entry((owner, sick.cause.to_string(), *due)).or_default() += 1;
    }
    let message = (!waiting.is_empty()).then(|| waiting_text(&waiting));
    status::set_backoff(&mut status, message.clone(), now);
    let waits = message
        .filter(|message| says(&known, condition::REMEDIATION_BACKOFF).as_ref() != Some(message));
    Decision { status, treatments, deferred, next: decision.next, restricted: None, waits }
}

fn patient<M: AsRef<Machine>>(sick: &Sick<M>) -> Patient {
    let controller = controller_of(sick.machine.as_ref());
    Patient {
        owner: controller.map(|controller| controller.uid.clone()).unwrap_or_default(),
        template: sick.template.clone(),
        cause: sick.cause.clone(),
    }
}

fn owner_text(machine: &Machine) -> String {
    controller_of(machine)
        .map(|controller| format!("{} {}", controller.kind, controller.name))
        .unwrap_or_default()
}

fn waiting_text(waiting: &BTreeMap<(String, String, Timestamp), usize>) -> String {
    let parts: Vec<String> = waiting
        .iter()
        .map(|((owner, cause, due), count)| format!("{count} of {owner} ({cause}) until {due}"))
        .collect();
    format!("Replacements fail as well, so the next repair waits: {}", parts.join("; "))
}

/// What the user is told when too many are unhealthy.
fn restricted(counted: Counted, limit: &str) -> String {
    let unhealthy = counted.total.saturating_sub(counted.healthy);
    format!(
        "Remediation restricted due to exceeded number of unhealthy machines (total: {}, \
         unhealthy: {unhealthy}, maxUnhealthy: {limit})",
        counted.total
    )
}

/// A Machine in the events of a check: namespace, check, Machine, Node.
pub fn name_in_events(check: &MachineHealthCheck, machine: &Machine, node: &str) -> String {
    let namespace = check.namespace().unwrap_or_default();
    format!("{namespace}/{}/{}/{node}", check.name_any(), machine.name_any())
}
