//! Notices of AWS, from the instance metadata service, version 2 alone.

pub mod answers;
mod session;

use fleetwright_clock::Clock;
use futures::{FutureExt as _, future::BoxFuture};
use jiff::{SignedDuration, Timestamp};

use self::session::Session;
use crate::{
    metadata::Metadata,
    notice::{Kind, Notice, origin},
    source::{Looked, Source},
    trouble::Trouble,
};

pub use session::{After, TOKEN_HEADER, TOKEN_PATH, TTL_HEADER, after_answer, token};

/// Where EC2 says that it takes a spot instance back.
pub const INSTANCE_ACTION: &str = "/latest/meta-data/spot/instance-action";
/// The same, as older clients read it.
pub const TERMINATION_TIME: &str = "/latest/meta-data/spot/termination-time";
/// Where EC2 advises to move away.
pub const REBALANCE: &str = "/latest/meta-data/events/recommendations/rebalance";
/// Where EC2 says what it plans to do with the hardware.
pub const SCHEDULED: &str = "/latest/meta-data/events/maintenance/scheduled";

/// What is looked at beside the spot market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwsSettings {
    /// Rebalance recommendations.
    pub rebalance: bool,
    /// Scheduled events that stop or retire the instance.
    pub scheduled: bool,
    /// How long before a scheduled event the instance counts as terminating: they are announced
    /// weeks before.
    pub scheduled_lead: SignedDuration,
}

impl Default for AwsSettings {
    fn default() -> Self {
        Self { rebalance: false, scheduled: true, scheduled_lead: SignedDuration::from_mins(10) }
    }
}

/// The source of an EC2 instance.
pub struct AwsSource {
    session: Session,
    settings: AwsSettings,
}

impl AwsSource {
    /// The instance whose metadata service this is.
    pub fn new(metadata: Metadata, settings: AwsSettings, clock: Clock) -> Self {
        Self { session: Session::new(metadata, clock), settings }
    }

    async fn look(&mut self, now: Timestamp) -> Looked {
        let mut looked = Looked::default();
        // A token serves all questions: without one there is no use in asking them.
        if let Err(trouble) = self.session.open().await {
            looked.troubles.push(trouble);
            return looked;
        }
        let spot = self.spot().await;
        let found = spot.as_ref().is_ok_and(Option::is_some);
        looked.add(spot);
        // Nothing else matters now, and it might take long.
        if found {
            return looked;
        }
        if self.settings.scheduled {
            let lead = self.settings.scheduled_lead;
            looked.add(self.scheduled().await.map(|events| ending(&events, now, lead)));
        }
        if self.settings.rebalance {
            looked.add(self.rebalance().await);
        }
        looked
    }

    async fn spot(&mut self) -> Result<Option<Notice>, Trouble> {
        let (status, body) = self.session.get("spot/instance-action", INSTANCE_ACTION).await?;
        match answers::instance_action(status, &body) {
            Err(trouble @ Trouble::Unreadable { .. }) => {
                // Something is there, and it cannot be read: the older item may say when.
                let (status, body) =
                    self.session.get("spot/termination-time", TERMINATION_TIME).await?;
                let time = answers::termination_time(status, &body)?;
                time.map(|at| Some(spot(at, origin::AWS_SPOT_TIME))).ok_or(trouble)
            }
            found => Ok(found?.map(|action| spot(action.time, origin::AWS_SPOT))),
        }
    }

    async fn scheduled(&mut self) -> Result<Vec<answers::ScheduledEvent>, Trouble> {
        let (status, body) = self.session.get("events/maintenance/scheduled", SCHEDULED).await?;
        answers::scheduled(status, &body)
    }

    async fn rebalance(&mut self) -> Result<Option<Notice>, Trouble> {
        let what = "events/recommendations/rebalance";
        let (status, body) = self.session.get(what, REBALANCE).await?;
        Ok(answers::rebalance(status, &body)?.map(|_| Notice {
            kind: Kind::Rebalance,
            deadline: None,
            id: "rebalance".to_owned(),
            origin: origin::AWS_REBALANCE,
            revocable: false,
        }))
    }
}

impl Source for AwsSource {
    fn look(&mut self, now: Timestamp) -> BoxFuture<'_, Looked> {
        AwsSource::look(self, now).boxed()
    }

    fn cloud(&self) -> &'static str {
        "aws"
    }
}

fn spot(at: Timestamp, origin: &'static str) -> Notice {
    Notice {
        kind: Kind::Termination,
        deadline: Some(at),
        // One instance is taken back once, whatever time is said.
        id: "spot".to_owned(),
        origin,
        revocable: false,
    }
}

/// The scheduled events that end the instance, and are near.
pub fn ending(
    events: &[answers::ScheduledEvent],
    now: Timestamp,
    lead: SignedDuration,
) -> Vec<Notice> {
    let near = |at: Timestamp| at.duration_since(now) <= lead;
    let ending = events.iter().filter(|event| event.ends_instance() && near(event.not_before));
    ending
        .map(|event| Notice {
            kind: Kind::Termination,
            deadline: Some(event.not_before),
            id: event.id.clone(),
            origin: origin::AWS_SCHEDULED,
            revocable: true,
        })
        .collect()
}
