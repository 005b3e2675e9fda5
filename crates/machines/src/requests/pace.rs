//! Statuses are not written too often: while a thousand Machines come up, nobody reads a thousand
//! counts.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use fleetwright_runtime::ObjectKey;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Statuses of one object are not written more often than this.
const STATUS_INTERVAL: Duration = Duration::from_millis(250);

/// When the status of each object was last written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paces(Arc<Mutex<BTreeMap<ObjectKey, Instant>>>);

impl Paces {
    /// How long a write must wait.
    pub(crate) fn wait(&self, key: &ObjectKey) -> Option<Duration> {
        let left = STATUS_INTERVAL.saturating_sub(self.0.lock().get(key)?.elapsed());
        (!left.is_zero()).then_some(left)
    }

    pub(crate) fn wrote(&self, key: &ObjectKey) {
        self.0.lock().insert(key.clone(), Instant::now());
    }

    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }
}
