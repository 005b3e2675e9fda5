//! Everything that processes send passes here: it is counted, written down, harmed and checked.

use std::{
    collections::{BTreeMap, VecDeque},
    future::{Future, pending},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use fleetwright_clock::Random;
use parking_lot::Mutex;
use tokio::{sync::oneshot, task::JoinSet, time::Instant};

use crate::{
    check::Checker,
    host::Host,
    schedule::{Count, Harm},
};

/// More requests than this in one run are a loop.
const RUNAWAY: u64 = 60_000;

/// The same request more often than this within [`WINDOW`] is a loop, too.
const OFTEN: usize = 50;
const WINDOW: Duration = Duration::from_secs(5);

/// What is sent where.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// In words, the same in every run of a seed.
    pub(crate) text: String,
    /// To the cloud; else to the API.
    pub(crate) cloud: bool,
    /// It changes something that matters: events and leases do not.
    pub(crate) write: bool,
    /// It concerns a lease.
    pub(crate) lease: bool,
}

/// A request that came to nothing, as far as its sender knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// It had no effect.
    NotSent,
    /// It may have had one.
    Lost,
    /// It was refused.
    Throttled,
}

/// The traffic of a world.
pub(crate) struct Traffic {
    /// What must hold.
    pub(crate) checker: Mutex<Checker>,
    harms: Mutex<BTreeMap<(Count, u64), Harm>>,
    counts: Mutex<BTreeMap<Count, u64>>,
    /// Requests that are not about leases.
    steady: AtomicU64,
    /// When each request was sent lately.
    lately: Mutex<BTreeMap<String, VecDeque<Instant>>>,
    /// No harm any more.
    calm: AtomicBool,
    /// The cloud refuses everything.
    pub(crate) throttled: AtomicBool,
    latency: u64,
    random: Random,
    start: Instant,
    trace: Mutex<Vec<String>>,
    writes: Mutex<Vec<(String, bool)>>,
    /// Requests that are under way belong to nobody: they arrive whatever becomes of the sender.
    under_way: Mutex<JoinSet<()>>,
}

impl Traffic {
    pub(crate) fn new(
        checker: Checker,
        harms: BTreeMap<(Count, u64), Harm>,
        latency: u64,
        random: Random,
    ) -> Arc<Self> {
        Arc::new(Self {
            checker: Mutex::new(checker),
            harms: Mutex::new(harms),
            counts: Mutex::default(),
            steady: AtomicU64::new(0),
            lately: Mutex::default(),
            calm: AtomicBool::new(false),
            throttled: AtomicBool::new(false),
            latency,
            random,
            start: Instant::now(),
            trace: Mutex::default(),
            writes: Mutex::default(),
            under_way: Mutex::default(),
        })
    }

    /// Ends all harm.
    pub(crate) fn calm_down(&self) {
        self.calm.store(true, Ordering::Relaxed);
        self.throttled.store(false, Ordering::Relaxed);
    }

    /// Writes something down.
    pub(crate) fn note(&self, what: &str) {
        let at = self.start.elapsed();
        self.trace.lock().push(format!("{:>10.3} {what}", at.as_secs_f64()));
    }

    /// What happened.
    pub(crate) fn trace(&self) -> Vec<String> {
        self.trace.lock().clone()
    }

    /// The writes, and whether each was to the cloud.
    pub(crate) fn writes(&self) -> Vec<(String, bool)> {
        self.writes.lock().clone()
    }

    /// How many requests there were.
    pub(crate) fn count(&self, what: Count) -> u64 {
        self.counts.lock().get(&what).copied().unwrap_or_default()
    }

    /// How many requests there were that were not about leases.
    pub(crate) fn steady(&self) -> u64 {
        self.steady.load(Ordering::Relaxed)
    }

    /// What is due for a request.
    fn harm(&self, request: &Request) -> Option<Harm> {
        if !request.lease {
            self.steady.fetch_add(1, Ordering::Relaxed);
        }
        let mut harm = None;
        let mut counts = self.counts.lock();
        for count in [Count::Requests, Count::Writes, Count::CloudWrites] {
            let counted = match count {
                Count::Requests => true,
                Count::Writes => request.write,
                Count::CloudWrites => request.write && request.cloud,
            };
            if counted {
                let number = counts.entry(count).or_default();
                harm = harm.or(self.harms.lock().remove(&(count, *number)));
                *number += 1;
            }
        }
        drop(counts);
        if request.write {
            self.writes.lock().push((request.text.clone(), request.cloud));
        }
        if self.calm.load(Ordering::Relaxed) {
            return None;
        }
        let throttled = request.cloud && self.throttled.load(Ordering::Relaxed);
        harm.or(throttled.then_some(Harm::Throttle))
    }

    /// Whether the same was sent too often lately.
    fn is_often(&self, request: &Request) -> bool {
        // Events of many objects are posted to the same place.
        if request.text.ends_with("/events") {
            return false;
        }
        let now = Instant::now();
        let mut lately = self.lately.lock();
        let times = lately.entry(request.text.clone()).or_default();
        times.push_back(now);
        while times.front().is_some_and(|first| *first + WINDOW < now) {
            times.pop_front();
        }
        times.len() == OFTEN
    }

    fn send(&self, request: impl Future<Output = ()> + Send + 'static) {
        let mut under_way = self.under_way.lock();
        while under_way.try_join_next().is_some() {}
        under_way.spawn(request);
    }

    /// Lets a request pass, or not.
    pub(crate) async fn pass<T: Send + 'static>(
        self: &Arc<Self>,
        host: &Arc<Host>,
        request: Request,
        act: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Failed> {
        if host.is_dead() {
            return pending().await;
        }
        let cut_off = host.cut_off.load(Ordering::Relaxed)
            || request.lease && host.lease_cut_off.load(Ordering::Relaxed);
        if cut_off {
            tokio::time::sleep(Duration::from_secs(1)).await;
            return Err(Failed::NotSent);
        }
        let harm = self.harm(&request);
        if self.count(Count::Requests) > RUNAWAY {
            self.checker.lock().violated(&format!("S9 more than {RUNAWAY} requests"));
            return pending().await;
        }
        if self.is_often(&request) {
            self.checker.lock().violated(&format!("S9 again and again: {}", request.text));
        }
        let said = harm.map(|harm| format!(" ** {harm:?}")).unwrap_or_default();
        self.note(&format!("{}.{} {}{said}", host.replica, host.life, request.text));
        if request.write && !request.lease {
            self.checker.lock().acted(host.replica, &request);
        }
        match harm {
            Some(Harm::CrashBefore) => {
                host.kill();
                return pending().await;
            }
            Some(Harm::NotSent) => return Err(Failed::NotSent),
            Some(Harm::Throttle) => return Err(Failed::Throttled),
            _ => {}
        }
        self.checker.lock().sent(&request);
        if harm.is_some() {
            self.checker.lock().excuse(&request);
        }
        let late = if let Some(Harm::Late(late)) = harm { late } else { 0 };
        let latency = self.random.below(self.latency + 1);
        let wait = Duration::from_millis(late + latency / 2);
        let (done, answer) = oneshot::channel();
        self.send(async move {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            // Nobody may listen any more.
            let _ = done.send(act.await);
        });
        let Ok(answer) = answer.await else { return pending().await };
        self.checker.lock().look();
        if harm == Some(Harm::CrashAfter) {
            host.kill();
        }
        let way_back = Duration::from_millis(latency - latency / 2);
        if !way_back.is_zero() {
            tokio::time::sleep(way_back).await;
        }
        if host.is_dead() {
            return pending().await;
        }
        match harm {
            Some(Harm::LoseAnswer) => Err(Failed::Lost),
            _ => Ok(answer),
        }
    }
}
