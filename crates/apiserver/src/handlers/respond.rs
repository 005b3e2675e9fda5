//! What a client gets back, and in which shape.

use std::convert::Infallible;

use bytes::Bytes;
use futures::stream::BoxStream;
use http::{HeaderMap, StatusCode, header::ACCEPT};
use serde_json::{Value, json};

use super::Call;
use crate::{
    query::Query,
    status::{ApiError, Result},
    table,
};

/// The shape that a client asks for in its `Accept` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The objects themselves.
    Plain,
    /// A table, as kubectl prints it.
    Table(table::Include),
    /// Metadata alone.
    Metadata,
}

/// How the answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Yaml,
}

/// A successful answer.
pub(crate) struct Reply {
    pub status: StatusCode,
    pub body: Body,
}

/// The body of an answer.
pub(crate) enum Body {
    /// JSON in pieces, ready to be sent.
    Pieces(Vec<Bytes>),
    /// An object.
    Json(Value),
    /// A watch: one event for each item.
    Stream(BoxStream<'static, std::result::Result<Bytes, Infallible>>),
}

impl Reply {
    pub(crate) fn ok(body: Body) -> Self {
        Self { status: StatusCode::OK, body }
    }

    pub(crate) fn json(status: StatusCode, value: Value) -> Self {
        Self { status, body: Body::Json(value) }
    }
}

const MEDIA_TYPES: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];

/// Reads the `Accept` header. Protobuf is never chosen: every client that asks for it takes JSON
/// as well.
pub(crate) fn negotiate(headers: &HeaderMap, query: &Query) -> Result<(Shape, Encoding)> {
    let accept = headers.get(ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    if accept.is_empty() {
        return Ok((Shape::Plain, Encoding::Json));
    }
    let mut clauses: Vec<Clause<'_>> = accept.split(',').filter_map(Clause::parse).collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    let mut known_media = false;
    for clause in &clauses {
        let encoding = match clause.media {
            "application/json" | "*/*" | "application/*" => Encoding::Json,
            "application/yaml" => Encoding::Yaml,
            _ => continue,
        };
        known_media = true;
        let shape = match (clause.convert_to, clause.group, clause.version) {
            ("", _, _) => Shape::Plain,
            ("Table", "meta.k8s.io", "v1" | "v1beta1") => {
                Shape::Table(table::Include::parse(query.text("includeObject"))?)
            }
            (
                "PartialObjectMetadata" | "PartialObjectMetadataList",
                "meta.k8s.io",
                "v1" | "v1beta1",
            ) => Shape::Metadata,
            _ => continue,
        };
        return Ok((shape, encoding));
    }
    Err(if known_media {
        ApiError::no_such_shape(&MEDIA_TYPES[..3])
    } else {
        ApiError::not_acceptable(MEDIA_TYPES)
    })
}

struct Clause<'a> {
    media: &'a str,
    quality: f64,
    convert_to: &'a str,
    group: &'a str,
    version: &'a str,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let mut clause = Self {
            media: parts.next().filter(|m| !m.is_empty())?,
            quality: 1.0,
            convert_to: "",
            group: "",
            version: "",
        };
        for part in parts {
            match part.split_once('=') {
                Some(("q", value)) => clause.quality = value.trim().parse().unwrap_or(1.0),
                Some(("as", value)) => clause.convert_to = value,
                Some(("g", value)) => clause.group = value,
                Some(("v", value)) => clause.version = value,
                _ => {}
            }
        }
        Some(clause)
    }
}

impl Call {
    /// Answers with one object in the shape that the client asked for.
    pub(crate) fn reply(&self, status: StatusCode, object: Value) -> Reply {
        let value = match self.shape {
            Shape::Plain => object,
            Shape::Metadata => metadata_only(object),
            Shape::Table(include) => {
                let metadata = json!({
                    "resourceVersion": crate::object::resource_version(&object),
                });
                self.table(include, &metadata, vec![object], true)
            }
        };
        Reply::json(status, value)
    }

    /// The table of some objects.
    pub(crate) fn table(
        &self,
        include: table::Include,
        metadata: &Value,
        objects: Vec<Value>,
        headers: bool,
    ) -> Value {
        table::render(&*self.resource.kind, include, metadata, objects, headers, self.server.now())
    }
}

/// An object reduced to its metadata.
pub(crate) fn metadata_only(object: Value) -> Value {
    let metadata = match object {
        Value::Object(mut map) => map.remove("metadata").unwrap_or_else(|| json!({})),
        _ => json!({}),
    };
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(header: &str) -> Result<(Shape, Encoding)> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, header.parse().unwrap());
        negotiate(&headers, &Query::default())
    }

    #[test]
    fn chooses_what_can_be_made() {
        let table = Shape::Table(table::Include::Metadata);
        for (header, expected) in [
            ("application/json", (Shape::Plain, Encoding::Json)),
            ("*/*", (Shape::Plain, Encoding::Json)),
            (
                "application/vnd.kubernetes.protobuf, application/json",
                (Shape::Plain, Encoding::Json),
            ),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                (table, Encoding::Json),
            ),
            (
                "application/json;as=Nonsense;v=v1;g=meta.k8s.io,application/json",
                (Shape::Plain, Encoding::Json),
            ),
            ("application/yaml", (Shape::Plain, Encoding::Yaml)),
            ("application/json;q=0.5,application/yaml", (Shape::Plain, Encoding::Yaml)),
        ] {
            assert_eq!(accept(header).unwrap(), expected, "{header}");
        }
        assert_eq!(accept("text/html").unwrap_err().code(), StatusCode::NOT_ACCEPTABLE);
    }
}
