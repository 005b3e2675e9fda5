#![expect(clippy::needless_pass_by_value, reason = "tables of JSON read better by value")]

use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-01-01T00:10:00Z";

fn deployment(replicas: i32, strategy: Value) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "generation": 1},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": strategy,
            "progressDeadlineSeconds": 600,
            "template": {"spec": {"containers": [{"name": "new"}]}},
        },
    }))
    .unwrap()
}

fn rolling(surge: Value, unavailable: Value) -> Value {
    json!({
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
    })
}

/// `name:size/available`, the first letter being the template; `@n` if it was sized for n.
fn sets(text: &str, desired: i32) -> Vec<Arc<ReplicaSet>> {
    let set = |(number, word): (usize, &str)| {
        let (name, numbers) = word.split_once(':').unwrap();
        let (numbers, sized) = numbers.split_once('@').unwrap_or((numbers, ""));
        let sized: i32 = sized.parse().unwrap_or(desired);
        let (size, available) = numbers.split_once('/').unwrap();
        let (size, available): (i32, i32) = (size.parse().unwrap(), available.parse().unwrap());
        let container = if name.starts_with('n') { "new" } else { "old" };
        let set: ReplicaSet = serde_json::from_value(json!({
            "metadata": {
                "name": name,
                "creationTimestamp": format!("2026-01-01T00:00:{number:02}Z"),
                "annotations": {
                    REVISION: (number + 1).to_string(),
                    DESIRED: sized.to_string(),
                    MAX: (sized + (sized + 3) / 4).to_string(),
                },
            },
            "spec": {
                "replicas": size,
                "selector": {},
                "template": {
                    "metadata": {"labels": {HASH_LABEL: name}},
                    "spec": {"containers": [{"name": container}]},
                },
            },
            "status": {"replicas": size, "availableReplicas": available},
        }))
        .unwrap();
        Arc::new(set)
    };
    text.split_whitespace().enumerate().map(set).collect()
}

fn steps(replicas: i32, strategy: Value, have: &str) -> String {
    let plan = decide(&deployment(replicas, strategy), &sets(have, replicas), NOW.parse().unwrap());
    let created = plan.create.map(|size| format!("create {size}"));
    let scaled = plan.scale.iter().map(|scale| {
        format!(
            "{} {}>{}",
            scale.set.metadata.name.as_deref().unwrap_or_default(),
            scale.from,
            scale.to
        )
    });
    created.into_iter().chain(scaled).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_steps_of_a_rollout() {
    let quarter = || rolling(json!("25%"), json!("25%"));
    for (replicas, strategy, have, expected) in [
        (4, quarter(), "", "create 4"),
        (4, quarter(), "old:4/4", "create 1"),
        (4, quarter(), "old:4/4 new:1/0", "old 4>3"),
        (4, quarter(), "old:3/3 new:1/0", "new 1>2"),
        (4, quarter(), "old:3/3 new:2/1", "old 3>2"),
        (4, quarter(), "old:3/1 new:2/0", ""),
        (4, quarter(), "old:1/1 new:4/2", ""),
        (4, quarter(), "old:1/1 new:4/4", "old 1>0"),
        (4, quarter(), "old:0/0 new:4/4", ""),
        (3, rolling(json!(1), json!(0)), "old:3/3 new:1/0", ""),
        (3, rolling(json!(1), json!(0)), "old:3/3 new:1/1", "old 3>2"),
        (3, rolling(json!(0), json!(1)), "old:3/3", "create 0"),
        (3, rolling(json!(0), json!(1)), "old:3/3 new:0/0", "old 3>2"),
        (2, quarter(), "new:3/3@2", "new 3>2"),
        // Scaled by the user in the middle of it: shared out.
        (20, quarter(), "old:8/8@10 new:5/0@10", "old 8>15, new 5>10"),
        (20, quarter(), "new:10/10@10", "new 10>20"),
        (3, json!({"type": "Recreate"}), "old:3/3", "old 3>0"),
        (3, json!({"type": "Recreate"}), "old:0/0", "create 3"),
    ] {
        assert_eq!(steps(replicas, strategy, have), expected, "{replicas} of {have}");
    }
}

#[test]
fn a_rollout_that_is_stuck_is_reported() {
    let mut stuck = deployment(1, rolling(json!(1), json!(0)));
    let have = sets("new:1/0", 1);
    let plan = decide(&stuck, &have, "2026-01-01T00:00:00Z".parse().unwrap());
    assert_eq!(plan.wake, Some(NOW.parse().unwrap()));
    stuck.status = Some(plan.status);
    let plan = decide(&stuck, &have, NOW.parse().unwrap());
    let conditions = plan.status.conditions.unwrap();
    let progress = conditions.iter().find(|c| c.type_.as_deref() == Some("Progressing")).unwrap();
    assert_eq!(progress.reason.as_deref(), Some("ProgressDeadlineExceeded"));
    assert_eq!(progress.message.as_deref(), Some("ReplicaSet \"new\" has timed out progressing."));
}
