//! A process of the controllers, as the rest of the world sees it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use tokio::sync::{Notify, watch};

/// The streams of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Streams {
    /// Streams of an earlier generation are broken.
    pub(crate) generation: u64,
    /// Nothing new arrives.
    pub(crate) held: bool,
}

/// One life of a process. What it sends after its end arrives nowhere.
#[derive(Debug)]
pub(crate) struct Host {
    /// Which of the replicas.
    pub(crate) replica: usize,
    /// Which life of it.
    pub(crate) life: u64,
    ended: AtomicBool,
    end: Notify,
    /// Neither API nor cloud can be reached.
    pub(crate) cut_off: AtomicBool,
    /// Leases cannot be written.
    pub(crate) lease_cut_off: AtomicBool,
    /// So many watches are answered with 410.
    pub(crate) expired: AtomicU64,
    /// Its watches.
    pub(crate) streams: watch::Sender<Streams>,
}

impl Host {
    pub(crate) fn new(replica: usize, life: u64) -> Arc<Self> {
        Arc::new(Self {
            replica,
            life,
            ended: AtomicBool::new(false),
            end: Notify::new(),
            cut_off: AtomicBool::new(false),
            lease_cut_off: AtomicBool::new(false),
            expired: AtomicU64::new(0),
            streams: watch::Sender::default(),
        })
    }

    /// Ends this life.
    pub(crate) fn kill(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.end.notify_one();
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Waits for the end of this life.
    pub(crate) async fn killed(&self) {
        self.end.notified().await;
    }

    /// Breaks all watches.
    pub(crate) fn break_streams(&self) {
        self.streams.send_modify(|streams| streams.generation += 1);
    }

    /// Whether one more watch is to be answered with 410.
    pub(crate) fn take_expired(&self) -> bool {
        self.expired
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_ok()
    }
}
