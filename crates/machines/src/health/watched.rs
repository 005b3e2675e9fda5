//! What is kept of a check between reconciles: its Machines as last judged, and who changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use fleetwright_api::machine::Machine;
use fleetwright_lifecycle::{
    health::{
        Cause,
        board::{Board, Turn},
    },
    moment::after,
};
use fleetwright_runtime::ObjectKey;
use jiff::Timestamp;
use parking_lot::Mutex;

use super::{rules::Rules, status::Counted};

/// A Machine that was treated is not treated again until our copy should show it.
const TREATMENT_SHOWS: Duration = Duration::from_secs(30);

/// Machines that changed, by the check that looks at them.
#[derive(Clone, Debug, Default)]
pub(super) struct Changed(Arc<Mutex<BTreeMap<ObjectKey, BTreeSet<ObjectKey>>>>);

impl Changed {
    pub(super) fn note(&self, check: &ObjectKey, machine: ObjectKey) {
        self.0.lock().entry(check.clone()).or_default().insert(machine);
    }

    fn take(&self, check: &ObjectKey) -> BTreeSet<ObjectKey> {
        self.0.lock().remove(check).unwrap_or_default()
    }
}

/// All checks.
#[derive(Clone, Debug, Default)]
pub(super) struct Checks {
    pub(super) changed: Changed,
    watched: Arc<Mutex<BTreeMap<ObjectKey, Watched>>>,
}

/// One check.
#[derive(Debug)]
struct Watched {
    rules: Rules,
    board: Board<ObjectKey>,
    /// UIDs of Machines that were treated, and when.
    treated: BTreeMap<String, Timestamp>,
}

impl Watched {
    fn new(rules: &Rules) -> Self {
        let board = Board::new(rules.check.clone());
        Self { rules: rules.clone(), board, treated: BTreeMap::new() }
    }
}

/// How the Machines of a check are now.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) counted: Counted,
    pub(super) unhealthy: Vec<(ObjectKey, Cause)>,
    /// Who turned, since the last time.
    pub(super) turned: Vec<(ObjectKey, Turn)>,
    /// How many were judged.
    pub(super) judged: usize,
    /// Whether everybody was judged.
    pub(super) fresh: bool,
    pub(super) next_check: Option<Duration>,
}

/// Where Machines are found.
pub(super) trait Machines {
    /// The Machines that a check may select.
    fn all(&self) -> Vec<Arc<Machine>>;
    /// One of them.
    fn get(&self, key: &ObjectKey) -> Option<Arc<Machine>>;
    /// What the rules see of one; nothing when the check does not look at it.
    fn target(&self, machine: &Machine) -> Option<fleetwright_lifecycle::health::Target>;
}

impl Checks {
    /// Judges what changed; everybody when the rules are other ones.
    pub(super) fn round(
        &self,
        key: &ObjectKey,
        rules: &Rules,
        machines: &impl Machines,
        now: Timestamp,
    ) -> Round {
        let changed = self.changed.take(key);
        let mut all = self.watched.lock();
        let mut turned = Vec::new();
        let fresh = all.get(key).is_none_or(|watched| watched.rules != *rules);
        let watched = all.entry(key.clone()).or_insert_with(|| Watched::new(rules));
        if fresh {
            watched.rules = rules.clone();
            watched.board = Board::new(rules.check.clone());
            for machine in machines.all() {
                if let Some(target) = machines.target(&machine) {
                    let machine = ObjectKey::of(machine.as_ref());
                    turned.push((machine.clone(), watched.board.put(machine, target, now)));
                }
            }
        } else {
            for machine in changed {
                match machines.get(&machine).and_then(|found| machines.target(&found)) {
                    Some(target) => {
                        turned.push((machine.clone(), watched.board.put(machine, target, now)));
                    }
                    None => watched.board.remove(&machine),
                }
            }
        }
        turned.extend(watched.board.advance(now));
        let judged = turned.len();
        turned.retain(|(_, turn)| *turn != Turn::None);
        watched.treated.retain(|_, at| now < after(*at, TREATMENT_SHOWS));
        let board = &watched.board;
        Round {
            counted: Counted { total: board.total(), healthy: board.healthy() },
            unhealthy: board
                .unhealthy()
                .into_iter()
                .map(|(key, cause)| (key.clone(), cause.clone()))
                .collect(),
            turned,
            judged,
            fresh,
            next_check: board.next_check(now),
        }
    }

    /// Whether a Machine is healthy.
    pub(super) fn is_healthy(&self, key: &ObjectKey, machine: &ObjectKey) -> bool {
        self.watched.lock().get(key).is_some_and(|watched| watched.board.is_healthy(machine))
    }

    /// Whether a Machine was treated just now.
    pub(super) fn was_treated(&self, key: &ObjectKey, uid: &str) -> bool {
        self.watched.lock().get(key).is_some_and(|watched| watched.treated.contains_key(uid))
    }

    /// Remembers that a Machine was treated.
    pub(super) fn treated(&self, key: &ObjectKey, uid: String, now: Timestamp) {
        if let Some(watched) = self.watched.lock().get_mut(key) {
            watched.treated.insert(uid, now);
        }
    }

    /// Judges everybody the next time.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.watched.lock().remove(key);
        self.changed.take(key);
    }
}
