//! What users are told about budgets.

use serde_json::Value;

use crate::object;

/// Pods without a controller cannot be counted.
pub(super) fn unmanaged(budget: &Value) -> String {
    let selector = object::get(budget, &["spec", "selector"]);
    format!(
        "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value.",
        selector.map_or_else(|| "nil".to_owned(), go_selector)
    )
}

/// A pod was evicted and is still there.
pub(super) fn not_deleted(budget: &Value) -> String {
    // The namespace twice is what the real controller says.
    let namespace = object::namespace(budget);
    format!("Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't")
}

/// A selector as Go prints it.
fn go_selector(selector: &Value) -> String {
    let labels: String = selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or_default()))
        .collect::<Vec<_>>()
        .concat();
    let expressions: String = object::list(selector, &["matchExpressions"])
        .iter()
        .map(go_requirement)
        .collect::<Vec<_>>()
        .concat();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

fn go_requirement(expression: &Value) -> String {
    let text = |field: &str| object::text(expression, &[field]);
    let values: Vec<&str> =
        object::list(expression, &["values"]).iter().filter_map(Value::as_str).collect();
    let (key, operator, values) = (text("key"), text("operator"), values.join(" "));
    format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_look_as_go_prints_them() {
        assert_eq!(
            go_selector(&json!({
                "matchLabels": {"app": "w", "b": "c"},
                "matchExpressions": [{"key": "k", "operator": "In", "values": ["x", "y"]}],
            })),
            "&LabelSelector{MatchLabels:map[string]string{app: w,b: c,},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}"
        );
        assert_eq!(
            go_selector(&json!({})),
            "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{},}"
        );
    }
}
