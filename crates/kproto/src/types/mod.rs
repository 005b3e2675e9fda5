//! The Go types of the built-in kinds: fields, JSON names, protobuf numbers, patch strategies.

mod parse;

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Names one declared type of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TypeId(usize);

/// A Go type expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// `bool`.
    Bool,
    /// `int32`.
    Int32,
    /// `int64`.
    Int64,
    /// `uint8`, only as an element of a byte slice.
    Uint8,
    /// `float64`.
    Float64,
    /// `string`.
    String,
    /// `*T`.
    Pointer(Box<Type>),
    /// `[]T`.
    Slice(Box<Type>),
    /// `map[K]V`; every key is a string.
    Map(Box<Type>, Box<Type>),
    /// A declared type.
    Declared(TypeId),
}

/// A declared type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// Its package, shortened: `core/v1`.
    pub package: String,
    /// Its name inside the package: `PodSpec`.
    pub name: String,
    /// What it is made of.
    pub shape: Shape,
}

impl Declared {
    /// The name as Go prints it: `v1.PodSpec`.
    pub fn go_name(&self) -> String {
        let package = self.package.rsplit('/').next().unwrap_or(&self.package);
        format!("{package}.{}", self.name)
    }
}

/// What a declared type is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// A struct.
    Struct(Struct),
    /// Another name for a type.
    Named(Type),
    /// Another name for a slice, which protobuf wraps in a message of its own.
    Message(Type),
    /// A type that encodes itself.
    Special(Special),
}

/// Types whose Go code writes its own JSON and protobuf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// Any JSON value, inside a custom resource schema.
    Json,
    /// A schema or a list of schemas.
    SchemaOrArray,
    /// A schema or a boolean.
    SchemaOrBool,
    /// A schema or a list of strings.
    SchemaOrStrings,
    /// An integer or a string.
    IntOrString,
    /// A set of owned fields, as JSON.
    Fields,
    /// A time with microseconds.
    MicroTime,
    /// A time with seconds.
    Time,
    /// An amount of a resource.
    Quantity,
    /// An object of any kind, as JSON.
    RawExtension,
}

/// The fields of a struct.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Struct {
    /// All fields in Go's order, embedded structs as one field.
    pub fields: Vec<Field>,
    by_number: BTreeMap<u32, usize>,
    by_json: BTreeMap<String, Vec<usize>>,
}

impl Struct {
    /// The field of a protobuf number.
    pub fn by_number(&self, number: u32) -> Option<&Field> {
        self.fields.get(*self.by_number.get(&number)?)
    }

    /// The path of field positions to a JSON name: several steps lead through embedded structs.
    pub fn path(&self, json_name: &str) -> Option<&[usize]> {
        self.by_json.get(json_name).map(Vec::as_slice)
    }

    /// As [`path`](Self::path), for a name in other letters; strategic patches look so.
    pub fn path_ignoring_case(&self, json_name: &str) -> Option<&[usize]> {
        let same = |name: &&String| name.eq_ignore_ascii_case(json_name);
        self.by_json.keys().find(same).and_then(|name| self.path(name))
    }
}

/// A struct field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The JSON name, or the Go name of an embedded struct whose fields JSON shows as its own.
    pub name: FieldName,
    /// The Go type.
    pub ty: Type,
    /// The protobuf number; type metadata has none.
    pub number: Option<u32>,
    /// Left out of JSON when empty.
    pub omit_empty: bool,
    /// Left out of JSON when it is the zero value.
    pub omit_zero: bool,
    /// Patch strategies: `merge`, `replace`, `retainKeys`.
    pub strategies: Vec<String>,
    /// The key that identifies elements of a list merged by strategic patches.
    pub merge_key: Option<String>,
}

/// How JSON shows a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldName {
    /// Under this name.
    Json(String),
    /// As fields of the enclosing struct; the Go name is kept for messages.
    Inline(String),
}

impl Field {
    /// The name for messages.
    pub fn label(&self) -> &str {
        match &self.name {
            FieldName::Json(name) | FieldName::Inline(name) => name,
        }
    }
}

/// The whole table.
#[derive(Debug, Default)]
pub struct Types {
    kinds: BTreeMap<String, BTreeMap<String, TypeId>>,
    declared: Vec<Declared>,
    expressions: Vec<Type>,
    by_name: BTreeMap<String, TypeId>,
}

impl Types {
    /// The table of the Kubernetes version that this build describes.
    pub fn builtin() -> &'static Types {
        static TABLE: LazyLock<Types> = LazyLock::new(|| {
            parse::table(include_str!("../generated/types.txt"))
                .expect("the generated table is well formed: a test reads it")
        });
        &TABLE
    }

    /// The type of a kind.
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<TypeId> {
        self.kinds.get(api_version)?.get(kind).copied()
    }

    /// All kinds: `apiVersion`, kind, type.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, &str, TypeId)> {
        self.kinds.iter().flat_map(|(api_version, kinds)| {
            kinds.iter().map(move |(kind, id)| (api_version.as_str(), kind.as_str(), *id))
        })
    }

    /// A declared type by its full name, such as `core/v1.PodSpec`.
    pub fn named(&self, name: &str) -> Option<TypeId> {
        self.by_name.get(name).copied()
    }

    /// The declaration of a type.
    pub fn get(&self, id: TypeId) -> &Declared {
        &self.declared[id.0]
    }

    /// A declared type as a type expression.
    pub fn declared_type(&self, id: TypeId) -> Option<&Type> {
        self.expressions.get(id.0)
    }

    /// The struct behind a type, through pointers and other names; none for anything else.
    pub fn as_struct(&self, ty: &Type) -> Option<(&Declared, &Struct)> {
        let Type::Declared(id) = self.underlying(ty) else { return None };
        let declared = self.get(*id);
        match &declared.shape {
            Shape::Struct(fields) => Some((declared, fields)),
            _ => None,
        }
    }

    /// The type without pointers and other names. Structs and special types stay as they are.
    pub fn underlying<'a>(&'a self, ty: &'a Type) -> &'a Type {
        match ty {
            Type::Pointer(inner) => self.underlying(inner),
            Type::Declared(id) => match &self.get(*id).shape {
                Shape::Named(inner) | Shape::Message(inner) => self.underlying(inner),
                Shape::Struct(_) | Shape::Special(_) => ty,
            },
            _ => ty,
        }
    }

    /// A type as Go prints it: `[]v1.Container`, `map[string]string`, `*int32`.
    pub fn go_name(&self, ty: &Type) -> String {
        match ty {
            Type::Bool => "bool".to_owned(),
            Type::Int32 => "int32".to_owned(),
            Type::Int64 => "int64".to_owned(),
            Type::Uint8 => "uint8".to_owned(),
            Type::Float64 => "float64".to_owned(),
            Type::String => "string".to_owned(),
            Type::Pointer(inner) => format!("*{}", self.go_name(inner)),
            Type::Slice(inner) => format!("[]{}", self.go_name(inner)),
            Type::Map(key, value) => format!("map[{}]{}", self.go_name(key), self.go_name(value)),
            Type::Declared(id) => self.get(*id).go_name(),
        }
    }

    /// Follows a path of [`Struct::path`]: the fields passed, the last one last.
    pub fn fields_of_path<'a>(&'a self, start: &'a Struct, path: &[usize]) -> Vec<&'a Field> {
        let mut here = Some(start);
        let mut fields = Vec::with_capacity(path.len());
        for step in path {
            let Some(field) = here.and_then(|fields| fields.fields.get(*step)) else { break };
            fields.push(field);
            here = self.as_struct(&field.ty).map(|(_, fields)| fields);
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generated_table_is_whole() {
        let types = Types::builtin();
        let pod = types.kind("v1", "Pod").unwrap();
        assert_eq!(types.get(pod).go_name(), "v1.Pod");
        assert!(types.kinds().count() > 150);
        // Whatever is named is declared: `get` must never be out of range.
        for declared in &types.declared {
            if let Shape::Struct(fields) = &declared.shape {
                for field in &fields.fields {
                    types.go_name(&field.ty);
                    types.underlying(&field.ty);
                }
            }
        }
    }

    #[test]
    fn embedded_fields_are_reached_by_their_json_names() {
        let types = Types::builtin();
        let volume = Type::Declared(types.named("core/v1.Volume").unwrap());
        let (_, fields) = types.as_struct(&volume).unwrap();
        let path = fields.path("hostPath").unwrap();
        let labels: Vec<_> =
            types.fields_of_path(fields, path).into_iter().map(Field::label).collect();
        assert_eq!(labels, ["VolumeSource", "hostPath"]);
        assert_eq!(fields.path("HostPath"), None);
    }

    #[test]
    fn types_are_printed_as_go_prints_them() {
        let types = Types::builtin();
        let spec = Type::Declared(types.named("core/v1.PodSpec").unwrap());
        let (_, fields) = types.as_struct(&spec).unwrap();
        let printed = |name: &str| {
            let path = fields.path(name).unwrap();
            types.go_name(&types.fields_of_path(fields, path).last().unwrap().ty)
        };
        assert_eq!(printed("containers"), "[]v1.Container");
        assert_eq!(printed("nodeSelector"), "map[string]string");
        assert_eq!(printed("restartPolicy"), "v1.RestartPolicy");
        assert_eq!(printed("activeDeadlineSeconds"), "*int64");
        assert_eq!(printed("overhead"), "v1.ResourceList");
    }
}
