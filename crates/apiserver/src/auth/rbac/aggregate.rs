//! Cluster roles that gather the rules of others.

use std::collections::BTreeMap;

use serde_json::Value;

use super::PolicyRule;
use crate::{object, selector::LabelSelector};

/// The rules that an aggregated role should have, if it is one: those of every role that one of
/// its selectors matches, without repetition. A selector that cannot be understood stops the
/// aggregation, as it does upstream.
pub fn rules<'a>(
    role: &Value,
    all: impl IntoIterator<Item = &'a Value>,
) -> Option<Vec<PolicyRule>> {
    let selectors = object::get(role, &["aggregationRule"]).filter(|rule| !rule.is_null())?;
    let name = object::name(role);
    // By name, because that is the order in which the rules are written down.
    let others: BTreeMap<&str, &Value> = all
        .into_iter()
        .map(|other| (object::name(other), other))
        .filter(|(other, _)| *other != name)
        .collect();
    let mut gathered: Vec<PolicyRule> = Vec::new();
    for selector in object::list(selectors, &["clusterRoleSelectors"]) {
        let selector = LabelSelector::from_object(Some(selector))?;
        for other in others.values().filter(|other| selector.matches_object(other)) {
            for rule in PolicyRule::parse_all(other) {
                if !gathered.contains(&rule) {
                    gathered.push(rule);
                }
            }
        }
    }
    Some(gathered)
}

/// The rules to write to an aggregated role, or `None` if it has them already.
pub fn missing<'a>(role: &Value, all: impl IntoIterator<Item = &'a Value>) -> Option<Vec<Value>> {
    let rules = rules(role, all)?;
    (rules != PolicyRule::parse_all(role)).then(|| rules.iter().map(PolicyRule::to_value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn matching_roles_are_united_in_order_of_their_names() {
        let rule = |verb: &str| json!({"apiGroups": [""], "resources": ["pods"], "verbs": [verb]});
        let part = |name: &str, rules: &[Value]| {
            json!({
                "metadata": {"name": name, "labels": {"to": "view"}}, "rules": rules,
            })
        };
        let mut view = json!({
            "metadata": {"name": "view", "labels": {"to": "view"}},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to": "view"}}]},
            "rules": [rule("old")],
        });
        let all = [
            part("b", &[rule("list"), rule("get")]),
            part("a", &[rule("get")]),
            view.clone(),
            json!({"metadata": {"name": "other"}, "rules": [rule("no")]}),
        ];
        assert_eq!(missing(&view, &all), Some(vec![rule("get"), rule("list")]));
        view["rules"] = json!([rule("get"), rule("list")]);
        assert_eq!(missing(&view, &all), None);
        assert_eq!(missing(&all[0], &all), None);
    }
}
