//! One list and then watches, for ever, with the pauses that a sick server deserves.
//!
//! kube's `watcher()` was tried first and rejected for three faults that its callers cannot mend:
//! a watch that the server ends at once is opened again at once, without end and without a pause
//! (on virtual time the whole process hangs in it); a server that refuses the start of a watch
//! with 410 is asked for the same version for ever; and a list whose continuation expired starts
//! over with the same page size. The rules here are client-go's reflector's.

use std::time::Duration;

use fleetwright_clock::{Backoff, BackoffPolicy, Random};
use futures::StreamExt;
use kube::{
    Client, Resource,
    api::{ListParams, WatchParams},
    core::{ObjectList, Request, Status, WatchEvent},
};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout, timeout_at};

use super::guard::Guarded;
use crate::metrics::InformerMetrics;

/// Pauses after failures, as client-go's reflector makes them.
const PAUSES: BackoffPolicy = BackoffPolicy {
    initial: Duration::from_millis(800),
    max: Duration::from_secs(30),
    factor: 2.0,
    jitter: 1.0,
    reset_after: Some(Duration::from_mins(2)),
};

/// A page of a list, or the start of a watch, takes no longer than this, or its answer is lost.
const ANSWER_LIMIT: Duration = Duration::from_mins(1);

/// A watch lasts between this and twice this, so that watches spread over time and over servers.
const WATCH_MIN_SECONDS: u32 = 300;

/// The server ends a watch in time; one that it does not end is dead.
const WATCH_MARGIN: Duration = Duration::from_secs(10);

/// A watch that ends sooner than this without any news is a failure of the server.
const SHORT_WATCH: Duration = Duration::from_secs(1);

/// Page size of client-go.
const PAGE_SIZE: u32 = 500;

/// Which objects to list and watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// A label selector, as on the command line.
    pub labels: Option<String>,
    /// A field selector, as on the command line.
    pub fields: Option<String>,
}

/// News from the server.
pub(super) enum News<K> {
    /// All objects, at one version.
    Listed(Vec<Guarded<K>>),
    /// One object is new or has changed.
    Applied(Guarded<K>),
    /// One object is gone; this was its final state.
    Deleted(Guarded<K>),
}

impl<K: Resource> News<K> {
    fn trim(&mut self, trim: fn(&mut K)) {
        match self {
            Self::Listed(items) => items.iter_mut().for_each(|item| item.trim(trim)),
            Self::Applied(item) | Self::Deleted(item) => item.trim(trim),
        }
    }
}

/// Why a list or a watch failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("could not list")]
    List(#[source] kube::Error),
    #[error("no answer to a list within {} seconds", ANSWER_LIMIT.as_secs())]
    ListTimeout,
    #[error("the list has no resourceVersion, so it cannot be watched")]
    NoResourceVersion,
    #[error("could not start a watch")]
    WatchStart(#[source] kube::Error),
    #[error("no answer to a watch within {} seconds", ANSWER_LIMIT.as_secs())]
    WatchTimeout,
    #[error("the watch broke")]
    Watch(#[source] kube::Error),
    #[error("the server ended the watch: {} (code {})", .0.message, .0.code)]
    Refused(Box<Status>),
    #[error("the watch ended at once and brought nothing")]
    ShortWatch,
}

impl Failure {
    fn status(&self) -> Option<&Status> {
        match self {
            Self::List(kube::Error::Api(status))
            | Self::WatchStart(kube::Error::Api(status))
            | Self::Watch(kube::Error::Api(status))
            | Self::Refused(status) => Some(status),
            _ => None,
        }
    }

    /// The version that we asked for is unknown to the server: too old, or from another life.
    fn is_unknown_version(&self) -> bool {
        self.status().is_some_and(|status| {
            status.code == 410
                || status.details.as_ref().is_some_and(|details| {
                    details.causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
                })
        })
    }

    fn retry_after(&self) -> Duration {
        let details = self.status().and_then(|status| status.details.as_ref());
        Duration::from_secs(u64::from(details.map_or(0, |details| details.retry_after_seconds)))
    }
}

/// Where the objects come from.
pub(super) struct Source {
    pub(super) name: String,
    pub(super) client: Client,
    pub(super) url: String,
    pub(super) metadata_only: bool,
    pub(super) selection: Selection,
}

impl Source {
    /// Tells `observe` all news until dropped, each object without what `trim` takes away.
    pub(super) async fn follow<K>(
        &self,
        random: Random,
        metrics: &InformerMetrics,
        trim: fn(&mut K),
        mut observe: impl FnMut(News<K>),
    ) where
        K: Resource + Clone + DeserializeOwned,
    {
        let mut pauses = Backoff::new(PAUSES, random.clone());
        loop {
            let mut version = match self.list(trim).await {
                Ok((items, version)) => {
                    metrics.lists.inc();
                    observe(News::Listed(items));
                    version
                }
                Err(failure) => {
                    self.pause_after(&failure, &mut pauses, metrics).await;
                    continue;
                }
            };
            loop {
                let watched = self
                    .watch(&mut version, &random, metrics, &mut |mut news| {
                        news.trim(trim);
                        observe(news);
                    })
                    .await;
                let Err(failure) = watched else { continue };
                self.pause_after(&failure, &mut pauses, metrics).await;
                if failure.is_unknown_version() {
                    break;
                }
            }
        }
    }

    async fn pause_after(
        &self,
        failure: &Failure,
        pauses: &mut Backoff,
        metrics: &InformerMetrics,
    ) {
        metrics.failures.inc();
        let pause = pauses.next_wait().max(failure.retry_after());
        let error = crate::error_chain(failure);
        if failure.is_unknown_version() {
            tracing::debug!(informer = self.name, error, ?pause, "listing again");
        } else {
            tracing::warn!(informer = self.name, error, ?pause, "watching failed, trying again");
        }
        tokio::time::sleep(pause).await;
    }

    /// A complete list, by pages; in one piece if its continuation expires on the way.
    async fn list<K>(&self, trim: fn(&mut K)) -> Result<(Vec<Guarded<K>>, String), Failure>
    where
        K: Resource + Clone + DeserializeOwned,
    {
        let mut params = ListParams {
            label_selector: self.selection.labels.clone(),
            field_selector: self.selection.fields.clone(),
            limit: Some(PAGE_SIZE),
            ..ListParams::default()
        };
        let mut items = Vec::new();
        loop {
            let mut page: ObjectList<Guarded<K>> = match self.list_page(&params).await {
                Err(failure) if failure.is_unknown_version() && params.continue_token.is_some() => {
                    items.clear();
                    params.limit = None;
                    params.continue_token = None;
                    continue;
                }
                page => page?,
            };
            // Page by page, so that the whole is never in memory.
            page.items.iter_mut().for_each(|item| item.trim(trim));
            items.append(&mut page.items);
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                let version = page.metadata.resource_version.filter(|version| !version.is_empty());
                return Ok((items, version.ok_or(Failure::NoResourceVersion)?));
            }
        }
    }

    async fn list_page<K>(&self, params: &ListParams) -> Result<ObjectList<Guarded<K>>, Failure>
    where
        K: Resource + Clone + DeserializeOwned,
    {
        let request = Request::new(&self.url);
        let request =
            if self.metadata_only { request.list_metadata(params) } else { request.list(params) };
        let request = request.map_err(|error| Failure::List(kube::Error::BuildRequest(error)))?;
        match timeout(ANSWER_LIMIT, self.client.request(request)).await {
            Ok(answer) => answer.map_err(Failure::List),
            Err(_elapsed) => Err(Failure::ListTimeout),
        }
    }

    /// One watch from `version` on, which follows the news. `Ok` when it ended in good order.
    async fn watch<K>(
        &self,
        version: &mut String,
        random: &Random,
        metrics: &InformerMetrics,
        observe: &mut impl FnMut(News<K>),
    ) -> Result<(), Failure>
    where
        K: Resource + Clone + DeserializeOwned,
    {
        let spread = u32::try_from(random.below(WATCH_MIN_SECONDS.into())).unwrap_or_default();
        let seconds = WATCH_MIN_SECONDS + spread;
        let params = WatchParams {
            label_selector: self.selection.labels.clone(),
            field_selector: self.selection.fields.clone(),
            timeout: Some(seconds),
            bookmarks: true,
            send_initial_events: false,
        };
        let request = Request::new(&self.url);
        let request = if self.metadata_only {
            request.watch_metadata(&params, version)
        } else {
            request.watch(&params, version)
        };
        let request =
            request.map_err(|error| Failure::WatchStart(kube::Error::BuildRequest(error)))?;
        let start = Instant::now();
        let end = start + Duration::from_secs(seconds.into()) + WATCH_MARGIN;
        metrics.watches.inc();
        let events = timeout(ANSWER_LIMIT, self.client.request_events::<Guarded<K>>(request))
            .await
            .map_err(|_elapsed| Failure::WatchTimeout)?
            .map_err(Failure::WatchStart)?;
        tokio::pin!(events);
        let mut eventful = false;
        while let Ok(Some(event)) = timeout_at(end, events.next()).await {
            // A stream that always has something ready must not keep the thread to itself.
            tokio::task::coop::consume_budget().await;
            let (object, deleted) = match event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => (object, false),
                Ok(WatchEvent::Deleted(object)) => (object, true),
                Ok(WatchEvent::Bookmark(bookmark)) => {
                    eventful = true;
                    advance(version, bookmark.metadata.resource_version);
                    continue;
                }
                Ok(WatchEvent::Error(status)) => return Err(Failure::Refused(status)),
                Err(kube::Error::SerdeError(error)) => {
                    // Not even an event. The next list will tell what it was.
                    metrics.invalid.inc();
                    tracing::warn!(informer = self.name, %error, "skipped a line of the watch");
                    continue;
                }
                Err(error) => return Err(Failure::Watch(error)),
            };
            eventful = true;
            advance(version, object.identity().version);
            observe(if deleted { News::Deleted(object) } else { News::Applied(object) });
        }
        if !eventful && start.elapsed() < SHORT_WATCH {
            return Err(Failure::ShortWatch);
        }
        Ok(())
    }
}

fn advance(version: &mut String, to: String) {
    if !to.is_empty() {
        *version = to;
    }
}
