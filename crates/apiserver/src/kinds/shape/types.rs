//! The types of the built-in kinds, flattened for walking: JSON fields with embedded structs
//! dissolved, names of types without the version.

use std::{collections::BTreeMap, sync::LazyLock};

use fleetwright_kproto::types::{self as go, FieldName, Shape, Special, TypeId, Types};

/// The Go type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Number,
    Bool,
    Bytes,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// Any JSON.
    Raw,
    Struct(String),
    Pointer(Box<Type>),
    List(Box<Type>),
    Map(Box<Type>),
}

/// When the encoder leaves out a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Omit {
    Never,
    Empty,
    Zero,
}

/// A field of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) kind: Type,
    pub(super) omit: Omit,
}

type Fields = BTreeMap<String, Field>;

#[derive(Default)]
struct Table {
    kinds: BTreeMap<String, String>,
    types: BTreeMap<String, Fields>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table::default();
    for (api_version, kind, id) in Types::builtin().kinds() {
        let name = table.visit(id);
        table.kinds.insert(format!("{api_version}/{kind}"), name);
    }
    table
});

/// The type of a kind named as `apps/v1/Deployment`.
pub(super) fn of_kind(kind: &str) -> Option<&'static str> {
    TABLE.kinds.get(kind).map(String::as_str)
}

/// The fields of a type named as `core.PodSpec`.
pub(super) fn fields(name: &str) -> Option<&'static Fields> {
    TABLE.types.get(name)
}

impl Table {
    /// Takes in a struct and everything that it is made of.
    fn visit(&mut self, id: TypeId) -> String {
        let declared = Types::builtin().get(id);
        let group = declared.package.split('/').next().unwrap_or_default();
        let name = format!("{group}.{}", declared.name);
        if let Shape::Struct(structure) = &declared.shape
            && !self.types.contains_key(&name)
        {
            // Types refer to themselves.
            self.types.insert(name.clone(), Fields::new());
            let mut fields = Fields::new();
            self.flatten(structure, &mut fields);
            self.types.insert(name.clone(), fields);
        }
        name
    }

    fn flatten(&mut self, structure: &go::Struct, fields: &mut Fields) {
        for field in &structure.fields {
            match &field.name {
                FieldName::Inline(_) => {
                    if let Some((_, inner)) = Types::builtin().as_struct(&field.ty) {
                        self.flatten(inner, fields);
                    }
                }
                FieldName::Json(name) => {
                    let omit = if field.omit_zero {
                        Omit::Zero
                    } else if field.omit_empty {
                        Omit::Empty
                    } else {
                        Omit::Never
                    };
                    let kind = self.expression(&field.ty);
                    fields.insert(name.clone(), Field { kind, omit });
                }
            }
        }
    }

    fn expression(&mut self, ty: &go::Type) -> Type {
        match ty {
            go::Type::Bool => Type::Bool,
            go::Type::Int32 | go::Type::Int64 | go::Type::Uint8 | go::Type::Float64 => Type::Number,
            go::Type::String => Type::Text,
            go::Type::Pointer(inner) => Type::Pointer(Box::new(self.expression(inner))),
            go::Type::Slice(inner) if **inner == go::Type::Uint8 => Type::Bytes,
            go::Type::Slice(inner) => Type::List(Box::new(self.expression(inner))),
            go::Type::Map(_, value) => Type::Map(Box::new(self.expression(value))),
            go::Type::Declared(id) => match &Types::builtin().get(*id).shape {
                Shape::Struct(_) => Type::Struct(self.visit(*id)),
                Shape::Named(inner) | Shape::Message(inner) => self.expression(inner),
                Shape::Special(Special::Time) => Type::Time,
                Shape::Special(Special::MicroTime) => Type::MicroTime,
                Shape::Special(Special::Quantity) => Type::Quantity,
                Shape::Special(Special::IntOrString) => Type::IntOrString,
                Shape::Special(_) => Type::Raw,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_structs_are_dissolved() {
        let volume = fields("core.Volume").unwrap();
        assert_eq!(volume["name"].kind, Type::Text);
        assert!(volume.contains_key("hostPath"));
        assert!(!volume.contains_key("VolumeSource"));
        assert_eq!(of_kind("apps/v1/Deployment"), Some("apps.Deployment"));
        let limits = &fields("core.ResourceRequirements").unwrap()["limits"];
        assert_eq!(limits.kind, Type::Map(Box::new(Type::Quantity)));
    }
}
