//! AdmissionReviews: reading the question, writing the answer.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{Operation, Request, Stage, Verdict, aggregate};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// Why a review cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReviewError {
    #[error("the body is not JSON: {0}")]
    NotJson(String),
    #[error("the body is {0}, not {KIND} of {API_VERSION}")]
    NotAReview(String),
    #[error("the review has no {0}")]
    Lacks(&'static str),
}

/// Reads a review: its UID and what is asked.
pub(crate) fn read(body: &[u8]) -> Result<(String, Request), ReviewError> {
    let mut review: Value =
        serde_json::from_slice(body).map_err(|error| ReviewError::NotJson(error.to_string()))?;
    if review["apiVersion"] != API_VERSION || review["kind"] != KIND {
        let (version, kind) = (text(&review["apiVersion"]), text(&review["kind"]));
        return Err(ReviewError::NotAReview(format!("{kind:?} of {version:?}")));
    }
    let request = &mut review["request"];
    let uid = text(&request["uid"]).to_owned();
    if uid.is_empty() {
        return Err(ReviewError::Lacks("uid"));
    }
    let operation =
        Operation::parse(text(&request["operation"])).ok_or(ReviewError::Lacks("operation"))?;
    let object = |value: Value| (!value.is_null()).then_some(value);
    Ok((
        uid,
        Request {
            operation,
            kind: text(&request["kind"]["kind"]).to_owned(),
            namespace: text(&request["namespace"]).to_owned(),
            name: text(&request["name"]).to_owned(),
            dry_run: request["dryRun"].as_bool().unwrap_or_default(),
            object: object(request["object"].take()),
            old_object: object(request["oldObject"].take()),
        },
    ))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Writes the answer to a review.
pub(crate) fn write(uid: &str, stage: Stage, verdict: Verdict) -> Value {
    let Verdict { errors, warnings, edit } = verdict;
    let mut response = json!({"uid": uid, "allowed": errors.is_empty()});
    if !errors.is_empty() {
        response["status"] = json!({
            "status": "Failure",
            "code": 403,
            "reason": "Forbidden",
            "message": aggregate(&errors),
        });
    }
    if !warnings.is_empty() {
        response["warnings"] = warnings.into();
    }
    let patch = edit.map(crate::Edit::into_patch).unwrap_or_default();
    if errors.is_empty() && stage == Stage::Mutate && !patch.is_empty() {
        response["patchType"] = "JSONPatch".into();
        response["patch"] = STANDARD.encode(Value::from(patch).to_string()).into();
    }
    json!({"apiVersion": API_VERSION, "kind": KIND, "response": response})
}
