//! Decisions by table.

use std::time::Duration;

use fleetwright_cloud::{CloudError, ErrorClass, GroupState, InstanceState, Strategy};
use jiff::Timestamp;

use super::{foreign, ours};
use crate::group::{
    decide::{Member, Next, Object, Place, Progress, Seen, Situation, Step, decide},
    status::{Status, Truth, Verdict},
    testbed::{CLUSTER, forbidden, throttled},
    wanted::{Configuration, InvalidSpec, Management, Wanted},
};

const NAME: &str = "g";

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn cluster(strategy: Strategy) -> Wanted {
    Wanted::Managed(Configuration { strategy, partitions: None })
}

/// One situation, with what usually holds: a managed cluster group, held, just looked at.
struct Case {
    object: Object,
    place: Result<Place, String>,
    seen: Option<Seen>,
    outdated: bool,
    progress: Progress,
}

impl Case {
    fn new() -> Self {
        Self {
            object: Object {
                name: NAME.to_owned(),
                deleting: false,
                held: true,
                intended: None,
                wanted: Ok(cluster(Strategy::Cluster)),
                status: Status::default(),
            },
            place: Ok(Place { cluster: CLUSTER.to_owned(), tags: Vec::new() }),
            seen: Some(Seen {
                at: now(),
                group: Some(ours(NAME, Strategy::Cluster)),
                members: Vec::new(),
                made: false,
            }),
            outdated: false,
            progress: Progress { looked: true, ..Progress::default() },
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn deleting(self) -> Self {
        self.with(|case| case.object.deleting = true)
    }

    fn absent(self) -> Self {
        self.with(|case| case.seen.as_mut().unwrap().group = None)
    }

    fn members(self, states: &[InstanceState]) -> Self {
        self.with(|case| {
            let member = |(number, state): (usize, &InstanceState)| Member {
                id: format!("i-{number}"),
                state: *state,
                zone: "us-east-1a".to_owned(),
            };
            case.seen.as_mut().unwrap().members = states.iter().enumerate().map(member).collect();
        })
    }

    fn decide(&self) -> crate::group::decide::Decision {
        decide(&Situation {
            object: &self.object,
            place: self.place.as_ref().map_err(String::as_str),
            seen: self.seen.as_ref(),
            outdated: self.outdated,
            progress: &self.progress,
            now: now(),
        })
    }

    fn step(&self) -> Step {
        self.decide().step
    }

    /// What Ready says after this run.
    fn ready(&self) -> Verdict {
        let decision = self.decide();
        assert_eq!(decision.step, Step::Settle, "{decision:?}");
        decision.status.unwrap().ready.unwrap()
    }

    /// What Deleting says after this run.
    fn blocked(&self) -> String {
        let decision = self.decide();
        assert_eq!(decision.step, Step::Settle, "{decision:?}");
        let deleting = decision.status.unwrap().deleting.unwrap();
        assert_eq!((deleting.truth, deleting.reason.as_str()), (Truth::True, "DeletionFailed"));
        deleting.message
    }
}

#[test]
fn defect_a_every_strategy_is_ready_when_the_cloud_has_it() {
    for strategy in [Strategy::Cluster, Strategy::Spread, Strategy::Partition] {
        for partitions in [None, Some(0), Some(2), Some(7)] {
            let case = Case::new().with(|case| {
                case.object.wanted = Ok(cluster(strategy));
                let mut group = ours(NAME, strategy);
                group.partitions = partitions;
                case.seen.as_mut().unwrap().group = Some(group);
            });
            let ready = case.ready();
            assert_eq!(ready.reason, "ConfigurationInSync", "{strategy:?} {partitions:?}");
            assert_eq!(ready.truth, Truth::True);
            let unmanaged = case.with(|case| {
                case.object.wanted = Ok(Wanted::Unmanaged);
                case.object.held = false;
            });
            assert_eq!(unmanaged.ready().truth, Truth::True);
        }
    }
}

#[test]
fn defect_b_members_are_counted_whoever_made_them() {
    use InstanceState::{Pending, Running, ShuttingDown, Stopped};
    let decision = Case::new().members(&[Pending, Running, Stopped, ShuttingDown]).decide();
    assert_eq!(decision.status.unwrap().replicas, Some(4));
    assert_eq!(Case::new().decide().status.unwrap().replicas, Some(0));
    let unseen = Case::new().with(|case| {
        case.seen = None;
        case.progress.look_failed = Some(throttled("DescribePlacementGroups"));
    });
    assert_eq!(unseen.decide().status.unwrap().replicas, None, "unknown is not zero");
}

#[test]
fn defect_d_no_error_means_that_there_is_no_group() {
    for error in [forbidden("DescribePlacementGroups"), throttled("DescribePlacementGroups")] {
        let failing = |case: Case| {
            case.with(|case| {
                case.seen = None;
                case.progress =
                    Progress { look_failed: Some(error.clone()), ..Progress::default() };
            })
        };
        let making = failing(Case::new());
        let ready = making.ready();
        assert_eq!((ready.truth, ready.reason.as_str()), (Truth::Unknown, "ObservationFailed"));
        assert!(ready.message.contains(&error.message), "{}", ready.message);
        let going = failing(Case::new().deleting());
        assert!(going.blocked().contains("could not describe aws placement groups: "));
        assert_eq!(going.decide().next, Next::Retry);
    }
}

#[test]
fn an_observation_holds_until_it_expires() {
    let last = |until: Duration| {
        Case::new().with(|case| {
            case.object.status = Status {
                ready: Some(Verdict::yes("ConfigurationInSync", "")),
                expires_at: Some(now() + until),
                replicas: Some(3),
                ..Status::default()
            };
            case.seen = None;
            case.progress.look_failed = Some(throttled("DescribePlacementGroups"));
        })
    };
    assert_eq!(last(Duration::from_secs(1)).ready().truth, Truth::True);
    assert_eq!(last(Duration::ZERO).ready().truth, Truth::Unknown);
    let status = last(Duration::ZERO).decide().status.unwrap();
    assert_eq!((status.replicas, status.expires_at), (Some(3), Some(now())), "not prolonged");
}

#[test]
fn defect_e_a_wrong_specification_is_told() {
    let case = Case::new().with(|case| case.object.wanted = Err(InvalidSpec::PartitionCount));
    let ready = case.ready();
    assert_eq!((ready.truth, ready.reason.as_str()), (Truth::False, "InvalidConfiguration"));
    assert!(ready.message.contains("partition.count"));
    assert!(case.decide().trouble.is_some());
    // Its group goes all the same.
    assert_eq!(case.deleting().step(), Step::Remove);
}

#[test]
fn defect_g_a_duplicate_is_looked_at_again() {
    let duplicate = CloudError::new(ErrorClass::AlreadyExists, "CreatePlacementGroup", "D", "");
    let looked = |case: Case| case.with(|case| case.progress.create_failed = Some(duplicate));
    // Seen now: compared like any other.
    assert_eq!(looked(Case::new()).ready().reason, "ConfigurationInSync");
    let duplicate = CloudError::new(ErrorClass::AlreadyExists, "CreatePlacementGroup", "D", "");
    let hidden = Case::new().absent().with(|case| {
        case.progress.create_failed = Some(duplicate);
    });
    assert_eq!(hidden.ready().reason, "NotAvailable");
    assert!(matches!(hidden.decide().next, Next::After(_)));
}

#[test]
fn defect_h_a_group_of_somebody_else_is_not_taken() {
    let mut other = foreign(NAME, Strategy::Cluster);
    other.tags.insert("kubernetes.io/cluster/other".to_owned(), "owned".to_owned());
    for group in [foreign(NAME, Strategy::Cluster), other] {
        let case = Case::new().with(|case| {
            case.object.held = false;
            case.seen.as_mut().unwrap().group = Some(group);
        });
        let ready = case.ready();
        assert_eq!((ready.truth, ready.reason.as_str()), (Truth::False, "ConfigurationMismatch"));
        assert!(ready.message.contains("set managementState to Unmanaged"), "{}", ready.message);
        // Nobody holds the object, so it can be deleted at any time.
        assert_eq!(case.deleting().step(), Step::Settle);
    }
}

#[test]
fn defect_i_a_group_is_ready_when_the_cloud_says_so() {
    for (state, word) in [(GroupState::Pending, "pending"), (GroupState::Deleting, "deleting")] {
        for created in [true, false] {
            let case = Case::new().with(|case| {
                case.seen.as_mut().unwrap().group.as_mut().unwrap().state = state;
                case.seen.as_mut().unwrap().made = created;
            });
            let ready = case.ready();
            assert_eq!((ready.truth, ready.reason.as_str()), (Truth::False, "NotAvailable"));
            assert!(ready.message.contains(word));
        }
    }
    let created = Case::new().with(|case| case.seen.as_mut().unwrap().made = true);
    assert_eq!(created.ready().reason, "CreationSucceeded");
    let observed = created.decide().status.unwrap().observed;
    assert_eq!(observed.unwrap().strategy, Strategy::Cluster);
    let deleted = Case::new().with(|case| {
        case.seen.as_mut().unwrap().group.as_mut().unwrap().state = GroupState::Deleted;
    });
    assert_eq!(deleted.step(), Step::Hold { intends: true }, "as if there were none");
}

#[test]
fn defect_k_an_unmanaged_group_that_is_gone_is_not_found() {
    let case = Case::new().absent().with(|case| {
        case.object.wanted = Ok(Wanted::Unmanaged);
        case.object.held = false;
        case.object.status = Status {
            ready: Some(Verdict::yes("ConfigurationInSync", "")),
            observed: Some(Configuration { strategy: Strategy::Spread, partitions: None }),
            replicas: Some(2),
            ..Status::default()
        };
    });
    assert_eq!(case.ready().reason, "NotFound");
    let status = case.decide().status.unwrap();
    assert_eq!((status.observed, status.replicas), (None, None));
}

#[test]
fn a_group_is_made_once_it_is_held_and_certainly_absent() {
    let fresh = Case::new().absent().with(|case| case.object.held = false);
    let outdated = Case::new().absent().with(|case| case.progress.looked = false);
    assert_eq!(outdated.step(), Step::Look, "an old view is not enough");
    assert_eq!(fresh.step(), Step::Hold { intends: true });
    let held = fresh.with(|case| {
        case.object.held = true;
        case.object.intended = Some(now());
        case.progress.intended = true;
    });
    assert!(matches!(held.step(), Step::Create(order) if order.name == NAME));
    let refused = held.with(|case| {
        case.progress.create_failed = Some(forbidden("CreatePlacementGroup"));
    });
    let ready = refused.ready();
    assert_eq!((ready.truth, ready.reason.as_str()), (Truth::False, "CreationFailed"));
    assert!(ready.message.contains("ec2:CreatePlacementGroup"), "{}", ready.message);
    assert_eq!(refused.decide().next, Next::Retry);
}

#[test]
fn a_group_made_moments_ago_need_not_show_yet() {
    let made = |ago: u64| {
        Case::new().absent().with(|case| {
            case.object.intended = Some(now() - Duration::from_secs(ago));
            case.object.status.ready = Some(Verdict::yes("CreationSucceeded", ""));
        })
    };
    assert_eq!(made(10).ready().reason, "CreationSucceeded");
    assert_eq!(made(61).step(), Step::Hold { intends: true }, "it is gone");
    // Nor does an object whose group may have been ordered moments ago go on its absence.
    assert_eq!(made(10).deleting().step(), Step::Settle);
    assert_eq!(made(61).deleting().step(), Step::LetGo);
}

#[test]
fn a_difference_names_both_values() {
    let case = Case::new().with(|case| case.object.wanted = Ok(cluster(Strategy::Spread)));
    let ready = case.ready();
    assert_eq!(ready.reason, "ConfigurationMismatch");
    assert!(ready.message.ends_with("wanted: \"spread\", got: \"cluster\""), "{}", ready.message);
    assert_eq!(case.decide().next, Next::BeforeExpiry, "nothing to retry");
}

#[test]
fn unmanaged_is_for_good() {
    let case = Case::new().with(|case| {
        case.object.held = false;
        case.object.status.management = Some(Management::Unmanaged);
    });
    let ready = case.ready();
    assert_eq!(ready.truth, Truth::True, "the group is there, which is the truth");
    assert!(ready.message.contains("cannot be set to Managed once"));
    assert_eq!(case.decide().status.unwrap().management, Some(Management::Unmanaged));
    let absent = case.absent();
    assert_eq!(absent.ready().reason, "NotFound", "and none is made");
    let going = absent.deleting().with(|case| case.object.held = true);
    assert_eq!(going.step(), Step::LetGo);
}

#[test]
fn a_managed_group_can_be_let_go() {
    let case = Case::new().with(|case| {
        case.object.wanted = Ok(Wanted::Unmanaged);
        case.object.status.management = Some(Management::Managed);
        case.seen = None;
        case.progress = Progress::default();
    });
    assert_eq!(case.step(), Step::LetGo, "without asking the cloud");
    let released = case.with(|case| case.object.held = false);
    assert_eq!(released.step(), Step::Look);
}

#[test]
fn a_group_goes_when_it_is_ours_and_empty() {
    use InstanceState::{Running, ShuttingDown, Stopped, Stopping};
    assert_eq!(Case::new().deleting().step(), Step::Remove);
    for state in [Running, ShuttingDown, Stopped, Stopping] {
        let case = Case::new().deleting().members(&[state]);
        assert_eq!(
            case.blocked(),
            "failed to delete aws placement group: aws placement group still contains 1 instances"
        );
        assert!(case.decide().report[0].contains("i-0"), "who it is");
    }
    let theirs = Case::new().deleting().with(|case| {
        case.seen.as_mut().unwrap().group = Some(foreign(NAME, Strategy::Cluster));
    });
    assert!(theirs.blocked().ends_with("aws placement group was not created by machine-api"));
    let used = CloudError::new(ErrorClass::InUse, "DeletePlacementGroup", "InUse", "in use");
    let case = Case::new().deleting().with(|case| case.progress.remove_failed = Some(used));
    assert!(case.blocked().ends_with("InUse: in use"));
    let removed = Case::new().deleting().with(|case| case.progress.removed = true);
    assert_eq!(removed.step(), Step::LetGo);
    let outdated = Case::new().deleting().with(|case| case.progress.looked = false);
    assert_eq!(outdated.step(), Step::Look, "an old view is not enough");
}

#[test]
fn without_its_place_nothing_is_touched() {
    let lost = |case: Case| case.with(|case| case.place = Err("no Infrastructure".to_owned()));
    assert_eq!(lost(Case::new()).ready().message, "no Infrastructure");
    assert!(lost(Case::new().deleting()).blocked().ends_with("no Infrastructure"));
    let unmanaged = lost(Case::new().deleting()).with(|case| {
        case.object.wanted = Ok(Wanted::Unmanaged);
    });
    assert_eq!(unmanaged.step(), Step::LetGo, "an unmanaged one needs no cloud to go");
}
