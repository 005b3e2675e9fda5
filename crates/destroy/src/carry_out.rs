//! Carries plans out.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use fleetwright_cloud::{Cloud, CloudError, ErrorClass, Leftover};
use tokio::time::{Instant, sleep};

use crate::{
    Survey,
    plan::{Item, Kind, Plan, Refusals, Step, plan},
    text::{counts, number},
};

/// How many instances are terminated in a request.
const AT_ONCE: usize = 100;
/// How many surveys in a row may fail before we give up.
const MOST_FAILURES: u32 = 5;
/// How often something new may appear before we give up.
const MOST_APPEARANCES: u32 = 3;

/// How to go about it.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long to wait before looking again.
    pub pause: Duration,
    /// How long to wait for something to change.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { pause: Duration::from_secs(5), patience: Duration::from_mins(15) }
    }
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What was removed, for people.
    pub removed: String,
    /// What is there still: nothing of ours, or what stays.
    pub left: Plan,
}

/// It did not come to its end. Whatever was done is done: the next run goes on from there.
#[derive(Debug, thiserror::Error)]
pub enum DestroyError {
    /// The cloud refused.
    #[error("{0}")]
    Cloud(CloudError),
    /// Nothing changes any more.
    #[error("nothing has changed for {} minutes, and there is still {left}{why}", after.as_secs() / 60)]
    NotInTime {
        /// For how long.
        after: Duration,
        /// What is there.
        left: String,
        /// What the cloud said last.
        why: String,
    },
    /// Somebody makes what we remove.
    #[error(
        "{0} appeared while others were removed: a Fleetwright still runs for this cluster; stop it \
         and run this again"
    )]
    KeepsAppearing(String),
}

/// Removes what is ours of a cluster, and tells of it.
pub async fn destroy(
    cloud: &dyn Cloud,
    survey: Survey,
    options: Options,
    mut tell: impl FnMut(&str),
) -> Result<Outcome, DestroyError> {
    Run {
        cloud,
        options,
        tell: &mut tell,
        survey,
        refusals: Refusals::new(),
        held: BTreeMap::new(),
        known: BTreeMap::new(),
        told: BTreeSet::new(),
        appearances: 0,
    }
    .run()
    .await
}

struct Run<'a, T> {
    cloud: &'a dyn Cloud,
    options: Options,
    tell: &'a mut T,
    survey: Survey,
    /// What stays.
    refusals: Refusals,
    /// What could not go yet, in the cloud's words; without a name, why a step could not be done.
    held: BTreeMap<String, String>,
    /// Everything of ours that was ever seen.
    known: BTreeMap<(Kind, String), Item>,
    told: BTreeSet<(Kind, String)>,
    appearances: u32,
}

impl<T: FnMut(&str)> Run<'_, T> {
    async fn run(mut self) -> Result<Outcome, DestroyError> {
        let (mut before, mut changed) = (Plan::default(), Instant::now());
        let mut last = Step::Done;
        let mut acted = false;
        let mut first = true;
        loop {
            let plan = plan(&self.survey, &self.refusals);
            self.notice(&plan, first)?;
            first = false;
            if plan != before {
                self.progress(&before, &plan);
                changed = Instant::now();
            } else if changed.elapsed() >= self.options.patience {
                return Err(self.not_in_time(&plan));
            }
            let step = plan.next();
            if step == Step::Done && (last == Step::Done || !acted) {
                return Ok(Outcome { removed: self.removed(&plan), left: plan });
            }
            acted |= !matches!(step, Step::Wait | Step::Done);
            let repeated = step == last || step == Step::Done;
            let outcome = self.carry_out(&step).await;
            match &outcome {
                Ok(()) => self.held.remove(""),
                Err(error) => self.held.insert(String::new(), error.to_string()),
            };
            let goes_on = matches!(step, Step::Remove(_) | Step::Delete(_));
            if repeated || !goes_on || outcome.is_err() {
                sleep(self.options.pause).await;
            }
            self.look(outcome.err()).await?;
            last = step;
            before = plan;
        }
    }

    /// A new survey, after a step that may have failed.
    async fn look(&mut self, mut failed: Option<CloudError>) -> Result<(), DestroyError> {
        for _ in 0..MOST_FAILURES {
            if let Some(error) = failed.take() {
                if !may_pass(&error) {
                    return Err(DestroyError::Cloud(error));
                }
                (self.tell)(&format!("trying again: {error}"));
            }
            match self.survey.clone().again(self.cloud).await {
                Ok(survey) => {
                    self.survey = survey;
                    return Ok(());
                }
                Err(error) => failed = Some(error),
            }
            sleep(self.options.pause).await;
        }
        let gone = || CloudError::new(ErrorClass::Transient, "", "", "no answer");
        Err(DestroyError::Cloud(failed.unwrap_or_else(gone)))
    }

    async fn carry_out(&mut self, step: &Step) -> Result<(), CloudError> {
        match step {
            Step::Terminate(ids) => {
                self.announce("terminating", Kind::Instance, ids);
                for ids in ids.chunks(AT_ONCE) {
                    self.terminate(ids).await?;
                }
            }
            Step::Remove(leftovers) => {
                for leftover in leftovers {
                    self.remove(leftover).await?;
                }
            }
            Step::Delete(names) => {
                for name in names {
                    self.delete(name).await?;
                }
            }
            Step::Wait | Step::Done => {}
        }
        Ok(())
    }

    /// Terminates what can be. One that is protected makes the cloud refuse all: halves tell which.
    async fn terminate(&mut self, ids: &[String]) -> Result<(), CloudError> {
        let mut batches = vec![ids.to_vec()];
        while let Some(batch) = batches.pop() {
            match self.cloud.retire(&batch).await {
                Ok(()) => {}
                Err(error) if is_about_us(&error) => return Err(error),
                Err(error) => match batch.as_slice() {
                    [] => {}
                    [one] => {
                        self.refusals.insert(one.clone(), error.to_string());
                    }
                    many => {
                        let (one, other) = many.split_at(many.len() / 2);
                        batches.extend([other.to_vec(), one.to_vec()]);
                    }
                },
            }
        }
        Ok(())
    }

    async fn remove(&mut self, leftover: &Leftover) -> Result<(), CloudError> {
        let kind = match leftover.kind {
            fleetwright_cloud::LeftoverKind::Volume => Kind::Volume,
            fleetwright_cloud::LeftoverKind::Host => Kind::Host,
        };
        self.announce("removing", kind, std::slice::from_ref(&leftover.id));
        let outcome = self.cloud.remove(leftover).await;
        self.settle(&leftover.id, outcome)
    }

    async fn delete(&mut self, name: &String) -> Result<(), CloudError> {
        self.announce("removing", Kind::Group, std::slice::from_ref(name));
        let Some(groups) = self.cloud.placement_groups() else { return Ok(()) };
        let outcome = groups.delete(name).await;
        self.settle(name, outcome)
    }

    /// What is still used goes later; what the cloud refuses for another reason stays.
    fn settle(&mut self, id: &str, outcome: Result<(), CloudError>) -> Result<(), CloudError> {
        match outcome {
            Ok(()) => {
                self.held.remove(id);
                Ok(())
            }
            Err(error) if is_about_us(&error) => Err(error),
            Err(error) if error.class == ErrorClass::InUse => {
                self.held.insert(id.to_owned(), error.to_string());
                Ok(())
            }
            Err(error) => {
                self.refusals.insert(id.to_owned(), error.to_string());
                Ok(())
            }
        }
    }

    /// Says once what is done about these.
    fn announce(&mut self, verb: &str, kind: Kind, ids: &[String]) {
        let new = ids.iter().filter(|id| self.told.insert((kind, (*id).clone())));
        let new: Vec<&String> = new.collect();
        match new.as_slice() {
            [] => {}
            [one] => (self.tell)(&format!("{verb} {kind} {one}")),
            many => (self.tell)(&format!("{verb} {}", number(many.len(), kind))),
        }
    }

    /// Remembers what there is, and sees what was not there before.
    fn notice(&mut self, plan: &Plan, first: bool) -> Result<(), DestroyError> {
        let mut new = Vec::new();
        for item in &plan.items {
            if self.known.insert(identity(item), item.clone()).is_none() {
                new.push(item);
            }
        }
        // Disks come with instances, which are told of.
        let made = new.iter().copied().filter(|item| item.kind != Kind::Volume);
        let made: Vec<&Item> = made.collect();
        if first || made.is_empty() {
            return Ok(());
        }
        self.appearances += 1;
        if self.appearances > MOST_APPEARANCES {
            return Err(DestroyError::KeepsAppearing(counts(made)));
        }
        (self.tell)(&format!("{} appeared since the plan was made", counts(made)));
        Ok(())
    }

    /// Tells how far it is.
    fn progress(&mut self, before: &Plan, now: &Plan) {
        let ending = |plan: &Plan| plan.going().filter(|item| item.kind == Kind::Instance).count();
        let (was, is) = (ending(before), ending(now));
        if was != is && is > 0 && !before.items.is_empty() {
            (self.tell)(&format!("waiting for {} to end", number(is, Kind::Instance)));
        } else if was > 0 && is == 0 {
            (self.tell)("all instances have ended");
        }
    }

    fn removed(&self, left: &Plan) -> String {
        let left: BTreeSet<_> = left.items.iter().map(identity).collect();
        let gone = self.known.iter().filter(|(identity, _)| !left.contains(identity));
        counts(gone.map(|(_, item)| item))
    }

    fn not_in_time(&self, plan: &Plan) -> DestroyError {
        let why = self.held.values().next().map(|why| format!(": {why}")).unwrap_or_default();
        DestroyError::NotInTime { after: self.options.patience, left: counts(plan.going()), why }
    }
}

/// What tells one thing from all others: a group that is made again has the name of the one that
/// went.
fn identity(item: &Item) -> (Kind, String) {
    (item.kind, if item.kind == Kind::Group { item.name.clone() } else { item.id.clone() })
}

/// Whether an error is about whoever asks or answers, and not about what is to be removed.
fn is_about_us(error: &CloudError) -> bool {
    error.class == ErrorClass::Credentials || may_pass(error)
}

/// Whether it may work later without anybody doing anything.
fn may_pass(error: &CloudError) -> bool {
    matches!(error.class, ErrorClass::Throttled | ErrorClass::AnswerLost | ErrorClass::Transient)
}
