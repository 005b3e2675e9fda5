//! A rule, what it is asked and what it answers.

use futures::future::BoxFuture;
use serde_json::Value;

use crate::{Edit, FieldError};

/// What is about to happen to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// It is made.
    Create,
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
    /// Somebody connects to it.
    Connect,
}

impl Operation {
    /// The word of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        [Self::Create, Self::Update, Self::Delete, Self::Connect]
            .into_iter()
            .find(|operation| operation.as_str() == word)
    }
}

/// What a rule is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What is about to happen.
    pub operation: Operation,
    /// The kind of the object.
    pub kind: String,
    /// The namespace; empty for objects of the cluster.
    pub namespace: String,
    /// The name; empty when the server will make one.
    pub name: String,
    /// The object as it would be; absent for a deletion.
    pub object: Option<Value>,
    /// The object as it is; absent for a creation.
    pub old_object: Option<Value>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
}

/// What a rule answers. Without errors the request is allowed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// What is wrong.
    pub errors: Vec<FieldError>,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// Changes to the object; a rule that validates makes none.
    pub edit: Option<Edit>,
}

impl Verdict {
    /// Allowed, without a word.
    pub fn allowed() -> Self {
        Self::default()
    }

    /// Refused.
    pub fn refused(errors: Vec<FieldError>) -> Self {
        Self { errors, ..Self::default() }
    }
}

/// What [`Rule::review`] returns. `Err` means that the rule could not do its work, for people to
/// read: the webhook's failure policy decides what happens then.
pub type RuleFuture<'a> = BoxFuture<'a, Result<Verdict, String>>;

/// Looks at what users write.
pub trait Rule: Send + Sync {
    /// Answers one request.
    fn review<'a>(&'a self, request: &'a Request) -> RuleFuture<'a>;
}
