//! Rules on objects, with the answers that kube-apiserver 1.37.1 gave.

use serde_json::{Value, json};

use super::rules::{RuleIssue, Rules, check_rules};
use crate::schema::Schema;

fn answer(rules: &Value, properties: &Value, new: &Value, old: Option<&Value>) -> Vec<String> {
    let spec = json!({"type": "object", "properties": properties,
        "x-kubernetes-validations": rules});
    let schema = Schema::parse(&json!({"type": "object", "properties": {"spec": spec}})).unwrap();
    for issue in check_rules(schema.properties.get("spec").unwrap(), false, true) {
        if let RuleIssue::Rule(_, detail) = issue {
            return vec![format!("CRD: {detail}")];
        }
    }
    let compiled = Rules::compile(&schema).unwrap();
    let wrap = |spec: &Value| json!({ "spec": spec });
    compiled
        .validate(&schema, &wrap(new), old.map(wrap).as_ref())
        .0
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn rules_answer_as_the_real_server() {
    let recorded: Value = serde_json::from_str(include_str!("../../testdata/cel.json")).unwrap();
    let properties = &recorded["properties"];
    let mut differences = Vec::new();
    for case in recorded["cases"].as_array().unwrap() {
        let rule = case["rule"].as_str().unwrap();
        let expected = case["answer"].as_str().unwrap();
        let errors = answer(&json!([{ "rule": rule }]), properties, &case["spec"], None);
        let found = match errors.as_slice() {
            [] => "OK".to_owned(),
            [error] => error.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        if found != expected {
            differences.push(format!("{rule}\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn rules_cannot_run_forever() {
    let properties = json!({"l": {"type": "array", "items": {"type": "integer"}},
        "s": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}}});
    let many: Vec<i64> = (0..20_000).collect();
    let backwards: Vec<i64> = (0..20_000).rev().collect();
    let new = json!({"l": many, "s": many});
    let old = json!({"l": many, "s": backwards});
    let exhausted = |rule: &str| {
        format!(
            "spec: Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': no \
             further validation rules will be run due to call cost exceeds limit for rule: {rule}"
        )
    };
    for rule in [
        "self.l.all(x, self.l.all(y, x + y >= 0))",
        "self.l.all(x, self.l.exists(y, y == -1) || true)",
        "self.l.distinct().size() > 0",
        "sets.contains(self.l, self.s)",
        "self.l.map(x, self.l.map(y, self.l)).size() > 0",
    ] {
        assert_eq!(
            answer(&json!([{ "rule": rule }]), &properties, &new, Some(&old)),
            [exhausted(rule)]
        );
    }
    for rule in ["self.s == oldSelf.s", "(self.s + oldSelf.s).size() == 20000", "self.l == self.l"]
    {
        assert!(answer(&json!([{ "rule": rule }]), &properties, &new, Some(&old)).is_empty());
    }
    let both = json!([{"rule": "self.l.all(x, self.l.all(y, x + y >= 0))"}, {"rule": "false"}]);
    assert_eq!(answer(&both, &properties, &new, None).len(), 1, "the rest is not evaluated");
}
