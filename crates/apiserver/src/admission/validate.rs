//! Webhooks that may refuse an object.

use futures::stream::{FuturesUnordered, StreamExt as _};
use serde_json::Value;

use super::{
    Admission, Attributes, Hooks,
    call::Question,
    matching::{convert, is_exempt},
};
use crate::status::ApiError;

impl Admission {
    /// Asks the validating webhooks, all at once. The first refusal counts, but all are waited
    /// for. `object` is `None` for deletions.
    pub async fn validate(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        hooks: &dyn Hooks,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let webhooks = self.validating.webhooks(&*self.source);
        if webhooks.is_empty() || is_exempt(attributes.kind) {
            return Ok(());
        }
        let mut relevant = Vec::new();
        for webhook in webhooks.iter() {
            let Some(invocation) = self.invocation(webhook, attributes, object, hooks)? else {
                continue;
            };
            let shown = convert(object, attributes, &invocation, hooks)?;
            let old = convert(attributes.old_object, attributes, &invocation, hooks)?;
            relevant.push((webhook, invocation, shown, old));
        }
        let mut calls: FuturesUnordered<_> = relevant
            .iter()
            .map(|(webhook, invocation, shown, old)| async move {
                let question = Question {
                    attributes,
                    invocation,
                    object: shown.as_ref(),
                    old_object: old.as_ref(),
                    mutating: false,
                };
                let mut warnings = Vec::new();
                let result = match self.ask(webhook, question, &mut warnings).await {
                    Ok(_) => Ok(()),
                    Err(failure) => failure.into_error(webhook),
                };
                (result, warnings)
            })
            .collect();
        let mut first = Ok(());
        while let Some((result, more)) = calls.next().await {
            warnings.extend(more);
            first = first.and(result);
        }
        first
    }
}
