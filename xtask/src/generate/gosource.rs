//! Reads type declarations out of Go sources.
//!
//! The sources are formatted by gofmt and hold plain declarations, so lines are enough: a type
//! starts in the first column, a struct's fields are indented by one tab, each on one line, and
//! a lone closing brace ends it. Whatever does not fit is an error, not a guess.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};

use super::modules::Modules;

/// A Go type by its short package and its name: `core/v1.Pod`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TypeName {
    /// The package path below its family: `core/v1`, `meta/v1`, `resource`.
    pub(super) package: String,
    /// The name inside the package.
    pub(super) name: String,
}

impl fmt::Display for TypeName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.package, self.name)
    }
}

/// A type expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GoType {
    /// A predeclared type.
    Basic(String),
    /// `*T`.
    Pointer(Box<GoType>),
    /// `[]T`.
    Slice(Box<GoType>),
    /// `map[K]V`.
    Map(Box<GoType>, Box<GoType>),
    /// A declared type.
    Named(TypeName),
}

impl fmt::Display for GoType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GoType::Basic(name) => out.write_str(name),
            GoType::Pointer(inner) => write!(out, "*{inner}"),
            GoType::Slice(inner) => write!(out, "[]{inner}"),
            GoType::Map(key, value) => write!(out, "map[{key}]{value}"),
            GoType::Named(name) => write!(out, "{name}"),
        }
    }
}

/// A struct field that JSON or protobuf carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    /// The Go name.
    pub(super) name: String,
    /// The Go type.
    pub(super) go_type: GoType,
    /// The tags, in full.
    pub(super) tags: BTreeMap<String, String>,
}

/// What a declaration says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Declaration {
    /// `type T struct { … }`.
    Struct(Vec<Field>),
    /// `type T underlying`; `message` when protobuf wraps it in a message of its own.
    Defined { underlying: GoType, message: bool },
}

/// Declarations of all packages, read when first asked for.
pub(super) struct Packages {
    modules: Modules,
}

impl Packages {
    /// Packages of these modules.
    pub(super) fn new(modules: Modules) -> Self {
        Self { modules }
    }

    /// All declarations of a package given by its short path.
    pub(super) fn read(&self, package: &str) -> anyhow::Result<BTreeMap<String, Declaration>> {
        let folder = self.folder(package);
        let mut declarations = BTreeMap::new();
        let entries = fs::read_dir(&folder)
            .with_context(|| format!("package {package} at {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let generated = name.starts_with("zz_") || name.contains("generated");
            let is_go = path.extension().is_some_and(|e| e == "go");
            if is_go && !generated && !name.ends_with("_test.go") {
                let source = fs::read_to_string(&path)?;
                parse(package, &source, &mut declarations)
                    .with_context(|| format!("{}", path.display()))?;
            }
        }
        Ok(declarations)
    }

    fn folder(&self, package: &str) -> PathBuf {
        let Modules { api, apimachinery, apiextensions } = &self.modules;
        match package {
            "meta/v1" => apimachinery.join("pkg/apis/meta/v1"),
            "resource" => apimachinery.join("pkg/api/resource"),
            "intstr" => apimachinery.join("pkg/util/intstr"),
            "runtime" => apimachinery.join("pkg/runtime"),
            "types" => apimachinery.join("pkg/types"),
            "apiextensions/v1" => apiextensions.join("pkg/apis/apiextensions/v1"),
            other => api.join(other),
        }
    }
}

/// The short path of an import, or none for packages that hold no API types.
fn short_package(import: &str) -> Option<String> {
    let package = match import {
        "k8s.io/apimachinery/pkg/apis/meta/v1" => "meta/v1",
        "k8s.io/apimachinery/pkg/api/resource" => "resource",
        "k8s.io/apimachinery/pkg/util/intstr" => "intstr",
        "k8s.io/apimachinery/pkg/runtime" => "runtime",
        "k8s.io/apimachinery/pkg/types" => "types",
        "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1" => "apiextensions/v1",
        other => other.strip_prefix("k8s.io/api/")?,
    };
    Some(package.to_owned())
}

/// Adds the declarations of one file.
fn parse(
    package: &str,
    source: &str,
    declarations: &mut BTreeMap<String, Declaration>,
) -> anyhow::Result<()> {
    let scope = Scope { package: package.to_owned(), imports: imports(source) };
    let mut message = false;
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        if line.contains("+protobuf.nullable=true") {
            message = true;
        }
        let Some(declaration) = line.strip_prefix("type ") else {
            if !line.starts_with("//") {
                message = false;
            }
            continue;
        };
        let (name, definition) =
            declaration.split_once(' ').with_context(|| format!("no definition: {line}"))?;
        let definition = definition.trim_start_matches("= ");
        if definition == "struct {" {
            let mut fields = Vec::new();
            for line in lines.by_ref() {
                if line == "}" {
                    break;
                }
                if let Some(field) = scope.field(line).with_context(|| format!("{name}: {line}"))? {
                    fields.push(field);
                }
            }
            declarations.insert(name.to_owned(), Declaration::Struct(fields));
        } else if definition == "struct{}" {
            declarations.insert(name.to_owned(), Declaration::Struct(Vec::new()));
        } else if let Ok(underlying) = scope.go_type(definition.trim()) {
            // Interfaces and functions are declared too; whoever needs one finds it missing.
            declarations.insert(name.to_owned(), Declaration::Defined { underlying, message });
        }
        message = false;
    }
    Ok(())
}

/// Import names to short package paths.
fn imports(source: &str) -> BTreeMap<String, String> {
    let mut imports = BTreeMap::new();
    let mut inside = false;
    for line in source.lines() {
        match line {
            "import (" => inside = true,
            ")" => inside = false,
            _ => {}
        }
        let spec = line.strip_prefix("import ").unwrap_or(if inside { line } else { continue });
        let Some((alias, rest)) = spec.split_once('"') else { continue };
        let Some(path) = rest.strip_suffix('"').and_then(short_package) else { continue };
        let name = match alias.trim() {
            "" => path.rsplit('/').next().unwrap_or(&path).to_owned(),
            alias => alias.to_owned(),
        };
        imports.insert(name, path);
    }
    imports
}

struct Scope {
    package: String,
    imports: BTreeMap<String, String>,
}

impl Scope {
    /// Reads a line of a struct; comments, blank lines and unexported fields are none.
    fn field(&self, line: &str) -> anyhow::Result<Option<Field>> {
        let line = line.trim();
        if line.is_empty() || line.starts_with("//") {
            return Ok(None);
        }
        let (declaration, tags) = match line.split_once('`') {
            Some((declaration, rest)) => {
                let tags = rest.split_once('`').context("an open tag")?.0;
                (declaration.trim(), parse_tags(tags)?)
            }
            None => (line.split("//").next().unwrap_or_default().trim(), BTreeMap::new()),
        };
        let embedded = declaration.trim_start_matches('*').rsplit('.').next();
        let (name, go_type) = declaration
            .split_once(char::is_whitespace)
            .map_or((embedded.unwrap_or_default(), declaration), |(name, go_type)| {
                (name, go_type.trim())
            });
        if !name.starts_with(|c: char| c.is_ascii_uppercase())
            || tags.get("json").is_some_and(|t| t == "-")
        {
            return Ok(None);
        }
        // A field that JSON does not name belongs to a type with its own encoding.
        if !tags.contains_key("json") {
            return Ok(None);
        }
        Ok(Some(Field { name: name.to_owned(), go_type: self.go_type(go_type)?, tags }))
    }

    fn go_type(&self, text: &str) -> anyhow::Result<GoType> {
        if let Some(inner) = text.strip_prefix('*') {
            return Ok(GoType::Pointer(Box::new(self.go_type(inner)?)));
        }
        if let Some(inner) = text.strip_prefix("[]") {
            return Ok(GoType::Slice(Box::new(self.go_type(inner)?)));
        }
        if let Some(rest) = text.strip_prefix("map[") {
            let (key, value) = rest.split_once(']').context("an open map")?;
            return Ok(GoType::Map(Box::new(self.go_type(key)?), Box::new(self.go_type(value)?)));
        }
        if matches!(
            text,
            "string" | "bool" | "byte" | "uint8" | "int" | "int32" | "int64" | "float64"
        ) {
            let name = if text == "byte" { "uint8" } else { text };
            return Ok(GoType::Basic(name.to_owned()));
        }
        if text == "interface{}" || text == "any" {
            return Ok(GoType::Basic("any".to_owned()));
        }
        let (package, name) = match text.split_once('.') {
            Some((alias, name)) => {
                (self.imports.get(alias).with_context(|| format!("import {alias}"))?.clone(), name)
            }
            None => (self.package.clone(), text),
        };
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            bail!("not a type: {text}");
        }
        Ok(GoType::Named(TypeName { package, name: name.to_owned() }))
    }
}

/// Reads `key:"value" key:"value"`; no tag of the API holds an escape.
fn parse_tags(text: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let mut tags = BTreeMap::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (key, value) = rest.split_once(":\"").with_context(|| format!("tag {rest}"))?;
        let (value, after) = value.split_once('"').with_context(|| format!("tag {rest}"))?;
        tags.insert(key.trim().to_owned(), value.to_owned());
        rest = after.trim_start();
    }
    Ok(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_structs_defined_types_and_imports() {
        let source = "package v1\n\nimport (\n\tv1 \"k8s.io/api/core/v1\"\n\tmetav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n\t\"k8s.io/apimachinery/pkg/api/resource\"\n)\n\n// +protobuf.nullable=true\n// +protobuf.options.(gogoproto.goproto_stringer)=false\ntype Extra []string\n\ntype Phase string\n\n// Thing is.\ntype Thing struct {\n\t// Comment `tick`.\n\tmetav1.TypeMeta `json:\",inline\"`\n\tSize map[string]resource.Quantity `json:\"size,omitempty\" protobuf:\"bytes,3,rep,name=size\"`\n\tPods []*v1.Pod `json:\"pods\" patchStrategy:\"merge\" patchMergeKey:\"name\" protobuf:\"bytes,4,rep,name=pods\"`\n\thidden int\n}\n\ntype I interface {\n\tA()\n}\n";
        let mut found = BTreeMap::new();
        parse("x/v1", source, &mut found).unwrap();
        assert_eq!(
            found["Phase"],
            Declaration::Defined { underlying: GoType::Basic("string".into()), message: false }
        );
        assert!(matches!(found["Extra"], Declaration::Defined { message: true, .. }));
        let Declaration::Struct(fields) = &found["Thing"] else { panic!("not a struct") };
        let shown: Vec<_> = fields.iter().map(|f| format!("{} {}", f.name, f.go_type)).collect();
        assert_eq!(
            shown,
            [
                "TypeMeta meta/v1.TypeMeta",
                "Size map[string]resource.Quantity",
                "Pods []*core/v1.Pod"
            ]
        );
        assert_eq!(fields[2].tags["patchMergeKey"], "name");
        assert!(!found.contains_key("I"));
    }

    #[test]
    fn refuses_what_it_cannot_read() {
        let scope = Scope { package: "x".into(), imports: BTreeMap::new() };
        assert!(scope.go_type("func()").is_err());
        assert!(scope.go_type("time.Duration").is_err());
        assert!(parse_tags("json:\"a").is_err());
    }
}
