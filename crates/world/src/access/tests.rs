//! The table is well formed.

use std::collections::BTreeSet;

use fleetwright_api::names::MACHINE_NAMESPACE;
use fleetwright_machines::health::{self, external};
use serde_json::{Value, json};

use super::*;

#[test]
fn the_process_may_act_as_every_controller_and_nobody_else() {
    let process = IDENTITIES.iter().find(|identity| identity.name == PROCESS).unwrap();
    let impersonate =
        process.rights.iter().find(|right| right.verbs.contains(&"impersonate")).unwrap();
    let others = IDENTITIES.iter().filter(|identity| identity.name != PROCESS);
    let others: BTreeSet<String> = others.map(|identity| account(identity.name)).collect();
    let allowed: BTreeSet<String> = impersonate.names.iter().map(ToString::to_string).collect();
    assert_eq!(allowed, others);
}

/// What the documentation tells users to apply is for the account that there is, and suffices.
#[test]
fn the_documented_role_for_external_repairs_is_for_the_health_checks_account() {
    let page = include_str!("../../../../docs/health-checks.md");
    let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let block = blocks.into_iter().find(|block| block.contains("kind: ClusterRole")).unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple(block).unwrap();
    let [role, binding] = objects.as_slice() else { panic!("{objects:?}") };
    assert_eq!(
        binding["subjects"],
        json!([{
            "kind": "ServiceAccount",
            "name": account(health::CONTROLLER),
            "namespace": SYSTEM_NAMESPACE,
        }])
    );
    assert!(IDENTITIES.iter().any(|identity| identity.name == health::CONTROLLER));
    assert_eq!(binding["metadata"]["namespace"], MACHINE_NAMESPACE);
    assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
    let verbs = |resource: &str| {
        let rules = role["rules"].as_array().unwrap();
        let rule = rules.iter().find(|rule| rule["resources"] == json!([resource])).unwrap();
        rule["verbs"].clone()
    };
    // Templates end with "Template", requests are named without it.
    assert_eq!(external::request_kind("Metal3RemediationTemplate"), "Metal3Remediation");
    assert_eq!(verbs("metal3remediationtemplates"), json!(["get"]));
    assert_eq!(verbs("metal3remediations"), json!(["get", "list", "create", "delete"]));
}
