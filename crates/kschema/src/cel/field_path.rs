//! Paths from a node of a schema to a field below it, such as `.spec.replicas` or `.labels['a']`.

use crate::field::Path;
use crate::schema::Schema;

/// What a path may contain.
#[derive(Clone, Copy)]
pub(crate) struct PathOptions {
    /// Whether `['name']` is allowed.
    pub(crate) brackets: bool,
}

/// Follows a path through a schema; returns the path in messages, and the schema of the field.
pub(crate) fn resolve_field_path<'a>(
    path: &str,
    schema: &'a Schema,
    options: PathOptions,
) -> Result<(Path, &'a Schema), String> {
    let mut schema = schema;
    let mut resolved = Path::root();
    let mut tokens = tokens(path).into_iter();
    let ended = || "unexpected end of JSON path".to_owned();
    while let Some(token) = tokens.next() {
        let name = match token {
            "." => tokens.next().ok_or_else(ended)?.to_owned(),
            "[" => {
                if !options.brackets {
                    return Err("array notation is not allowed".to_owned());
                }
                let quoted = tokens.next().ok_or_else(ended)?;
                let name = quoted
                    .strip_prefix('\'')
                    .and_then(|inner| inner.strip_suffix('\''))
                    .ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                let name = unescaped(name)?;
                match tokens.next() {
                    Some("]") => {}
                    Some(other) => return Err(format!("expected ] but got {other}")),
                    None => return Err(ended()),
                }
                name
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        if !schema.properties.is_empty() {
            resolved = resolved.child(&name);
            schema = schema
                .properties
                .get(&name)
                .ok_or_else(|| "does not refer to a valid field".to_owned())?;
        } else if let Some(additional) = schema.additional_schema() {
            resolved = resolved.key(&name);
            schema = additional;
        } else {
            return Err("does not refer to a valid field".to_owned());
        }
    }
    Ok((resolved, schema))
}

/// Splits at `.`, `[` and `]`, which are tokens themselves; quoted text is one token.
fn tokens(path: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let end = if rest.starts_with('\'') {
            let bytes = rest.as_bytes();
            (1..bytes.len())
                .find(|i| bytes.get(*i) == Some(&b'\'') && bytes.get(i - 1) != Some(&b'\\'))
                .map_or(rest.len(), |i| i + 1)
        } else if rest.starts_with(['.', '[', ']']) {
            1
        } else {
            rest.find(['.', '[', ']']).unwrap_or(rest.len())
        };
        let (token, after) = rest.split_at(end);
        tokens.push(token);
        rest = after;
    }
    tokens
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some(escaped) = chars.next() else {
            out.push(c);
            break;
        };
        out.push(match escaped {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\'' => '\'',
            '\\' => '\\',
            other => return Err(format!("invalid string literal: invalid escape char \\{other}")),
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_resolve() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"a.b": {"type": "string"}}},
            "m": {"type": "object", "additionalProperties": {"type": "integer"}}}}))
        .unwrap();
        let brackets = PathOptions { brackets: true };
        let cases = [
            (".spec", Ok("spec")),
            (".spec['a.b']", Ok("spec.a.b")),
            (".m.key", Ok("m[key]")),
            ("['m']['x\\'y']", Ok("m[x'y]")),
            (".foo", Err("does not refer to a valid field")),
            ("spec", Err("expected [ or . but got: spec")),
            (".", Err("unexpected end of JSON path")),
            (".spec[", Err("unexpected end of JSON path")),
            (".spec[0]", Err("expected single quoted string but got 0")),
            (".m['a", Err("expected single quoted string but got 'a")),
        ];
        for (path, expected) in cases {
            let found = resolve_field_path(path, &schema, brackets);
            match expected {
                Ok(text) => assert_eq!(found.unwrap().0.to_string(), text, "{path}"),
                Err(text) => assert_eq!(found.unwrap_err(), text, "{path}"),
            }
        }
        let plain = PathOptions { brackets: false };
        assert_eq!(
            resolve_field_path("['m']", &schema, plain).unwrap_err(),
            "array notation is not allowed"
        );
    }
}
