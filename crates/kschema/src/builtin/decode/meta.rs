//! Which kind a body says it is.

use crate::builtin::gojson::{Node, SyntaxError};

use super::DecodeError;

/// `apiVersion` and `kind` of a body, empty where it has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypeMeta {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}

/// A body whose kind cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetaError {
    /// Not JSON.
    #[error("couldn't get version/kind; json parse error: {0}")]
    Syntax(#[from] SyntaxError),
    /// Not an object, or its kind is not a string.
    #[error("couldn't get version/kind; json parse error: {0}")]
    Type(#[from] DecodeError),
    /// More than one slash.
    #[error("unexpected GroupVersion string: {0}")]
    GroupVersion(String),
}

const GO_TYPE: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";

/// Reads `apiVersion` and `kind`. As Go's own decoder is used for this, case does not matter.
pub fn type_meta(body: &Node) -> Result<TypeMeta, MetaError> {
    let mut meta = TypeMeta::default();
    let fields = match body {
        Node::Object(fields) => fields.as_slice(),
        Node::Null => &[],
        other => return Err(wrong_type(other, "", GO_TYPE).into()),
    };
    let mut first_error = None;
    for (name, value) in fields {
        let (field, place) = if name.eq_ignore_ascii_case("apiVersion") {
            ("apiVersion", &mut meta.api_version)
        } else if name.eq_ignore_ascii_case("kind") {
            ("kind", &mut meta.kind)
        } else {
            continue;
        };
        match value {
            Node::String(text) => place.clone_from(text),
            Node::Null => {}
            other => {
                first_error.get_or_insert_with(|| wrong_type(other, field, "string"));
            }
        }
    }
    if let Some(error) = first_error {
        return Err(error.into());
    }
    if meta.api_version.matches('/').count() > 1 {
        return Err(MetaError::GroupVersion(meta.api_version));
    }
    Ok(meta)
}

fn wrong_type(value: &Node, field: &str, go_type: &str) -> DecodeError {
    DecodeError::WrongType {
        value: value.go_kind().to_owned(),
        owner: String::new(),
        field: field.to_owned(),
        go_type: go_type.to_owned(),
    }
}
