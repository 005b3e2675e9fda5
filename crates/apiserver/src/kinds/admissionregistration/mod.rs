//! Webhook configurations.

mod webhook;

use std::sync::Arc;

use fleetwright_kschema::field::{FieldError, Path};
use serde_json::Value;

use super::{Builtin, Column, Kind, age::age, check::Errors, shape, tables};
use crate::{gvk::GroupVersionKind, object};

const GROUP: &str = "admissionregistration.k8s.io";

/// The kinds of the group `admissionregistration.k8s.io`.
pub(super) fn builtins() -> Vec<Builtin> {
    let configuration = |kind: &str, plural, singular, mutating| Builtin {
        gvk: GroupVersionKind::new(GROUP, "v1", kind),
        plural,
        singular,
        short_names: &[],
        categories: &["api-extensions"],
        namespaced: false,
        subresources: &[],
        kind: Arc::new(Configuration { mutating }),
    };
    vec![
        configuration(
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
            "mutatingwebhookconfiguration",
            true,
        ),
        configuration(
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
            "validatingwebhookconfiguration",
            false,
        ),
    ]
}

/// A configuration of mutating or validating webhooks.
struct Configuration {
    mutating: bool,
}

impl Kind for Configuration {
    fn default(&self, object: &mut Value) {
        let kind = if self.mutating { "Mutating" } else { "Validating" };
        shape::complete(&format!("{GROUP}/v1/{kind}WebhookConfiguration"), object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Errors::new();
        let mut seen = Vec::new();
        for (i, hook) in object::list(object, &["webhooks"]).iter().enumerate() {
            let path = Path::new("webhooks").index(i);
            errors.extend(webhook::check(hook, &path));
            let name = object::text(hook, &["name"]);
            if !name.is_empty() && seen.contains(&name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
            seen.push(name);
        }
        errors
    }

    fn has_generation(&self) -> bool {
        true
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn columns(&self) -> Option<Vec<Column>> {
        let kind = if self.mutating { "mutating" } else { "validating" };
        tables::columns(&format!("{GROUP}/v1/{kind}webhookconfigurations"))
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        let hooks = tables::count(object, &["webhooks"]);
        vec![tables::name(object), hooks.into(), age(object, now)]
    }
}
