//! What can be wrong with a body.

/// A body that is not of its kind. The messages are those of kube-apiserver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A value of the wrong type.
    #[error("json: cannot unmarshal {value} into {} of type {go_type}", place(.owner, .field))]
    WrongType {
        /// What was found: `string`, `number 1.5`, `object`.
        value: String,
        /// The struct that holds the field; empty at the top.
        owner: String,
        /// The path of fields to it; empty at the top.
        field: String,
        /// The Go type that was expected.
        go_type: String,
    },
    /// A value that its type refuses: a quantity, a time, base64.
    #[error("{0}")]
    BadValue(String),
    /// A kind that is not built in.
    #[error(
        "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
    )]
    UnknownKind {
        /// Group and version.
        api_version: String,
        /// The kind.
        kind: String,
    },
}

fn place(owner: &str, field: &str) -> String {
    if owner.is_empty() && field.is_empty() {
        "Go value".to_owned()
    } else {
        format!("Go struct field {owner}.{field}")
    }
}
