//! Writes the table of types that the described kinds reach.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context, bail};

use super::components::Described;
use super::gosource::{Declaration, Field, GoType, Packages, TypeName};

/// Types whose Go code encodes itself; `kproto` and `kschema` know each by name.
const SPECIAL: &[&str] = &[
    "apiextensions/v1.JSON",
    "apiextensions/v1.JSONSchemaPropsOrArray",
    "apiextensions/v1.JSONSchemaPropsOrBool",
    "apiextensions/v1.JSONSchemaPropsOrStringArray",
    "intstr.IntOrString",
    "meta/v1.FieldsV1",
    "meta/v1.MicroTime",
    "meta/v1.Time",
    "resource.Quantity",
    "runtime.RawExtension",
];

const HEADER: &str = "\
# Go types of the built-in kinds. Written by `cargo xtask generate`; do not edit.
#
# kind    <apiVersion> <kind> <type>
# struct  <type>, then a line for each field:
#         <JSON name> <type> <protobuf number or -> <flags>
#         flags: omitempty, omitzero, inline=<Go name>, strategy=<patch strategies>, key=<merge key>
# named   <type> <underlying type>
# message <type> <underlying type>, which protobuf wraps in a message with one field `items`
# special <type>, which encodes itself
";

/// The text of the table.
pub(super) fn write(kinds: &BTreeSet<Described>, packages: &Packages) -> anyhow::Result<String> {
    let mut out = HEADER.to_owned();
    for Described { api_version, kind, go_type } in kinds {
        writeln!(out, "kind\t{api_version}\t{kind}\t{go_type}")?;
    }
    for (name, declaration) in reachable(kinds, packages)? {
        match declaration {
            _ if is_special(&name) => writeln!(out, "special\t{name}")?,
            Declaration::Struct(fields) => {
                writeln!(out, "struct\t{name}")?;
                for field in &fields {
                    let line =
                        field_line(field).with_context(|| format!("{name}.{}", field.name))?;
                    writeln!(out, "\t{line}")?;
                }
            }
            Declaration::Defined { underlying, message } => {
                let word = if message { "message" } else { "named" };
                writeln!(out, "{word}\t{name}\t{underlying}")?;
            }
        }
    }
    Ok(out)
}

fn is_special(name: &TypeName) -> bool {
    SPECIAL.contains(&name.to_string().as_str())
}

/// Every declaration that the kinds reach, by name.
fn reachable(
    kinds: &BTreeSet<Described>,
    packages: &Packages,
) -> anyhow::Result<BTreeMap<TypeName, Declaration>> {
    let mut read: BTreeMap<String, BTreeMap<String, Declaration>> = BTreeMap::new();
    let mut reached = BTreeMap::new();
    let mut waiting: Vec<TypeName> = kinds.iter().map(|kind| kind.go_type.clone()).collect();
    while let Some(name) = waiting.pop() {
        if reached.contains_key(&name) {
            continue;
        }
        if !read.contains_key(&name.package) {
            read.insert(name.package.clone(), packages.read(&name.package)?);
        }
        let declaration = read
            .get(&name.package)
            .and_then(|package| package.get(&name.name))
            .with_context(|| format!("{name} is not declared"))?
            .clone();
        if !is_special(&name) {
            match &declaration {
                Declaration::Struct(fields) => {
                    for field in fields {
                        collect(&field.go_type, &mut waiting);
                    }
                }
                Declaration::Defined { underlying, .. } => collect(underlying, &mut waiting),
            }
        }
        reached.insert(name, declaration);
    }
    Ok(reached)
}

fn collect(go_type: &GoType, names: &mut Vec<TypeName>) {
    match go_type {
        GoType::Basic(_) => {}
        GoType::Pointer(inner) | GoType::Slice(inner) => collect(inner, names),
        GoType::Map(key, value) => {
            collect(key, names);
            collect(value, names);
        }
        GoType::Named(name) => names.push(name.clone()),
    }
}

fn field_line(field: &Field) -> anyhow::Result<String> {
    let json = field.tags.get("json").context("no JSON name")?;
    let mut options = json.split(',');
    let name = options.next().unwrap_or_default();
    let mut flags = Vec::new();
    for option in options {
        match option {
            // `inline` is a convention; the empty name is what makes an embedded struct inline.
            "inline" | "" => {}
            "omitempty" | "omitzero" => flags.push(option.to_owned()),
            other => bail!("JSON option {other}"),
        }
    }
    let name = if name.is_empty() {
        flags.push(format!("inline={}", field.name));
        "-"
    } else {
        name
    };
    if let Some(strategy) = field.tags.get("patchStrategy") {
        flags.push(format!("strategy={strategy}"));
    }
    if let Some(key) = field.tags.get("patchMergeKey") {
        flags.push(format!("key={key}"));
    }
    let number = match field.tags.get("protobuf") {
        None => "-",
        Some(tag) => tag.split(',').nth(1).with_context(|| format!("protobuf tag {tag}"))?,
    };
    let mut line = format!("{name}\t{}\t{number}", field.go_type);
    for flag in flags {
        line.push('\t');
        line.push_str(&flag);
    }
    Ok(line)
}
