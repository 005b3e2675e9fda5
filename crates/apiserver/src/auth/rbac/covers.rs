//! Whether some rules allow everything that others allow.

use std::borrow::Borrow;

use super::{PolicyRule, rule::url_covers};

/// The parts of `wanted` that `owned` does not allow, each with one verb and one resource or
/// path.
pub fn covers(
    owned: &[impl Borrow<PolicyRule>],
    wanted: &[impl Borrow<PolicyRule>],
) -> Vec<PolicyRule> {
    wanted
        .iter()
        .flat_map(|rule| break_down(rule.borrow()))
        .filter(|part| !owned.iter().any(|owner| rule_covers(owner.borrow(), part)))
        .collect()
}

fn break_down(rule: &PolicyRule) -> Vec<PolicyRule> {
    let one = |text: &String| vec![text.clone()];
    let mut parts = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let part = PolicyRule {
                    verbs: one(verb),
                    api_groups: one(group),
                    resources: one(resource),
                    ..PolicyRule::default()
                };
                if rule.resource_names.is_empty() {
                    parts.push(part);
                } else {
                    parts.extend(
                        rule.resource_names
                            .iter()
                            .map(|name| PolicyRule { resource_names: one(name), ..part.clone() }),
                    );
                }
            }
        }
    }
    for url in &rule.non_resource_urls {
        for verb in &rule.verbs {
            parts.push(PolicyRule {
                verbs: one(verb),
                non_resource_urls: one(url),
                ..PolicyRule::default()
            });
        }
    }
    parts
}

fn rule_covers(owner: &PolicyRule, part: &PolicyRule) -> bool {
    let star_or_all = |owned: &[String], wanted: &[String]| {
        owned.iter().any(|o| o == "*") || wanted.iter().all(|w| owned.contains(w))
    };
    star_or_all(&owner.verbs, &part.verbs)
        && star_or_all(&owner.api_groups, &part.api_groups)
        && resources_cover(&owner.resources, &part.resources)
        && part
            .non_resource_urls
            .iter()
            .all(|path| owner.non_resource_urls.iter().any(|url| url_covers(url, path)))
        && (owner.resource_names.is_empty()
            || (!part.resource_names.is_empty()
                && part.resource_names.iter().all(|name| owner.resource_names.contains(name))))
}

fn resources_cover(owned: &[String], wanted: &[String]) -> bool {
    owned.iter().any(|o| o == "*")
        || wanted.iter().all(|resource| {
            owned.contains(resource)
                || resource
                    .split_once('/')
                    .is_some_and(|(_, sub)| owned.contains(&format!("*/{sub}")))
        })
}

/// Joins rules about one group and resource that differ only in their verbs.
pub(super) fn compact(rules: Vec<PolicyRule>) -> Vec<PolicyRule> {
    let mut result: Vec<PolicyRule> = Vec::new();
    for rule in rules {
        let same = result.iter_mut().find(|known| {
            is_simple(&rule)
                && is_simple(known)
                && known.api_groups == rule.api_groups
                && known.resources == rule.resources
                && known.resource_names == rule.resource_names
        });
        match same {
            Some(known) => known.verbs.extend(rule.verbs),
            None => result.push(rule),
        }
    }
    result
}

fn is_simple(rule: &PolicyRule) -> bool {
    rule.resource_names.len() <= 1
        && rule.non_resource_urls.is_empty()
        && rule.api_groups.len() == 1
        && rule.resources.len() == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn covered_and_uncovered_parts() {
        let pods = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]});
        let urls = |url: &str| json!({"nonResourceURLs": [url], "verbs": ["get"]});
        let named = |names: &[&str]| json!({"apiGroups": [""], "resources": ["pods"], "resourceNames": names, "verbs": ["get"]});
        let cases: Vec<(Value, Value, usize)> = vec![
            (pods.clone(), pods.clone(), 0),
            (json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}), pods.clone(), 0),
            (json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}), pods.clone(), 1),
            (
                json!({"apiGroups": [""], "resources": ["*/log"], "verbs": ["get"]}),
                json!({"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}),
                0,
            ),
            (
                json!({"apiGroups": [""], "resources": ["*/log"], "verbs": ["get"]}),
                json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}),
                1,
            ),
            (pods.clone(), named(&["a"]), 0),
            (named(&["a"]), pods.clone(), 2),
            (named(&["a"]), named(&["a", "b"]), 1),
            (urls("*"), urls("/x"), 0),
            (urls("/x/*"), urls("/x/y*"), 0),
            (urls("/x"), urls("/y"), 1),
            // An owner with a name restriction says nothing about paths.
            (pods, urls("/y"), 1),
        ];
        for (owner, wanted, missing) in cases {
            let left = covers(&[PolicyRule::parse(&owner)], &[PolicyRule::parse(&wanted)]);
            assert_eq!(left.len(), missing, "{owner} {wanted} {left:?}");
        }
    }

    #[test]
    fn verbs_of_one_resource_are_joined() {
        let rule = PolicyRule::parse(
            &json!({"apiGroups": ["", "apps"], "resources": ["x"], "verbs": ["get", "list"]}),
        );
        let none: [PolicyRule; 0] = [];
        let joined = compact(covers(&none, &[rule]));
        assert_eq!(joined.len(), 2);
        assert_eq!(joined[0].verbs, ["get", "list"]);
    }
}
