//! The life of an instance after its launch: state clock, terminate, stop, start, interruption.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;

use super::{
    Due, Region,
    error::{ApiError, Outcome},
    events::Change,
    groups::GroupLaunch,
    ids,
    instance::{Instance, InstanceState, StateReason},
    lag::Lagged,
    launch::malformed,
};

/// Before and after, for one instance of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// `i-…`.
    pub id: String,
    /// Before.
    pub previous: InstanceState,
    /// After.
    pub current: InstanceState,
}

/// Who ended an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A call.
    ByUser,
    /// The spot market: it wants the capacity back.
    BySpot,
    /// EC2 itself, as it does when hardware fails at launch.
    ByError,
}

impl Region {
    /// The sequences of these instances, if callers can see them all.
    pub(crate) fn resolve(&self, now: Timestamp, ids: &[String]) -> Outcome<Vec<u64>> {
        if let Some(bad) = ids.iter().find(|id| !ids::well_formed(id, "i")) {
            return Err(malformed("InvalidInstanceID.Malformed", bad, "i"));
        }
        let mut sequences = Vec::new();
        let mut unknown = Vec::new();
        for id in ids {
            let sequence = self.by_id.get(id);
            match sequence.filter(|s| self.instances[s].seen(now).is_some()) {
                Some(sequence) if sequences.contains(sequence) => {}
                Some(sequence) => sequences.push(*sequence),
                None => unknown.push(id.as_str()),
            }
        }
        match unknown.as_slice() {
            [] => Ok(sequences),
            [one] => Err(ApiError::client(
                "InvalidInstanceID.NotFound",
                format!("The instance ID '{one}' does not exist"),
            )),
            many => Err(ApiError::client(
                "InvalidInstanceID.NotFound",
                format!("The instance IDs '{}' do not exist", many.join(", ")),
            )),
        }
    }

    /// TerminateInstances: all or none.
    pub fn terminate(&mut self, now: Timestamp, ids: &[String]) -> Outcome<Vec<Transition>> {
        let sequences = self.resolve(now, ids)?;
        for sequence in &sequences {
            let instance = self.instances[sequence].latest();
            if instance.with.protected {
                return Err(ApiError::client(
                    "OperationNotPermitted",
                    format!(
                        "The instance '{}' may not be terminated. Modify its \
                         'disableApiTermination' instance attribute and try again.",
                        instance.id
                    ),
                ));
            }
        }
        let lag = self.settings.lag.after("TerminateInstances");
        Ok(sequences.into_iter().map(|s| self.end(now, s, Ended::ByUser, lag)).collect())
    }

    /// Ends an instance, whoever wants it.
    pub(super) fn end(
        &mut self,
        now: Timestamp,
        sequence: u64,
        who: Ended,
        lag: Duration,
    ) -> Transition {
        let instance = self.instances[&sequence].latest();
        let (id, previous) = (instance.id.clone(), instance.state);
        if matches!(previous, InstanceState::ShuttingDown | InstanceState::Terminated) {
            return Transition { id, previous, current: previous };
        }
        let (code, message, transition) = match who {
            Ended::ByUser => (
                "Client.UserInitiatedShutdown",
                "Client.UserInitiatedShutdown: User initiated shutdown",
                format!("User initiated ({} GMT)", now.strftime("%Y-%m-%d %H:%M:%S")),
            ),
            Ended::BySpot => (
                "Server.SpotInstanceTermination",
                "Server.SpotInstanceTermination: Spot instance termination",
                "Server.SpotInstanceTermination".to_owned(),
            ),
            Ended::ByError => (
                "Server.InternalError",
                "Server.InternalError: Internal error on launch",
                "Server.InternalError".to_owned(),
            ),
        };
        let reason = StateReason { code, message: message.to_owned() };
        // There is nothing to shut down in a stopped instance, and it holds no hardware.
        let to = if previous == InstanceState::Stopped {
            InstanceState::Terminated
        } else {
            InstanceState::ShuttingDown
        };
        self.enter(now, sequence, to, Some(reason), transition, lag);
        self.end_spot_request(now, sequence, who);
        Transition { id, previous, current: to }
    }

    /// StopInstances: all or none.
    pub fn stop(&mut self, now: Timestamp, ids: &[String]) -> Outcome<Vec<Transition>> {
        let sequences = self.resolve(now, ids)?;
        for sequence in &sequences {
            let instance = self.instances[sequence].latest();
            let id = &instance.id;
            if instance.with.stop_protected {
                return Err(ApiError::client(
                    "OperationNotPermitted",
                    format!(
                        "The instance '{id}' may not be stopped. Modify its 'disableApiStop' \
                         instance attribute and try again."
                    ),
                ));
            }
            if instance.with.spot.as_ref().is_some_and(|spot| !spot.persistent) {
                return Err(ApiError::client(
                    "UnsupportedOperation",
                    format!(
                        "You can't stop the Spot Instance '{id}' because it is associated with a \
                         one-time Spot Instance request. You can only stop Spot Instances \
                         associated with persistent Spot Instance requests."
                    ),
                ));
            }
            if matches!(
                instance.state,
                InstanceState::Pending | InstanceState::ShuttingDown | InstanceState::Terminated
            ) {
                return Err(incorrect_state(id, "stopped"));
            }
        }
        let lag = self.settings.lag.after("StopInstances");
        Ok(sequences.into_iter().map(|s| self.halt(now, s, lag)).collect())
    }

    pub(super) fn halt(&mut self, now: Timestamp, sequence: u64, lag: Duration) -> Transition {
        let instance = self.instances[&sequence].latest();
        let (id, previous) = (instance.id.clone(), instance.state);
        if !matches!(previous, InstanceState::Running | InstanceState::Pending) {
            return Transition { id, previous, current: previous };
        }
        let reason = StateReason {
            code: "Client.UserInitiatedShutdown",
            message: "Client.UserInitiatedShutdown: User initiated shutdown".to_owned(),
        };
        let text = format!("User initiated ({} GMT)", now.strftime("%Y-%m-%d %H:%M:%S"));
        self.enter(now, sequence, InstanceState::Stopping, Some(reason), text, lag);
        Transition { id, previous, current: InstanceState::Stopping }
    }

    /// StartInstances: all or none. A stopped instance gave its place away: there may be no
    /// capacity for it, and its group may be gone.
    pub fn start(&mut self, now: Timestamp, ids: &[String]) -> Outcome<Vec<Transition>> {
        let sequences = self.resolve(now, ids)?;
        let mut capacity = self.capacity.clone();
        let mut joining: BTreeMap<(&str, &str), u32> = BTreeMap::new();
        for sequence in &sequences {
            let instance = self.instances[sequence].latest();
            match instance.state {
                InstanceState::Running | InstanceState::Pending => continue,
                InstanceState::Stopped => {}
                _ => return Err(incorrect_state(&instance.id, "started")),
            }
            let of = instance.with.instance_type;
            if let Some((_, name)) = &instance.group {
                let place = self.place_in_group(&GroupLaunch {
                    name: Some(name),
                    id: None,
                    partition: None,
                    tenancy: &instance.with.tenancy,
                    zone: &instance.zone,
                    of,
                    spot: instance.with.spot.is_some(),
                })?;
                let joined = joining.entry((name, &instance.zone)).or_default();
                *joined += 1;
                if let Some(place) = place.filter(|place| place.room < *joined) {
                    return Err(place.is_full());
                }
            }
            if instance.host.is_none() {
                let pool = instance.pool();
                if capacity.free(&pool) == 0 {
                    return Err(self.no_capacity(&pool, of));
                }
                capacity.take(pool);
            }
        }
        let lag = self.settings.lag.after("StartInstances");
        let started = sequences.into_iter().map(|sequence| {
            let instance = self.instances[&sequence].latest();
            let (id, previous) = (instance.id.clone(), instance.state);
            if previous != InstanceState::Stopped {
                return Transition { id, previous, current: previous };
            }
            if instance.host.is_none() {
                let pool = instance.pool();
                self.capacity.take(pool);
            }
            self.enter(now, sequence, InstanceState::Pending, None, String::new(), lag);
            Transition { id, previous, current: InstanceState::Pending }
        });
        Ok(started.collect())
    }

    /// Enters a state, with all that follows from it.
    pub(super) fn enter(
        &mut self,
        at: Timestamp,
        sequence: u64,
        to: InstanceState,
        reason: Option<StateReason>,
        transition: String,
        lag: Duration,
    ) {
        let Some(lagged) = self.instances.get_mut(&sequence) else {
            return;
        };
        let from = lagged.latest().state;
        let before = lagged.latest().clone();
        lagged.change(at, lag, |instance| {
            instance.state = to;
            instance.epoch += 1;
            instance.reason = reason;
            instance.transition = transition;
            if to == InstanceState::Pending {
                instance.launched = at;
            }
            if to == InstanceState::Terminated {
                instance.interfaces.clear();
                instance.volumes.clear();
                instance.public_ip = None;
                instance.vpc = None;
            }
        });
        let now_is = lagged.latest().clone();
        let epoch = now_is.epoch;
        self.report(at, Change::InstanceState { instance: Arc::new(now_is), from });
        if from.occupies() && !to.occupies() {
            self.release(&before);
        }
        let delays = self.settings.delays;
        let next = match to {
            InstanceState::Pending => Some((delays.boot, InstanceState::Running)),
            InstanceState::ShuttingDown => Some((delays.shut_down, InstanceState::Terminated)),
            InstanceState::Stopping => Some((delays.stop, InstanceState::Stopped)),
            InstanceState::Running | InstanceState::Stopped => None,
            InstanceState::Terminated => {
                self.terminated(at, &before);
                None
            }
        };
        if let Some((delay, to)) = next {
            self.plan(at + delay, Due::State { sequence, epoch, to });
        }
    }

    /// The hardware is free again.
    fn release(&mut self, instance: &Instance) {
        if instance.host.is_none() {
            self.capacity.give_back(&instance.pool());
        }
    }

    /// What a terminated instance leaves behind goes.
    fn terminated(&mut self, at: Timestamp, instance: &Instance) {
        for interface in &instance.interfaces {
            if let Some(subnet) = self.subnets.get_mut(&interface.subnet) {
                subnet.give_back(interface.address);
            }
        }
        if let Some(id) = &instance.with.capacity_reservation
            && let Some(reservation) = self.reservations.get_mut(id)
        {
            reservation.used = reservation.used.saturating_sub(1);
        }
        self.detach_all(at, &instance.volumes);
        self.deregister_instance(at, &instance.id);
        let delays = self.settings.delays;
        let sequence = instance.sequence;
        self.plan(at + delays.remember_terminated, Due::ForgetInstance { sequence });
        for key in self.token_keys(instance) {
            self.plan(at + delays.remember_token, Due::ForgetToken { key });
        }
    }

    pub(super) fn forget(&mut self, at: Timestamp, sequence: u64) {
        let Some(instance) = self.instances.remove(&sequence) else {
            return;
        };
        let instance = instance.latest();
        self.by_id.remove(&instance.id);
        self.noticed.remove(&sequence);
        self.rebalanced.remove(&sequence);
        self.maintenance.remove(&sequence);
        self.frozen.remove(&sequence);
        if let Some(request) = &instance.spot_request {
            self.spot_requests.remove(request);
        }
        if let Some((_, group)) = &instance.group
            && let Some(members) = self.members.get_mut(group)
        {
            members.remove(&sequence);
            if members.is_empty() {
                self.members.remove(group);
            }
        }
        self.report(at, Change::InstanceForgotten(instance.id.clone()));
    }

    pub(super) fn state_due(
        &mut self,
        at: Timestamp,
        sequence: u64,
        epoch: u64,
        to: InstanceState,
    ) {
        let Some(instance) = self.instances.get(&sequence).map(Lagged::latest) else {
            return;
        };
        if instance.epoch != epoch {
            return;
        }
        let (reason, transition) = match to {
            InstanceState::Running => (None, String::new()),
            _ => (instance.reason.clone(), instance.transition.clone()),
        };
        self.enter(at, sequence, to, reason, transition, Duration::ZERO);
    }

    /// Ends, stops or interrupts an instance from outside, as hardware, people and the spot
    /// market do. `None` if there is no such instance.
    pub fn strike(&mut self, now: Timestamp, id: &str, how: Strike) -> Option<Transition> {
        let sequence = *self.by_id.get(id)?;
        let previous = self.instances[&sequence].latest().state;
        Some(match how {
            Strike::Terminate => self.end(now, sequence, Ended::ByUser, Duration::ZERO),
            Strike::Fail => self.end(now, sequence, Ended::ByError, Duration::ZERO),
            Strike::Stop => self.halt(now, sequence, Duration::ZERO),
            Strike::Interrupt => {
                self.interrupt(now, sequence);
                Transition { id: id.to_owned(), previous, current: previous }
            }
            Strike::Rebalance => {
                let instance = Arc::new(self.instances[&sequence].latest().clone());
                self.rebalanced.entry(sequence).or_insert(now);
                self.report(now, Change::RebalanceRecommended(instance));
                Transition { id: id.to_owned(), previous, current: previous }
            }
            Strike::Freeze | Strike::Thaw => {
                let frozen = how == Strike::Freeze;
                let changed = if frozen {
                    self.frozen.insert(sequence)
                } else {
                    self.frozen.remove(&sequence)
                };
                if changed {
                    let instance = Arc::new(self.instances[&sequence].latest().clone());
                    self.report(now, Change::InstanceFrozen { instance, frozen });
                }
                Transition { id: id.to_owned(), previous, current: previous }
            }
        })
    }
}

/// What can befall an instance from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Strike {
    /// Somebody terminates it.
    Terminate,
    /// EC2 terminates it with an error of its own.
    Fail,
    /// Somebody stops it.
    Stop,
    /// The spot market gives notice and takes it back.
    Interrupt,
    /// The spot market recommends to move away.
    Rebalance,
    /// Its operating system hangs, and EC2 does not know.
    Freeze,
    /// Its operating system starts again.
    Thaw,
}

fn incorrect_state(id: &str, verb: &str) -> ApiError {
    ApiError::client(
        "IncorrectInstanceState",
        format!("The instance '{id}' is not in a state from which it can be {verb}."),
    )
}
