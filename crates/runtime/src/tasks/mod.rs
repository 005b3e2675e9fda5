//! The tasks of a process: started by name, watched, and stopped in order.
//!
//! Nothing runs detached. A task that ends before it was told to, with an error or a panic or
//! even in peace, ends the process: half a process is worse than none, and whoever started it
//! can start it again.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt, future::Future, time::Duration};

use tokio::{
    task::{Id, JoinError, JoinSet},
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use crate::panic_message;

/// When a task is stopped, relative to others. Each stage is stopped when all before it have
/// ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// What acts: controllers and servers of webhooks.
    Work,
    /// What gives the right to act: leader election gives its lease back when work has ended.
    Leadership,
    /// What work looks at: informers and caches.
    Observation,
    /// What tells the world: events, metrics, health.
    Reporting,
}

const STAGES: [Stage; 4] = [Stage::Work, Stage::Leadership, Stage::Observation, Stage::Reporting];

/// How a task went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{task} {trouble}")]
pub struct TaskFailure {
    /// The task's name.
    pub task: String,
    /// What happened.
    pub trouble: Trouble,
}

/// What can happen to a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It ended although nobody told it to.
    EndedEarly,
    /// It returned an error.
    Failed(String),
    /// It panicked.
    Panicked(String),
    /// It did not end in time, and was cut off.
    CutOff,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndedEarly => f.write_str("ended although nobody told it to"),
            Self::Failed(error) => write!(f, "failed: {error}"),
            Self::Panicked(message) => write!(f, "panicked: {message}"),
            Self::CutOff => f.write_str("did not stop in time and was cut off"),
        }
    }
}

/// The tasks of a process.
#[derive(Debug)]
pub struct Tasks {
    stop: CancellationToken,
    stages: BTreeMap<Stage, CancellationToken>,
    running: JoinSet<Result<(), String>>,
    names: BTreeMap<Id, (Stage, String)>,
    failures: Vec<TaskFailure>,
}

impl Tasks {
    /// No tasks. They are stopped when `stop` is cancelled, which is for signal handlers.
    pub fn new(stop: CancellationToken) -> Self {
        Self {
            stop,
            stages: STAGES.map(|stage| (stage, CancellationToken::new())).into(),
            running: JoinSet::new(),
            names: BTreeMap::new(),
            failures: Vec::new(),
        }
    }

    /// Starts a task of a stage. It must end soon after the token that it is given is cancelled.
    pub fn start<F, E>(
        &mut self,
        stage: Stage,
        name: &str,
        task: impl FnOnce(CancellationToken) -> F,
    ) where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: std::error::Error + 'static,
    {
        let running = task(self.token(stage));
        let running = async { running.await.map_err(|error| crate::error_chain(&error)) };
        let id = self.running.spawn(running).id();
        self.names.insert(id, (stage, name.to_owned()));
    }

    /// The token that tells a stage to stop.
    pub fn token(&self, stage: Stage) -> CancellationToken {
        self.stages[&stage].clone()
    }

    /// Runs until told to stop, or until a task ends by itself; then stops the stages in order,
    /// all within `limit`. Answers what went wrong.
    pub async fn run(mut self, limit: Duration) -> Result<(), Vec<TaskFailure>> {
        let stop = self.stop.clone();
        let ended = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            Some(ended) = self.running.join_next_with_id() => Some(ended),
            else => None,
        };
        if let Some(ended) = ended {
            self.note(ended);
        }
        // Also for those who look at the token without being tasks.
        stop.cancel();
        let deadline = Instant::now() + limit;
        for stage in STAGES {
            self.stages[&stage].cancel();
            while self.names.values().any(|(of, _)| *of == stage) {
                match timeout_at(deadline, self.running.join_next_with_id()).await {
                    Ok(Some(ended)) => self.note(ended),
                    Ok(None) => break,
                    Err(_elapsed) => {
                        self.cut_off().await;
                        break;
                    }
                }
            }
        }
        if self.failures.is_empty() { Ok(()) } else { Err(self.failures) }
    }

    fn note(&mut self, ended: Result<(Id, Result<(), String>), JoinError>) {
        let id = match &ended {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let Some((stage, task)) = self.names.remove(&id) else { return };
        let trouble = match ended {
            Ok((_, Ok(()))) if self.stages[&stage].is_cancelled() => {
                tracing::debug!(task, "stopped");
                return;
            }
            Ok((_, Ok(()))) => Trouble::EndedEarly,
            Ok((_, Err(error))) => Trouble::Failed(error),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => Trouble::Panicked(panic_message(panic.as_ref()).to_owned()),
                Err(_cancelled) => Trouble::CutOff,
            },
        };
        let failure = TaskFailure { task, trouble };
        tracing::error!("{failure}");
        self.failures.push(failure);
    }

    /// Time is up: everything that still runs ends now, in no order.
    async fn cut_off(&mut self) {
        self.stages.values().for_each(CancellationToken::cancel);
        self.running.abort_all();
        while let Some(ended) = self.running.join_next_with_id().await {
            self.note(ended);
        }
    }
}
