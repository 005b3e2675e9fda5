//! What a namespace on its way out says about it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::object;

/// What a sweep found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Errors of deletions.
    pub failures: Vec<String>,
    /// How many objects are left, by `resource.group`.
    pub remaining: BTreeMap<String, usize>,
    /// On how many of them each finalizer is.
    pub finalizers: BTreeMap<String, usize>,
}

struct Condition {
    kind: &'static str,
    /// What it says when all is well.
    well: (&'static str, &'static str),
}

const CONDITIONS: [Condition; 5] = [
    Condition {
        kind: "NamespaceDeletionDiscoveryFailure",
        well: ("ResourcesDiscovered", "All resources successfully discovered"),
    },
    Condition {
        kind: "NamespaceDeletionGroupVersionParsingFailure",
        well: ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    },
    Condition {
        kind: "NamespaceDeletionContentFailure",
        well: (
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
    },
    Condition {
        kind: "NamespaceContentRemaining",
        well: ("ContentRemoved", "All content successfully removed"),
    },
    Condition {
        kind: "NamespaceFinalizersRemaining",
        well: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
    },
];

/// Brings the conditions of a namespace up to date; says whether that changed anything.
pub(super) fn update(namespace: &mut Value, findings: &Findings, now: &str) -> bool {
    let mut conditions = object::list(namespace, &["status", "conditions"]).to_vec();
    let mut changed = false;
    for condition in &CONDITIONS {
        let trouble = trouble(condition.kind, findings);
        let status = if trouble.is_some() { "True" } else { "False" };
        let (reason, message) = trouble.unwrap_or_else(|| {
            let (reason, message) = condition.well;
            (reason, message.to_owned())
        });
        let known = conditions.iter_mut().find(|c| object::text(c, &["type"]) == condition.kind);
        let Some(known) = known else {
            conditions.push(json!({
                "type": condition.kind,
                "status": status,
                "lastTransitionTime": now,
                "reason": reason,
                "message": message,
            }));
            changed = true;
            continue;
        };
        let same = |field: &str, value: &str| object::text(known, &[field]) == value;
        if same("status", status) && same("reason", reason) && same("message", &message) {
            continue;
        }
        if !same("status", status) {
            object::set(known, &["lastTransitionTime"], now);
        }
        object::set(known, &["status"], status);
        object::set(known, &["reason"], reason);
        object::set(known, &["message"], message);
        changed = true;
    }
    object::set(namespace, &["status", "conditions"], conditions);
    changed
}

fn trouble(kind: &str, findings: &Findings) -> Option<(&'static str, String)> {
    let listed = |counts: &BTreeMap<String, usize>, words: fn(&str, usize) -> String| {
        let mut lines: Vec<String> =
            counts.iter().map(|(name, count)| words(name, *count)).collect();
        lines.sort();
        lines.join(", ")
    };
    match kind {
        "NamespaceDeletionContentFailure" if !findings.failures.is_empty() => {
            let mut failures = findings.failures.clone();
            failures.sort();
            Some((
                "ContentDeletionFailed",
                format!(
                    "Failed to delete all resource types, {} remaining: {}",
                    failures.len(),
                    failures.join(", ")
                ),
            ))
        }
        "NamespaceContentRemaining" if !findings.remaining.is_empty() => {
            let list = listed(&findings.remaining, |name, count| {
                format!("{name} has {count} resource instances")
            });
            Some(("SomeResourcesRemain", format!("Some resources are remaining: {list}")))
        }
        "NamespaceFinalizersRemaining" if !findings.finalizers.is_empty() => {
            let list = listed(&findings.finalizers, |name, count| {
                format!("{name} in {count} resource instances")
            });
            Some((
                "SomeFinalizersRemain",
                format!("Some content in the namespace has finalizers remaining: {list}"),
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_follow_what_was_found() {
        let mut namespace = json!({"status": {"phase": "Terminating"}});
        assert!(update(&mut namespace, &Findings::default(), "t1"));
        let summary = |namespace: &Value| -> Vec<(String, String, String)> {
            object::list(namespace, &["status", "conditions"])
                .iter()
                .map(|c| {
                    let text = |field| object::text(c, &[field]).to_owned();
                    (text("status"), text("reason"), text("lastTransitionTime"))
                })
                .collect()
        };
        let well =
            |reason: &str, time: &str| ("False".to_owned(), reason.to_owned(), time.to_owned());
        let bad =
            |reason: &str, time: &str| ("True".to_owned(), reason.to_owned(), time.to_owned());
        assert_eq!(
            summary(&namespace),
            [
                well("ResourcesDiscovered", "t1"),
                well("ParsedGroupVersions", "t1"),
                well("ContentDeleted", "t1"),
                well("ContentRemoved", "t1"),
                well("ContentHasNoFinalizers", "t1"),
            ]
        );
        assert!(!update(&mut namespace, &Findings::default(), "t2"));
        let findings = Findings {
            failures: vec!["b".to_owned(), "a".to_owned()],
            remaining: BTreeMap::from([("pods.".to_owned(), 2), ("jobs.batch".to_owned(), 1)]),
            finalizers: BTreeMap::from([("x/y".to_owned(), 3)]),
        };
        assert!(update(&mut namespace, &findings, "t3"));
        assert_eq!(
            summary(&namespace),
            [
                well("ResourcesDiscovered", "t1"),
                well("ParsedGroupVersions", "t1"),
                bad("ContentDeletionFailed", "t3"),
                bad("SomeResourcesRemain", "t3"),
                bad("SomeFinalizersRemain", "t3"),
            ]
        );
        let message = |at: usize| namespace["status"]["conditions"][at]["message"].clone();
        assert_eq!(message(2), "Failed to delete all resource types, 2 remaining: a, b");
        assert_eq!(
            message(3),
            "Some resources are remaining: jobs.batch has 1 resource instances, pods. has 2 resource instances"
        );
        assert_eq!(
            message(4),
            "Some content in the namespace has finalizers remaining: x/y in 3 resource instances"
        );
        assert!(update(&mut namespace, &Findings::default(), "t4"));
        assert_eq!(summary(&namespace)[3], well("ContentRemoved", "t4"));
    }
}
