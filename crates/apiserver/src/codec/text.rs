//! Bodies that are text, with Go's complaints about them.

use fleetwright_kschema::builtin::gojson;
use serde_json::Value;

/// A parsed body.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The value; of duplicate fields the last one counts.
    pub value: Value,
    /// What is said of fields that appear twice: `duplicate field "spec.replicas"`.
    pub duplicates: Vec<String>,
}

/// Parses JSON; the error is Go's text.
pub fn parse_json(bytes: &[u8]) -> Result<Parsed, String> {
    let node = gojson::parse(bytes).map_err(|error| error.to_string())?;
    let duplicates = node.duplicates();
    Ok(Parsed { value: node.into_value(), duplicates })
}

/// Parses YAML (the first document). Duplicate keys are an error, as in Go's strict conversion,
/// unless `lenient`, where the last one counts.
pub fn parse_yaml(bytes: &[u8], lenient: bool) -> Result<Parsed, String> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| "yaml: invalid leading UTF-8 octet".to_owned())?;
    // Most YAML bodies are JSON, which is far cheaper to read as what it is.
    if text.trim_start().starts_with('{')
        && let Ok(parsed) = parse_json(bytes)
    {
        return Ok(parsed);
    }
    let mut options = serde_saphyr::Options::default();
    options.duplicate_keys = if lenient {
        serde_saphyr::DuplicateKeyPolicy::LastWins
    } else {
        serde_saphyr::DuplicateKeyPolicy::Error
    };
    serde_saphyr::from_str_with_options::<Value>(text, options)
        .map(|value| Parsed { value, duplicates: Vec::new() })
        .map_err(|error| yaml_error(&error))
}

/// An error in the words of Go's YAML library, as far as they are the same thing.
fn yaml_error(error: &serde_saphyr::Error) -> String {
    let plain = error.without_snippet();
    let line = plain.location().map_or(0, |location| location.line());
    if let serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } = plain {
        return format!(
            "{DUPLICATE_PREFIX}line {line}: key {} already set in map",
            fleetwright_kschema::gotext::quote(key)
        );
    }
    format!("yaml: line {line}: {}", first_line(&plain.to_string()))
}

const DUPLICATE_PREFIX: &str = "yaml: unmarshal errors:\n  ";

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// The warnings that a strict YAML error becomes where fields are not validated strictly.
pub fn yaml_warnings(error: &str) -> Vec<String> {
    match error.strip_prefix(DUPLICATE_PREFIX) {
        Some(lines) => lines.lines().map(|line| line.trim().to_owned()).collect(),
        None => vec![error.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_duplicates() {
        let parsed = parse_json(br#"{"a":1,"b":[{"c":1,"c":2}],"a":3}"#).unwrap();
        assert_eq!(parsed.value, json!({"a": 3, "b": [{"c": 2}]}));
        assert_eq!(parsed.duplicates.len(), 2);
    }

    #[test]
    fn reads_yaml() {
        assert_eq!(
            parse_yaml(b"a: 1\nb: [x]\n", false).unwrap().value,
            json!({"a": 1, "b": ["x"]})
        );
        assert!(parse_yaml(b"a: [", false).is_err());
        assert!(parse_yaml(b"a: 1\na: 2\n", false).is_err());
        assert_eq!(parse_yaml(b"a: 1\na: 2\n", true).unwrap().value, json!({"a": 2}));
    }
}
