//! Webhooks that may change an object.

use std::collections::BTreeSet;

use fleetwright_kschema::gotext::quote;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::{
    Admission, Attributes, Hooks,
    call::{Failure, Question},
    configuration::Webhook,
    matching::{Invocation, convert, is_exempt},
    patch,
    review::Answer,
};
use crate::{
    patch::{PatchError, json_patch},
    status::ApiError,
};

/// Which webhooks are to see the object again. Webhooks are known by their place in the list.
#[derive(Default)]
struct Reinvocations {
    /// Called, and interested in later changes.
    called: BTreeSet<usize>,
    /// Called before a later change: to be called again.
    due: BTreeSet<usize>,
    /// Whether any webhook changed the object.
    changed: bool,
}

impl Admission {
    /// Asks the mutating webhooks one after the other, and again those that want to see what
    /// others changed. `object` is `None` for deletions.
    pub async fn mutate(
        &self,
        attributes: &Attributes<'_>,
        mut object: Option<&mut Value>,
        hooks: &dyn Hooks,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let webhooks = self.mutating.webhooks(&*self.source);
        if webhooks.is_empty() || is_exempt(attributes.kind) {
            return Ok(());
        }
        let mut reinvocations = Reinvocations::default();
        for again in [false, true] {
            if again && !reinvocations.changed {
                break;
            }
            for (index, webhook) in webhooks.iter().enumerate() {
                let current = object.as_deref();
                let Some(invocation) = self.invocation(webhook, attributes, current, hooks)? else {
                    continue;
                };
                // Only what was called before is called again, even if the object now matches.
                if again && !reinvocations.due.contains(&index) {
                    continue;
                }
                let result = self
                    .change(
                        webhook,
                        attributes,
                        &invocation,
                        object.as_deref_mut(),
                        hooks,
                        warnings,
                    )
                    .await;
                if matches!(result, Ok(true)) {
                    let called = std::mem::take(&mut reinvocations.called);
                    reinvocations.due.extend(called);
                    reinvocations.changed = true;
                }
                if webhook.reinvoke_if_needed {
                    reinvocations.called.insert(index);
                }
                if let Err(failure) = result {
                    failure.into_error(webhook)?;
                }
            }
        }
        Ok(())
    }

    /// Asks one webhook and does what it says. Tells whether the object changed.
    async fn change(
        &self,
        webhook: &Webhook,
        attributes: &Attributes<'_>,
        invocation: &Invocation,
        object: Option<&mut Value>,
        hooks: &dyn Hooks,
        warnings: &mut Vec<String>,
    ) -> Result<bool, Failure> {
        let in_version = |value: Option<&Value>| {
            convert(value, attributes, invocation, hooks).map_err(Failure::Refused)
        };
        let shown = in_version(object.as_deref())?;
        let old = in_version(attributes.old_object)?;
        let question = Question {
            attributes,
            invocation,
            object: shown.as_ref(),
            old_object: old.as_ref(),
            mutating: true,
        };
        let answer = self.ask(webhook, question, warnings).await?;
        let Some(mut patched) = patched(webhook, answer, shown.as_ref())? else {
            return Ok(false);
        };
        let changed = shown.as_ref() != Some(&patched);
        let internal = |why: String| Failure::Refused(ApiError::internal(why));
        if invocation.kind != *attributes.kind {
            patched = hooks.convert(&patched, attributes.kind).map_err(internal)?;
        }
        hooks.normalize(&mut patched).map_err(internal)?;
        if let Some(object) = object {
            *object = patched;
        }
        Ok(changed)
    }
}

/// The object with the webhook's patch, if there is one.
fn patched(
    webhook: &Webhook,
    answer: Answer,
    object: Option<&Value>,
) -> Result<Option<Value>, Failure> {
    let Some((bytes, kind)) = answer.patch else { return Ok(None) };
    if is_empty(&bytes) {
        return Ok(None);
    }
    let document = object.unwrap_or(&Value::Null);
    let result = json_patch(document, &bytes, false);
    if let Err(PatchError::Malformed(why)) = result {
        return Err(Failure::Calling(format!(
            "received undecodable patch in webhook response: {why}"
        )));
    }
    if object.is_none() {
        return Err(Failure::Refused(ApiError::internal(format!(
            "admission webhook {} attempted to modify the object, which is not supported for this operation",
            quote(&webhook.name)
        ))));
    }
    if kind != "JSONPatch" {
        return Err(Failure::Calling(format!("unsupported patch type {}", quote(&kind))));
    }
    match result {
        Ok(patched) => Ok(Some(patched.object)),
        Err(PatchError::DoesNotApply(_)) => {
            Err(Failure::Refused(ApiError::internal(patch::describe_failure(document, &bytes))))
        }
        Err(other) => Err(Failure::Refused(ApiError::internal(other))),
    }
}

/// Whether a patch has no operations.
fn is_empty(patch: &[u8]) -> bool {
    serde_json::from_slice::<Option<Vec<IgnoredAny>>>(patch)
        .is_ok_and(|operations| operations.is_none_or(|operations| operations.is_empty()))
}
