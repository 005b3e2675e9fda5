//! Tables, as `kubectl get` asks for them.

use fleetwright_kschema::field::{FieldError, Path};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    kinds::{Column, Kind},
    object,
    status::{ApiError, Result},
};

/// How much of each object goes with its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    /// Its metadata.
    Metadata,
    /// All of it.
    Object,
    /// Nothing.
    None,
}

impl Include {
    /// Reads the `includeObject` parameter.
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "" | "Metadata" => Ok(Self::Metadata),
            "Object" => Ok(Self::Object),
            "None" => Ok(Self::None),
            other => {
                let error = FieldError::invalid(
                    &Path::new("includeObject"),
                    other,
                    "must be 'Metadata', 'Object', 'None', or empty",
                );
                Err(ApiError::bad_request(format!(
                    "Unable to convert to Table as requested: {error}"
                )))
            }
        }
    }
}

/// Renders objects as a table. Only the first event of a watch has headers.
pub fn render(
    kind: &dyn Kind,
    include: Include,
    metadata: &Value,
    objects: Vec<Value>,
    headers: bool,
    now: Timestamp,
) -> Value {
    let columns = kind.columns();
    let generic = columns.is_none();
    let definitions = columns.unwrap_or_else(generic_columns);
    let rows: Vec<Value> = objects
        .into_iter()
        .map(|object| {
            let cells = if generic { generic_cells(&object) } else { kind.cells(&object, now) };
            let conditions = kind.row_conditions(&object);
            let shown = match include {
                Include::Metadata => crate::handlers::metadata_only(object),
                Include::Object => object,
                Include::None => Value::Null,
            };
            let mut row = json!({"cells": cells, "object": shown});
            if !conditions.is_empty() {
                row["conditions"] = conditions.into();
            }
            row
        })
        .collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": if headers {
            definitions.iter().map(definition).collect()
        } else {
            Value::Null
        },
        "rows": rows,
    })
}

fn definition(column: &Column) -> Value {
    json!({
        "name": column.name,
        "type": column.kind,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    })
}

fn generic_columns() -> Vec<Column> {
    let column = |name: &str, kind: &'static str, format: &str, description: &str| Column {
        name: name.to_owned(),
        kind,
        format: format.to_owned(),
        description: description.to_owned(),
        priority: 0,
    };
    vec![
        column("Name", "string", "name", NAME_DESCRIPTION),
        column("Created At", "date", "", CREATED_DESCRIPTION),
    ]
}

/// What the API reference says of `metadata.name`.
pub const NAME_DESCRIPTION: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
/// What the API reference says of `metadata.creationTimestamp`.
pub const CREATED_DESCRIPTION: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

fn generic_cells(value: &Value) -> Vec<Value> {
    vec![object::name(value).into(), object::text(value, &["metadata", "creationTimestamp"]).into()]
}
