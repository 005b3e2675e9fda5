//! `metadata` as a typed decoder reads and writes it.

use serde_json::{Map, Value};

use super::time::normalized;
use super::{json_kind, number_text};

/// How a field is decoded.
enum Kind {
    /// A text; the name is that of its type in errors.
    Text(&'static str),
    /// A text that stays even if it is empty.
    KeptText(&'static str),
    /// A whole number that is left out if it is 0.
    Integer,
    /// A whole number that may be 0.
    KeptInteger,
    Boolean,
    Time,
    /// Anything.
    Raw,
    TextMap,
    TextList,
    List(&'static Struct),
}

struct Struct {
    name: &'static str,
    fields: &'static [(&'static str, Kind)],
}

static OBJECT_META: Struct = Struct {
    name: "ObjectMeta",
    fields: &[
        ("name", Kind::Text("string")),
        ("generateName", Kind::Text("string")),
        ("namespace", Kind::Text("string")),
        ("selfLink", Kind::Text("string")),
        ("uid", Kind::Text("types.UID")),
        ("resourceVersion", Kind::Text("string")),
        ("generation", Kind::Integer),
        ("creationTimestamp", Kind::Time),
        ("deletionTimestamp", Kind::Time),
        ("deletionGracePeriodSeconds", Kind::KeptInteger),
        ("labels", Kind::TextMap),
        ("annotations", Kind::TextMap),
        ("ownerReferences", Kind::List(&OWNER_REFERENCE)),
        ("finalizers", Kind::TextList),
        ("managedFields", Kind::List(&MANAGED_FIELDS)),
    ],
};

static OWNER_REFERENCE: Struct = Struct {
    name: "OwnerReference",
    fields: &[
        ("apiVersion", Kind::KeptText("string")),
        ("kind", Kind::KeptText("string")),
        ("name", Kind::KeptText("string")),
        ("uid", Kind::KeptText("types.UID")),
        ("controller", Kind::Boolean),
        ("blockOwnerDeletion", Kind::Boolean),
    ],
};

static MANAGED_FIELDS: Struct = Struct {
    name: "ManagedFieldsEntry",
    fields: &[
        ("manager", Kind::Text("string")),
        ("operation", Kind::Text("v1.ManagedFieldsOperationType")),
        ("apiVersion", Kind::Text("string")),
        ("time", Kind::Time),
        ("fieldsType", Kind::Text("string")),
        ("fieldsV1", Kind::Raw),
        ("subresource", Kind::Text("string")),
    ],
};

/// Decoded metadata and the paths of the fields it does not have.
pub(super) struct Decoded {
    pub(super) value: Value,
    pub(super) unknown: Vec<String>,
}

/// Decodes `metadata`. Fields of a wrong type are dropped if asked for, and else an error.
pub(super) fn object_meta(metadata: &Value, drop_malformed: bool) -> Result<Decoded, String> {
    let mut unknown = Vec::new();
    let fields = match metadata {
        Value::Object(fields) => fields,
        Value::Null => return Ok(Decoded { value: Value::Object(Map::new()), unknown }),
        other => {
            return Err(format!(
                "json: cannot unmarshal {} into Go value of type v1.ObjectMeta",
                json_kind(other)
            ));
        }
    };
    let mut decoded = Map::new();
    for (name, value) in fields {
        let mut decoder = Decoder { unknown: Vec::new() };
        match decoder.field(&OBJECT_META, name, value, "", "") {
            Ok(None) => {}
            Ok(Some(value)) => {
                decoded.insert(name.clone(), value);
            }
            Err(_) if drop_malformed => continue,
            Err(reason) => return Err(reason),
        }
        unknown.append(&mut decoder.unknown);
    }
    Ok(Decoded { value: Value::Object(decoded), unknown })
}

struct Decoder {
    unknown: Vec<String>,
}

impl Decoder {
    /// Decodes one field; `None` if it is empty or unknown. `shown` is the path in errors, which
    /// leaves out list indices, and `path` the one of unknown fields.
    fn field(
        &mut self,
        of: &'static Struct,
        name: &str,
        value: &Value,
        shown: &str,
        path: &str,
    ) -> Result<Option<Value>, String> {
        let Some((name, kind)) = of.fields.iter().find(|(known, _)| *known == name) else {
            self.unknown.push(joined(path, name));
            return Ok(None);
        };
        let shown = joined(shown, name);
        let fail = |value: &Value, type_name: &str| {
            let what = match value {
                Value::Number(_) if type_name == "int64" => {
                    format!("number {}", number_text(value))
                }
                _ => json_kind(value).to_owned(),
            };
            let owner = of.name;
            format!(
                "json: cannot unmarshal {what} into Go struct field {owner}.{shown} of type \
                 {type_name}"
            )
        };
        if value.is_null() {
            return Ok(match kind {
                Kind::KeptText(_) => Some(Value::from("")),
                _ => None,
            });
        }
        match kind {
            Kind::Raw => Ok(Some(value.clone())),
            Kind::Text(type_name) => match value {
                Value::String(text) => Ok(Some(value.clone()).filter(|_| !text.is_empty())),
                _ => Err(fail(value, type_name)),
            },
            Kind::KeptText(type_name) => match value {
                Value::String(_) => Ok(Some(value.clone())),
                _ => Err(fail(value, type_name)),
            },
            Kind::Integer | Kind::KeptInteger => match value.as_i64() {
                Some(0) if matches!(kind, Kind::Integer) => Ok(None),
                Some(number) => Ok(Some(Value::from(number))),
                None => Err(fail(value, "int64")),
            },
            Kind::Boolean => match value {
                Value::Bool(_) => Ok(Some(value.clone())),
                _ => Err(fail(value, "bool")),
            },
            Kind::Time => match value {
                Value::String(text) => normalized(text).map(|time| Some(Value::from(time))),
                _ => Err(format!(
                    "json: cannot unmarshal {} into Go value of type string",
                    json_kind(value)
                )),
            },
            Kind::TextMap => {
                let Value::Object(entries) = value else {
                    return Err(fail(value, "map[string]string"));
                };
                let mut texts = Map::new();
                for (key, entry) in entries {
                    let text = text_or_empty(entry).ok_or_else(|| fail(entry, "string"))?;
                    texts.insert(key.clone(), text);
                }
                Ok((!texts.is_empty()).then_some(Value::Object(texts)))
            }
            Kind::TextList => {
                let Value::Array(items) = value else { return Err(fail(value, "[]string")) };
                let mut texts = Vec::new();
                for item in items {
                    texts.push(text_or_empty(item).ok_or_else(|| fail(item, "string"))?);
                }
                Ok((!texts.is_empty()).then_some(Value::Array(texts)))
            }
            Kind::List(element) => {
                let Value::Array(items) = value else {
                    return Err(fail(value, &format!("[]v1.{}", element.name)));
                };
                let mut list = Vec::new();
                for (i, item) in items.iter().enumerate() {
                    let path = format!("{}[{i}]", joined(path, name));
                    let item = match item {
                        Value::Null => self.entry(element, &Map::new(), &shown, &path)?,
                        Value::Object(fields) => self.entry(element, fields, &shown, &path)?,
                        other => return Err(fail(other, &format!("v1.{}", element.name))),
                    };
                    list.push(item);
                }
                Ok((!list.is_empty()).then_some(Value::Array(list)))
            }
        }
    }

    fn entry(
        &mut self,
        element: &'static Struct,
        fields: &Map<String, Value>,
        shown: &str,
        path: &str,
    ) -> Result<Value, String> {
        let mut decoded = Map::new();
        for (name, kind) in element.fields {
            if matches!(kind, Kind::KeptText(_)) {
                decoded.insert((*name).to_owned(), Value::from(""));
            }
        }
        for (name, value) in fields {
            if let Some(value) = self.field(element, name, value, shown, path)? {
                decoded.insert(name.clone(), value);
            }
        }
        Ok(Value::Object(decoded))
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A text, or an empty one for null; `None` for everything else.
fn text_or_empty(value: &Value) -> Option<Value> {
    match value {
        Value::String(_) => Some(value.clone()),
        Value::Null => Some(Value::from("")),
        _ => None,
    }
}
