//! Service accounts.

use serde_json::{Value, json};

use super::super::{Column, Kind, age::age, check::has, shape, tables};
use crate::{object, request::Context};

/// An annotation that limits which secrets pods may mount; going away.
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";

pub(super) struct ServiceAccount;

impl Kind for ServiceAccount {
    fn default(&self, object: &mut Value) {
        shape::complete("v1/ServiceAccount", object);
    }

    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        only_names(object);
    }

    fn prepare_update(&self, _context: &Context, new: &mut Value, _old: &Value) {
        only_names(new);
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let path = ["metadata", "annotations", ENFORCE];
        let is_set = |object: &Value| object::get(object, &path).is_some();
        if !is_set(object) || old.is_some_and(is_set) {
            return Vec::new();
        }
        vec![format!(
            "metadata.annotations[{ENFORCE}]: deprecated in v1.32+; prefer separate namespaces to \
             isolate access to mounted secrets"
        )]
    }

    fn columns(&self) -> Option<Vec<Column>> {
        tables::columns("v1/serviceaccounts")
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        vec![tables::name(object), age(object, now)]
    }
}

/// Secrets are of the same namespace, so a reference is a name.
fn only_names(object: &mut Value) {
    if has(object, &["secrets"]) {
        let names: Vec<Value> = object::list(object, &["secrets"])
            .iter()
            .map(|secret| match secret.get("name") {
                Some(name) => json!({"name": name}),
                None => json!({}),
            })
            .collect();
        object::set(object, &["secrets"], names);
    }
}
