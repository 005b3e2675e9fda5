//! The permissions that our calls need.

use std::collections::BTreeSet;

use crate::model::SERVICES;

/// The permission of every call that can be made, as policies name them.
pub fn permissions() -> BTreeSet<String> {
    let of_service = |(service, operations): &(crate::model::Service, &'static [&'static str])| {
        let endpoint = service.endpoint;
        operations.iter().map(move |operation| format!("{endpoint}:{operation}"))
    };
    SERVICES.iter().flat_map(of_service).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const PAGE: &str = include_str!("../../../docs/iam-aws.md");

    #[test]
    fn the_page_has_a_row_for_every_call_and_no_other() {
        let rows: BTreeSet<String> = PAGE
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
            .map(|(permission, _)| permission.to_owned())
            .collect();
        assert_eq!(rows, permissions());
    }

    #[test]
    fn the_policy_allows_every_call_and_no_other() {
        let policy = PAGE.split("```json").nth(1).and_then(|rest| rest.split("```").next());
        let policy: Value = serde_json::from_str(policy.unwrap()).unwrap();
        let statements = policy["Statement"].as_array().unwrap();
        let allowed = statements.iter().flat_map(|it| it["Action"].as_array().unwrap());
        let allowed: Vec<String> = allowed.map(|it| it.as_str().unwrap().to_owned()).collect();
        let set: BTreeSet<String> = allowed.iter().cloned().collect();
        assert_eq!(set.len(), allowed.len(), "an action is allowed twice");
        // Roles are taken by their own trust policies; instance profiles pass roles without a
        // call of ours.
        let mut needed = permissions();
        needed.retain(|permission| !permission.starts_with("sts:"));
        needed.insert("iam:PassRole".to_owned());
        assert_eq!(set, needed);
    }
}
