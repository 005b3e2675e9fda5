//! Selectors of labels and of nodes.

use k8s_openapi::{
    api::core::v1::{Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};

use super::{Texts, labels};

/// The field by which a pod can be made for one node, as those of a DaemonSet are.
pub(crate) const NODE_NAME_FIELD: &str = "metadata.name";

/// Whether labels fit a selector. An empty selector fits everything.
pub(crate) fn matches(selector: &LabelSelector, labels: &Texts) -> bool {
    let equal = selector.match_labels.iter().flatten();
    let expressions = selector.match_expressions.iter().flatten();
    equal.into_iter().all(|(key, value)| labels.get(key) == Some(value))
        && expressions.into_iter().all(|rule| {
            let values = rule.values.as_deref().unwrap_or_default();
            holds(&rule.operator, labels.get(&rule.key).map(String::as_str), values)
        })
}

/// Whether a pod may run on a node by its node selector and its required node affinity.
pub(crate) fn node_fits(spec: &PodSpec, node: &Node) -> bool {
    let of_node = labels(&node.metadata);
    let selected = spec.node_selector.iter().flatten();
    selected.into_iter().all(|(key, value)| of_node.get(key) == Some(value))
        && required(spec).is_none_or(|selector| {
            selector.node_selector_terms.iter().any(|term| term_fits(term, node))
        })
}

/// The node affinity that a pod requires.
pub(crate) fn required(spec: &PodSpec) -> Option<&NodeSelector> {
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    affinity.required_during_scheduling_ignored_during_execution.as_ref()
}

/// The only nodes that the required affinity can fit, if every term names them.
pub(crate) fn only_nodes(spec: &PodSpec) -> Option<Vec<&str>> {
    let terms = &required(spec)?.node_selector_terms;
    if terms.is_empty() {
        return None;
    }
    let mut names = Vec::new();
    for term in terms {
        let fields = term.match_fields.as_deref().unwrap_or_default();
        let by_name =
            fields.iter().find(|rule| rule.key == NODE_NAME_FIELD && rule.operator == "In")?;
        names.extend(by_name.values.iter().flatten().map(String::as_str));
    }
    Some(names)
}

/// Whether a node fits a term. A term that says nothing fits no node.
pub(crate) fn term_fits(term: &NodeSelectorTerm, node: &Node) -> bool {
    let of_labels = term.match_expressions.as_deref().unwrap_or_default();
    let of_fields = term.match_fields.as_deref().unwrap_or_default();
    if of_labels.is_empty() && of_fields.is_empty() {
        return false;
    }
    let fits = |rule: &NodeSelectorRequirement, actual: Option<&str>| {
        holds(&rule.operator, actual, rule.values.as_deref().unwrap_or_default())
    };
    let name = node.metadata.name.as_deref();
    of_labels
        .iter()
        .all(|rule| fits(rule, labels(&node.metadata).get(&rule.key).map(String::as_str)))
        && of_fields.iter().all(|rule| rule.key == NODE_NAME_FIELD && fits(rule, name))
}

fn holds(operator: &str, actual: Option<&str>, values: &[String]) -> bool {
    let among = || actual.is_some_and(|actual| values.iter().any(|value| value == actual));
    let compare = |check: fn(i64, i64) -> bool| {
        let number = |text: &str| text.parse::<i64>().ok();
        matches!(
            (actual.and_then(number), values.first().and_then(|value| number(value))),
            (Some(actual), Some(limit)) if check(actual, limit)
        )
    };
    match operator {
        "In" => among(),
        "NotIn" => !among(),
        "Exists" => actual.is_some(),
        "DoesNotExist" => actual.is_none(),
        "Gt" => compare(|actual, limit| actual > limit),
        "Lt" => compare(|actual, limit| actual < limit),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node() -> Node {
        let labels = json!({"zone": "a", "cores": "8"});
        serde_json::from_value(json!({"metadata": {"name": "n", "labels": labels}})).unwrap()
    }

    #[test]
    fn terms_of_node_affinity() {
        let rule = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        let cases: Vec<(Value, bool)> = vec![
            (rule("zone", "In", &["a", "b"]), true),
            (rule("zone", "NotIn", &["a"]), false),
            (rule("other", "NotIn", &["a"]), true),
            (rule("zone", "Exists", &[]), true),
            (rule("zone", "DoesNotExist", &[]), false),
            (rule("cores", "Gt", &["7"]), true),
            (rule("cores", "Lt", &["8"]), false),
            (rule("zone", "Gt", &["7"]), false),
            (json!({}), false),
            (
                json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}),
                true,
            ),
            (json!({"matchFields": [{"key": "spec.x", "operator": "In", "values": ["n"]}]}), false),
        ];
        for (term, expected) in cases {
            let parsed: NodeSelectorTerm = serde_json::from_value(term.clone()).unwrap();
            assert_eq!(term_fits(&parsed, &node()), expected, "{term}");
        }
    }

    #[test]
    fn selectors_of_labels() {
        let of = Texts::from([("app".to_owned(), "web".to_owned())]);
        for (selector, expected) in [
            (json!({}), true),
            (json!({"matchLabels": {"app": "web"}}), true),
            (json!({"matchLabels": {"app": "db"}}), false),
            (json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}), true),
            (json!({"matchExpressions": [{"key": "x", "operator": "In", "values": ["y"]}]}), false),
        ] {
            let parsed: LabelSelector = serde_json::from_value(selector.clone()).unwrap();
            assert_eq!(matches(&parsed, &of), expected, "{selector}");
        }
    }
}
