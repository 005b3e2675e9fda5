//! What a custom kind adds to the generic handler: everything comes from its schema.

use std::sync::Arc;

use fleetwright_kschema::{
    Verdict,
    columns::Columns,
    field::{FieldError, Path},
    names,
    scale::{self, ScalePaths},
};
use serde_json::Value;

use crate::{
    gvk::GroupVersionKind,
    kinds::{Column, Kind},
    object,
    registry::CustomSchema,
    request::Context,
};

/// A kind that a CustomResourceDefinition describes.
pub struct CustomKind {
    /// Its name.
    pub gvk: GroupVersionKind,
    /// Its shape.
    pub schema: Arc<CustomSchema>,
    /// Whether it has the status subresource.
    pub status: bool,
    /// Where it keeps its replicas, if it can be scaled.
    pub scale: Option<ScalePaths>,
    /// Its table.
    pub columns: Columns,
}

impl Kind for CustomKind {
    fn prepare_create(&self, _context: &Context, object: &mut Value) {
        if self.status {
            object::remove(object, &["status"]);
        }
    }

    fn prepare_status_update(&self, _context: &Context, new: &mut Value, old: &Value) {
        // Nothing but the status, and who owns it, is taken over.
        let managed = object::get(new, &["metadata", "managedFields"]).cloned();
        let version = object::resource_version(new).to_owned();
        let status = new.get("status").cloned();
        *new = old.clone();
        object::set(new, &["metadata", "resourceVersion"], version);
        for (path, value) in
            [(&["metadata", "managedFields"][..], managed), (&["status"][..], status)]
        {
            match value {
                Some(value) => object::set(new, path, value),
                None => {
                    object::remove(new, path);
                }
            }
        }
    }

    fn check_create(&self, object: &Value, found: Vec<FieldError>) -> Verdict {
        let mut verdict =
            self.schema.compiled.validate_create_all(object, self.scale.as_ref(), found);
        let kind = object::text(object, &["kind"]);
        if kind != &*self.gvk.kind {
            let why = format!("must be {}", self.gvk.kind);
            verdict.errors.insert(0, FieldError::invalid(&Path::new("kind"), kind, why));
        }
        verdict
    }

    fn check_update(&self, new: &Value, old: &Value, found: Vec<FieldError>) -> Verdict {
        self.schema.compiled.validate_update_all(new, old, self.scale.as_ref(), found)
    }

    fn check_status_update(&self, new: &Value, old: &Value, found: Vec<FieldError>) -> Verdict {
        self.schema.compiled.validate_status_update_all(new, old, self.scale.as_ref(), found)
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        names::finalizer_warnings(&object["metadata"], old.map(|old| &old["metadata"]))
    }

    fn has_generation(&self) -> bool {
        true
    }

    fn has_status(&self) -> bool {
        self.status
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn generation_changes(&self, new: &Value, old: &Value) -> bool {
        let same = |key: &str| new.get(key) == old.get(key);
        let keys = [new, old].into_iter().filter_map(Value::as_object).flat_map(|map| map.keys());
        keys.into_iter().any(|key| {
            let own = matches!(key.as_str(), "metadata" | "apiVersion" | "kind");
            !(own || same(key) || (self.status && key == "status"))
        })
    }

    fn selectable_field(&self, object: &Value, field: &str) -> Option<String> {
        let path =
            self.schema.selectable.iter().find(|path| path.trim_start_matches('.') == field)?;
        Some(match scale::get(object, path).ok().flatten() {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        })
    }

    fn columns(&self) -> Option<Vec<Column>> {
        Some(self.columns.definitions().iter().map(column).collect())
    }

    fn cells(&self, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
        self.columns.cells(object, now)
    }
}

/// A column definition as it stands in a table.
fn column(definition: &Value) -> Column {
    let text = |key: &str| object::text(definition, &[key]).to_owned();
    Column {
        name: text("name"),
        kind: match text("type").as_str() {
            "integer" => "integer",
            "number" => "number",
            "boolean" => "boolean",
            "date" => "date",
            _ => "string",
        },
        format: text("format"),
        description: text("description"),
        priority: object::integer(definition, &["priority"])
            .and_then(|priority| i32::try_from(priority).ok())
            .unwrap_or(0),
    }
}
