//! The loop: look, write what follows, wait. It ends only when it is told to.

use std::time::Duration;

use fleetwright_clock::{Clock, Random};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    access::{Access, AccessError, REQUEST_LIMIT},
    decide::{Plan, Retry, after_write, next_wait, plan, standing},
    notice::{Kind, Notice},
    report::Report,
    source::{Looked, Source},
};

/// Who writes, as `kubectl` shows it.
const MANAGER: &str = "fleetwright-termination-handler";
/// How often a marked Node is looked at again: its kubelet may have registered it anew.
const RECHECK: Duration = Duration::from_secs(10);
/// How often an unmarked Node is looked at: so that missing rights show before they are needed.
const IDLE_RECHECK: Duration = Duration::from_mins(5);
/// What is left of a pod's grace period for the last check.
const LAST_CHECK: Duration = Duration::from_secs(25);
/// Between attempts of the last check.
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// What a handler is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The Node on which it runs.
    pub node: String,
    /// How often the metadata service is asked.
    pub interval: Duration,
}

/// The handler of one node.
pub struct Handler {
    settings: Settings,
    source: Box<dyn Source>,
    access: Access,
    clock: Clock,
    random: Random,
    report: Report,
    notices: Vec<Notice>,
    /// Whether the last look found out everything.
    certain: bool,
    /// When the Node was last found to be as it should be, and for which notices.
    settled: Option<(Instant, Vec<Notice>)>,
}

#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error("no answer within {REQUEST_LIMIT:?}")]
    TooSlow,
}

impl WriteError {
    fn retry(&self) -> Retry {
        after_write(match self {
            Self::Api(kube::Error::Api(status)) => Some(status.code),
            _ => None,
        })
    }
}

impl Handler {
    /// A handler that has not looked yet.
    pub fn new(
        settings: Settings,
        source: Box<dyn Source>,
        access: Access,
        clock: Clock,
        random: Random,
        report: Report,
    ) -> Self {
        Self {
            settings,
            source,
            access,
            clock,
            random,
            report,
            notices: Vec::new(),
            certain: false,
            settled: None,
        }
    }

    /// Looks and writes until `stop`, then once more. No error ends it.
    pub async fn run(mut self, stop: CancellationToken) {
        let (mut looks_failed, mut writes_failed) = (0_u32, 0_u32);
        let mut next_look = Instant::now();
        loop {
            let round = async {
                if next_look <= Instant::now() {
                    let failed = !self.look().await;
                    looks_failed = if failed { looks_failed.saturating_add(1) } else { 0 };
                    let chance = self.random.fraction();
                    next_look =
                        Instant::now() + next_wait(self.settings.interval, looks_failed, chance);
                }
                let written = self.settle().await;
                writes_failed = if written { 0 } else { writes_failed.saturating_add(1) };
                let until_look = next_look.saturating_duration_since(Instant::now());
                match writes_failed {
                    0 => until_look,
                    // The next look is worth as much as the next attempt.
                    failures => until_look.min(next_wait(
                        self.settings.interval,
                        failures,
                        self.random.fraction(),
                    )),
                }
            };
            let wait = tokio::select! {
                () = stop.cancelled() => break,
                wait = round => wait,
            };
            tokio::select! {
                () = stop.cancelled() => break,
                () = sleep(wait) => {}
            }
        }
        self.last_check().await;
    }

    /// Looks at the cloud once. Says whether everything could be found out.
    async fn look(&mut self) -> bool {
        let looked = self.source.look(self.clock.now()).await;
        self.report.looked(&looked);
        self.take(&looked);
        self.certain
    }

    fn take(&mut self, looked: &Looked) {
        for notice in &looked.notices {
            if self.notices.iter().all(|known| known.id != notice.id) {
                self.report.noticed(notice);
            }
        }
        self.notices = standing(&self.notices, looked);
        self.certain = looked.troubles.is_empty();
        let ending = self.notices.iter().filter(|notice| notice.kind == Kind::Termination);
        self.report.stands(ending.filter_map(|notice| notice.deadline).min());
    }

    /// Brings the Node to what the notices say, unless it is known to be there. Says whether it
    /// is.
    async fn settle(&mut self) -> bool {
        let recheck = if self.notices.is_empty() { IDLE_RECHECK } else { RECHECK };
        if let Some((when, notices)) = &self.settled
            && when.elapsed() < recheck
            && *notices == self.notices
        {
            return true;
        }
        match self.write().await {
            Ok(()) => {
                let marked = self.notices.iter().any(|n| n.kind == Kind::Termination);
                self.report.wrote(marked);
                self.settled = Some((Instant::now(), self.notices.clone()));
                true
            }
            Err(error) => {
                self.report.not_written(&error);
                if error.retry() == Retry::WithNewCredentials {
                    self.access.doubt();
                }
                self.settled = None;
                false
            }
        }
    }

    async fn write(&mut self) -> Result<(), WriteError> {
        let api: Api<Node> = Api::all(limited(self.access.client()).await??);
        let name = &self.settings.node;
        let node = limited(api.get(name)).await??;
        let Plan { status, node } = plan(&node, &self.notices, self.certain, self.clock.now());
        let params =
            PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        if let Some(patch) = status {
            limited(api.patch_status(name, &params, &Patch::Strategic(patch))).await??;
        }
        if let Some(patch) = node {
            limited(api.patch(name, &params, &Patch::Strategic(patch))).await??;
        }
        Ok(())
    }

    /// A node that shuts down stops its pods, and the notice may be what it shuts down for.
    async fn last_check(&mut self) {
        let end = Instant::now() + LAST_CHECK;
        while Instant::now() < end {
            let certain = self.look().await;
            let ending = self.notices.iter().any(|notice| notice.kind == Kind::Termination);
            let done = if ending { self.settle().await } else { certain };
            if done {
                return;
            }
            sleep(LAST_PAUSE).await;
        }
    }
}

async fn limited<T>(request: impl Future<Output = T>) -> Result<T, WriteError> {
    timeout(REQUEST_LIMIT, request).await.map_err(|_| WriteError::TooSlow)
}
