//! The scale subresource of custom kinds: numbers at simple paths.

use serde_json::{Map, Value};

use crate::field::{FieldError, Path};
use crate::gotext;

/// Where the scale of a kind is: `subresources.scale` of its definition.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalePaths {
    /// `specReplicasPath`.
    pub spec_replicas: String,
    /// `statusReplicasPath`.
    pub status_replicas: String,
    /// `labelSelectorPath`.
    pub label_selector: Option<String>,
}

impl ScalePaths {
    /// Reads `subresources.scale`; `None` if it is not an object.
    pub fn parse(scale: &Value) -> Option<Self> {
        let fields = scale.as_object()?;
        let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            spec_replicas: text("specReplicasPath").unwrap_or_default(),
            status_replicas: text("statusReplicasPath").unwrap_or_default(),
            label_selector: text("labelSelectorPath"),
        })
    }

    /// Checks the desired number of replicas.
    pub fn validate_spec(&self, object: &Value) -> Vec<FieldError> {
        replicas_error(object, &self.spec_replicas).into_iter().collect()
    }

    /// Checks the observed number of replicas, and that the selector is a text.
    pub fn validate_status(&self, object: &Value) -> Vec<FieldError> {
        let mut errors: Vec<FieldError> =
            replicas_error(object, &self.status_replicas).into_iter().collect();
        if let Some(path) = &self.label_selector
            && let Err(reason) = get_text(object, path)
        {
            errors.push(FieldError::invalid(&Path::from(path.as_str()), "", reason));
        }
        errors
    }
}

fn replicas_error(object: &Value, path: &str) -> Option<FieldError> {
    let place = Path::from(path);
    match get_integer(object, path) {
        Err(reason) => Some(FieldError::invalid(&place, 0, reason)),
        Ok(Some(count)) if count < 0 => {
            Some(FieldError::invalid(&place, count, "should be a non-negative integer"))
        }
        Ok(Some(count)) if count > i64::from(i32::MAX) => {
            let detail = format!("should be less than or equal to {}", i32::MAX);
            Some(FieldError::invalid(&place, count, detail))
        }
        Ok(_) => None,
    }
}

/// The names on a simple path: `.spec.replicas` is `spec`, `replicas`.
fn steps(path: &str) -> impl Iterator<Item = &str> {
    path.strip_prefix('.').unwrap_or(path).split('.')
}

/// The value at a simple path. What is in the way and is not an object is an error.
pub fn get<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let mut value = object;
    let mut passed: Vec<&str> = Vec::new();
    for step in steps(path) {
        if value.is_null() {
            return Ok(None);
        }
        let Value::Object(fields) = value else {
            return Err(format!(
                ".{} accessor error: {} is of the type {}, expected map[string]interface {{}}",
                passed.join("."),
                gotext::plain(value),
                go_type(value)
            ));
        };
        passed.push(step);
        match fields.get(step) {
            None => return Ok(None),
            Some(next) => value = next,
        }
    }
    Ok(Some(value))
}

/// The whole number at a simple path.
pub fn get_integer(object: &Value, path: &str) -> Result<Option<i64>, String> {
    let Some(value) = get(object, path)? else { return Ok(None) };
    value.as_i64().map(Some).ok_or_else(|| wrong_type(value, path, "int64"))
}

/// The text at a simple path.
pub fn get_text<'a>(object: &'a Value, path: &str) -> Result<Option<&'a str>, String> {
    let Some(value) = get(object, path)? else { return Ok(None) };
    value.as_str().map(Some).ok_or_else(|| wrong_type(value, path, "string"))
}

fn wrong_type(value: &Value, path: &str, expected: &str) -> String {
    let path: Vec<&str> = steps(path).collect();
    format!(
        ".{} accessor error: {} is of the type {}, expected {expected}",
        path.join("."),
        gotext::plain(value),
        go_type(value)
    )
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.as_i64().is_some() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Sets the value at a simple path, making objects on the way. What is in the way and is not an
/// object is an error.
pub fn set(object: &mut Value, path: &str, new: Value) -> Result<(), String> {
    let steps: Vec<&str> = steps(path).collect();
    let mut value = object;
    let Some((last, parents)) = steps.split_last() else { return Ok(()) };
    for (i, step) in parents.iter().enumerate() {
        let Value::Object(fields) = value else { return Err(not_an_object(&steps, i)) };
        value = fields.entry((*step).to_owned()).or_insert_with(|| Value::Object(Map::new()));
    }
    let Value::Object(fields) = value else {
        return Err(not_an_object(&steps, parents.len()));
    };
    fields.insert((*last).to_owned(), new);
    Ok(())
}

fn not_an_object(steps: &[&str], count: usize) -> String {
    let passed = steps.get(..count).unwrap_or_default().join(".");
    format!("value cannot be set because .{passed} is not a map[string]interface{{}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_read_and_write() {
        let mut object = json!({"spec": {"replicas": 3, "s": "x"}});
        assert_eq!(get_integer(&object, ".spec.replicas"), Ok(Some(3)));
        assert_eq!(get_integer(&object, ".status.replicas"), Ok(None));
        assert_eq!(
            get_integer(&object, ".spec.s"),
            Err(".spec.s accessor error: x is of the type string, expected int64".to_owned())
        );
        assert_eq!(
            get_integer(&object, ".spec.s.t"),
            Err(".spec.s accessor error: x is of the type string, expected \
                 map[string]interface {}"
                .to_owned())
        );
        set(&mut object, ".status.replicas", json!(2)).unwrap();
        assert_eq!(object["status"], json!({"replicas": 2}));
        assert_eq!(
            set(&mut object, ".spec.s.t", json!(1)).unwrap_err(),
            "value cannot be set because .spec.s is not a map[string]interface{}"
        );
    }

    #[test]
    fn replicas_are_checked() {
        let paths = ScalePaths::parse(&json!({"specReplicasPath": ".spec.n",
            "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.sel"}))
        .unwrap();
        let object = json!({"spec": {"n": -1}, "status": {"n": 3_000_000_000_i64, "sel": 1}});
        assert_eq!(
            paths.validate_spec(&object)[0].to_string(),
            ".spec.n: Invalid value: -1: should be a non-negative integer"
        );
        let shown: Vec<String> =
            paths.validate_status(&object).iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                ".status.n: Invalid value: 3000000000: should be less than or equal to 2147483647",
                ".status.sel: Invalid value: \"\": .status.sel accessor error: 1 is of the type \
                 int64, expected string",
            ]
        );
        assert!(paths.validate_spec(&json!({})).is_empty());
    }
}
