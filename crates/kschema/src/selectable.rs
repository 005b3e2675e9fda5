//! Fields of custom objects that lists and watches can select by.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::gotext;
use crate::jsonpath::JsonPath;

/// The `selectableFields` of one version of a custom kind.
#[derive(Clone, Debug, Default)]
pub struct SelectableFields {
    fields: Vec<(String, JsonPath)>,
}

impl SelectableFields {
    /// Reads `selectableFields`; paths that are malformed are left out.
    pub fn new(fields: &[Value]) -> Self {
        let parse = |field: &Value| {
            let path = field.get("jsonPath")?.as_str()?;
            let name = path.strip_prefix('.').unwrap_or(path);
            Some((name.to_owned(), JsonPath::parse(path).ok()?))
        };
        Self { fields: fields.iter().filter_map(parse).collect() }
    }

    /// The names by which selectors know the fields: `spec.color`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(name, _)| name.as_str())
    }

    /// The values of the fields of an object; those it does not have are empty.
    pub fn values(&self, object: &Value) -> BTreeMap<String, String> {
        let value = |path: &JsonPath| match path.first(object) {
            Some(value) if !value.is_null() => gotext::plain(&value),
            _ => String::new(),
        };
        self.fields.iter().map(|(name, path)| (name.clone(), value(path))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_texts() {
        let fields = SelectableFields::new(&[
            json!({"jsonPath": ".spec.color"}),
            json!({"jsonPath": ".spec.size"}),
            json!({"jsonPath": ".spec.on"}),
            json!({"jsonPath": ".spec.none"}),
        ]);
        let object = json!({"spec": {"color": "blue", "size": 3, "on": true}});
        let values = fields.values(&object);
        let shown: Vec<(&str, &str)> =
            values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(
            shown,
            [("spec.color", "blue"), ("spec.none", ""), ("spec.on", "true"), ("spec.size", "3")]
        );
        assert_eq!(fields.names().count(), 4);
    }
}
