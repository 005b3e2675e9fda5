//! Asks the cloud about groups, many at a time.
//!
//! Whoever needs to know about a group asks here; those who ask about the same account within a
//! moment are answered by one describe and one read of members, which also takes along the groups
//! that would be due soon. So the number of calls depends on time, not on the number of groups.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use fleetwright_clock::{Clock, Random};
use fleetwright_cloud::{Cloud, CloudError, Instance, PlacementGroup, PlacementGroups};
use fleetwright_runtime::ObjectKey;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::{
    decide::{Member, Seen, means_absent},
    memory::Memory,
};

/// How long a question waits for others.
const GATHER: Duration = Duration::from_millis(100);
/// When to ask again: well before the two minutes of validity end, also when an answer is slow.
const RENEW_AFTER: Duration = Duration::from_secs(80);
/// Up to this part of it is added at random, so that clusters do not ask in step.
const RENEW_JITTER: f64 = 0.2;

/// Answers that belong together: one region seen with one set of credentials.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lane {
    pub(crate) region: String,
    pub(crate) secret: Option<ObjectKey>,
}

/// Asks the cloud. Clones share what they learn.
#[derive(Clone, Debug)]
pub(crate) struct Observer {
    lanes: Arc<Mutex<BTreeMap<Lane, Arc<Turns>>>>,
    memory: Memory,
    clock: Clock,
    random: Random,
}

/// One lane: one question at a time.
#[derive(Debug, Default)]
struct Turns {
    turn: tokio::sync::Mutex<()>,
    questions: Mutex<Questions>,
}

#[derive(Debug, Default)]
struct Questions {
    waiting: BTreeSet<String>,
    /// How many rounds have begun.
    rounds: u64,
    /// The last answer about each group, and the round that gave it.
    answers: BTreeMap<String, (u64, Result<(), CloudError>)>,
}

impl Observer {
    pub(crate) fn new(memory: Memory, clock: Clock, random: Random) -> Self {
        Self { lanes: Arc::default(), memory, clock, random }
    }

    /// Asks about a group; `others` come along. What is seen is in the memory afterwards, and the
    /// answer names all groups that it holds news of.
    pub(crate) async fn look(
        &self,
        lane: Lane,
        cloud: &dyn Cloud,
        name: &str,
        others: BTreeSet<String>,
    ) -> Result<BTreeSet<String>, CloudError> {
        let turns = Arc::clone(self.lanes.lock().entry(lane).or_default());
        let round = {
            let mut questions = turns.questions.lock();
            questions.waiting.insert(name.to_owned());
            questions.rounds + 1
        };
        sleep(GATHER).await;
        let _turn = turns.turn.lock().await;
        let (round, names) = {
            let mut questions = turns.questions.lock();
            if let Some((answered, outcome)) = questions.answers.get(name)
                && *answered >= round
            {
                return outcome.clone().map(|()| BTreeSet::new());
            }
            questions.rounds += 1;
            let mut names = std::mem::take(&mut questions.waiting);
            names.insert(name.to_owned());
            names.extend(others);
            (questions.rounds, names)
        };
        let at = self.clock.now();
        let outcome = ask(cloud, &names).await;
        let renew = Instant::now() + self.random.jitter(RENEW_AFTER, RENEW_JITTER);
        let done = match outcome {
            Ok((groups, members)) => {
                for name in &names {
                    self.memory.saw(name, seen(at, name, &groups, &members), renew);
                }
                Ok(())
            }
            Err(error) => Err(error),
        };
        let mut questions = turns.questions.lock();
        for name in &names {
            questions.answers.insert(name.clone(), (round, done.clone()));
        }
        done.map(|()| names)
    }

    /// The object is gone.
    pub(crate) fn forget(&self, name: &str) {
        for turns in self.lanes.lock().values() {
            turns.questions.lock().answers.remove(name);
        }
    }
}

type Answer = (Vec<PlacementGroup>, Vec<Instance>);

async fn ask(cloud: &dyn Cloud, names: &BTreeSet<String>) -> Result<Answer, CloudError> {
    let Some(port) = cloud.placement_groups() else {
        return Err(CloudError::configuration(
            "DescribePlacementGroups",
            "this cloud has no placement groups",
        ));
    };
    let groups = describe(port, names).await?;
    let existing: BTreeSet<String> = groups.iter().map(|group| group.name.clone()).collect();
    let members = if existing.is_empty() { Vec::new() } else { port.members(existing).await? };
    Ok((groups, members))
}

/// Describes groups. Only the cloud's own word that a group is unknown means that there is none,
/// and where it says so about several at once, each is asked about by itself.
async fn describe(
    port: &dyn PlacementGroups,
    names: &BTreeSet<String>,
) -> Result<Vec<PlacementGroup>, CloudError> {
    match port.describe(names.clone()).await {
        Err(error) if means_absent(&error) && names.len() == 1 => Ok(Vec::new()),
        Err(error) if means_absent(&error) => {
            let mut groups = Vec::new();
            for name in names {
                match port.describe(BTreeSet::from([name.clone()])).await {
                    Ok(found) => groups.extend(found),
                    Err(error) if means_absent(&error) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(groups)
        }
        answer => answer,
    }
}

fn seen(at: jiff::Timestamp, name: &str, groups: &[PlacementGroup], members: &[Instance]) -> Seen {
    let members = members
        .iter()
        .filter(|instance| instance.group.as_deref() == Some(name) && instance.state.exists())
        .map(|instance| Member {
            id: instance.id.clone(),
            state: instance.state,
            zone: instance.zone.clone(),
        });
    Seen {
        at,
        group: groups.iter().find(|group| group.name == name).cloned(),
        members: members.collect(),
        made: false,
    }
}
