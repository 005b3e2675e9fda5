//! Reads the generated table.

use std::collections::BTreeMap;

use super::{Declared, Field, FieldName, Shape, Special, Struct, Type, TypeId, Types};

/// A line of the table that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{reason}: {line}")]
pub(super) struct TableError {
    reason: &'static str,
    line: String,
}

fn error(reason: &'static str, line: &str) -> TableError {
    TableError { reason, line: line.to_owned() }
}

/// Reads the table: names first, so that types may be used before they are declared.
pub(super) fn table(text: &str) -> Result<Types, TableError> {
    let mut types = Types::default();
    for line in text.lines() {
        let mut words = line.split('\t');
        if matches!(words.next(), Some("struct" | "named" | "message" | "special")) {
            let name = words.next().ok_or_else(|| error("no name", line))?;
            let (package, short) =
                name.rsplit_once('.').ok_or_else(|| error("no package", line))?;
            types.by_name.insert(name.to_owned(), TypeId(types.declared.len()));
            types.declared.push(Declared {
                package: package.to_owned(),
                name: short.to_owned(),
                shape: Shape::Struct(Struct::default()),
            });
        }
    }
    let mut current = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split('\t').collect();
        match words.as_slice() {
            ["kind", api_version, kind, name] => {
                let id = *types.by_name.get(*name).ok_or_else(|| error("unknown type", line))?;
                let kinds = types.kinds.entry((*api_version).to_owned()).or_default();
                kinds.insert((*kind).to_owned(), id);
            }
            ["struct", name] => current = types.by_name.get(*name).copied(),
            ["named", name, underlying] => {
                let shape = Shape::Named(parse_type(underlying, &types.by_name, line)?);
                set_shape(&mut types, name, shape);
            }
            ["message", name, underlying] => {
                let shape = Shape::Message(parse_type(underlying, &types.by_name, line)?);
                set_shape(&mut types, name, shape);
            }
            ["special", name] => {
                let shape = Shape::Special(special(name).ok_or_else(|| error("special", line))?);
                set_shape(&mut types, name, shape);
            }
            ["", name, ty, number, flags @ ..] => {
                let field = parse_field(name, ty, number, flags, &types.by_name, line)?;
                let declared = current.and_then(|id: TypeId| types.declared.get_mut(id.0));
                let Some(Declared { shape: Shape::Struct(fields), .. }) = declared else {
                    return Err(error("a field outside a struct", line));
                };
                fields.fields.push(field);
            }
            _ if line.starts_with('#') || line.is_empty() => {}
            _ => return Err(error("unreadable", line)),
        }
    }
    types.expressions = (0..types.declared.len()).map(|id| Type::Declared(TypeId(id))).collect();
    index(&mut types);
    Ok(types)
}

fn set_shape(types: &mut Types, name: &str, shape: Shape) {
    if let Some(id) = types.by_name.get(name)
        && let Some(declared) = types.declared.get_mut(id.0)
    {
        declared.shape = shape;
    }
}

/// Builds the look-ups of every struct, once all fields are known.
fn index(types: &mut Types) {
    for position in 0..types.declared.len() {
        let Some(Declared { shape: Shape::Struct(fields), .. }) = types.declared.get(position)
        else {
            continue;
        };
        let mut by_number = BTreeMap::new();
        for (at, field) in fields.fields.iter().enumerate() {
            if let Some(number) = field.number {
                by_number.insert(number, at);
            }
        }
        let mut by_json = BTreeMap::new();
        index_json(types, fields, &mut Vec::new(), &mut by_json);
        if let Some(Declared { shape: Shape::Struct(fields), .. }) =
            types.declared.get_mut(position)
        {
            fields.by_number = by_number;
            fields.by_json = by_json;
        }
    }
}

fn index_json(
    types: &Types,
    fields: &Struct,
    path: &mut Vec<usize>,
    found: &mut BTreeMap<String, Vec<usize>>,
) {
    for (at, field) in fields.fields.iter().enumerate() {
        path.push(at);
        match &field.name {
            // As in Go, the shallowest field of a name wins.
            FieldName::Json(name) => match found.get(name) {
                Some(other) if other.len() <= path.len() => {}
                _ => {
                    found.insert(name.clone(), path.clone());
                }
            },
            FieldName::Inline(_) => {
                if let Some((_, inner)) = types.as_struct(&field.ty) {
                    index_json(types, inner, path, found);
                }
            }
        }
        path.pop();
    }
}

fn parse_field(
    name: &str,
    ty: &str,
    number: &str,
    flags: &[&str],
    names: &BTreeMap<String, TypeId>,
    line: &str,
) -> Result<Field, TableError> {
    let number = match number {
        "-" => None,
        digits => Some(digits.parse().map_err(|_| error("protobuf number", line))?),
    };
    let mut field = Field {
        name: FieldName::Json(name.to_owned()),
        ty: parse_type(ty, names, line)?,
        number,
        omit_empty: false,
        omit_zero: false,
        strategies: Vec::new(),
        merge_key: None,
    };
    for flag in flags {
        match flag.split_once('=') {
            None if *flag == "omitempty" => field.omit_empty = true,
            None if *flag == "omitzero" => field.omit_zero = true,
            Some(("inline", go)) => field.name = FieldName::Inline(go.to_owned()),
            Some(("strategy", list)) => {
                field.strategies = list.split(',').map(str::to_owned).collect();
            }
            Some(("key", key)) => field.merge_key = Some(key.to_owned()),
            _ => return Err(error("unknown flag", line)),
        }
    }
    Ok(field)
}

fn parse_type(
    text: &str,
    names: &BTreeMap<String, TypeId>,
    line: &str,
) -> Result<Type, TableError> {
    let inner = |text: &str| parse_type(text, names, line).map(Box::new);
    if let Some(rest) = text.strip_prefix('*') {
        return Ok(Type::Pointer(inner(rest)?));
    }
    if let Some(rest) = text.strip_prefix("[]") {
        return Ok(Type::Slice(inner(rest)?));
    }
    if let Some(rest) = text.strip_prefix("map[") {
        let (key, value) = rest.split_once(']').ok_or_else(|| error("an open map", line))?;
        return Ok(Type::Map(inner(key)?, inner(value)?));
    }
    Ok(match text {
        "bool" => Type::Bool,
        "int32" => Type::Int32,
        "int64" => Type::Int64,
        "uint8" => Type::Uint8,
        "float64" => Type::Float64,
        "string" => Type::String,
        name => Type::Declared(*names.get(name).ok_or_else(|| error("unknown type", line))?),
    })
}

fn special(name: &str) -> Option<Special> {
    Some(match name {
        "apiextensions/v1.JSON" => Special::Json,
        "apiextensions/v1.JSONSchemaPropsOrArray" => Special::SchemaOrArray,
        "apiextensions/v1.JSONSchemaPropsOrBool" => Special::SchemaOrBool,
        "apiextensions/v1.JSONSchemaPropsOrStringArray" => Special::SchemaOrStrings,
        "intstr.IntOrString" => Special::IntOrString,
        "meta/v1.FieldsV1" => Special::Fields,
        "meta/v1.MicroTime" => Special::MicroTime,
        "meta/v1.Time" => Special::Time,
        "resource.Quantity" => Special::Quantity,
        "runtime.RawExtension" => Special::RawExtension,
        _ => return None,
    })
}
