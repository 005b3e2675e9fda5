//! Errors, exactly as Kubernetes words them.

use std::borrow::Cow;

use fleetwright_kschema::{
    field::{FieldError, aggregate_message},
    gotext::quote as go_quote,
};
use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::gvk::{GroupResource, GroupVersionKind};

/// The result of handling a request.
pub type Result<T> = std::result::Result<T, ApiError>;

/// A failure that becomes a `Status` response.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError(Box<Inner>);

#[derive(Clone, Debug, PartialEq)]
struct Inner {
    code: u16,
    reason: Cow<'static, str>,
    message: String,
    details: Option<Details>,
    /// Whether the answer is text, not a `Status`: paths that nobody serves.
    plain: bool,
    /// A token to go on with, where a list cannot continue as it began.
    continue_token: String,
}

/// The `details` of a `Status`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// The group of the object.
    pub group: String,
    /// The resource or kind.
    pub kind: String,
    /// The object's name.
    pub name: String,
    /// The object's UID.
    pub uid: String,
    /// What exactly is wrong.
    pub causes: Vec<Cause>,
    /// When to try again.
    pub retry_after_seconds: u32,
}

/// One of the `causes` of a `Status`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cause {
    /// A machine-readable reason.
    pub reason: String,
    /// What is wrong.
    pub message: String,
    /// The field that is wrong.
    pub field: String,
}

impl Details {
    fn of(resource: &GroupResource, name: &str) -> Self {
        Self {
            group: resource.group.to_string(),
            kind: resource.resource.to_string(),
            name: name.to_owned(),
            ..Self::default()
        }
    }
}

impl ApiError {
    /// An error with every part chosen by the caller.
    pub fn new(
        code: StatusCode,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
        details: Option<Details>,
    ) -> Self {
        Self(Box::new(Inner {
            code: code.as_u16(),
            reason: reason.into(),
            message: message.into(),
            details,
            plain: false,
            continue_token: String::new(),
        }))
    }

    /// The object does not exist.
    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            format!("{resource} {} not found", go_quote(name)),
            Some(Details::of(resource, name)),
        )
    }

    /// Nothing is served at this path of the API.
    pub fn path_not_found() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            "the server could not find the requested resource",
            Some(Details::default()),
        )
    }

    /// The path is not one of the API; the answer is text.
    pub fn page_not_found() -> Self {
        let mut error = Self::new(StatusCode::NOT_FOUND, "NotFound", "404 page not found", None);
        error.0.plain = true;
        error
    }

    /// Whether the answer is text.
    pub fn is_plain(&self) -> bool {
        self.0.plain
    }

    /// An object of that name is there already.
    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "AlreadyExists",
            format!("{resource} {} already exists", go_quote(name)),
            Some(Details::of(resource, name)),
        )
    }

    /// The object changed since it was read, or a precondition does not hold.
    pub fn conflict(resource: &GroupResource, name: &str, why: &str) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "Conflict",
            format!("Operation cannot be fulfilled on {resource} {}: {why}", go_quote(name)),
            Some(Details::of(resource, name)),
        )
    }

    /// Other managers own fields that an apply wants to change.
    pub fn apply_conflict(message: String, causes: Vec<Cause>) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "Conflict",
            message,
            Some(Details { causes, ..Details::default() }),
        )
    }

    /// The user may not do that.
    pub fn forbidden(resource: &GroupResource, name: &str, why: &str) -> Self {
        let message = if resource.resource.is_empty() {
            format!("forbidden: {why}")
        } else if name.is_empty() {
            format!("{resource} is forbidden: {why}")
        } else {
            format!("{resource} {} is forbidden: {why}", go_quote(name))
        };
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message, Some(Details::of(resource, name)))
    }

    /// The request carries no valid credentials.
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized", None)
    }

    /// The object breaks validation rules.
    pub fn invalid(kind: &GroupVersionKind, name: &str, errors: &[FieldError]) -> Self {
        let causes = errors
            .iter()
            .map(|error| Cause {
                reason: error.kind.reason().to_owned(),
                message: error.body(),
                field: error.path.to_string(),
            })
            .collect();
        let mut message = format!("{} {} is invalid", kind.group_kind(), go_quote(name));
        if let Some(all) = aggregate_message(errors) {
            message.push_str(": ");
            message.push_str(&all);
        }
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Invalid",
            message,
            Some(Details {
                group: kind.group.to_string(),
                kind: kind.kind.to_string(),
                name: name.to_owned(),
                causes,
                ..Details::default()
            }),
        )
    }

    /// The request cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message, None)
    }

    /// The verb does not exist for this resource.
    pub fn method_not_supported(resource: &GroupResource, action: &str) -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            format!(
                "{action} is not supported on resources of kind {}",
                go_quote(&resource.to_string())
            ),
            Some(Details::of(resource, "")),
        )
    }

    /// A method that the path does not have at all.
    pub fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
            Some(Details::default()),
        )
    }

    /// The body is of a type that is not read here.
    pub fn unsupported_media_type(supported: &[&str]) -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                supported.join(", ")
            ),
            None,
        )
    }

    /// The patch is of a type that the path does not take at all.
    pub fn unroutable_media_type() -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            "415: Unsupported Media Type",
            Some(Details::default()),
        )
    }

    /// None of the types that the client accepts can be produced.
    pub fn not_acceptable(available: &[&str]) -> Self {
        Self::new(
            StatusCode::NOT_ACCEPTABLE,
            "NotAcceptable",
            format!("406: Not Acceptable\n\nAvailable representations: {}", available.join(", ")),
            Some(Details::default()),
        )
    }

    /// The media type is known, but not the shape that is asked for in it.
    pub fn no_such_shape(supported: &[&str]) -> Self {
        Self::new(
            StatusCode::NOT_ACCEPTABLE,
            "NotAcceptable",
            format!("only the following media types are accepted: {}", supported.join(", ")),
            None,
        )
    }

    /// The body is larger than the server reads.
    pub fn too_large(message: &str) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            format!("Request entity too large: {message}"),
            None,
        )
    }

    /// The object is larger than a cluster keeps. The words are those of etcd, and of its client
    /// for what it does not even send.
    pub fn too_large_to_store(size: usize) -> Self {
        const SENT: usize = 2 * 1024 * 1024;
        let message = if size > SENT {
            format!(
                "rpc error: code = ResourceExhausted desc = trying to send message larger than max ({size} vs. {SENT})"
            )
        } else {
            "etcdserver: request is too large".to_owned()
        };
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message, None)
    }

    /// The revision asked for is no longer kept.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message, None)
    }

    /// The client must wait.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "TooManyRequests",
            message,
            Some(Details { retry_after_seconds, ..Details::default() }),
        )
    }

    /// The request ran out of time.
    pub fn timeout(message: &str, retry_after_seconds: u32) -> Self {
        Self::new(
            StatusCode::GATEWAY_TIMEOUT,
            "Timeout",
            format!("Timeout: {message}"),
            Some(Details { retry_after_seconds, ..Details::default() }),
        )
    }

    /// The server cannot answer now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message, None)
    }

    /// Something that should not happen happened.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let message = message.to_string();
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            format!("Internal error occurred: {message}"),
            Some(Details {
                causes: vec![Cause { message, ..Cause::default() }],
                ..Details::default()
            }),
        )
    }

    /// A part of Kubernetes that this server does not have.
    pub fn not_implemented(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "NotImplemented", message, None)
    }

    /// The HTTP status code.
    pub fn code(&self) -> StatusCode {
        StatusCode::from_u16(self.0.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The machine-readable reason.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// What went wrong.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Adds a token with which an inconsistent list may go on.
    #[must_use]
    pub fn with_continue(mut self, token: String) -> Self {
        self.0.continue_token = token;
        self
    }

    /// Puts words before the message.
    #[must_use]
    pub fn prefixed(mut self, words: &str) -> Self {
        self.0.message.insert_str(0, words);
        self
    }

    /// Adds a cause.
    #[must_use]
    pub fn with_cause(mut self, cause: Cause) -> Self {
        self.0.details.get_or_insert_default().causes.push(cause);
        self
    }

    /// Replaces the details.
    #[must_use]
    pub fn with_details(mut self, details: Details) -> Self {
        self.0.details = Some(details);
        self
    }

    /// When the client should try again.
    pub fn retry_after_seconds(&self) -> Option<u32> {
        self.0.details.as_ref().map(|d| d.retry_after_seconds).filter(|&s| s > 0)
    }

    /// The `Status` object.
    pub fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.0.message,
            "code": self.0.code,
        });
        if !self.0.reason.is_empty() {
            status["reason"] = (*self.0.reason).into();
        }
        if !self.0.continue_token.is_empty() {
            status["metadata"]["continue"] = self.0.continue_token.clone().into();
        }
        if let Some(details) = &self.0.details {
            status["details"] = details.to_value();
        }
        status
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (key, value) in
            [("group", &self.group), ("kind", &self.kind), ("name", &self.name), ("uid", &self.uid)]
        {
            if !value.is_empty() {
                map.insert(key.to_owned(), value.clone().into());
            }
        }
        if !self.causes.is_empty() {
            map.insert("causes".to_owned(), self.causes.iter().map(Cause::to_value).collect());
        }
        if self.retry_after_seconds > 0 {
            map.insert("retryAfterSeconds".to_owned(), self.retry_after_seconds.into());
        }
        Value::Object(map)
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (key, value) in
            [("reason", &self.reason), ("message", &self.message), ("field", &self.field)]
        {
            if !value.is_empty() {
                map.insert(key.to_owned(), value.clone().into());
            }
        }
        Value::Object(map)
    }
}
