//! What goes wrong, and what users do, and when. Drawn from a seed, or written by a test.

use std::{collections::BTreeMap, fmt, time::Duration};

use fleetwright_clock::Random;

use crate::scenario::{SETS, Set};

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// The process ends before the request has an effect.
    CrashBefore,
    /// The process ends after it had.
    CrashAfter,
    /// The request never arrives.
    NotSent,
    /// The request has its effect, and the answer is lost.
    LoseAnswer,
    /// It is refused because there were too many.
    Throttle,
    /// It arrives this many milliseconds later, even if the process that sent it is gone by then.
    Late(u64),
}

/// Which requests are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Count {
    /// All but watches.
    Requests,
    /// Those that change something in the API or the cloud.
    Writes,
    /// Those that change something in the cloud.
    CloudWrites,
}

/// What happens to the world at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Incident {
    /// A process of the controllers ends, and is started again.
    Crash { replica: usize },
    /// A process hears nothing new for so many seconds.
    Stale { replica: usize, seconds: u64 },
    /// All watches of a process break.
    DropWatches { replica: usize },
    /// They break, and what was to follow is forgotten: everything is listed again.
    Relist { replica: usize },
    /// A process reaches neither API nor cloud.
    CutOff { replica: usize, seconds: u64 },
    /// A process cannot renew its lease, and everything else works.
    CutLease { replica: usize, seconds: u64 },
    /// The cloud throttles everything.
    Throttle { seconds: u64 },
    /// There is no capacity for new instances.
    NoCapacity { seconds: u64 },
    /// Somebody terminates an instance.
    Strike { which: u64 },
    /// The cloud takes back one in so many of its spot instances, with notice.
    Interrupt { one_in: u64 },
    /// An autoscaler takes a Machine away from a set: it marks one and asks for one less, and for
    /// as many as before after so many seconds.
    Autoscale { set: usize, seconds: u64 },
    /// A user makes a set, and its group before or after it.
    Create { set: usize, group_first: bool },
    /// A user scales a set.
    Scale { set: usize, replicas: u32 },
    /// A user deletes a Machine.
    DeleteMachine { which: u64 },
}

/// The whole script of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    /// Harms by number of request.
    pub(crate) harms: BTreeMap<(Count, u64), Harm>,
    /// Incidents by time, in milliseconds.
    pub(crate) incidents: Vec<(u64, Incident)>,
    /// How many processes of the controllers compete; one does not.
    pub(crate) replicas: usize,
    /// How long requests take at most, in milliseconds.
    pub(crate) latency: u64,
    /// How far the cloud's answers lag behind, in milliseconds.
    pub(crate) lag: u64,
    /// The order in which sets and groups are deleted at the end, and the pauses between, in
    /// milliseconds.
    pub(crate) farewell: Vec<(Farewell, u64)>,
    /// Pods run on the Machines and must be moved away.
    pub(crate) pods: u32,
    /// The `maxUnhealthy` of the users' own check, in worlds where it is the only one.
    pub(crate) max_unhealthy: Option<u32>,
    /// Whether the world is watched at rest before it ends.
    pub(crate) rest: bool,
}

/// Something that is deleted at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Farewell {
    /// A MachineSet.
    Set(usize),
    /// An AWSPlacementGroup.
    Group(usize),
}

/// Incidents happen within this time.
const STORM: u64 = 150_000;

impl Schedule {
    /// Everything at once, in order, and no harm: what a learning run does.
    pub(crate) fn calm() -> Self {
        let all = 0..SETS.len();
        let mut incidents: Vec<(u64, Incident)> =
            all.map(|set| (0, Incident::Create { set, group_first: true })).collect();
        incidents.push((60_000, Incident::Scale { set: 0, replicas: 4 }));
        incidents.push((60_000, Incident::Scale { set: 1, replicas: 3 }));
        incidents.push((100_000, Incident::Scale { set: 0, replicas: 2 }));
        incidents.push((100_000, Incident::Scale { set: 2, replicas: 1 }));
        incidents.push((100_000, Incident::Interrupt { one_in: 2 }));
        let farewell = everything().map(|what| (what, 0)).collect();
        Self {
            incidents,
            replicas: 1,
            latency: 0,
            lag: 0,
            farewell,
            pods: 2,
            rest: true,
            ..Self::default()
        }
    }

    /// The same with one harm.
    pub(crate) fn with(mut self, count: Count, number: u64, harm: Harm) -> Self {
        self.rest = false;
        self.harms.insert((count, number), harm);
        self
    }

    /// What a seed draws.
    pub(crate) fn random(seed: u64) -> Self {
        let random = Random::seeded(seed);
        let [shape, harming, acting, farewell, checking] = [(); 5].map(|()| random.fork());
        let replicas = if shape.below(3) == 0 { 2 } else { 1 };
        // Per thousand requests; some worlds are quiet, so that incidents are seen alone.
        let rate = [0, 5, 20, 60][pick(&shape, 4)];
        let mut harms = BTreeMap::new();
        for number in 0..2000 {
            if harming.below(1000) < rate {
                let harm = match harming.below(12) {
                    0 => Harm::CrashBefore,
                    1 => Harm::CrashAfter,
                    2..=3 => Harm::NotSent,
                    4..=6 => Harm::LoseAnswer,
                    7..=8 => Harm::Throttle,
                    _ => Harm::Late(harming.below(8000)),
                };
                harms.insert((Count::Requests, number), harm);
            }
        }
        Self {
            harms,
            incidents: incidents(&acting, replicas),
            replicas,
            latency: [0, 5, 50, 400][pick(&shape, 4)],
            lag: [0, 0, 500, 5000][pick(&shape, 4)],
            farewell: goodbyes(&farewell),
            pods: u32::try_from(shape.below(4)).unwrap_or_default(),
            max_unhealthy: [None, None, Some(1), Some(2)][pick(&checking, 4)],
            rest: shape.below(4) == 0,
        }
    }
}

fn pick(random: &Random, of: u64) -> usize {
    usize::try_from(random.below(of)).unwrap_or_default()
}

fn incidents(random: &Random, replicas: usize) -> Vec<(u64, Incident)> {
    let mut incidents = Vec::new();
    for set in 0..SETS.len() {
        let create = Incident::Create { set, group_first: random.below(2) == 0 };
        incidents.push((random.below(20_000), create));
    }
    for _ in 0..random.below(5) {
        let set = pick(random, SETS.len() as u64);
        let replicas = u32::try_from(random.below(u64::from(SETS[set].most) + 1)).unwrap_or(0);
        incidents.push((20_000 + random.below(STORM), Incident::Scale { set, replicas }));
    }
    for _ in 0..random.below(6) {
        let replica = pick(random, replicas as u64);
        let seconds = 1 + random.below(60);
        let incident = match random.below(15) {
            0..=1 => Incident::Crash { replica },
            2 => Incident::Stale { replica, seconds },
            3 => Incident::DropWatches { replica },
            4 => Incident::Relist { replica },
            5 => Incident::CutOff { replica, seconds },
            6 => Incident::CutLease { replica, seconds },
            7 => Incident::Throttle { seconds },
            8 => Incident::NoCapacity { seconds: seconds * 3 },
            9 => Incident::Strike { which: random.u64() },
            // Half a fleet at once, or all of it.
            10..=12 => Incident::Interrupt { one_in: 1 + random.below(3) },
            13 => Incident::Autoscale { set: pick(random, SETS.len() as u64), seconds },
            _ => Incident::DeleteMachine { which: random.u64() },
        };
        incidents.push((random.below(STORM), incident));
    }
    incidents.sort_by_key(|(at, _)| *at);
    incidents
}

/// All sets, and then all groups.
fn everything() -> impl Iterator<Item = Farewell> {
    let groups = (0..SETS.len()).filter(|set| SETS[*set].is_grouped());
    (0..SETS.len()).map(Farewell::Set).chain(groups.map(Farewell::Group))
}

fn goodbyes(random: &Random) -> Vec<(Farewell, u64)> {
    let mut all: Vec<_> = everything().collect();
    for place in (1..all.len()).rev() {
        all.swap(place, pick(random, place as u64 + 1));
    }
    let pause = [0, 10, 20_000][pick(random, 3)];
    all.into_iter().map(|what| (what, random.below(pause + 1))).collect()
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { replicas, latency, lag, pods, max_unhealthy, .. } = self;
        writeln!(
            f,
            "  {replicas} replica(s), latency up to {latency} ms, lag {lag} ms, {pods} pods, \
             maxUnhealthy {max_unhealthy:?}"
        )?;
        for ((count, number), harm) in &self.harms {
            writeln!(f, "  {count:?} {number}: {harm:?}")?;
        }
        for (at, incident) in &self.incidents {
            let at = Duration::from_millis(*at);
            match incident {
                Incident::Create { set, .. } | Incident::Scale { set, .. } => {
                    let Set { name, .. } = SETS[*set];
                    writeln!(f, "  at {at:?}: {incident:?} ({name})")?;
                }
                _ => writeln!(f, "  at {at:?}: {incident:?}")?,
            }
        }
        writeln!(f, "  at the end: {:?}", self.farewell)
    }
}
