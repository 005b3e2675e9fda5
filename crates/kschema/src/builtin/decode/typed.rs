//! The decoder: a body against a type, with the messages of Go's decoder.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fleetwright_kproto::go_float;
use fleetwright_kproto::types::{Declared, Field, Shape, Struct, Type, Types};
use serde_json::{Map, Value};

use crate::builtin::gobase64;
use crate::builtin::gojson::{Node, Strict, join};

use super::errors::DecodeError;
use super::special;
use super::zero::{write_struct, zero, zero_map_value};

/// A step from the top of the body to a value.
enum Step<'a> {
    Field(&'a str),
    Index(usize),
}

/// Decodes one body.
pub(super) struct Decoder<'a> {
    pub(super) types: &'static Types,
    strict: Strict,
    path: Vec<Step<'a>>,
    /// The struct and the fields that messages name. Unlike the path it has no list positions
    /// and no map keys, but the Go names of embedded structs.
    owner: &'static str,
    fields: Vec<Cow<'a, str>>,
    /// The first wrong type. Decoding goes on, because a bad value elsewhere is reported first.
    wrong_type: Option<DecodeError>,
    /// Inside a resource list, whose quantities are rounded.
    pub(super) in_resource_list: bool,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(types: &'static Types) -> Self {
        Self {
            types,
            strict: Strict::default(),
            path: Vec::new(),
            owner: "",
            fields: Vec::new(),
            wrong_type: None,
            in_resource_list: false,
        }
    }

    /// Decodes a whole body.
    pub(super) fn root(&mut self, ty: &Type, body: &'a Node) -> Result<Value, DecodeError> {
        let decoded = self.value(ty, body)?;
        match self.wrong_type.take() {
            Some(error) => Err(error),
            None => Ok(decoded.unwrap_or_else(|| zero(self.types, ty))),
        }
    }

    pub(super) fn into_strict(self) -> Vec<String> {
        self.strict.messages
    }

    /// Decodes a value; none is a value that was not set.
    pub(super) fn value(
        &mut self,
        ty: &Type,
        node: &'a Node,
    ) -> Result<Option<Value>, DecodeError> {
        match ty {
            Type::Pointer(_) if *node == Node::Null => Ok(None),
            Type::Pointer(inner) => {
                let value = self.value(inner, node)?;
                Ok(Some(value.unwrap_or_else(|| zero(self.types, inner))))
            }
            Type::Declared(id) => {
                let types = self.types;
                let declared = types.get(*id);
                match &declared.shape {
                    Shape::Struct(fields) => self.structure(ty, declared, fields, node),
                    Shape::Special(special) => special::decode(self, *special, node),
                    Shape::Named(inner) | Shape::Message(inner) => {
                        let outer = self.in_resource_list;
                        self.in_resource_list =
                            declared.package == "core/v1" && declared.name == "ResourceList";
                        let value = self.plain(inner, ty, node);
                        self.in_resource_list = outer;
                        value
                    }
                }
            }
            _ => self.plain(ty, ty, node),
        }
    }

    /// Decodes into a type without a declaration of its own; messages name the type given.
    fn plain(
        &mut self,
        ty: &Type,
        name: &Type,
        node: &'a Node,
    ) -> Result<Option<Value>, DecodeError> {
        Ok(match (ty, node) {
            (_, Node::Null) => None,
            (Type::Bool, Node::Bool(value)) => Some((*value).into()),
            (Type::String, Node::String(text)) => Some(text.as_str().into()),
            (Type::Int32, Node::Number(text)) => match text.parse::<i32>() {
                Ok(number) => Some(number.into()),
                Err(_) => self.wrong(&format!("number {text}"), name),
            },
            (Type::Int64, Node::Number(text)) => match text.parse::<i64>() {
                Ok(number) => Some(number.into()),
                Err(_) => self.wrong(&format!("number {text}"), name),
            },
            (Type::Float64, Node::Number(text)) => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Some(go_float(number)),
                _ => self.wrong(&format!("number {text}"), name),
            },
            (Type::Slice(element), Node::String(text)) if **element == Type::Uint8 => {
                match gobase64::decode(text) {
                    Ok(bytes) => Some(STANDARD.encode(bytes).into()),
                    Err(at) => {
                        let message = format!("illegal base64 data at input byte {at}");
                        self.wrong_type.get_or_insert(DecodeError::BadValue(message));
                        None
                    }
                }
            }
            (Type::Slice(element), Node::Array(list)) if **element == Type::Uint8 => {
                Some(STANDARD.encode(self.bytes(element, list)).into())
            }
            (Type::Slice(element), Node::Array(list)) => Some(self.list(element, list)?),
            (Type::Map(_, element), Node::Object(entries)) => Some(self.map(element, entries)?),
            (Type::Declared(_) | Type::Pointer(_), _) => self.value(ty, node)?,
            _ => self.wrong(node.go_kind(), name),
        })
    }

    /// Go also reads bytes from a list of numbers.
    fn bytes(&mut self, element: &Type, list: &[Node]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(list.len());
        for node in list {
            match node {
                Node::Number(text) => match text.parse::<u8>() {
                    Ok(byte) => bytes.push(byte),
                    Err(_) => {
                        self.wrong(&format!("number {text}"), element);
                    }
                },
                Node::Null => bytes.push(0),
                other => {
                    self.wrong(other.go_kind(), element);
                }
            }
        }
        bytes
    }

    fn list(&mut self, element: &Type, list: &'a [Node]) -> Result<Value, DecodeError> {
        let mut values = Vec::with_capacity(list.len());
        for (index, node) in list.iter().enumerate() {
            self.path.push(Step::Index(index));
            let value = self.value(element, node)?;
            self.path.pop();
            values.push(value.unwrap_or_else(|| zero(self.types, element)));
        }
        Ok(Value::Array(values))
    }

    fn map(&mut self, element: &Type, entries: &'a [(String, Node)]) -> Result<Value, DecodeError> {
        let mut values = Map::new();
        for (name, node) in entries {
            if values.contains_key(name) {
                self.strict.duplicate(&join(&self.shown_path(), name));
            }
            self.path.push(Step::Field(name));
            let value = self.value(element, node)?;
            self.path.pop();
            let value = value.unwrap_or_else(|| zero_map_value(self.types, element));
            values.insert(name.clone(), value);
        }
        Ok(Value::Object(values))
    }

    fn structure(
        &mut self,
        ty: &Type,
        declared: &'static Declared,
        fields: &'static Struct,
        node: &'a Node,
    ) -> Result<Option<Value>, DecodeError> {
        let entries = match node {
            Node::Object(entries) => entries,
            Node::Null => return Ok(None),
            other => return Ok(self.wrong(other.go_kind(), ty)),
        };
        let mut set = Map::new();
        let mut seen = BTreeSet::new();
        let outer = (self.owner, self.fields.len());
        for (name, node) in entries {
            let Some(path) = fields.path(name) else {
                self.strict.unknown(&join(&self.shown_path(), name));
                continue;
            };
            if !seen.insert(name.as_str()) {
                self.strict.duplicate(&join(&self.shown_path(), name));
            }
            let steps = self.types.fields_of_path(fields, path);
            let Some((field, embedding)) = steps.split_last() else { continue };
            self.owner = &declared.name;
            self.fields.extend(embedding.iter().map(|field| Cow::Borrowed(field.label())));
            self.fields.push(Cow::Borrowed(name));
            self.path.push(Step::Field(name));
            let value = self.field(field, node)?;
            self.path.pop();
            self.fields.truncate(outer.1);
            self.owner = outer.0;
            match value {
                Some(value) => set.insert(name.clone(), value),
                None => set.remove(name),
            };
        }
        Ok(Some(Value::Object(write_struct(self.types, fields, set))))
    }

    fn field(&mut self, field: &Field, node: &'a Node) -> Result<Option<Value>, DecodeError> {
        self.value(&field.ty, node)
    }

    /// Notes a wrong type, unless there was one before.
    fn wrong(&mut self, value: &str, ty: &Type) -> Option<Value> {
        if self.wrong_type.is_none() {
            self.wrong_type = Some(self.wrong_type_error(value, &self.types.go_name(ty)));
        }
        None
    }

    /// The error for a value of a wrong type, here.
    pub(super) fn wrong_type_error(&self, value: &str, go_type: &str) -> DecodeError {
        DecodeError::WrongType {
            value: value.to_owned(),
            owner: self.owner.to_owned(),
            field: self.fields.join("."),
            go_type: go_type.to_owned(),
        }
    }

    /// An error inside a value that decodes itself, seen from here.
    pub(super) fn nested_error(&self, error: DecodeError) -> DecodeError {
        match error {
            DecodeError::WrongType { value, owner, field, go_type } if self.fields.is_empty() => {
                DecodeError::WrongType { value, owner, field, go_type }
            }
            DecodeError::WrongType { value, field: inner, go_type, .. } => {
                let mut field = self.fields.join(".");
                if !inner.is_empty() {
                    let _ = write!(field, ".{inner}");
                }
                DecodeError::WrongType { value, owner: self.owner.to_owned(), field, go_type }
            }
            other => other,
        }
    }

    fn shown_path(&self) -> String {
        let mut shown = String::new();
        for step in &self.path {
            match step {
                Step::Index(index) => {
                    let _ = write!(shown, "[{index}]");
                }
                Step::Field(name) => {
                    if !shown.is_empty() {
                        shown.push('.');
                    }
                    shown.push_str(name);
                }
            }
        }
        shown
    }
}
