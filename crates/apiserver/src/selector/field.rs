//! Field selectors: `metadata.name=a,spec.nodeName!=b`.

use std::fmt;

/// One `field=value` or `field!=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    /// The field, such as `spec.nodeName`.
    pub field: String,
    /// What it is compared with.
    pub value: String,
    /// Whether the field must differ.
    pub negated: bool,
}

/// Terms that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(pub Vec<FieldTerm>);

impl FieldSelector {
    /// Reads a selector as clients write it in `fieldSelector`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut terms = Vec::new();
        for part in split_unescaped(text, ',') {
            if part.is_empty() {
                continue;
            }
            terms.push(parse_term(&part)?);
        }
        Ok(Self(terms))
    }

    /// Whether every term holds; `value_of` gives a field's value.
    pub fn matches(&self, mut value_of: impl FnMut(&str) -> String) -> bool {
        self.0.iter().all(|term| (value_of(&term.field) == term.value) != term.negated)
    }

    /// Whether there are no terms.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value that `field` must have, if the selector fixes it.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|term| term.field == field && !term.negated)
            .map(|term| term.value.as_str())
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let operator = if term.negated { "!=" } else { "=" };
            write!(f, "{comma}{}{operator}{}", term.field, term.value)?;
        }
        Ok(())
    }
}

fn parse_term(part: &str) -> Result<FieldTerm, String> {
    for (at, _) in part.char_indices() {
        for (operator, negated) in [("!=", true), ("==", false), ("=", false)] {
            if let Some(value) = part[at..].strip_prefix(operator) {
                return Ok(FieldTerm {
                    field: part[..at].to_owned(),
                    value: unescape(value)?,
                    negated,
                });
            }
        }
    }
    Err(format!("invalid selector: '{part}'; can't understand '{part}'"))
}

fn split_unescaped(text: &str, separator: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        if c == separator && !escaped {
            parts.push(String::new());
            continue;
        }
        escaped = c == '\\' && !escaped;
        if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts
}

fn unescape(value: &str) -> Result<String, String> {
    if !value.contains(['\\', ',', '=']) {
        return Ok(value.to_owned());
    }
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(next @ ('\\' | ',' | '=')) => plain.push(next),
                Some(other) => {
                    return Err(format!(
                        "invalid field selector: invalid escape sequence: \\{other}"
                    ));
                }
                None => {
                    return Err("invalid field selector: invalid escape sequence: \\".to_owned());
                }
            },
            ',' | '=' => {
                return Err(format!("invalid field selector: unescaped character in value: {c}"));
            }
            other => plain.push(other),
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_matches() {
        let selector = FieldSelector::parse("metadata.name=a,spec.nodeName!=b").unwrap();
        let value = |field: &str| match field {
            "metadata.name" => "a".to_owned(),
            _ => "c".to_owned(),
        };
        assert!(selector.matches(value));
        assert!(!selector.matches(|_| "b".to_owned()));
        assert_eq!(selector.exact("metadata.name"), Some("a"));
        assert_eq!(selector.to_string(), "metadata.name=a,spec.nodeName!=b");
    }

    #[test]
    fn escapes() {
        assert_eq!(FieldSelector::parse(r"a=b\,c\=d").unwrap().0[0].value, "b,c=d");
        assert!(FieldSelector::parse("a").is_err());
        assert!(FieldSelector::parse("a=b=c").is_err());
        assert!(FieldSelector::parse("").unwrap().is_empty());
    }
}
