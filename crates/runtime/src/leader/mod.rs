//! One process of several leads: client-go's algorithm on a Lease.
//!
//! A candidate takes the lease when nobody holds it, or when it has not seen the holder's record
//! change for a whole lease duration on *its own* clock: clocks of different machines are never
//! compared. Writes name the version that they change, so of two candidates one fails.
//!
//! Two rules are stricter than client-go's. The leader counts its renew deadline from the moment
//! it *sent* its last successful renewal, not from the answer: a slow answer then cannot stretch
//! its reign beyond the lease. And a leader that sees another holder stops at once.
//!
//! Losing the lease is final: [`LeaderElection::run`] returns [`Ended::Lost`], and what runs in
//! [`Leadership::lead`] is told to stop and cut off after [`LeaderSettings::grace`], after which
//! another may lead. The lease is given back only on a stop in good order, after the work has
//! ended.

mod lock;
#[cfg(test)]
mod tests;

use std::{future::Future, time::Duration};

use fleetwright_clock::{Clock, Random};
use kube::{Api, Client};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use self::lock::{Attempt, Lock};
use crate::metrics::{LeaderMetrics, Metrics};

/// Candidates wait up to this much longer than the retry period, as client-go's do.
const JITTER: f64 = 1.2;

/// Who competes for what, and how fast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderSettings {
    /// Namespace of the lease.
    pub namespace: String,
    /// Name of the lease.
    pub name: String,
    /// Who this candidate is. No two processes may have the same.
    pub identity: String,
    /// How long others wait for a leader that has gone silent.
    pub lease_duration: Duration,
    /// How long the leader tries to renew before it gives up.
    pub renew_deadline: Duration,
    /// Time between tries.
    pub retry_period: Duration,
}

impl LeaderSettings {
    /// The usual times: 15 s, 10 s and 2 s.
    pub fn new(namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }

    /// How long work may go on after leadership was lost, before somebody else may lead.
    pub fn grace(&self) -> Duration {
        self.lease_duration.saturating_sub(self.renew_deadline)
    }

    /// Whether these settings can work.
    pub fn check(&self) -> Result<(), InvalidSettings> {
        if self.identity.is_empty() {
            return Err(InvalidSettings::NoIdentity);
        }
        if self.lease_duration.as_secs() < 1 {
            return Err(InvalidSettings::LeaseDurationTooShort);
        }
        if self.lease_duration <= self.renew_deadline {
            return Err(InvalidSettings::RenewDeadlineTooLong);
        }
        if self.retry_period.is_zero() || self.renew_deadline <= self.retry_period.mul_f64(JITTER) {
            return Err(InvalidSettings::RetryPeriodTooLong);
        }
        Ok(())
    }
}

/// Settings that cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSettings {
    /// Nobody would know who leads.
    #[error("the identity of the candidate is empty")]
    NoIdentity,
    /// Leases are counted in whole seconds.
    #[error("the lease duration is shorter than a second")]
    LeaseDurationTooShort,
    /// Two would lead at the same time.
    #[error("the renew deadline is not shorter than the lease duration")]
    RenewDeadlineTooLong,
    /// There would be no second try.
    #[error("the retry period is zero, or so long that the renew deadline allows only one try")]
    RetryPeriodTooLong,
}

/// Where this candidate stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaderState {
    /// Another leads, or nobody yet.
    Waiting {
        /// Who leads, as far as is known.
        leader: Option<String>,
    },
    /// This process leads.
    Leading,
    /// The election has ended for this process.
    Ended(Ended),
}

/// How an election ended for this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was told to stop; if it led, the lease was given back.
    Stopped,
    /// It led, and could not renew the lease.
    Lost,
}

/// Leadership was lost; only a new start can regain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("lost the leadership")]
pub struct LeadershipLost;

impl Ended {
    /// A loss is an error.
    pub fn into_result(self) -> Result<(), LeadershipLost> {
        match self {
            Self::Stopped => Ok(()),
            Self::Lost => Err(LeadershipLost),
        }
    }
}

/// A candidate.
#[derive(Debug)]
pub struct LeaderElection {
    settings: LeaderSettings,
    lock: Lock,
    random: Random,
    state: watch::Sender<LeaderState>,
    /// Cancelled when this process must not act as the leader any more.
    over: CancellationToken,
    metrics: LeaderMetrics,
}

impl LeaderElection {
    /// A candidate that has not begun.
    pub fn new(
        client: Client,
        settings: LeaderSettings,
        clock: Clock,
        random: Random,
        metrics: &Metrics,
    ) -> Result<Self, InvalidSettings> {
        settings.check()?;
        let metrics = metrics.leader(&settings.name);
        metrics.status.set(0);
        let leases = Api::namespaced(client, &settings.namespace);
        Ok(Self {
            lock: Lock::new(leases, &settings, clock, metrics.clone()),
            random,
            state: watch::Sender::new(LeaderState::Waiting { leader: None }),
            over: CancellationToken::new(),
            metrics,
            settings,
        })
    }

    /// What follows from the election, for those who may act only as the leader.
    pub fn leadership(&self) -> Leadership {
        Leadership {
            state: self.state.subscribe(),
            over: self.over.clone(),
            grace: self.settings.grace(),
        }
    }

    /// Competes, leads, and ends. `stop` should be cancelled after what only a leader may do has
    /// ended, because the lease is then given back.
    pub async fn run(mut self, stop: CancellationToken) -> Ended {
        let ended = tokio::select! {
            biased;
            () = stop.cancelled() => Ended::Stopped,
            renewed = self.acquire() => self.renew(renewed, &stop).await,
        };
        self.metrics.status.set(0);
        self.over.cancel();
        if ended == Ended::Stopped {
            self.release().await;
        }
        self.state.send_replace(LeaderState::Ended(ended));
        ended
    }

    /// Tries until it leads; answers when the request that made it so was sent.
    async fn acquire(&mut self) -> Instant {
        tracing::info!(lease = self.settings.name, "competing for leadership");
        loop {
            let attempt = self.lock.acquire_or_renew().await;
            if let Attempt::Held { since } = attempt {
                tracing::info!(lease = self.settings.name, "leading");
                self.metrics.status.set(1);
                self.state.send_replace(LeaderState::Leading);
                return since;
            }
            let leader = self.lock.holder().map(str::to_owned);
            self.state.send_if_modified(|state| {
                let waiting = LeaderState::Waiting { leader };
                let changed = *state != waiting;
                *state = waiting;
                changed
            });
            sleep(self.random.jitter(self.settings.retry_period, JITTER)).await;
        }
    }

    async fn renew(&mut self, mut renewed: Instant, stop: &CancellationToken) -> Ended {
        let LeaderSettings { renew_deadline, retry_period, .. } = self.settings;
        loop {
            let deadline = renewed + renew_deadline;
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ended::Stopped,
                () = sleep(retry_period) => {}
            }
            let attempt = tokio::select! {
                biased;
                () = stop.cancelled() => return Ended::Stopped,
                attempt = timeout_at(deadline, self.lock.acquire_or_renew()) => attempt,
            };
            match attempt {
                Ok(Attempt::Held { since }) => renewed = since,
                Ok(Attempt::HeldByOther) => {
                    let leader = self.lock.holder().unwrap_or_default();
                    tracing::error!(lease = self.settings.name, leader, "another leads");
                    return Ended::Lost;
                }
                Ok(Attempt::Failed) if Instant::now() + retry_period < deadline => {}
                Ok(Attempt::Failed) | Err(_) => {
                    tracing::error!(lease = self.settings.name, "could not renew the lease");
                    return Ended::Lost;
                }
            }
        }
    }

    async fn release(&mut self) {
        if timeout(self.settings.renew_deadline, self.lock.release()).await.is_err() {
            tracing::warn!(lease = self.settings.name, "could not give the lease back in time");
        }
    }
}

/// Whether this process leads.
#[derive(Clone, Debug)]
pub struct Leadership {
    state: watch::Receiver<LeaderState>,
    over: CancellationToken,
    grace: Duration,
}

impl Leadership {
    /// Where the candidate stands, now and later.
    pub fn state(&self) -> watch::Receiver<LeaderState> {
        self.state.clone()
    }

    /// Whether this process leads now.
    pub fn is_leading(&self) -> bool {
        !self.over.is_cancelled() && *self.state.borrow() == LeaderState::Leading
    }

    /// Does `work` once this process leads. The token that the work is given says that it must
    /// end: on `stop` when it can, on a loss within the grace, after which it is cut off. `None`
    /// when it was cut off, or never began.
    pub async fn lead<F: Future>(
        &self,
        stop: CancellationToken,
        work: impl FnOnce(CancellationToken) -> F,
    ) -> Option<F::Output> {
        let mut state = self.state.clone();
        tokio::select! {
            biased;
            () = stop.cancelled() => return None,
            // The sender may be gone, but its last word counts.
            _ = state.wait_for(|state| !matches!(state, LeaderState::Waiting { .. })) => {}
        }
        if !self.is_leading() {
            return None;
        }
        let end = self.over.child_token();
        let work = work(end.clone());
        tokio::pin!(work);
        tokio::select! {
            biased;
            done = work.as_mut() => return Some(done),
            () = stop.cancelled() => end.cancel(),
            () = end.cancelled() => {}
        }
        let too_late = async {
            self.over.cancelled().await;
            sleep(self.grace).await;
        };
        tokio::select! {
            biased;
            done = work => Some(done),
            () = too_late => None,
        }
    }
}
