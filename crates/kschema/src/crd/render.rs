//! How parts of a definition print in errors: as the internal types of the API do.

use serde_json::Value;

use super::spec::Version;
use crate::gotext;

fn json(value: Option<&Value>) -> String {
    value.map_or_else(|| "null".to_owned(), gotext::json)
}

fn list(items: Option<Vec<String>>) -> String {
    items.map_or_else(|| "null".to_owned(), |items| format!("[{}]", items.join(",")))
}

/// Versions without what they share.
pub(super) fn versions(versions: &[Version]) -> String {
    list(Some(versions.iter().map(version).collect()))
}

fn version(version: &Version) -> String {
    let text = |text: &str| gotext::json(&Value::from(text));
    let schema = version.schema.as_ref().map_or_else(
        || "null".to_owned(),
        |validation| {
            let schema = validation.get("openAPIV3Schema").filter(|s| s.is_object());
            let schema = schema.map_or_else(|| "null".to_owned(), schema_props);
            format!("{{\"OpenAPIV3Schema\":{schema}}}")
        },
    );
    let columns: Vec<String> = version.columns.iter().map(column).collect();
    let selectable: Vec<String> = version
        .selectable_fields
        .iter()
        .map(|f| format!("{{\"JSONPath\":{}}}", json(f.get("jsonPath"))))
        .collect();
    format!(
        "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\
         \"Schema\":{schema},\"Subresources\":{},\"AdditionalPrinterColumns\":{},\
         \"SelectableFields\":{}}}",
        text(&version.name),
        version.served,
        version.storage,
        version.deprecated,
        version.deprecation_warning.as_deref().map_or("null".to_owned(), text),
        version.subresources.as_ref().map_or("null".to_owned(), subresources),
        list((!columns.is_empty()).then_some(columns)),
        list((!selectable.is_empty()).then_some(selectable)),
    )
}

fn subresources(subresources: &Value) -> String {
    let status = match subresources.get("status") {
        Some(status) if !status.is_null() => "{}",
        _ => "null",
    };
    let scale = match subresources.get("scale") {
        Some(scale) if scale.is_object() => format!(
            "{{\"SpecReplicasPath\":{},\"StatusReplicasPath\":{},\"LabelSelectorPath\":{}}}",
            json(scale.get("specReplicasPath")),
            json(scale.get("statusReplicasPath")),
            json(scale.get("labelSelectorPath"))
        ),
        _ => "null".to_owned(),
    };
    format!("{{\"Status\":{status},\"Scale\":{scale}}}")
}

fn column(column: &Value) -> String {
    let text = |name: &str| gotext::json(column.get(name).unwrap_or(&Value::from("")));
    format!(
        "{{\"Name\":{},\"Type\":{},\"Format\":{},\"Description\":{},\"Priority\":{},\"JSONPath\":{}}}",
        text("name"),
        text("type"),
        text("format"),
        text("description"),
        gotext::json(column.get("priority").unwrap_or(&Value::from(0))),
        text("jsonPath")
    )
}

/// How a field of a schema prints.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Flag,
    /// A value, or null if it is absent.
    Plain,
    Schema,
    Schemas,
    Properties,
    SchemaOrBool,
    Items,
    Docs,
    Rules,
}

const FIELDS: [(&str, &str, Kind); 43] = [
    ("ID", "id", Kind::Text),
    ("Schema", "$schema", Kind::Text),
    ("Ref", "$ref", Kind::Plain),
    ("Description", "description", Kind::Text),
    ("Type", "type", Kind::Text),
    ("Nullable", "nullable", Kind::Flag),
    ("Format", "format", Kind::Text),
    ("Title", "title", Kind::Text),
    ("Default", "default", Kind::Plain),
    ("Maximum", "maximum", Kind::Plain),
    ("ExclusiveMaximum", "exclusiveMaximum", Kind::Flag),
    ("Minimum", "minimum", Kind::Plain),
    ("ExclusiveMinimum", "exclusiveMinimum", Kind::Flag),
    ("MaxLength", "maxLength", Kind::Plain),
    ("MinLength", "minLength", Kind::Plain),
    ("Pattern", "pattern", Kind::Text),
    ("MaxItems", "maxItems", Kind::Plain),
    ("MinItems", "minItems", Kind::Plain),
    ("UniqueItems", "uniqueItems", Kind::Flag),
    ("MultipleOf", "multipleOf", Kind::Plain),
    ("Enum", "enum", Kind::Plain),
    ("MaxProperties", "maxProperties", Kind::Plain),
    ("MinProperties", "minProperties", Kind::Plain),
    ("Required", "required", Kind::Plain),
    ("Items", "items", Kind::Items),
    ("AllOf", "allOf", Kind::Schemas),
    ("OneOf", "oneOf", Kind::Schemas),
    ("AnyOf", "anyOf", Kind::Schemas),
    ("Not", "not", Kind::Schema),
    ("Properties", "properties", Kind::Properties),
    ("AdditionalProperties", "additionalProperties", Kind::SchemaOrBool),
    ("PatternProperties", "patternProperties", Kind::Properties),
    ("Dependencies", "dependencies", Kind::Plain),
    ("AdditionalItems", "additionalItems", Kind::SchemaOrBool),
    ("Definitions", "definitions", Kind::Properties),
    ("ExternalDocs", "externalDocs", Kind::Docs),
    ("Example", "example", Kind::Plain),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Kind::Plain),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Kind::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Kind::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Kind::Plain),
    ("XListType", "x-kubernetes-list-type", Kind::Plain),
    ("XMapType", "x-kubernetes-map-type", Kind::Plain),
];

/// Names of fields that a schema of an object with a status subresource may have at its root.
const ALLOWED_AT_ROOT: [&str; 22] = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

/// What is wrong with the fields at the root of a schema, if the status is a subresource.
pub(super) enum RootIssue {
    Type,
    Field(String),
}

pub(super) fn root_issue(schema: &Value) -> Option<RootIssue> {
    let is_set = |name: &str| {
        schema.get(name).is_some_and(|value| match value {
            Value::Null | Value::Bool(false) => name == "x-kubernetes-preserve-unknown-fields",
            Value::String(text) => !text.is_empty() || name == "$ref",
            Value::Array(items) => !items.is_empty(),
            _ => true,
        })
    };
    for (name, key, _) in FIELDS {
        if !is_set(key) {
            continue;
        }
        if name == "Type" {
            if schema.get("type").and_then(Value::as_str) != Some("object") {
                return Some(RootIssue::Type);
            }
        } else if !ALLOWED_AT_ROOT.contains(&name) {
            return Some(RootIssue::Field(format!(
                "only [{}] fields are allowed at the root of the schema if the status \
                 subresource is enabled",
                ALLOWED_AT_ROOT.join(" ")
            )));
        }
    }
    None
}

/// A schema with all its fields.
pub(super) fn schema_props(schema: &Value) -> String {
    let mut parts: Vec<String> = FIELDS
        .iter()
        .map(|(name, key, kind)| format!("\"{name}\":{}", field(schema.get(key), *kind)))
        .collect();
    let rules = field(schema.get("x-kubernetes-validations"), Kind::Rules);
    parts.push(format!("\"XValidations\":{rules}"));
    format!("{{{}}}", parts.join(","))
}

fn field(value: Option<&Value>, kind: Kind) -> String {
    let absent = match kind {
        Kind::Text => "\"\"",
        Kind::Flag => "false",
        _ => "null",
    };
    let Some(value) = value.filter(|value| !value.is_null()) else { return absent.to_owned() };
    match (kind, value) {
        (Kind::Schema, Value::Object(_)) => schema_props(value),
        (Kind::Schemas, Value::Array(items)) => {
            list(Some(items.iter().map(schema_props).collect()))
        }
        (Kind::Properties, Value::Object(fields)) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, schema)| {
                    format!(
                        "{}:{}",
                        gotext::json(&Value::from(name.as_str())),
                        schema_props(schema)
                    )
                })
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        (Kind::SchemaOrBool, Value::Bool(allows)) => {
            format!("{{\"Allows\":{allows},\"Schema\":null}}")
        }
        (Kind::SchemaOrBool, _) => {
            format!("{{\"Allows\":true,\"Schema\":{}}}", schema_props(value))
        }
        (Kind::Items, Value::Array(items)) => {
            let items = list(Some(items.iter().map(schema_props).collect()));
            format!("{{\"Schema\":null,\"JSONSchemas\":{items}}}")
        }
        (Kind::Items, _) => {
            format!("{{\"Schema\":{},\"JSONSchemas\":null}}", schema_props(value))
        }
        (Kind::Docs, _) => format!(
            "{{\"Description\":{},\"URL\":{}}}",
            json(value.get("description").or(Some(&Value::from("")))),
            json(value.get("url").or(Some(&Value::from(""))))
        ),
        (Kind::Rules, Value::Array(rules)) => {
            let text = |rule: &Value, name: &str| json(rule.get(name).or(Some(&Value::from(""))));
            let rules = rules.iter().map(|rule| {
                format!(
                    "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\
                     \"FieldPath\":{},\"OptionalOldSelf\":{}}}",
                    text(rule, "rule"),
                    text(rule, "message"),
                    text(rule, "messageExpression"),
                    json(rule.get("reason")),
                    text(rule, "fieldPath"),
                    json(rule.get("optionalOldSelf"))
                )
            });
            list(Some(rules.collect()))
        }
        _ => gotext::json(value),
    }
}
