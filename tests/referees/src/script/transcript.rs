//! What a server answered, in a form that can be normalised, compared and read.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::json_path::JsonPath;

/// One answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The title of the interaction.
    pub title: String,
    /// The request as the script has it.
    pub request: String,
    /// The status code; none for steps that send no request.
    pub code: Option<u16>,
    /// The content type.
    pub content_type: Option<String>,
    /// All `Warning` headers.
    pub warnings: Vec<String>,
    /// The body.
    pub body: Body,
    /// Which parts of the body count.
    pub selection: Selection,
}

/// Which parts of an answer are compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Nothing but the status code and the headers.
    pub code_only: bool,
    /// Only these, by the names the script gives them.
    pub show: Vec<(String, JsonPath)>,
    /// All but these.
    pub hide: Vec<JsonPath>,
    /// The causes of a refusal, and warnings, in any order.
    pub unordered: bool,
}

/// The body of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// None, or not compared.
    Nothing,
    /// A JSON document.
    Json(Value),
    /// A sequence of documents: a watch.
    Events {
        /// The events in order.
        events: Vec<Value>,
        /// Whether the server ended the stream.
        closed: bool,
    },
    /// Anything else.
    Text(String),
}

impl Entry {
    /// Leaves only what the script wants to see of the body.
    pub fn select(&mut self) {
        if self.selection.code_only {
            self.body = Body::Nothing;
        }
        if self.selection.unordered {
            self.warnings.sort();
        }
        match &mut self.body {
            Body::Json(value) => self.selection.apply(value),
            Body::Events { events, .. } => {
                for event in events {
                    self.selection.apply(event);
                }
            }
            Body::Text(_) | Body::Nothing => {}
        }
    }

    /// The entry as text, the same for equal entries.
    pub fn render(&self) -> String {
        let mut text = format!("{}\n", self.request);
        if let Some(code) = self.code {
            let _ = writeln!(text, "{code} {}", self.content_type.as_deref().unwrap_or("-"));
        }
        for warning in &self.warnings {
            let _ = writeln!(text, "warning: {warning}");
        }
        match &self.body {
            Body::Nothing => {}
            Body::Json(value) => {
                let _ = writeln!(text, "{value:#}");
            }
            Body::Events { events, closed } => {
                for event in events {
                    let _ = writeln!(text, "{event:#}");
                }
                let _ = writeln!(text, "{}", if *closed { "(closed)" } else { "(still open)" });
            }
            Body::Text(body) => {
                let _ = writeln!(text, "{body}");
            }
        }
        text
    }
}

impl Selection {
    fn apply(&self, value: &mut Value) {
        for path in &self.hide {
            path.remove(value);
        }
        if self.unordered {
            sort_causes(value);
        }
        if !self.show.is_empty() {
            let shown: Map<String, Value> = self
                .show
                .iter()
                .map(|(name, path)| (name.clone(), path.find(value).into_iter().cloned().collect()))
                .collect();
            *value = Value::Object(shown);
        }
    }
}

/// The real server goes through the fields of a custom object in random order, so what is wrong
/// with them comes in random order too, once as a list and once as a sentence.
fn sort_causes(status: &mut Value) {
    if let Some(causes) = status.pointer_mut("/details/causes").and_then(Value::as_array_mut) {
        causes.sort_by_key(ToString::to_string);
        let (start, _) =
            status["message"].as_str().and_then(|text| text.split_once(": [")).unwrap_or_default();
        status["message"] = format!("{start}: [the causes, in any order]").into();
    }
}
