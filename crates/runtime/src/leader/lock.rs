//! The Lease, as one candidate sees it.

use std::{future::Future, time::Duration};

use fleetwright_clock::Clock;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{Api, api::PostParams};
use tokio::time::{Instant, timeout};

use super::LeaderSettings;
use crate::{error_chain, metrics::LeaderMetrics};

/// What became of a try to take or renew the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// This candidate holds it by a request that was sent at this time.
    Held { since: Instant },
    /// Another holds it.
    HeldByOther,
    /// Nobody knows.
    Failed,
}

#[derive(Debug)]
pub(super) struct Lock {
    leases: Api<Lease>,
    name: String,
    identity: String,
    lease_seconds: i32,
    /// An answer that takes longer is lost. Half the renew deadline, as Kubernetes' own
    /// components have it: one lost answer must not cost the lease.
    answer_limit: Duration,
    clock: Clock,
    metrics: LeaderMetrics,
    /// The lease as it was last read or written, whose version the next write names.
    lease: Option<Lease>,
    /// The record that was seen last, and when it was first seen.
    observed: Option<(LeaseSpec, Instant)>,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("could not read the lease")]
    Read(#[source] kube::Error),
    #[error("could not create the lease")]
    Create(#[source] kube::Error),
    #[error("could not write the lease")]
    Write(#[source] kube::Error),
    #[error("no answer about the lease")]
    NoAnswer,
}

impl Lock {
    pub(super) fn new(
        leases: Api<Lease>,
        settings: &LeaderSettings,
        clock: Clock,
        metrics: LeaderMetrics,
    ) -> Self {
        Self {
            leases,
            name: settings.name.clone(),
            identity: settings.identity.clone(),
            lease_seconds: i32::try_from(settings.lease_duration.as_secs()).unwrap_or(i32::MAX),
            answer_limit: settings.renew_deadline / 2,
            clock,
            metrics,
            lease: None,
            observed: None,
        }
    }

    /// Who holds the lease, as far as is known.
    pub(super) fn holder(&self) -> Option<&str> {
        let (record, _) = self.observed.as_ref()?;
        record.holder_identity.as_deref().filter(|holder| !holder.is_empty())
    }

    fn is_ours(&self) -> bool {
        self.holder() == Some(self.identity.as_str())
    }

    /// Whether the record that was seen last still counts, by our own clock.
    fn is_valid(&self) -> bool {
        self.observed.as_ref().is_some_and(|(record, since)| {
            let seconds = u64::try_from(record.lease_duration_seconds.unwrap_or(0)).unwrap_or(0);
            since.elapsed() < Duration::from_secs(seconds)
        })
    }

    pub(super) async fn acquire_or_renew(&mut self) -> Attempt {
        match self.try_acquire_or_renew().await {
            Ok(attempt) => attempt,
            Err(failure) => {
                tracing::debug!(lease = self.name, error = error_chain(&failure), "no lease");
                Attempt::Failed
            }
        }
    }

    async fn try_acquire_or_renew(&mut self) -> Result<Attempt, Failure> {
        if self.is_ours() && self.is_valid() && self.lease.is_some() {
            // Most of the time nothing has changed since our last write.
            let since = Instant::now();
            match self.write(self.our_record()).await {
                Ok(()) => return Ok(Attempt::Held { since }),
                Err(failure) => tracing::debug!(
                    lease = self.name,
                    error = error_chain(&failure),
                    "reading the lease before writing it"
                ),
            }
        }
        let Some(lease) = self.read().await? else {
            let since = Instant::now();
            self.create().await?;
            return Ok(Attempt::Held { since });
        };
        let record = lease.spec.clone().unwrap_or_default();
        self.lease = Some(lease);
        if self.observed.as_ref().is_none_or(|(seen, _)| *seen != record) {
            self.observed = Some((record, Instant::now()));
        }
        if self.holder().is_some() && !self.is_ours() && self.is_valid() {
            return Ok(Attempt::HeldByOther);
        }
        if self.is_ours() {
            self.metrics.slow_path.inc();
        }
        let since = Instant::now();
        self.write(self.our_record()).await?;
        Ok(Attempt::Held { since })
    }

    /// Gives the lease back, if it is ours.
    pub(super) async fn release(&mut self) {
        while self.is_ours() {
            let Ok(Some(lease)) = self.read().await else { return };
            let record = lease.spec.clone().unwrap_or_default();
            let now = Some(MicroTime(self.clock.now()));
            let free = LeaseSpec {
                holder_identity: Some(String::new()),
                // As short as can be: nobody has to wait for us.
                lease_duration_seconds: Some(1),
                acquire_time: now.clone(),
                renew_time: now,
                lease_transitions: record.lease_transitions,
                ..LeaseSpec::default()
            };
            self.lease = Some(lease);
            self.observed = Some((record, Instant::now()));
            if !self.is_ours() {
                return;
            }
            match self.write(free).await {
                // A renewal that was under way came in between.
                Err(Failure::Write(kube::Error::Api(status))) if status.is_conflict() => {}
                Err(failure) => {
                    let error = error_chain(&failure);
                    tracing::warn!(lease = self.name, error, "could not give the lease back");
                    return;
                }
                Ok(()) => tracing::info!(lease = self.name, "gave the lease back"),
            }
        }
    }

    /// What we want the lease to say, given what it says.
    fn our_record(&self) -> LeaseSpec {
        let now = Some(MicroTime(self.clock.now()));
        let seen = self.observed.as_ref().map(|(record, _)| record);
        let transitions = seen.and_then(|record| record.lease_transitions).unwrap_or(0);
        let ours = self.is_ours();
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(self.lease_seconds),
            acquire_time: seen
                .filter(|_| ours)
                .and_then(|record| record.acquire_time.clone())
                .or_else(|| now.clone()),
            renew_time: now,
            lease_transitions: Some(match seen {
                Some(_) if !ours => transitions.saturating_add(1),
                _ => transitions,
            }),
            ..LeaseSpec::default()
        }
    }

    async fn read(&self) -> Result<Option<Lease>, Failure> {
        self.ask(self.leases.get_opt(&self.name)).await?.map_err(Failure::Read)
    }

    async fn create(&mut self) -> Result<(), Failure> {
        self.observed = None;
        let record = self.our_record();
        let lease = Lease {
            metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
            spec: Some(record.clone()),
        };
        let params = PostParams::default();
        let created = self.ask(self.leases.create(&params, &lease)).await?;
        self.lease = Some(created.map_err(Failure::Create)?);
        self.observed = Some((record, Instant::now()));
        Ok(())
    }

    async fn write(&mut self, record: LeaseSpec) -> Result<(), Failure> {
        let mut lease = self.lease.clone().unwrap_or_default();
        lease.spec = Some(record.clone());
        let params = PostParams::default();
        let written = self.ask(self.leases.replace(&self.name, &params, &lease)).await?;
        self.lease = Some(written.map_err(Failure::Write)?);
        self.observed = Some((record, Instant::now()));
        Ok(())
    }

    async fn ask<T>(&self, request: impl Future<Output = T>) -> Result<T, Failure> {
        timeout(self.answer_limit, request).await.map_err(|_elapsed| Failure::NoAnswer)
    }
}
