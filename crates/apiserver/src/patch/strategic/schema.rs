//! What the Go types say about merging.

use fleetwright_kproto::types::{Declared, Field, Shape, Type, Types};

/// The type of a value being patched.
#[derive(Clone, Copy)]
pub(super) struct Schema {
    ty: &'static Type,
}

/// How a field is merged.
pub(super) struct FieldMeta {
    strategies: &'static [String],
    /// The key of list elements; empty where there is none.
    pub(super) merge_key: String,
}

impl FieldMeta {
    /// The strategy besides `retainKeys`; empty where there is none.
    pub(super) fn strategy(&self) -> Result<&'static str, String> {
        const RETAIN_KEYS: &str = "retainKeys";
        match self.strategies {
            [] => Ok(""),
            [one] if one == RETAIN_KEYS => Ok(""),
            [one] => Ok(one),
            [first, second] if first == RETAIN_KEYS => Ok(second),
            [first, second] if second == RETAIN_KEYS => Ok(first),
            other => Err(format!("unexpected patch strategy: [{}]", other.join(" "))),
        }
    }
}

impl Schema {
    /// The type of a built-in kind.
    pub(super) fn of_kind(api_version: &str, kind: &str) -> Option<Self> {
        let types = Types::builtin();
        let id = types.kind(api_version, kind)?;
        types.declared_type(id).map(|ty| Schema { ty })
    }

    /// The type and merging of a field.
    pub(super) fn field(self, name: &str) -> Result<(Schema, FieldMeta), String> {
        let types = Types::builtin();
        let Some((declared, fields)) = types.as_struct(pointed(self.ty)) else {
            return Err(match self.kind() {
                "struct" => missing(self.declared_name(), name),
                kind => format!(
                    "merging an object in json but data type is not struct, instead is: {kind}"
                ),
            });
        };
        let path = fields.path(name).or_else(|| fields.path_ignoring_case(name));
        let field: &Field = path
            .and_then(|path| types.fields_of_path(fields, path).last().copied())
            .ok_or_else(|| missing(&declared.name, name))?;
        let meta = FieldMeta {
            strategies: &field.strategies,
            merge_key: field.merge_key.clone().unwrap_or_default(),
        };
        Ok((Schema { ty: &field.ty }, meta))
    }

    /// The type of the elements, and the merging, of a field that is a list.
    pub(super) fn list_field(self, name: &str) -> Result<(Schema, FieldMeta), String> {
        let (schema, meta) = self.field(name)?;
        let element = match underlying(schema.ty) {
            Type::Slice(element) => element,
            Type::Pointer(inner) => match underlying(inner) {
                Type::Slice(element) => element,
                _ => inner,
            },
            _ => {
                let kind = self.kind();
                return Err(format!("expected slice or array type, but got: {kind}"));
            }
        };
        if matches!(underlying(element), Type::Slice(_)) {
            return Err("unexpected slice of slice".to_owned());
        }
        Ok((Schema { ty: element }, meta))
    }

    /// Go's word for what the type is made of.
    pub(super) fn kind(self) -> &'static str {
        match underlying(self.ty) {
            Type::Bool => "bool",
            Type::Int32 => "int32",
            Type::Int64 => "int64",
            Type::Uint8 => "uint8",
            Type::Float64 => "float64",
            Type::String => "string",
            Type::Pointer(_) => "ptr",
            Type::Slice(_) => "slice",
            Type::Map(..) => "map",
            Type::Declared(_) => "struct",
        }
    }

    fn declared_name(self) -> &'static str {
        match underlying(pointed(self.ty)) {
            Type::Declared(id) => &Types::builtin().get(*id).name,
            _ => "",
        }
    }
}

fn missing(owner: &str, field: &str) -> String {
    format!("unable to find api field in struct {owner} for the json field {field:?}")
}

fn pointed(ty: &'static Type) -> &'static Type {
    match ty {
        Type::Pointer(inner) => inner,
        other => other,
    }
}

/// The type behind other names, but not behind pointers.
fn underlying(ty: &'static Type) -> &'static Type {
    match ty {
        Type::Declared(id) => match Types::builtin().get(*id) {
            Declared { shape: Shape::Named(inner) | Shape::Message(inner), .. } => {
                underlying(inner)
            }
            _ => ty,
        },
        _ => ty,
    }
}
