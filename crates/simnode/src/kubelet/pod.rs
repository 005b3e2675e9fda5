//! What a kubelet does next for a pod: plain functions of the pod, its host and the time.
//!
//! Everything is read from the pod itself, as a kubelet reads it from its container runtime: when
//! containers started, how often, how they ended. So a simulation that stops and starts again
//! goes on where it was.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::core::v1::{
        Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
        ContainerStateWaiting, ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodSpec,
        PodStatus,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};

use serde_json::{Value, json};

use super::script::{self, READY_AFTER, TERMINATES_IN};
use crate::{
    cluster::{after, at},
    facts::{
        self,
        pod::{FAILED, PENDING, READY, RUNNING, SUCCEEDED},
        resources::{init_containers, is_sidecar},
    },
    settings::KubeletSettings,
};

const CONTAINERS_READY: &str = "ContainersReady";
const INITIALIZED: &str = "Initialized";
const SANDBOX_READY: &str = "PodReadyToStartContainers";
const NOT_READY_REASON: &str = "ContainersNotReady";
const COMPLETED_REASON: &str = "PodCompleted";
const CREATING: &str = "ContainerCreating";
const CRASH_LOOP: &str = "CrashLoopBackOff";

/// A container that ends comes back after this time, then twice that, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// The exit code of a container whose machine went away under it.
const LOST: i32 = 137;

/// What a pod sees of its host.
#[derive(Clone, Debug)]
pub(super) struct Surroundings {
    /// When the host last came up.
    pub(super) up_since: Timestamp,
    /// Its own address.
    pub(super) host_ip: Option<String>,
    /// An address for the pod.
    pub(super) pod_ip: Option<String>,
}

/// What to do for a pod now.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Next {
    /// A status to report.
    pub(super) status: Option<Box<PodStatus>>,
    /// It has ended and can go.
    pub(super) delete: bool,
    /// Look again then.
    pub(super) wake: Option<Timestamp>,
}

pub(super) fn next(
    pod: &Pod,
    around: &Surroundings,
    settings: &KubeletSettings,
    now: Timestamp,
) -> Next {
    if facts::pod::is_over(pod) {
        return Next { delete: facts::pod::is_terminating(pod), ..Next::default() };
    }
    if let Some(end) = termination_end(pod, settings) {
        if now < end {
            return Next { wake: Some(end), ..Next::default() };
        }
        // Somebody who keeps the pod for its outcome gets to see one.
        let kept = pod.metadata.finalizers.as_ref().is_some_and(|all| !all.is_empty());
        let status = kept.then(|| Box::new(ended(pod, now)));
        return Next { status, delete: true, wake: None };
    }
    run(pod, around, settings, now)
}

/// When a pod that was told to stop has stopped.
fn termination_end(pod: &Pod, settings: &KubeletSettings) -> Option<Timestamp> {
    let deadline = at(pod.metadata.deletion_timestamp.as_ref())?;
    let grace = u64::try_from(pod.metadata.deletion_grace_period_seconds.unwrap_or_default());
    let grace = Duration::from_secs(grace.unwrap_or_default());
    let takes = script::annotated(pod, TERMINATES_IN).unwrap_or(settings.pod_stop).min(grace);
    let back =
        SignedDuration::try_from(grace.saturating_sub(takes)).unwrap_or(SignedDuration::ZERO);
    Some(deadline.saturating_sub(back).unwrap_or(deadline))
}

fn run(pod: &Pod, around: &Surroundings, settings: &KubeletSettings, now: Timestamp) -> Next {
    let Some(spec) = &pod.spec else { return Next::default() };
    let old = pod.status.clone().unwrap_or_default();
    let mut status = old.clone();
    status.host_ip.clone_from(&around.host_ip);
    status.host_ips = around.host_ip.clone().map(|ip| vec![HostIP { ip }]);
    let started = status.start_time.get_or_insert(Time(now)).0;
    let runs_at = after(started, settings.pod_start);
    let creating = now < runs_at;
    let mut wake = creating.then_some(runs_at);
    if !creating {
        let ip = if spec.host_network == Some(true) { &around.host_ip } else { &around.pod_ip };
        status.pod_ip.clone_from(ip);
        status.pod_ips = ip.clone().map(|ip| vec![PodIP { ip }]);
    }
    let ready_after = script::annotated(pod, READY_AFTER);
    let mut statuses = Vec::new();
    for container in &spec.containers {
        let known = find(old.container_statuses.as_deref(), &container.name);
        let mut moment = Moment { pod, container, policy: policy(spec), around, now, wake: None };
        let mut next = if creating { moment.creating() } else { moment.step(known) };
        let running = next.state.as_ref().and_then(|state| state.running.as_ref());
        next.ready = running.is_some_and(|running| {
            let begun = at(running.started_at.as_ref()).unwrap_or(now);
            let ready_at = after(begun, ready_after.unwrap_or_else(|| probe_delay(container)));
            if now < ready_at {
                moment.wake = Some(ready_at);
            }
            now >= ready_at
        });
        next.started = Some(running.is_some());
        wake = wake.into_iter().chain(moment.wake).min();
        statuses.push(next);
    }
    status.init_container_statuses = initial_statuses(spec, &old, creating, now);
    status.phase = Some(phase_of(&statuses, creating).to_owned());
    let waiting: Vec<&str> =
        statuses.iter().filter(|status| !status.ready).map(|status| status.name.as_str()).collect();
    let over = matches!(status.phase.as_deref(), Some(SUCCEEDED | FAILED));
    conditions(pod, &mut status, &waiting, creating, over, now);
    status.container_statuses = Some(statuses);
    if over {
        wake = None;
    }
    Next { status: (status != old).then(|| Box::new(status)), delete: false, wake }
}

fn policy(spec: &PodSpec) -> &str {
    spec.restart_policy.as_deref().unwrap_or("Always")
}

fn probe_delay(container: &Container) -> Duration {
    let probe = container.readiness_probe.as_ref();
    let seconds = probe.and_then(|probe| probe.initial_delay_seconds).unwrap_or_default();
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}

fn find<'a>(statuses: Option<&'a [ContainerStatus]>, name: &str) -> Option<&'a ContainerStatus> {
    statuses.unwrap_or_default().iter().find(|status| status.name == name)
}

fn phase_of(statuses: &[ContainerStatus], creating: bool) -> &'static str {
    if creating {
        return PENDING;
    }
    let ended = |status: &ContainerStatus| {
        status.state.as_ref().and_then(|state| state.terminated.as_ref()).map(|end| end.exit_code)
    };
    let codes: Option<Vec<i32>> = statuses.iter().map(ended).collect();
    match codes {
        None => RUNNING,
        Some(codes) if codes.iter().all(|code| *code == 0) => SUCCEEDED,
        Some(_) => FAILED,
    }
}

/// One container at one moment.
struct Moment<'a> {
    pod: &'a Pod,
    container: &'a Container,
    policy: &'a str,
    around: &'a Surroundings,
    now: Timestamp,
    wake: Option<Timestamp>,
}

impl Moment<'_> {
    fn creating(&self) -> ContainerStatus {
        ContainerStatus { state: Some(waiting(CREATING, None)), ..blank(self.container) }
    }

    fn step(&mut self, known: Option<&ContainerStatus>) -> ContainerStatus {
        let mut status = known.cloned().unwrap_or_else(|| blank(self.container));
        let state = status.state.clone().unwrap_or_default();
        if let Some(end) = state.terminated {
            return self.ended(status, end);
        }
        if let Some(running) = state.running {
            let begun = at(running.started_at.as_ref()).unwrap_or(self.now);
            return match self.end_of(begun) {
                Some(end) => {
                    status.state = Some(terminated(end.clone()));
                    self.ended(status, end)
                }
                None => status,
            };
        }
        let last = status.last_state.clone().and_then(|state| state.terminated);
        match last {
            Some(end) => self.ended(status, end),
            None => self.begin(status),
        }
    }

    fn begin(&mut self, mut status: ContainerStatus) -> ContainerStatus {
        let run = status.restart_count;
        status.container_id =
            Some(format!("cri-o://{}-{}-{run}", facts::uid(&self.pod.metadata), status.name));
        status.state = Some(ContainerState {
            running: Some(ContainerStateRunning { started_at: Some(Time(self.now)) }),
            ..ContainerState::default()
        });
        if let Some(end) = self.end_of(self.now) {
            status.state = Some(terminated(end.clone()));
            return self.ended(status, end);
        }
        status
    }

    /// How a container that began then has ended by now.
    fn end_of(&mut self, begun: Timestamp) -> Option<ContainerStateTerminated> {
        let end = |code: i32, finished: Timestamp| ContainerStateTerminated {
            exit_code: code,
            reason: Some(if code == 0 { "Completed" } else { "Error" }.to_owned()),
            started_at: Some(Time(begun)),
            finished_at: Some(Time(finished)),
            ..ContainerStateTerminated::default()
        };
        // Times of objects have whole seconds.
        if begun.as_second() < self.around.up_since.as_second() {
            return Some(end(LOST, self.around.up_since));
        }
        let ending = script::ending(self.pod, self.container)?;
        let finished = after(begun, ending.after);
        if self.now >= finished {
            return Some(end(ending.code, finished));
        }
        self.wake = Some(finished);
        None
    }

    /// A container that has ended stays so, waits, or starts again.
    fn ended(
        &mut self,
        mut status: ContainerStatus,
        end: ContainerStateTerminated,
    ) -> ContainerStatus {
        let again = match self.policy {
            "Always" => true,
            "OnFailure" => end.exit_code != 0,
            _ => false,
        };
        if !again {
            status.state = Some(terminated(end));
            return status;
        }
        let finished = at(end.finished_at.as_ref()).unwrap_or(self.now);
        let wait = pause(status.restart_count);
        let restart_at = after(finished, wait);
        status.last_state = Some(terminated(end));
        if self.now < restart_at {
            let message = format!(
                "back-off {}s restarting failed container={} pod={}_{}({})",
                wait.as_secs(),
                status.name,
                self.pod.metadata.name.as_deref().unwrap_or_default(),
                self.pod.metadata.namespace.as_deref().unwrap_or_default(),
                facts::uid(&self.pod.metadata),
            );
            status.state = Some(waiting(CRASH_LOOP, Some(message)));
            self.wake = Some(restart_at);
            return status;
        }
        status.restart_count = status.restart_count.saturating_add(1);
        status.state = Some(ContainerState {
            running: Some(ContainerStateRunning { started_at: Some(Time(self.now)) }),
            ..ContainerState::default()
        });
        // If it ends at once, that is seen at the next look, so that this one comes to an end.
        self.wake = script::ending(self.pod, self.container)
            .map(|ending| after(self.now, ending.after.max(Duration::from_secs(1))));
        status
    }
}

fn pause(restarts: i32) -> Duration {
    match u32::try_from(restarts) {
        Ok(0) | Err(_) => Duration::ZERO,
        Ok(restarts) => FIRST_PAUSE.saturating_mul(1 << (restarts - 1).min(5)).min(LONGEST_PAUSE),
    }
}

fn blank(container: &Container) -> ContainerStatus {
    let image = container.image.clone().unwrap_or_default();
    ContainerStatus {
        name: container.name.clone(),
        image_id: String::new(),
        image,
        // As the server completes it.
        last_state: Some(ContainerState::default()),
        ..ContainerStatus::default()
    }
}

fn waiting(reason: &str, message: Option<String>) -> ContainerState {
    ContainerState {
        waiting: Some(ContainerStateWaiting { reason: Some(reason.to_owned()), message }),
        ..ContainerState::default()
    }
}

fn terminated(end: ContainerStateTerminated) -> ContainerState {
    ContainerState { terminated: Some(end), ..ContainerState::default() }
}

/// Init containers take no time: they have ended well, or go on running if they are made to.
fn initial_statuses(
    spec: &PodSpec,
    old: &PodStatus,
    creating: bool,
    now: Timestamp,
) -> Option<Vec<ContainerStatus>> {
    let containers = init_containers(spec);
    if containers.is_empty() {
        return None;
    }
    let status_of = |container: &Container| {
        let known = find(old.init_container_statuses.as_deref(), &container.name);
        let settled = known
            .filter(|status| status.state.as_ref().is_some_and(|state| state.waiting.is_none()));
        if let Some(settled) = settled {
            return settled.clone();
        }
        let state = if creating {
            waiting("PodInitializing", None)
        } else if is_sidecar(container) {
            let running = ContainerStateRunning { started_at: Some(Time(now)) };
            ContainerState { running: Some(running), ..ContainerState::default() }
        } else {
            terminated(ContainerStateTerminated {
                reason: Some("Completed".to_owned()),
                started_at: Some(Time(now)),
                finished_at: Some(Time(now)),
                ..ContainerStateTerminated::default()
            })
        };
        ContainerStatus {
            ready: !creating,
            started: Some(!creating && is_sidecar(container)),
            state: Some(state),
            ..blank(container)
        }
    };
    Some(containers.iter().map(status_of).collect())
}

fn conditions(
    pod: &Pod,
    status: &mut PodStatus,
    waiting: &[&str],
    creating: bool,
    over: bool,
    now: Timestamp,
) {
    let initialized = !creating || pod.spec.as_ref().is_some_and(|s| init_containers(s).is_empty());
    let mut set = |kind: &str, good: bool, reason: Option<&str>, message: Option<String>| {
        let value = if good { "True" } else { "False" };
        let all = status.conditions.get_or_insert_default();
        let reason = reason.map(ToOwned::to_owned);
        match all.iter_mut().find(|condition| condition.type_ == kind) {
            Some(known) => {
                if known.status != value {
                    value.clone_into(&mut known.status);
                    known.last_transition_time = Some(Time(now));
                }
                known.reason = reason;
                known.message = message;
            }
            None => all.push(PodCondition {
                type_: kind.to_owned(),
                status: value.to_owned(),
                reason,
                message,
                last_transition_time: Some(Time(now)),
                ..PodCondition::default()
            }),
        }
    };
    let completed = over.then_some(COMPLETED_REASON);
    set(SANDBOX_READY, !creating && !over, None, None);
    set(INITIALIZED, initialized, completed, None);
    let (reason, message) = if over {
        (completed, None)
    } else if waiting.is_empty() {
        (None, None)
    } else {
        let message = format!("containers with unready status: [{}]", waiting.join(" "));
        (Some(NOT_READY_REASON), Some(message))
    };
    let containers_ready = waiting.is_empty() && !over;
    set(CONTAINERS_READY, containers_ready, reason, message.clone());
    let gates = pod.spec.iter().flat_map(|spec| spec.readiness_gates.iter().flatten());
    let closed = gates
        .map(|gate| gate.condition_type.as_str())
        .find(|kind| facts::pod::condition(pod, kind).is_none_or(|gate| gate.status != "True"));
    match closed {
        Some(kind) if containers_ready => {
            let message =
                format!("corresponding condition of pod readiness gate \"{kind}\" does not exist.");
            set(READY, false, Some("ReadinessGatesNotReady"), Some(message));
        }
        _ => set(READY, containers_ready, reason, message),
    }
}

/// The patch that turns one status into another. Only what a kubelet is responsible for is in it:
/// conditions of others stay as they are, and what a condition no longer says is taken out.
pub(super) fn patch(old: Option<&PodStatus>, new: &PodStatus) -> Value {
    let known = old.and_then(|old| old.conditions.as_deref()).unwrap_or_default();
    let ours = [SANDBOX_READY, INITIALIZED, CONTAINERS_READY, READY];
    let conditions = new.conditions.iter().flatten();
    let conditions = conditions.filter(|new| ours.contains(&new.type_.as_str())).map(|new| {
        let mut value = json!(new);
        let before = known.iter().find(|old| old.type_ == new.type_);
        if new.reason.is_none() && before.is_some_and(|old| old.reason.is_some()) {
            value["reason"] = Value::Null;
        }
        if new.message.is_none() && before.is_some_and(|old| old.message.is_some()) {
            value["message"] = Value::Null;
        }
        value
    });
    json!({
        "phase": new.phase,
        "startTime": new.start_time,
        "hostIP": new.host_ip,
        "hostIPs": new.host_ips,
        "podIP": new.pod_ip,
        "podIPs": new.pod_ips,
        "conditions": conditions.collect::<Vec<_>>(),
        "containerStatuses": new.container_statuses,
        "initContainerStatuses": new.init_container_statuses,
    })
}

/// The last status of a pod that was told to stop.
fn ended(pod: &Pod, now: Timestamp) -> PodStatus {
    let mut status = pod.status.clone().unwrap_or_default();
    for container in status.container_statuses.iter_mut().flatten() {
        let state = container.state.take().unwrap_or_default();
        container.ready = false;
        container.started = Some(false);
        container.state = Some(if state.terminated.is_some() {
            state
        } else {
            terminated(ContainerStateTerminated {
                exit_code: LOST,
                reason: Some("Error".to_owned()),
                started_at: state.running.and_then(|running| running.started_at),
                finished_at: Some(Time(now)),
                ..ContainerStateTerminated::default()
            })
        });
    }
    status.phase = Some(FAILED.to_owned());
    conditions(pod, &mut status, &[], false, true, now);
    status
}
