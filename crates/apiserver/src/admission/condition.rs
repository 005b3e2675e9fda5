//! Match conditions: expressions in CEL that a request must fulfil.

use kube_cel::{
    KubeCelExt,
    cel::{Context, ExecutionError, Program, Value as CelValue},
};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;

use crate::object;

/// The conditions of a webhook.
#[derive(Debug)]
pub(super) struct Conditions(Vec<Condition>);

#[derive(Debug)]
struct Condition {
    expression: String,
    program: Result<Program, String>,
}

/// What the conditions say of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All are fulfilled.
    Matches,
    /// One is not.
    Excluded,
    /// Some cannot be decided, and none is unfulfilled.
    Failed(String),
}

/// Why an expression cannot be used, if so.
pub(crate) fn compilation_error(expression: &str) -> Option<String> {
    Program::compile(expression).err().map(|error| format!("compilation failed: {error}"))
}

impl Conditions {
    pub(super) fn compile(conditions: &[Value]) -> Self {
        Self(
            conditions
                .iter()
                .map(|condition| {
                    let expression = object::text(condition, &["expression"]).to_owned();
                    let program = Program::compile(&expression)
                        .map_err(|error| format!("compilation error: {error}"));
                    Condition { expression, program }
                })
                .collect(),
        )
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn evaluate(
        &self,
        object: Option<&Value>,
        old_object: Option<&Value>,
        request: &Value,
    ) -> Verdict {
        let mut context = Context::default().with_all();
        let variables = [("object", object), ("oldObject", old_object), ("request", Some(request))];
        for (name, value) in variables {
            if let Err(error) = context.add_variable(name, Typed(value.unwrap_or(&Value::Null))) {
                return Verdict::Failed(error.to_string());
            }
        }
        let mut errors: Vec<String> = Vec::new();
        for Condition { expression, program } in &self.0 {
            let result = match program {
                Ok(program) => program.execute(&context).map_err(|error| describe(&error)),
                Err(error) => Err(error.clone()),
            };
            match result {
                Ok(CelValue::Bool(true)) => {}
                Ok(CelValue::Bool(false)) => return Verdict::Excluded,
                Ok(_) => errors.push(format!(
                    "expression '{expression}' resulted in error: must evaluate to bool"
                )),
                Err(error) => {
                    errors.push(format!("expression '{expression}' resulted in error: {error}"));
                }
            }
        }
        errors.dedup();
        match errors.as_slice() {
            [] => Verdict::Matches,
            [one] => Verdict::Failed(one.clone()),
            several => Verdict::Failed(format!("[{}]", several.join(", "))),
        }
    }
}

/// An error in the words of the Go implementation, where they are known.
fn describe(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::NoSuchOverload => "no such overload".to_owned(),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        other => other.to_string(),
    }
}

/// JSON whose whole numbers are signed, as they are in Kubernetes.
struct Typed<'a>(&'a Value);

impl Serialize for Typed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Number(number) => match number.as_i64() {
                Some(whole) => serializer.serialize_i64(whole),
                None => serializer.serialize_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::Array(items) => serializer.collect_seq(items.iter().map(Typed)),
            Value::Object(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (key, value) in fields {
                    map.serialize_entry(key, &Typed(value))?;
                }
                map.end()
            }
            other => other.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn conditions_are_evaluated() {
        let object = json!({"metadata": {"labels": {"a": "1"}}, "spec": {"replicas": 3}});
        let request =
            json!({"operation": "CREATE", "userInfo": {"username": "alice", "groups": ["g"]}});
        let failed = |text: &str| Verdict::Failed(text.to_owned());
        let cases: [(&[&str], Verdict); 9] = [
            (&[], Verdict::Matches),
            (&["object.spec.replicas == 3"], Verdict::Matches),
            (&["object.spec.replicas + 1 > 3", "request.operation == 'CREATE'"], Verdict::Matches),
            (&["'g' in request.userInfo.groups"], Verdict::Matches),
            (&["oldObject == null"], Verdict::Matches),
            (
                &["has(object.metadata.labels) && object.metadata.labels['a'] == '2'"],
                Verdict::Excluded,
            ),
            (
                &["object.data.x == '1'"],
                failed("expression 'object.data.x == '1'' resulted in error: no such key: data"),
            ),
            (&["object.data.x == '1'", "false"], Verdict::Excluded),
            (
                &["object.data.x == '1'", "true", "object.spec.no"],
                failed(
                    "[expression 'object.data.x == '1'' resulted in error: no such key: data, expression 'object.spec.no' resulted in error: no such key: no]",
                ),
            ),
        ];
        for (expressions, expected) in cases {
            let conditions: Vec<Value> =
                expressions.iter().map(|e| json!({"name": "c", "expression": e})).collect();
            let verdict = Conditions::compile(&conditions).evaluate(Some(&object), None, &request);
            assert_eq!(verdict, expected, "{expressions:?}");
        }
    }

    #[test]
    fn what_is_not_known_here_is_a_failure() {
        for expression in ["authorizer.path('/x').check('get').allowed()", "1 +", "1"] {
            let conditions = Conditions::compile(&[json!({"expression": expression})]);
            let verdict = conditions.evaluate(None, None, &json!({}));
            assert!(matches!(verdict, Verdict::Failed(_)), "{expression} {verdict:?}");
        }
    }
}
