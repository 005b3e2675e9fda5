//! Schemas of custom kinds as the API publishes them.

use serde_json::{Map, Value, json};

use crate::schema::{Additional, Rule, Schema};

const METADATA_DOC: &str = "Standard object's metadata. More info: https://git.k8s.io/community/\
     contributors/devel/sig-architecture/api-conventions.md#metadata";
const LIST_METADATA_DOC: &str = "Standard list metadata. More info: https://git.k8s.io/community/\
     contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const API_VERSION_DOC: &str = "APIVersion defines the versioned schema of this representation of \
     an object. Servers should convert recognized schemas to the latest internal value, and may \
     reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/\
     sig-architecture/api-conventions.md#resources";
const KIND_DOC: &str = "Kind is a string value representing the REST resource this object \
     represents. Servers may infer this from the endpoint the client submits requests to. Cannot \
     be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/\
     sig-architecture/api-conventions.md#types-kinds";
const EMBEDDED_API_VERSION_DOC: &str = "apiVersion defines the versioned schema of this \
     representation of an object. More info: https://git.k8s.io/community/contributors/devel/\
     sig-architecture/api-conventions.md#resources";
const EMBEDDED_KIND_DOC: &str = "kind is a string value representing the type of this object. In \
     CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/\
     api-conventions.md#types-kinds";

/// The dialect to publish in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAPI 2: what it does not know is left out.
    V2,
    /// OpenAPI 3.
    V3,
}

impl Dialect {
    fn reference(self, name: &str) -> String {
        match self {
            Self::V2 => format!("#/definitions/{name}"),
            Self::V3 => format!("#/components/schemas/{name}"),
        }
    }

    /// A reference with a description of its own.
    fn described_reference(self, name: &str, description: &str) -> Value {
        let reference = self.reference(name);
        match self {
            Self::V2 => json!({"description": description, "$ref": reference}),
            Self::V3 => json!({"description": description, "allOf": [{"$ref": reference}]}),
        }
    }

    fn object_meta(self) -> Value {
        let name = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
        self.described_reference(name, METADATA_DOC)
    }
}

/// The names of a custom kind, for publishing it.
#[derive(Clone, Copy, Debug)]
pub struct PublishedKind<'a> {
    /// The API group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The kind of lists.
    pub list_kind: &'a str,
    /// The plural name.
    pub plural: &'a str,
}

impl PublishedKind<'_> {
    /// The name of the schema of a kind in this group and version: `io.example.v1.Kind`.
    pub fn model_name(&self, kind: &str) -> String {
        let group: Vec<&str> = self.group.split('.').rev().collect();
        format!("{}.{}.{kind}", group.join("."), self.version)
    }

    fn group_version_kind(&self, kind: &str) -> Value {
        json!([{"group": self.group, "version": self.version, "kind": kind}])
    }

    /// The published schema of objects of the kind.
    pub fn object_schema(&self, schema: Option<&Schema>, dialect: Dialect) -> Value {
        let mut published = match schema {
            None => json!({"type": "object"}),
            Some(schema) if dialect == Dialect::V2 && schema.preserves_unknown_fields() => {
                json!({"type": "object"})
            }
            Some(schema) => {
                let mut published = schema.to_openapi(dialect);
                set_property(&mut published, "metadata", dialect.object_meta());
                set_property(&mut published, "apiVersion", documented_text(API_VERSION_DOC));
                set_property(&mut published, "kind", documented_text(KIND_DOC));
                published
            }
        };
        set(&mut published, "x-kubernetes-group-version-kind", self.group_version_kind(self.kind));
        published
    }

    /// The published schema of lists of the kind.
    pub fn list_schema(&self, dialect: Dialect) -> Value {
        let list_meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
        let items = format!(
            "List of {}. More info: https://git.k8s.io/community/contributors/devel/\
             sig-architecture/api-conventions.md",
            self.plural
        );
        json!({
            "description": format!("{} is a list of {}", self.list_kind, self.kind),
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": documented_text(API_VERSION_DOC),
                "kind": documented_text(KIND_DOC),
                "items": {
                    "description": items,
                    "type": "array",
                    "items": {"$ref": dialect.reference(&self.model_name(self.kind))},
                },
                "metadata": dialect.described_reference(list_meta, LIST_METADATA_DOC),
            },
            "x-kubernetes-group-version-kind": self.group_version_kind(self.list_kind),
        })
    }
}

fn documented_text(description: &str) -> Value {
    json!({"description": description, "type": "string"})
}

fn set(schema: &mut Value, name: &str, value: Value) {
    if let Some(fields) = schema.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
}

fn set_property(schema: &mut Value, name: &str, property: Value) {
    if let Some(fields) = schema.as_object_mut() {
        let properties = fields.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        set(properties, name, property);
    }
}

impl Schema {
    /// The schema in OpenAPI 3, without the metadata of the object itself.
    pub fn to_openapi_v3(&self) -> Value {
        self.to_openapi(Dialect::V3)
    }

    /// The schema in a dialect, without the metadata of the object itself.
    pub fn to_openapi(&self, dialect: Dialect) -> Value {
        let node = Node { schema: self, dialect, is_nested: false };
        node.publish()
    }
}

/// A schema being published. Nested ones are inside of value validations.
struct Node<'a> {
    schema: &'a Schema,
    dialect: Dialect,
    is_nested: bool,
}

impl Node<'_> {
    fn part(&self, schema: &Schema) -> Value {
        Node { schema, dialect: self.dialect, is_nested: self.is_nested }.publish()
    }

    fn nested(&self, schema: &Schema) -> Value {
        Node { schema, dialect: self.dialect, is_nested: true }.publish()
    }

    fn publish(&self) -> Value {
        let schema = self.schema;
        let v2 = self.dialect == Dialect::V2;
        let untyped = v2 && (schema.nullable || schema.preserves_unknown_fields());
        let mut out = Map::new();
        let text = |out: &mut Map<String, Value>, name: &str, text: &str| {
            if !text.is_empty() {
                out.insert(name.to_owned(), Value::from(text));
            }
        };
        let lacks_items = v2 && schema.type_name == "array" && (schema.items.is_none() || untyped);
        let drops_type = v2
            && (schema.nullable
                || lacks_items
                || (schema.preserves_unknown_fields() && schema.type_name == "object"));
        if !drops_type {
            text(&mut out, "type", &schema.type_name);
        }
        text(&mut out, "description", &schema.description);
        text(&mut out, "title", &schema.title);
        let values = [
            ("default", schema.default.as_ref().filter(|_| !v2)),
            ("example", schema.example.as_ref()),
            ("externalDocs", schema.external_docs.as_ref()),
        ];
        for (name, value) in values {
            if let Some(value) = value {
                out.insert(name.to_owned(), value.clone());
            }
        }
        if schema.nullable && !v2 {
            out.insert("nullable".to_owned(), Value::Bool(true));
        }
        self.value_validation(&mut out);
        if !v2 {
            self.combinations(&mut out);
        }
        if !untyped {
            self.structure(&mut out);
        }
        self.additional(&mut out);
        self.extensions(&mut out);
        let mut out = Value::Object(out);
        if schema.embedded_resource && !(v2 && schema.preserves_unknown_fields()) {
            self.embedded(&mut out);
        }
        out
    }

    fn structure(&self, out: &mut Map<String, Value>) {
        if let Some(items) = &self.schema.items {
            out.insert("items".to_owned(), self.part(items));
        }
        if !self.schema.properties.is_empty() {
            let properties: Map<String, Value> = self
                .schema
                .properties
                .iter()
                .map(|(name, property)| (name.clone(), self.part(property)))
                .collect();
            out.insert("properties".to_owned(), Value::Object(properties));
        }
    }

    fn additional(&self, out: &mut Map<String, Value>) {
        if self.is_nested {
            return;
        }
        let published = match &self.schema.additional_properties {
            None => return,
            Some(Additional::Allowed(allowed)) => Value::Bool(*allowed),
            Some(Additional::Schema(schema)) => self.part(schema),
        };
        out.insert("additionalProperties".to_owned(), published);
    }

    fn value_validation(&self, out: &mut Map<String, Value>) {
        let schema = self.schema;
        if !schema.format.is_empty() {
            out.insert("format".to_owned(), Value::from(schema.format.as_str()));
        }
        if let Some(pattern) = &schema.pattern {
            out.insert("pattern".to_owned(), Value::from(pattern.source()));
        }
        let numbers = [
            ("maximum", schema.maximum),
            ("minimum", schema.minimum),
            ("multipleOf", schema.multiple_of),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                out.insert(name.to_owned(), whole_if_possible(number));
            }
        }
        let integers = [
            ("maxLength", schema.max_length),
            ("minLength", schema.min_length),
            ("maxItems", schema.max_items),
            ("minItems", schema.min_items),
            ("maxProperties", schema.max_properties),
            ("minProperties", schema.min_properties),
        ];
        for (name, number) in integers {
            if let Some(number) = number {
                out.insert(name.to_owned(), Value::from(number));
            }
        }
        let flags = [
            ("exclusiveMaximum", schema.exclusive_maximum),
            ("exclusiveMinimum", schema.exclusive_minimum),
            ("uniqueItems", schema.unique_items),
        ];
        for (name, flag) in flags {
            if flag {
                out.insert(name.to_owned(), Value::Bool(true));
            }
        }
        if !schema.enum_values.is_empty() {
            out.insert("enum".to_owned(), Value::Array(schema.enum_values.clone()));
        }
        let required = self.required();
        if !required.is_empty() {
            out.insert("required".to_owned(), Value::from(required));
        }
    }

    /// In OpenAPI 2 nullable properties cannot be required.
    fn required(&self) -> Vec<&str> {
        let schema = self.schema;
        let required = schema.required.iter().map(String::as_str);
        if self.dialect == Dialect::V3 {
            return required.collect();
        }
        if schema.additional_schema().is_some_and(|additional| additional.nullable) {
            return Vec::new();
        }
        let nullable = |name: &str| schema.properties.get(name).is_some_and(|p| p.nullable);
        required.filter(|name| !nullable(name)).collect()
    }

    /// `anyOf` and the like. An int-or-string has its two types as alternatives.
    fn combinations(&self, out: &mut Map<String, Value>) {
        let schema = self.schema;
        let publish = |parts: &[Schema]| -> Vec<Value> {
            parts.iter().map(|part| self.nested(part)).collect()
        };
        let mut all_of = publish(&schema.all_of);
        let mut any_of = publish(&schema.any_of);
        let one_of = publish(&schema.one_of);
        let alternatives = json!([{"type": "integer"}, {"type": "string"}]);
        if schema.int_or_string && !self.is_nested {
            let written = Some(any_of.as_slice()) == alternatives.as_array().map(Vec::as_slice)
                || all_of.first().and_then(|first| first.get("anyOf")) == Some(&alternatives);
            if !written {
                if any_of.is_empty() {
                    any_of = alternatives.as_array().cloned().unwrap_or_default();
                } else {
                    all_of.insert(0, json!({ "anyOf": alternatives }));
                }
            }
        }
        for (name, parts) in [("allOf", all_of), ("anyOf", any_of), ("oneOf", one_of)] {
            if !parts.is_empty() {
                out.insert(name.to_owned(), Value::Array(parts));
            }
        }
        if let Some(not) = &schema.not {
            out.insert("not".to_owned(), self.nested(not));
        }
    }

    fn extensions(&self, out: &mut Map<String, Value>) {
        let schema = self.schema;
        let flags = [
            ("x-kubernetes-preserve-unknown-fields", schema.preserves_unknown_fields()),
            ("x-kubernetes-embedded-resource", schema.embedded_resource),
            ("x-kubernetes-int-or-string", schema.int_or_string),
        ];
        for (name, flag) in flags {
            if flag {
                out.insert(name.to_owned(), Value::Bool(true));
            }
        }
        if !schema.list_map_keys.is_empty() {
            let keys = Value::from(schema.list_map_keys.clone());
            out.insert("x-kubernetes-list-map-keys".to_owned(), keys);
        }
        let texts = [
            ("x-kubernetes-list-type", &schema.list_type),
            ("x-kubernetes-map-type", &schema.map_type),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                out.insert(name.to_owned(), Value::from(text.as_str()));
            }
        }
        if !schema.validations.is_empty() {
            let rules: Vec<Value> = schema.validations.iter().map(rule).collect();
            out.insert("x-kubernetes-validations".to_owned(), Value::Array(rules));
        }
    }

    /// The fields of an object inside an object.
    fn embedded(&self, out: &mut Value) {
        set_property(out, "apiVersion", documented_text(EMBEDDED_API_VERSION_DOC));
        set_property(out, "kind", documented_text(EMBEDDED_KIND_DOC));
        set_property(out, "metadata", self.dialect.object_meta());
        if let Some(fields) = out.as_object_mut() {
            let required = fields.entry("required").or_insert_with(|| Value::Array(Vec::new()));
            if let Some(required) = required.as_array_mut() {
                for name in ["kind", "apiVersion"] {
                    if !required.iter().any(|known| known == name) {
                        required.push(Value::from(name));
                    }
                }
            }
        }
    }
}

fn rule(rule: &Rule) -> Value {
    let mut out = Map::new();
    out.insert("rule".to_owned(), Value::from(rule.rule.as_str()));
    let texts = [
        ("message", rule.message.as_str()),
        ("messageExpression", &rule.message_expression),
        ("reason", rule.reason.as_deref().unwrap_or_default()),
        ("fieldPath", &rule.field_path),
    ];
    for (name, text) in texts {
        if !text.is_empty() {
            out.insert(name.to_owned(), Value::from(text));
        }
    }
    if let Some(flag) = rule.optional_old_self {
        out.insert("optionalOldSelf".to_owned(), Value::Bool(flag));
    }
    Value::Object(out)
}

/// Bounds are floats; whole ones are published as integers.
fn whole_if_possible(number: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and in range")]
    if number.fract() == 0.0 && number.abs() < 9e15 {
        Value::from(number as i64)
    } else {
        Value::from(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_published_as_by_the_real_server() {
        let recorded: Value =
            serde_json::from_str(include_str!("../testdata/openapi.json")).unwrap();
        let schema = Schema::parse(&recorded["schema"]).unwrap();
        let kind = PublishedKind {
            group: "x.io",
            version: "v1",
            kind: "Thing",
            list_kind: "ThingList",
            plural: "things",
        };
        assert_eq!(kind.object_schema(Some(&schema), Dialect::V3), recorded["v3"]);
        assert_eq!(kind.list_schema(Dialect::V3), recorded["list"]);
        assert_eq!(kind.object_schema(Some(&schema), Dialect::V2), recorded["v2"]);
    }
}
