//! Validation rules as a schema writes them.

/// One entry of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// The expression that must hold.
    pub rule: String,
    /// What to say if it does not.
    pub message: String,
    /// An expression that makes the message.
    pub message_expression: String,
    /// The reason of the error; `None` means FieldValueInvalid.
    pub reason: Option<String>,
    /// The field that the error is about, relative to the node.
    pub field_path: String,
    /// Whether `oldSelf` is optional, so that the rule also holds for new values.
    pub optional_old_self: Option<bool>,
}

impl Rule {
    /// How errors about the rule itself name it.
    pub(crate) fn label(&self) -> &str {
        let label = if self.message.is_empty() { &self.rule } else { &self.message };
        label.trim()
    }

    /// What to say if the rule does not hold.
    pub(crate) fn failure(&self) -> String {
        if self.message.is_empty() {
            format!("failed rule: {}", self.label())
        } else {
            self.label().to_owned()
        }
    }
}
