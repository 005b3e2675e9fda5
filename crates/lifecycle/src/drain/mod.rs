//! Emptying a Node: `kubectl drain`, decided step by step.
//!
//! [`plan`] looks at the pods of a Node and at what earlier requests brought, and names the
//! requests to make now, what the drain waits for, and when to look again. Whoever carries it out
//! tells each answer to [`Attempts`], plans once more to know what to report, and comes back when
//! told. Nothing waits inside; what is lost with the process costs one early retry.
//!
//! - [`filters`] chooses the pods, in the order and with the words of kubectl.
//! - [`attempts`] is what answers mean, and when a refused request is made again.
//! - [`deadline`] fits the drain into the time that a Node still has.
//! - [`gate`] says whether a Machine is to be drained at all, and whether now.
//! - [`progress`] is the text that names what blocks.

pub mod attempts;
pub mod deadline;
pub mod filters;
pub mod gate;
pub mod progress;
#[cfg(test)]
mod tests;

use std::{fmt, time::Duration};

use jiff::Timestamp;

use self::{
    attempts::{Attempts, Standing},
    deadline::AtDeadline,
    filters::{Filter, Verdict, judge},
    progress::Progress,
};

use crate::moment::after;

/// Annotation of a pod that stands for a file on its Node; the API cannot remove it.
pub const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";
/// How long pods may take that do not say.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// What counts of a pod.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID: another one is another pod, whatever its name.
    pub uid: String,
    /// Who makes it anew.
    pub controller: Option<Controller>,
    /// Whether it stands for a file on its Node.
    pub mirror: bool,
    /// Whether it loses data with its Node.
    pub local_storage: bool,
    /// Whether it is over.
    pub finished: bool,
    /// Its deletion timestamp: when it is to be gone.
    pub deletion: Option<Timestamp>,
    /// How long it may take to end.
    pub grace: Duration,
    /// Whether the cluster needs it more than users do.
    pub critical: bool,
    /// What its owner asks of a drain.
    pub wish: Wish,
}

/// `namespace/name`.
impl fmt::Display for Pod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            return f.write_str(&self.name);
        }
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The controller of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// Its API group and version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Whether it exists; only of interest for a DaemonSet.
    pub existence: Existence,
}

impl Controller {
    /// Whether it is a DaemonSet, as kubectl sees it.
    pub fn is_daemon_set(&self) -> bool {
        self.kind == "DaemonSet" && self.api_version == "apps/v1"
    }
}

/// Whether something exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Existence {
    /// It does, or nobody needed to know.
    Exists,
    /// It does not; the API's words.
    Absent(String),
    /// The API did not say; its words.
    Unknown(String),
}

/// What the owner of a pod asks of a drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wish {
    /// Evict it.
    #[default]
    Drain,
    /// Leave it.
    Skip,
    /// Let it come to its end.
    WaitCompleted,
}

/// Label of a pod with its owner's wish, in Cluster API.
pub const DRAIN_LABEL: &str = "cluster.x-k8s.io/drain";

impl Wish {
    /// As the label [`DRAIN_LABEL`] has it, whatever its case.
    pub fn parse(label: &str) -> Self {
        match label.to_ascii_lowercase().as_str() {
            "skip" => Self::Skip,
            "wait-completed" | "waitcompleted" => Self::WaitCompleted,
            _ => Self::Drain,
        }
    }
}

/// How to drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which pods may go.
    pub filter: Filter,
    /// How long pods may take; none leaves it to each.
    pub grace: Option<Duration>,
    /// When the Node dies, whatever we do.
    pub deadline: Option<Timestamp>,
    /// What becomes of blocked pods then.
    pub at_deadline: AtDeadline,
    /// How long the drain may take; what is left then stays.
    pub timeout: Option<Duration>,
    /// How often to look at pods that are going.
    pub poll: Duration,
    /// How many requests to make before looking again.
    pub at_once: usize,
}

impl Options {
    /// As the Machine API drains: nothing but DaemonSet and mirror pods stays.
    pub fn machine_api() -> Self {
        Self {
            filter: Filter {
                force: true,
                ignore_daemon_sets: true,
                delete_empty_dir_data: true,
                skip_after_deletion: None,
            },
            grace: None,
            deadline: None,
            at_deadline: AtDeadline::RespectBudgets,
            timeout: None,
            poll: Duration::from_secs(5),
            at_once: 100,
        }
    }

    /// The same for a Node whose kubelet is not heard of: nobody will end its pods, so nobody is
    /// waited for. Budgets still count.
    #[must_use]
    pub fn unreachable(mut self) -> Self {
        let second = Duration::from_secs(1);
        self.grace = Some(second);
        self.filter.skip_after_deletion = Some(second);
        self.poll = second;
        self
    }

    /// The same for a Node that will die.
    #[must_use]
    pub fn until(mut self, deadline: Timestamp) -> Self {
        self.deadline = Some(deadline);
        self.poll = self.poll.min(Duration::from_secs(1));
        self
    }
}

/// A request to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The pod's place in the list that came in.
    pub pod: usize,
    /// How to remove it.
    pub verb: Verb,
    /// How long it may take; none leaves it to the pod.
    pub grace: Option<Duration>,
}

/// How a pod is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Asked, so that budgets count.
    Evict,
    /// Without asking.
    Delete,
}

/// How far a drain is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// There is more to do.
    Draining,
    /// A filter refuses; nothing is evicted until it does not.
    Refused,
    /// Nothing is left that has to go.
    Drained,
    /// The time that it may take is over; these pods are left.
    TimedOut(Vec<String>),
}

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How far the drain is.
    pub stage: Stage,
    /// The requests to make, the most urgent first.
    pub requests: Vec<Request>,
    /// When to look again, unless something happens sooner; now, while there are requests.
    pub look_again: Option<Timestamp>,
    /// What blocks, for people.
    pub progress: Progress,
    /// What kubectl would warn of, with the pods.
    pub warnings: Vec<String>,
}

/// Plans the next step of a drain that began at `started`.
pub fn plan(
    options: &Options,
    pods: &[Pod],
    attempts: &Attempts,
    started: Timestamp,
    now: Timestamp,
) -> Plan {
    let mut judged = filters::Judged::default();
    let mut progress = Progress::new(started);
    let mut due = Vec::new();
    let mut times = Vec::new();
    for (place, pod) in pods.iter().enumerate() {
        let verdict = judge(&options.filter, pod, now);
        judged.add(pod, &verdict);
        if !matches!(verdict, Verdict::Remove { .. }) {
            continue;
        }
        let request = request(options, place, pod, now);
        match attempts.standing(&pod.uid, now) {
            Standing::Gone => {}
            standing if pod.deletion.is_some() => {
                progress.terminating.push(pod.to_string());
                times.push(after(now, options.poll));
                if matches!(standing, Standing::Due { .. }) && shortens(&request, pod, now) {
                    due.push(request);
                }
            }
            _ if pod.wish == Wish::WaitCompleted => {
                progress.completing.push(pod.to_string());
                times.push(after(now, options.poll));
            }
            Standing::Accepted => {
                progress.terminating.push(pod.to_string());
                times.push(after(now, options.poll));
            }
            // It was asked, now it is told.
            Standing::Refused { verb, why, .. } if verb != request.verb => {
                progress.failed(why, pod);
                due.push(request);
            }
            Standing::Refused { retry_at, why, .. } => {
                progress.failed(why, pod);
                times.push(retry_at);
                times.extend(deadline::turns(options, pod).filter(|turn| *turn > now));
            }
            Standing::Due { why } => {
                match why {
                    Some(why) => progress.failed(why, pod),
                    None => progress.later.push(pod.to_string()),
                }
                due.push(request);
            }
        }
    }
    let warnings = judged.warnings();
    let ends = options.timeout.map(|timeout| after(started, timeout));
    let refusal = judged.refusal();
    let refused = refusal.is_some();
    if refused {
        progress = Progress { refusal, ..Progress::new(started) };
        times = vec![after(now, options.poll)];
        due.clear();
    }
    let stage = if progress.is_empty() {
        Stage::Drained
    } else if ends.is_some_and(|ends| ends <= now) {
        Stage::TimedOut(if refused { judged.refused() } else { progress.pods() })
    } else if refused {
        Stage::Refused
    } else {
        Stage::Draining
    };
    if !matches!(stage, Stage::Draining | Stage::Refused) {
        return Plan { stage, requests: Vec::new(), look_again: None, progress, warnings };
    }
    deadline::most_urgent_first(
        &mut due,
        pods,
        options.deadline.map(|end| end.duration_since(now)),
    );
    due.truncate(options.at_once);
    let look_again = if due.is_empty() { times.into_iter().chain(ends).min() } else { Some(now) };
    Plan { stage, requests: due, look_again, progress, warnings }
}

fn request(options: &Options, place: usize, pod: &Pod, now: Timestamp) -> Request {
    let left = options.deadline.map(|end| end.duration_since(now));
    let own = options.grace.unwrap_or(pod.grace);
    let (verb, clamped) = deadline::removal(options.at_deadline, left, own);
    Request { pod: place, verb, grace: clamped.or(options.grace) }
}

/// Whether a request would end a pod sooner that is on its way out already.
fn shortens(request: &Request, pod: &Pod, now: Timestamp) -> bool {
    match (request.grace, pod.deletion) {
        (Some(grace), Some(deletion)) => deletion > after(now, grace),
        _ => false,
    }
}

/// The requests that remove every pod of a Node whose instance is gone. Nobody runs them, nobody
/// will end them, and volumes are not let go while they are there; so even those go that a drain
/// leaves.
pub fn clean_up(pods: &[Pod]) -> Vec<Request> {
    (0..pods.len())
        .map(|pod| Request { pod, verb: Verb::Delete, grace: Some(Duration::ZERO) })
        .collect()
}
