//! The end of an instance that the cloud takes back, hop by hop: when it was told, when the Machine
//! was deleted, when its Node was empty, when the instance was gone.

use std::time::Duration;

use fleetwright_api::{
    machine::Machine,
    names::{annotation, condition},
};
use fleetwright_lifecycle::{
    conditions::{self, Condition},
    moment::after,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::{Resource as _, ResourceExt as _};

/// How long EC2 leaves an instance after it told that it takes it back; where nobody says when it
/// ends, this is assumed.
const USUAL_NOTICE: Duration = Duration::from_mins(2);

/// What a Node says of its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// When that was written.
    pub(crate) written: Timestamp,
    /// When the instance ends.
    pub(crate) ends: Timestamp,
    /// Who said so.
    pub(crate) source: String,
}

/// The notice on a Node, if there is one.
pub(crate) fn of(node: &Node) -> Option<Notice> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let told = conditions.iter().find(|told| told.type_ == condition::TERMINATING)?;
    if told.status != "True" {
        return None;
    }
    let written = told.last_transition_time.as_ref()?.0;
    let said = |name: &str| node.annotations().get(name);
    let ends = said(annotation::TERMINATION_DEADLINE).and_then(|text| text.parse().ok());
    Some(Notice {
        written,
        ends: ends.unwrap_or_else(|| after(written, USUAL_NOTICE)),
        source: said(annotation::TERMINATION_SOURCE).cloned().unwrap_or_default(),
    })
}

/// For people.
pub(crate) fn text(notice: &Notice) -> String {
    let Notice { written, ends, source } = notice;
    let by = if source.is_empty() { String::new() } else { format!(" ({source})") };
    format!("The cloud takes the instance back at {ends}{by}; the Node says so since {written}")
}

/// One hop of the way from the notice to the end, as metrics name it, and how long it took.
pub(crate) type Hop = (&'static str, Duration);

/// The last hop: from when an end begins, by a notice or else by a deletion, until the Machine that
/// takes the place is Running.
pub(crate) const REPLACED: &str = "end_to_replacement_running";

/// The hops of a Machine whose instance is gone. Without a notice the first is left out.
pub(crate) fn hops(
    machine: &Machine,
    notice: Option<&Notice>,
    said: &[Condition],
    now: Timestamp,
) -> Vec<Hop> {
    let Some(deleted) = machine.meta().deletion_timestamp.as_ref().map(|time| time.0) else {
        return Vec::new();
    };
    let drained = conditions::get(said, condition::DRAINED)
        .filter(|drained| drained.status == conditions::Status::True)
        .and_then(|drained| drained.since);
    let span = |from: Timestamp, to: Timestamp| {
        Duration::try_from(to.duration_since(from)).unwrap_or_default()
    };
    let mut hops = Vec::new();
    if let Some(notice) = notice {
        hops.push(("notice_to_delete", span(notice.written, deleted)));
        hops.push(("notice_to_gone", span(notice.written, now)));
    }
    if let Some(drained) = drained {
        hops.push(("delete_to_drained", span(deleted, drained)));
        hops.push(("drained_to_gone", span(drained, now)));
    }
    hops
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(status: &str, annotations: &serde_json::Value) -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": "n", "annotations": annotations},
            "status": {"conditions": [{
                "type": "Terminating", "status": status,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]},
        }))
        .unwrap()
    }

    #[test]
    fn a_notice_ends_when_it_says_or_after_the_usual_time() {
        let said = json!({
            "machine.openshift.io/termination-deadline": "2026-01-01T00:01:30Z",
            "machine.openshift.io/termination-source": "aws/spot-instance-action",
        });
        let found = of(&node("True", &said)).unwrap();
        assert_eq!(
            text(&found),
            "The cloud takes the instance back at 2026-01-01T00:01:30Z \
             (aws/spot-instance-action); the Node says so since 2026-01-01T00:00:00Z"
        );
        for odd in [json!({}), json!({"machine.openshift.io/termination-deadline": "soon"})] {
            let found = of(&node("True", &odd)).unwrap();
            assert_eq!(found.ends.to_string(), "2026-01-01T00:02:00Z");
        }
        assert_eq!(of(&node("False", &said)), None);
    }

    #[test]
    fn hops_are_told_for_what_happened() {
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let machine: Machine = serde_json::from_value(json!({
            "metadata": {"name": "m", "deletionTimestamp": "2026-01-01T00:00:02Z"}, "spec": {},
        }))
        .unwrap();
        let notice = of(&node("True", &json!({}))).unwrap();
        let mut drained = Condition::holds(condition::DRAINED);
        drained.since = Some(time("2026-01-01T00:00:12Z"));
        let now = time("2026-01-01T00:00:42Z");
        let all = hops(&machine, Some(&notice), &[drained], now);
        let all: Vec<_> = all.iter().map(|(name, span)| (*name, span.as_secs())).collect();
        assert_eq!(
            all,
            [
                ("notice_to_delete", 2),
                ("notice_to_gone", 42),
                ("delete_to_drained", 10),
                ("drained_to_gone", 30),
            ]
        );
        assert!(hops(&machine, None, &[], now).is_empty());
    }
}
