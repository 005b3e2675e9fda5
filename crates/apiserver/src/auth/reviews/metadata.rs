//! Reviews have no metadata, and the message that says so repeats what was there.

use fleetwright_kschema::{
    field::{BadValue, FieldError, Path},
    gotext,
};
use serde_json::Value;

/// The order in which the fields of metadata and of what is in it are printed.
const ORDER: &[&str] = &[
    "manager",
    "operation",
    "apiVersion",
    "kind",
    "time",
    "fieldsType",
    "fieldsV1",
    "subresource",
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
    "controller",
    "blockOwnerDeletion",
];

/// Complains about metadata, except for the fields in `allowed`.
pub(super) fn must_be_empty(review: &Value, allowed: &[&str], why: &str) -> Option<FieldError> {
    let metadata = review.get("metadata")?;
    let fields = metadata.as_object()?;
    let is_set = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    };
    let set = fields.iter().any(|(key, value)| {
        key != "managedFields" && !allowed.contains(&key.as_str()) && is_set(value)
    });
    set.then(|| {
        FieldError::invalid(&Path::new("metadata"), BadValue::Rendered(ordered(metadata)), why)
    })
}

/// JSON with fields in the order of the Go types. Only the first levels have one.
fn ordered(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_by_key(|(key, _)| ORDER.iter().position(|known| known == key));
            let fields: Vec<String> = fields
                .into_iter()
                .map(|(key, value)| {
                    let shown =
                        if key == "fieldsV1" { gotext::json(value) } else { ordered(value) };
                    format!("{}:{shown}", gotext::json(&Value::from(key.as_str())))
                })
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(ordered).collect();
            format!("[{}]", items.join(","))
        }
        other => gotext::json(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn metadata_is_repeated_in_the_order_of_its_type() {
        let review = json!({"metadata": {"managedFields": [{"apiVersion": "authorization.k8s.io/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:b": {}, "f:a": {}}}, "manager": "curl", "operation": "Update", "time": "t"}], "name": "x"}});
        let error = must_be_empty(&review, &[], "must be empty").unwrap();
        assert_eq!(
            error.to_string(),
            r#"metadata: Invalid value: {"name":"x","managedFields":[{"manager":"curl","operation":"Update","apiVersion":"authorization.k8s.io/v1","time":"t","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:a":{},"f:b":{}}}}]}: must be empty"#
        );
        for empty in
            [json!({}), json!({"metadata": {"managedFields": [1], "creationTimestamp": null}})]
        {
            assert_eq!(must_be_empty(&empty, &[], ""), None);
        }
    }
}
