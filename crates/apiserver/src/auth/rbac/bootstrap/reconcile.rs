//! Bringing a stored role or binding up to date with the initial policy.

use serde_json::Value;

use super::PolicyObject;
use crate::{
    auth::rbac::{CLUSTER_ROLE_BINDINGS, PolicyRule, ROLE_BINDINGS, covers},
    object,
};

const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// What to do with an object of the policy.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// It is missing: create it.
    Create(Value),
    /// Something is missing in it: replace it.
    Update(Value),
    /// A binding cannot change its role: delete it and create this.
    Recreate(Value),
}

/// The step that brings the stored object up to date, if one is needed. Permissions and subjects
/// that somebody added stay.
pub fn reconcile(expected: &PolicyObject, existing: Option<&Value>) -> Option<Step> {
    let Some(existing) = existing else {
        return Some(Step::Create(expected.object.clone()));
    };
    if object::text(existing, &["metadata", "annotations", AUTO_UPDATE]) == "false" {
        return None;
    }
    let expected_object = &expected.object;
    let is_binding = matches!(expected.resource, ROLE_BINDINGS | CLUSTER_ROLE_BINDINGS);
    if is_binding && expected_object.get("roleRef") != existing.get("roleRef") {
        return Some(Step::Recreate(expected_object.clone()));
    }
    let mut result = existing.clone();
    for key in ["annotations", "labels"] {
        let wanted = object::get(expected_object, &["metadata", key]).and_then(Value::as_object);
        for (name, value) in wanted.into_iter().flatten() {
            object::default(&mut result, &["metadata", key, name], value.clone());
        }
    }
    if is_binding {
        append_missing(&mut result, expected_object, &["subjects"]);
    } else {
        add_missing_rules(&mut result, expected_object);
        match expected_object.get("aggregationRule") {
            Some(_) => append_missing(
                &mut result,
                expected_object,
                &["aggregationRule", "clusterRoleSelectors"],
            ),
            None => drop(object::remove(&mut result, &["aggregationRule"])),
        }
    }
    (result != *existing).then_some(Step::Update(result))
}

fn add_missing_rules(result: &mut Value, expected: &Value) {
    let missing = covers(&PolicyRule::parse_all(result), &PolicyRule::parse_all(expected));
    if missing.is_empty() {
        return;
    }
    let mut rules = object::list(result, &["rules"]).to_vec();
    rules.extend(missing.iter().map(PolicyRule::to_value));
    object::set(result, &["rules"], rules);
}

fn append_missing(result: &mut Value, expected: &Value, path: &[&str]) {
    let mut items = object::list(result, path).to_vec();
    let before = items.len();
    for item in object::list(expected, path) {
        if !items.contains(item) {
            items.push(item.clone());
        }
    }
    if items.len() > before {
        object::set(result, path, items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::rbac::bootstrap::policy;
    use serde_json::json;

    fn of(name: &str) -> PolicyObject {
        policy().into_iter().find(|o| object::name(&o.object) == name).unwrap()
    }

    #[test]
    fn fresh_objects_need_nothing_more() {
        for object in policy() {
            assert!(matches!(reconcile(&object, None), Some(Step::Create(_))));
            assert_eq!(reconcile(&object, Some(&object.object)), None);
        }
    }

    #[test]
    fn missing_parts_are_added_and_extra_ones_stay() {
        let expected = of("system:basic-user");
        let extra = json!({"apiGroups": [""], "resources": ["x"], "verbs": ["get"]});
        let mut stored = expected.object.clone();
        stored["rules"] = json!([extra]);
        stored["metadata"]["labels"] = json!({"mine": "1"});
        let Some(Step::Update(updated)) = reconcile(&expected, Some(&stored)) else {
            panic!("an update is needed")
        };
        assert_eq!(updated["rules"][0], extra);
        assert!(object::list(&updated, &["rules"]).len() > 1);
        assert_eq!(updated["metadata"]["labels"]["mine"], "1");
        assert_eq!(updated["metadata"]["labels"]["kubernetes.io/bootstrapping"], "rbac-defaults");
        stored["metadata"]["annotations"][AUTO_UPDATE] = "false".into();
        assert_eq!(reconcile(&expected, Some(&stored)), None);
    }

    #[test]
    fn a_binding_to_another_role_is_made_anew() {
        let expected = policy()
            .into_iter()
            .find(|o| {
                o.resource == CLUSTER_ROLE_BINDINGS && object::name(&o.object) == "cluster-admin"
            })
            .unwrap();
        let mut stored = expected.object.clone();
        stored["roleRef"]["name"] = "other".into();
        assert!(matches!(reconcile(&expected, Some(&stored)), Some(Step::Recreate(_))));
        let mut stored = expected.object.clone();
        stored["subjects"] = json!([{"kind": "User", "name": "me"}]);
        let Some(Step::Update(updated)) = reconcile(&expected, Some(&stored)) else {
            panic!("an update is needed")
        };
        assert_eq!(object::list(&updated, &["subjects"]).len(), 2);
    }
}
