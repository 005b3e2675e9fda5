//! What users write, and what is made of it.

use fleetwright_api::machine::MachineHealthCheck;
use serde_json::{Value, json};

use super::check;
use crate::health::rules::{Repair, rules};

fn read(change: impl FnOnce(&mut Value)) -> Result<crate::health::rules::Rules, String> {
    let mut value = check("c", "40%");
    change(&mut value);
    let check: MachineHealthCheck = serde_json::from_value(value).unwrap();
    rules(&check).map_err(|error| error.to_string())
}

#[test]
fn defaults_are_those_of_the_schema() {
    let read = read(|check| {
        let spec = check["spec"].as_object_mut().unwrap();
        spec.remove("maxUnhealthy");
        spec.remove("nodeStartupTimeout");
    })
    .unwrap();
    assert_eq!((read.limit.most(7), read.limit_text.as_str()), (7, "100%"));
    assert_eq!(read.check.node_startup_timeout.as_secs(), 600);
    assert_eq!(read.repair, Repair::Delete);
}

/// A name, a mistake, and what is told of it.
type Mistake = (&'static str, fn(&mut Value), &'static str);

#[test]
fn mistakes_name_the_field_the_value_and_the_fix() {
    let cases: [Mistake; 5] = [
        (
            "limit",
            |check| check["spec"]["maxUnhealthy"] = json!("some"),
            "spec.maxUnhealthy: invalid value \"some\": strconv.Atoi: parsing \"some\": invalid \
             syntax; write a number or a share such as 40%",
        ),
        (
            "timeout",
            |check| check["spec"]["unhealthyConditions"][1]["timeout"] = json!("5"),
            "spec.unhealthyConditions[1].timeout: time: missing unit in duration \"5\"; write a \
             duration such as 5m",
        ),
        (
            "startup",
            |check| check["spec"]["nodeStartupTimeout"] = json!("0foo"),
            "spec.nodeStartupTimeout: time: invalid duration \"0foo\"; write a duration such as 5m",
        ),
        (
            "selector",
            |check| {
                check["spec"]["selector"] =
                    json!({"matchExpressions": [{"key": "a", "operator": "Near", "values": []}]});
            },
            "spec.selector: \"Near\" is not a valid label selector operator",
        ),
        (
            "template",
            |check| check["spec"]["remediationTemplate"] = json!({"kind": "K", "name": "n"}),
            "spec.remediationTemplate.apiVersion is empty: name the template's kind, apiVersion \
             and name",
        ),
    ];
    for (name, change, wanted) in cases {
        assert_eq!(read(change).unwrap_err(), wanted, "{name}");
    }
}
