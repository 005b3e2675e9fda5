//! `aws-placementgroup-controller.json`: what the AWSPlacementGroup controller does.

use fleetwright_cloud::{
    CloudError, ErrorClass, GroupState, InstanceState, PlacementGroup, Strategy, Tag,
};
use fleetwright_machines::group::{
    decide::{
        Decision, Member, Object, Place, Progress, Seen, Situation, Step, decide, means_absent,
    },
    preflight::no_such_partition,
    status::{Status, Verdict},
    wanted::{
        Configuration, Management, UNMANAGED_FOR_GOOD, Wanted, WrittenSpec, check, compare, order,
    },
};
use jiff::Timestamp;
use serde_json::Value;

use super::{Outcome, Runner, Use};
use crate::row::Row;

pub(super) const RUNNER: Runner = Runner {
    file: "aws-placementgroup-controller.json",
    tables: &[
        ("existing_group_match_cases", Use::Rows(existing)),
        ("ready_condition_cases", Use::Rows(ready)),
        ("spec_validation_cases", Use::Rows(validation)),
        ("create_request_cases", Use::Rows(request)),
        ("delete_cases", Use::Rows(deletion)),
    ],
};

/// The cluster of the rows of `delete_cases`, and of those that name none.
const CLUSTER: &str = "CID";

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn number(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok())
}

fn strategy(word: &str) -> Option<Strategy> {
    [Strategy::Cluster, Strategy::Spread, Strategy::Partition]
        .into_iter()
        .find(|strategy| strategy.as_str().eq_ignore_ascii_case(word))
}

fn state(word: &str) -> GroupState {
    match word {
        "pending" => GroupState::Pending,
        "deleting" => GroupState::Deleting,
        "deleted" => GroupState::Deleted,
        _ => GroupState::Available,
    }
}

/// A group as EC2 shows it. One whose tags a row does not mention is ours.
fn group(value: &Value, cluster: &str) -> Option<PlacementGroup> {
    if value.is_null() {
        return None;
    }
    let owned = (format!("kubernetes.io/cluster/{cluster}"), "owned".to_owned());
    let tags = match value["tags"].as_object() {
        None => [owned].into(),
        Some(tags) => {
            tags.iter().map(|(key, value)| (key.clone(), text(value).to_owned())).collect()
        }
    };
    Some(PlacementGroup {
        name: text(&value["groupName"]).to_owned(),
        id: "pg-1".to_owned(),
        strategy: strategy(text(&value["strategy"])).unwrap_or(Strategy::Cluster),
        partitions: number(&value["partitionCount"]),
        state: state(text(&value["state"])),
        tags,
    })
}

/// A specification, checked as the controller does.
fn written(management: &Value) -> Result<Wanted, String> {
    let managed = &management["managed"];
    let count = managed["partition"]["count"].as_i64();
    check(WrittenSpec {
        management_state: text(&management["managementState"]),
        group_type: managed.is_object().then(|| text(&managed["groupType"])),
        partition_count: count.and_then(|count| i32::try_from(count).ok()),
    })
    .map_err(|invalid| invalid.to_string())
}

fn managed(managed: &Value) -> Result<Configuration, String> {
    let management = serde_json::json!({"managementState": "Managed", "managed": managed});
    match written(&management)? {
        Wanted::Managed(configuration) => Ok(configuration),
        Wanted::Unmanaged => Err("not managed".to_owned()),
    }
}

/// What a difference is about, in the words of any of the designs that upstream had: the values
/// that were wanted and found.
fn values(message: &str) -> String {
    let values = message.find("wanted: ").map_or(message, |at| &message[at..]);
    values.replace('"', "")
}

fn existing(row: &Row<'_>) -> Outcome {
    let name = text(row.get("name_in_spec"));
    let wanted = match managed(row.get("managed")) {
        Ok(wanted) => wanted,
        Err(error) => return Outcome::Failed(error),
    };
    let found = match group(row.get("aws_group"), CLUSTER) {
        None => {
            return Outcome::NotApplicable(
                "an answer without a group is absence here, and the group is made",
            );
        }
        Some(found) => compare(name, wanted, &found).map_err(|mismatch| mismatch.to_string()),
    };
    let found = found.and_then(|()| partition(row, wanted));
    let expected = &row.get("expect")["error"];
    match (expected.as_str(), found) {
        (None, Ok(())) => Outcome::Passed,
        (Some(wanted), Err(found)) => Outcome::equal(&values(wanted), &values(&found)),
        (wanted, found) => Outcome::Failed(format!("wanted {wanted:?}, found {found:?}")),
    }
}

/// The partition that a Machine chose, where the group has partitions.
fn partition(row: &Row<'_>, wanted: Configuration) -> Result<(), String> {
    let number = row.get("machine_partition_number").as_i64();
    let number = number.and_then(|number| i32::try_from(number).ok());
    match (wanted.partitions, number) {
        (Some(count), Some(number))
            if u32::try_from(number).is_ok_and(|number| number == 0 || number > count) =>
        {
            Err(no_such_partition(count, number))
        }
        _ => Ok(()),
    }
}

fn object(
    name: &str,
    wanted: Result<Wanted, fleetwright_machines::group::wanted::InvalidSpec>,
) -> Object {
    Object {
        name: name.to_owned(),
        deleting: false,
        held: true,
        intended: None,
        wanted,
        status: Status::default(),
    }
}

/// One reconcile, with a cloud of one answer.
struct Run {
    object: Object,
    place: Place,
    answer: Result<Seen, CloudError>,
}

impl Run {
    fn new(object: Object) -> Self {
        let seen = Seen { at: now(), group: None, members: Vec::new(), made: false };
        let place = Place { cluster: CLUSTER.to_owned(), tags: Vec::new() };
        Self { object, place, answer: Ok(seen) }
    }

    fn seeing(mut self, group: Option<PlacementGroup>, members: &[Member]) -> Self {
        self.answer = Ok(Seen { at: now(), group, members: members.to_vec(), made: false });
        self
    }

    fn refused(mut self, error: CloudError) -> Self {
        if means_absent(&error) {
            return self.seeing(None, &[]);
        }
        self.answer = Err(error);
        self
    }

    fn steps(&self) -> Vec<Step> {
        self.reconcile().into_iter().map(|decision| decision.step).collect()
    }

    /// The decisions of one reconcile, in order.
    fn reconcile(&self) -> Vec<Decision> {
        let (mut object, mut progress) = (self.object.clone(), Progress::default());
        let mut decisions = Vec::new();
        // Longer than any way through the decisions.
        while decisions.len() < 12 {
            let decision = decide(&Situation {
                object: &object,
                place: Ok(&self.place),
                seen: self.answer.as_ref().ok().filter(|_| progress.looked),
                outdated: true,
                progress: &progress,
                now: now(),
            });
            let step = decision.step.clone();
            decisions.push(decision);
            match step {
                Step::Look => match &self.answer {
                    Ok(_) => progress.looked = true,
                    Err(error) => progress.look_failed = Some(error.clone()),
                },
                Step::Hold { intends } => {
                    object.held = true;
                    progress.intended |= intends;
                    if intends {
                        object.intended = Some(now());
                    }
                }
                Step::Remove => progress.removed = true,
                Step::LetGo if object.deleting => break,
                Step::LetGo => object.held = false,
                Step::Create(_) | Step::Settle => break,
            }
        }
        decisions
    }

    /// The status at the end.
    fn status(&self) -> Status {
        let last = self.reconcile().pop().and_then(|decision| decision.status);
        last.unwrap_or_default()
    }
}

fn ready(row: &Row<'_>) -> Outcome {
    let name = text(&row.get("aws_group")["groupName"]);
    let wanted = match row.get("managed") {
        Value::Null => Wanted::Unmanaged,
        value => match managed(value) {
            Ok(wanted) => Wanted::Managed(wanted),
            Err(error) => return Outcome::Failed(error),
        },
    };
    let mut object = object(name, Ok(wanted));
    object.held = wanted != Wanted::Unmanaged;
    let run = Run::new(object).seeing(group(row.get("aws_group"), CLUSTER), &[]);
    let Some(Verdict { truth, reason, message }) = run.status().ready else {
        return Outcome::Failed("nothing is said about Ready".to_owned());
    };
    // What upstream gets wrong is told in words; the plain expectation is right.
    let Some(plain) = row.expectation().and_then(|expectation| expectation.plain) else {
        return Outcome::Failed("no expectation".to_owned());
    };
    let found = (truth.as_str(), reason.as_str());
    let outcome = Outcome::equal(&(text(&plain["ready"]), text(&plain["reason"])), &found);
    match plain["message"].as_str() {
        Some(wanted) if outcome == Outcome::Passed => Outcome::equal(&wanted, &message.as_str()),
        _ => outcome,
    }
}

fn validation(row: &Row<'_>) -> Outcome {
    let spec = row.get("spec");
    let remembered = Management::parse(text(row.get("status_management_state")));
    let mut found = written(spec).map(|_| ()).err();
    if text(&spec["managementState"]) == "Managed" && remembered == Some(Management::Unmanaged) {
        // Told in the message of Ready, while the group is watched on.
        found = found.or(Some(UNMANAGED_FOR_GOOD.to_owned()));
    }
    let outcome = Outcome::equal(&row.get("expect_error").as_str().map(str::to_owned), &found);
    if outcome != Outcome::Passed {
        return outcome;
    }
    let managed = &spec["managed"];
    let wanted = check(WrittenSpec {
        management_state: text(&spec["managementState"]),
        group_type: managed.is_object().then(|| text(&managed["groupType"])),
        partition_count: None,
    });
    let mut object = object("g", wanted);
    object.status.management = remembered;
    let seen = serde_json::json!({"groupName": "g", "strategy": "cluster"});
    let run = Run::new(object).seeing(group(&seen, CLUSTER), &[]);
    let (steps, status) = (run.steps(), run.status());
    for effect in row.get("expect_effects").as_array().into_iter().flatten() {
        let effect = text(effect);
        let holds = match effect {
            "finalizer removed" => steps.contains(&Step::LetGo),
            "no AWS mutation" => {
                !steps.iter().any(|step| matches!(step, Step::Create(_) | Step::Remove))
            }
            other => match other.strip_prefix("status.managementState=") {
                Some(word) => status.management.map(Management::as_str) == Some(word),
                None => return Outcome::Failed(format!("cannot check {other:?}")),
            },
        };
        if !holds {
            return Outcome::Failed(format!("not so: {effect}"));
        }
    }
    Outcome::Passed
}

fn request(row: &Row<'_>) -> Outcome {
    let wanted = match managed(row.get("managed")) {
        Ok(wanted) => wanted,
        Err(error) => return Outcome::Failed(error),
    };
    let infra = row.get("infra");
    let tags: Vec<Tag> = infra["resourceTags"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|tag| Tag { key: text(&tag["key"]).to_owned(), value: text(&tag["value"]).to_owned() })
        .collect();
    let order = order("g", wanted, text(&infra["infrastructureName"]), &tags);
    if let Some(wanted) = row.get("expect_tags_in_order").as_array() {
        let wanted: Vec<(&str, &str)> =
            wanted.iter().map(|pair| (text(&pair[0]), text(&pair[1]))).collect();
        let found: Vec<(&str, &str)> =
            order.tags.iter().map(|tag| (tag.key.as_str(), tag.value.as_str())).collect();
        return Outcome::equal(&wanted, &found);
    }
    let request = row.get("expect_request");
    let wanted = (
        text(&request["GroupName"]),
        text(&request["Strategy"]),
        number(&request["PartitionCount"]),
    );
    Outcome::equal(&wanted, &(order.name.as_str(), order.strategy.as_str(), order.partitions))
}

/// An error of EC2, by its code, or by the status of its answer when a row has no code.
fn refusal(aws: &Value) -> Option<CloudError> {
    let (code, http) = (text(&aws["describe_error"]), aws["describe_http"].as_u64());
    let class = match (code, http) {
        ("", None) => return None,
        ("InvalidPlacementGroup.Unknown", _) => ErrorClass::NotFound,
        ("UnauthorizedOperation" | "AuthFailure", _) | ("", Some(401 | 403)) => {
            ErrorClass::Credentials
        }
        ("RequestLimitExceeded", _) => ErrorClass::Throttled,
        _ => ErrorClass::Transient,
    };
    Some(CloudError::new(class, "DescribePlacementGroups", code, "refused"))
}

fn instance_state(word: &str) -> InstanceState {
    use InstanceState::{Pending, Running, ShuttingDown, Stopped, Stopping, Terminated};
    [Pending, Running, ShuttingDown, Stopped, Stopping, Terminated]
        .into_iter()
        .find(|state| state.as_str() == word)
        .unwrap_or(Running)
}

fn deletion(row: &Row<'_>) -> Outcome {
    let aws = row.get("aws");
    let wanted = Configuration { strategy: Strategy::Cluster, partitions: None };
    let found = aws["groups"].as_array().and_then(|groups| groups.first());
    let found = found.and_then(|value| group(value, CLUSTER));
    let name = found.as_ref().map_or("mapi-placement-group", |group| group.name.as_str());
    let mut object = object(name, Ok(Wanted::Managed(wanted)));
    object.deleting = true;
    let members: Vec<Member> = aws["instances"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|instance| Member {
            id: "i-1".to_owned(),
            state: instance_state(text(&instance["state"])),
            zone: "us-east-1a".to_owned(),
        })
        // The port leaves terminated ones out.
        .filter(|member| member.state.exists())
        .collect();
    let mut run = Run::new(object).seeing(found, &members);
    if let Some(error) = refusal(aws) {
        run = run.refused(error);
    }
    let Some(plain) = row.expectation().and_then(|expectation| expectation.plain) else {
        return Outcome::Failed("no expectation".to_owned());
    };
    let (steps, status) = (run.steps(), run.status());
    let wanted = (plain["delete_called"].as_bool(), plain["finalizer_removed"].as_bool());
    let found = (Some(steps.contains(&Step::Remove)), Some(steps.contains(&Step::LetGo)));
    let outcome = Outcome::equal(&wanted, &found);
    if outcome != Outcome::Passed {
        return outcome;
    }
    let message = status.deleting.as_ref().map(|deleting| deleting.message.as_str());
    let why =
        message.and_then(|message| message.strip_prefix("failed to delete aws placement group: "));
    match plain.get("error") {
        // A row that says nothing of an error wants no particular one.
        None => {}
        Some(Value::Null) if why.is_none() => {}
        Some(Value::String(wanted)) => {
            let found = why.unwrap_or_default();
            let same = match wanted.strip_suffix("...") {
                Some(start) => found.starts_with(start),
                None => found == wanted,
            };
            if !same {
                return Outcome::Failed(format!("wanted {wanted:?}, found {found:?}"));
            }
        }
        Some(other) => return Outcome::Failed(format!("wanted {other}, found {why:?}")),
    }
    let condition = &plain["condition"];
    if condition.is_null() {
        return Outcome::Passed;
    }
    let found = status.deleting.map(|deleting| {
        (deleting.truth.as_str(), deleting.reason.clone(), deleting.message.clone())
    });
    let wanted = (
        text(&condition["status"]),
        text(&condition["reason"]).to_owned(),
        text(&condition["message"]).to_owned(),
    );
    Outcome::equal(&Some(wanted), &found)
}
