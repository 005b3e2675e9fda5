//! Why a cloud did not do what it was asked, by what can be done about it.

use std::{fmt, time::Duration};

/// What an error means for whoever asked. Decided by the cloud's error code, never by the HTTP
/// status: clouds answer a lack of capacity with 500 and a wrong quota with 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorClass {
    /// The request can never work as it is: what the user wrote is wrong. The only terminal class.
    Configuration,
    /// There is no capacity now; another zone, type or time may have some.
    Capacity,
    /// A spread placement group is full in this zone.
    SpreadLimit,
    /// The account may not have more.
    Quota,
    /// Too many requests.
    Throttled,
    /// Credentials are wrong, or an action is not allowed.
    Credentials,
    /// The cloud is at fault, or the network; it may work next time.
    Transient,
    /// No answer came: it may or may not have been done. Ask again with the same token.
    AnswerLost,
    /// What was named does not exist.
    NotFound,
    /// What was to be made is there already.
    AlreadyExists,
    /// What was to be removed is still used.
    InUse,
    /// More at once than the cloud takes: split the request.
    BatchTooBig,
    /// The token was used before with other parameters.
    TokenMismatch,
    /// What the token made was terminated since.
    TokenSpent,
}

impl ErrorClass {
    /// What an HTTP status means where the cloud's code says nothing.
    pub fn by_status(status: u16) -> Self {
        match status {
            // Credentials are renewed while we run.
            401 | 403 => Self::Credentials,
            404 => Self::NotFound,
            408 => Self::Transient,
            429 => Self::Throttled,
            400..500 => Self::Configuration,
            _ => Self::Transient,
        }
    }
}

/// An answer that says no, or none at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudError {
    /// What it means.
    pub class: ErrorClass,
    /// What was attempted, in the cloud's words (`RunInstances`).
    pub operation: Box<str>,
    /// The cloud's code (`InsufficientInstanceCapacity`); empty when no answer came.
    pub code: String,
    /// The cloud's message, free of secrets.
    pub message: String,
    /// The cloud's name of the request, for its support.
    pub request_id: Option<Box<str>>,
    /// The permission that is missing, where the cloud or the operation tells (`ec2:RunInstances`).
    pub missing_permission: Option<Box<str>>,
    /// Ask no earlier than after this time.
    pub retry_after: Option<Duration>,
}

impl CloudError {
    /// An error without details.
    pub fn new(class: ErrorClass, operation: &str, code: &str, message: impl Into<String>) -> Self {
        Self {
            class,
            operation: operation.into(),
            code: code.to_owned(),
            message: message.into(),
            request_id: None,
            missing_permission: None,
            retry_after: None,
        }
    }

    /// What the user wrote is wrong; `message` names the field, the value and the fix.
    pub fn configuration(operation: &str, message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Configuration, operation, "", message)
    }

    /// Whether the same request may work later without anybody changing anything.
    pub fn is_retryable(&self) -> bool {
        self.class != ErrorClass::Configuration
    }
}

impl fmt::Display for CloudError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.code.is_empty() {
            write!(f, "{}", self.message)?;
        } else {
            write!(f, "{}: {}", self.code, self.message)?;
        }
        if let Some(permission) = &self.missing_permission {
            write!(f, " (the credentials lack the permission {permission})")?;
        }
        Ok(())
    }
}

impl std::error::Error for CloudError {}
