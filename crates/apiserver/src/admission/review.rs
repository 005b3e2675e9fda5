//! AdmissionReviews: what a webhook is sent, and what its answer means.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use fleetwright_kschema::{
    builtin::{gojson, type_meta},
    gotext::quote,
};
use http::{Response, StatusCode, header::CONTENT_TYPE};
use serde_json::{Map, Value, json};

use super::{Attributes, GroupVersionResource, attributes::operation_name, matching::Invocation};
use crate::{
    auth::reviews::user_to_value,
    gvk::GroupVersionKind,
    object,
    status::{ApiError, Cause, Details},
};

/// The versions of AdmissionReviews that can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewVersion {
    /// `admission.k8s.io/v1`.
    V1,
    /// `admission.k8s.io/v1beta1`, whose answers are checked less.
    V1Beta1,
}

impl ReviewVersion {
    /// The first version in a webhook's list that is known here.
    pub(super) fn choose(accepted: &[String]) -> Option<Self> {
        accepted.iter().find_map(|version| match version.as_str() {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1Beta1 => "v1beta1",
        }
    }

    fn api_version(self) -> String {
        format!("{GROUP}/{}", self.name())
    }
}

const GROUP: &str = "admission.k8s.io";
const KIND: &str = "AdmissionReview";

fn kind_to_value(kind: &GroupVersionKind) -> Value {
    json!({"group": *kind.group, "version": *kind.version, "kind": *kind.kind})
}

fn resource_to_value(resource: &GroupVersionResource) -> Value {
    json!({
        "group": *resource.group,
        "version": *resource.version,
        "resource": *resource.resource,
    })
}

/// The request of a review, without its UID and the objects.
pub(super) fn request(
    attributes: &Attributes<'_>,
    invocation: &Invocation,
    object: Option<&Value>,
) -> Value {
    let mut request = Map::new();
    request.insert("kind".to_owned(), kind_to_value(&invocation.kind));
    request.insert("resource".to_owned(), resource_to_value(&invocation.resource));
    request.insert("requestKind".to_owned(), kind_to_value(attributes.kind));
    request.insert("requestResource".to_owned(), resource_to_value(attributes.resource));
    for (key, text) in [
        ("subResource", attributes.subresource),
        ("requestSubResource", attributes.subresource),
        ("name", attributes.name_of(object)),
        ("namespace", attributes.namespace_of(object)),
    ] {
        if !text.is_empty() {
            request.insert(key.to_owned(), text.into());
        }
    }
    request.insert("operation".to_owned(), operation_name(attributes.operation).into());
    request.insert("userInfo".to_owned(), user_to_value(attributes.user));
    request.insert("dryRun".to_owned(), attributes.dry_run.into());
    request.insert("options".to_owned(), attributes.options.clone());
    Value::Object(request)
}

/// The review to send.
pub(super) fn review(
    version: ReviewVersion,
    uid: &str,
    mut request: Value,
    object: Option<&Value>,
    old_object: Option<&Value>,
) -> Value {
    object::set(&mut request, &["uid"], uid);
    object::set(&mut request, &["object"], object.cloned().unwrap_or_default());
    object::set(&mut request, &["oldObject"], old_object.cloned().unwrap_or_default());
    json!({"kind": KIND, "apiVersion": version.api_version(), "request": request})
}

/// What a webhook answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) allowed: bool,
    /// A patch with its type.
    pub(super) patch: Option<(Vec<u8>, String)>,
    /// Why not.
    pub(super) status: Option<Value>,
    pub(super) warnings: Vec<String>,
}

/// Reads the response to a call. Errors of two kinds are told apart by their beginning, as
/// upstream does.
pub(super) fn read(
    version: ReviewVersion,
    uid: &str,
    mutating: bool,
    response: &Response<Bytes>,
) -> Result<Answer, String> {
    let review =
        decode(version, response).map_err(|why| format!("failed to call webhook: {why}"))?;
    verify(version, uid, mutating, &review)
        .map_err(|why| format!("received invalid webhook response: {why}"))
}

/// The review in a response.
fn decode(version: ReviewVersion, response: &Response<Bytes>) -> Result<Value, String> {
    let status = response.status();
    let content_type = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let body = response.body();
    let parsed = serde_json::from_slice::<Value>(body);
    if !(200..=206).contains(&status.as_u16()) {
        return Err(match parsed.as_ref().ok().and_then(failure_message) {
            Some(message) => message,
            None => server_error(status, content_type, body),
        });
    }
    if body.is_empty() {
        return Err(format!(
            "0-length response with status code: {} and content type: {content_type}",
            status.as_u16()
        ));
    }
    let node = gojson::parse(body)
        .map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))?;
    type_meta(&node).map_err(|error| error.to_string())?;
    let review = node.to_value();
    if let Some(message) = failure_message(&review) {
        return Err(message);
    }
    let (kind, api_version) =
        (object::text(&review, &["kind"]), object::text(&review, &["apiVersion"]));
    let shown = || String::from_utf8_lossy(body).into_owned();
    if kind.is_empty() {
        return Err(format!("Object 'Kind' is missing in '{}'", shown()));
    }
    if api_version.is_empty() {
        return Err(format!("Object 'apiVersion' is missing in '{}'", shown()));
    }
    let known = kind == KIND
        && [ReviewVersion::V1, ReviewVersion::V1Beta1]
            .iter()
            .any(|known| api_version == known.api_version());
    if !known {
        return Err(format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            quote(kind),
            quote(api_version)
        ));
    }
    if api_version != version.api_version() {
        let other = api_version.rsplit('/').next().unwrap_or_default();
        return Err(format!(
            "converting ({other}.{KIND}) to ({}.{KIND}): unknown conversion",
            version.name()
        ));
    }
    Ok(review)
}

/// The message of a `Status` that tells of a failure.
fn failure_message(value: &Value) -> Option<String> {
    (object::text(value, &["kind"]) == "Status" && object::text(value, &["status"]) == "Failure")
        .then(|| object::text(value, &["message"]).to_owned())
}

/// What a client makes of a response that is not what it wants.
fn server_error(status: StatusCode, content_type: &str, body: &[u8]) -> String {
    let is_text = content_type.starts_with("text/");
    let said = if is_text {
        String::from_utf8_lossy(body).trim().to_owned()
    } else {
        "unknown".to_owned()
    };
    match status.as_u16() {
        409 => "the server reported a conflict".to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        406 if !is_text || said.is_empty() => {
            "the server was unable to respond with a content type that the client supports".to_owned()
        }
        403 | 406 | 415 => said,
        405 => "the server does not allow this method on the requested resource".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        500.. => format!(
            "an error on the server ({}) has prevented the request from succeeding",
            quote(&said)
        ),
        code => format!(
            "the server responded with the status code {code} but did not return more information"
        ),
    }
}

fn verify(
    version: ReviewVersion,
    uid: &str,
    mutating: bool,
    review: &Value,
) -> Result<Answer, String> {
    let Some(response) = review.get("response").filter(|response| !response.is_null()) else {
        return Err("webhook response was absent".to_owned());
    };
    let patch = match object::text(response, &["patch"]) {
        "" => Vec::new(),
        encoded => {
            BASE64.decode(encoded).map_err(|error| format!("illegal base64 data: {error}"))?
        }
    };
    let patch_type = response.get("patchType").filter(|kind| !kind.is_null());
    let patch_type = patch_type.map(|kind| kind.as_str().unwrap_or_default().to_owned());
    if version == ReviewVersion::V1 {
        let answered = object::text(response, &["uid"]);
        if answered != uid {
            return Err(format!("expected response.uid={}, got {}", quote(uid), quote(answered)));
        }
        verify_patch(mutating, &patch, patch_type.as_deref())?;
    }
    // Older reviews have only one type of patch, and do not always say so.
    let patch_type = match version {
        ReviewVersion::V1 => patch_type.unwrap_or_default(),
        ReviewVersion::V1Beta1 => "JSONPatch".to_owned(),
    };
    Ok(Answer {
        allowed: response.get("allowed").and_then(Value::as_bool).unwrap_or_default(),
        patch: (mutating && !patch.is_empty()).then_some((patch, patch_type)),
        status: response.get("status").filter(|status| !status.is_null()).cloned(),
        warnings: object::list(response, &["warnings"])
            .iter()
            .filter_map(Value::as_str)
            .filter(|text| can_be_shown(text))
            .map(str::to_owned)
            .collect(),
    })
}

fn verify_patch(mutating: bool, patch: &[u8], patch_type: Option<&str>) -> Result<(), String> {
    let why = match (mutating, patch.is_empty(), patch_type) {
        (true, false, None) => "webhook returned response.patch but not response.patchType",
        (true, true, Some(_)) => "webhook returned response.patchType but not response.patch",
        (true, false, Some("")) => "webhook returned invalid response.patchType of \"\"",
        (false, false, _) => "validating webhook may not return response.patch",
        (false, true, Some(_)) => "validating webhook may not return response.patchType",
        _ => return Ok(()),
    };
    Err(why.to_owned())
}

/// A warning goes into a header, which takes no control characters.
fn can_be_shown(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(char::is_control)
}

/// The error for a webhook that says no.
pub(super) fn denial(webhook: &str, status: Option<&Value>) -> ApiError {
    let empty = Value::Null;
    let status = status.unwrap_or(&empty);
    let text = |path: &[&str]| object::text(status, path).to_owned();
    let denied = format!("admission webhook {} denied the request", quote(webhook));
    let (message, reason) = (text(&["message"]), text(&["reason"]));
    let message = if !message.is_empty() {
        format!("{denied}: {message}")
    } else if !reason.is_empty() {
        format!("{denied}: {reason}")
    } else {
        format!("{denied} without explanation")
    };
    let code = object::integer(status, &["code"])
        .and_then(|code| u16::try_from(code).ok())
        .filter(|code| *code >= 400)
        .and_then(|code| StatusCode::from_u16(code).ok())
        .unwrap_or(StatusCode::BAD_REQUEST);
    let details = object::get(status, &["details"]).filter(|details| details.is_object());
    let details = details.map(|details| Details {
        group: object::text(details, &["group"]).to_owned(),
        kind: object::text(details, &["kind"]).to_owned(),
        name: object::text(details, &["name"]).to_owned(),
        uid: object::text(details, &["uid"]).to_owned(),
        causes: object::list(details, &["causes"])
            .iter()
            .map(|cause| Cause {
                reason: object::text(cause, &["reason"]).to_owned(),
                message: object::text(cause, &["message"]).to_owned(),
                field: object::text(cause, &["field"]).to_owned(),
            })
            .collect(),
        retry_after_seconds: object::integer(details, &["retryAfterSeconds"])
            .and_then(|seconds| u32::try_from(seconds).ok())
            .unwrap_or_default(),
    });
    ApiError::new(code, reason, message, details)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn respond(code: u16, content_type: &str, body: &str) -> Response<Bytes> {
        Response::builder()
            .status(code)
            .header(CONTENT_TYPE, content_type)
            .body(Bytes::from(body.to_owned()))
            .unwrap()
    }

    fn error(mutating: bool, code: u16, body: &str) -> String {
        read(ReviewVersion::V1, "u", mutating, &respond(code, "application/json", body))
            .unwrap_err()
    }

    fn answer(response: &str) -> String {
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{response}}}"#
        )
    }

    #[test]
    fn failed_calls_read_as_upstream() {
        let cases = [
            (
                500,
                "oops",
                "failed to call webhook: an error on the server (\"unknown\") has prevented the request from succeeding",
            ),
            (
                500,
                r#"{"kind":"Status","status":"Failure","message":"sad"}"#,
                "failed to call webhook: sad",
            ),
            (404, "x", "failed to call webhook: the server could not find the requested resource"),
            (
                302,
                "",
                "failed to call webhook: the server responded with the status code 302 but did not return more information",
            ),
            (
                200,
                "",
                "failed to call webhook: 0-length response with status code: 200 and content type: application/json",
            ),
            (
                200,
                r#"{"kind":"AdmissionReview","apiVersion":"foo/v1"}"#,
                "failed to call webhook: no kind \"AdmissionReview\" is registered for version \"foo/v1\" in scheme \"pkg/runtime/scheme.go:111\"",
            ),
            (
                200,
                r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1"}"#,
                "failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
            ),
            (200, "{}", "failed to call webhook: Object 'Kind' is missing in '{}'"),
        ];
        for (code, body, expected) in cases {
            assert_eq!(error(true, code, body), expected);
        }
        let plain = respond(502, "text/plain; charset=utf-8", "bad\n");
        assert_eq!(
            read(ReviewVersion::V1, "u", true, &plain).unwrap_err(),
            "failed to call webhook: an error on the server (\"bad\") has prevented the request from succeeding"
        );
    }

    #[test]
    fn invalid_answers_read_as_upstream() {
        let cases = [
            (true, "null", "webhook response was absent"),
            (true, r#"{"uid":"x"}"#, "expected response.uid=\"u\", got \"x\""),
            (
                true,
                r#"{"uid":"u","patch":"W10="}"#,
                "webhook returned response.patch but not response.patchType",
            ),
            (
                true,
                r#"{"uid":"u","patchType":"JSONPatch"}"#,
                "webhook returned response.patchType but not response.patch",
            ),
            (
                true,
                r#"{"uid":"u","patch":"W10=","patchType":""}"#,
                "webhook returned invalid response.patchType of \"\"",
            ),
            (
                false,
                r#"{"uid":"u","patch":"W10="}"#,
                "validating webhook may not return response.patch",
            ),
            (
                false,
                r#"{"uid":"u","patchType":"JSONPatch"}"#,
                "validating webhook may not return response.patchType",
            ),
        ];
        for (mutating, response, expected) in cases {
            assert_eq!(
                error(mutating, 200, &answer(response)),
                format!("received invalid webhook response: {expected}")
            );
        }
    }

    #[test]
    fn old_reviews_are_trusted_more() {
        let body = r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","response":{"allowed":true,"patch":"W10="}}"#;
        let answer =
            read(ReviewVersion::V1Beta1, "u", true, &respond(200, "application/json", body))
                .unwrap();
        assert_eq!(answer.patch, Some((b"[]".to_vec(), "JSONPatch".to_owned())));
        let choose = |versions: &[&str]| {
            let versions: Vec<String> = versions.iter().map(|&v| v.to_owned()).collect();
            ReviewVersion::choose(&versions)
        };
        assert_eq!(choose(&["v2", "v1beta1", "v1"]), Some(ReviewVersion::V1Beta1));
        assert_eq!(choose(&["v2"]), None);
    }

    #[test]
    fn warnings_without_control_characters_pass() {
        let body = answer(r#"{"uid":"u","allowed":true,"warnings":["careful\nnow","two",""]}"#);
        let answer = read(ReviewVersion::V1, "u", false, &respond(200, "", &body)).unwrap();
        assert_eq!(answer.warnings, ["two"]);
    }

    #[test]
    fn denials_read_as_upstream() {
        let cases = [
            (json!(null), 400, "", "without explanation"),
            (
                json!({"message": "no way", "code": 403, "reason": "Forbidden"}),
                403,
                "Forbidden",
                ": no way",
            ),
            (json!({"reason": "BadThing"}), 400, "BadThing", ": BadThing"),
            (json!({"message": "m", "code": 200, "status": "Success"}), 400, "", ": m"),
        ];
        for (status, code, reason, ending) in cases {
            let error = denial("h", Some(&status));
            assert_eq!(error.code().as_u16(), code);
            assert_eq!(error.reason(), reason);
            let separator = if ending.starts_with(':') { "" } else { " " };
            assert_eq!(
                error.message(),
                format!("admission webhook \"h\" denied the request{separator}{ending}")
            );
        }
        let detailed =
            denial("h", Some(&json!({"details": {"name": "x", "causes": [{"field": "f"}]}})));
        assert_eq!(
            detailed.to_value()["details"],
            json!({"name": "x", "causes": [{"field": "f"}]})
        );
    }
}
