//! Names of properties as expressions write them.

/// Words that cannot be identifiers.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Whether a word cannot be an identifier.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// The identifier for a property, or `None` if no expression can name it.
pub(super) fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.as_bytes().first().is_some_and(u8::is_ascii_digit) {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("__") {
            out.push_str("__underscores__");
            rest = after;
            continue;
        }
        match c {
            '.' => out.push_str("__dot__"),
            '-' => out.push_str("__dash__"),
            '/' => out.push_str("__slash__"),
            '_' | 'a'..='z' | 'A'..='Z' | '0'..='9' => out.push(c),
            _ => return None,
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    Some(out)
}

/// The property that an identifier names.
pub(super) fn unescape(identifier: &str) -> String {
    if !identifier.contains("__") {
        return identifier.to_owned();
    }
    if let Some(word) = identifier.strip_prefix("__").and_then(|i| i.strip_suffix("__"))
        && is_reserved(word)
    {
        return word.to_owned();
    }
    let mut out = String::with_capacity(identifier.len());
    let mut rest = identifier;
    while !rest.is_empty() {
        let known =
            [("__underscores__", "__"), ("__dot__", "."), ("__dash__", "-"), ("__slash__", "/")];
        if let Some((code, text)) = known.iter().find(|(code, _)| rest.starts_with(code)) {
            out.push_str(text);
            rest = rest.get(code.len()..).unwrap_or_default();
        } else {
            let end = rest.chars().next().map_or(rest.len(), char::len_utf8);
            out.push_str(rest.get(..end).unwrap_or_default());
            rest = rest.get(end..).unwrap_or_default();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_escape_and_unescape() {
        let cases = [
            ("a_b", Some("a_b")),
            ("a__b", Some("a__underscores__b")),
            ("_a", Some("_a")),
            ("x-prop", Some("x__dash__prop")),
            ("a.b/c", Some("a__dot__b__slash__c")),
            ("namespace", Some("__namespace__")),
            ("redact__d", Some("redact__underscores__d")),
            ("1a", None),
            ("", None),
            ("a b", None),
            ("é", None),
        ];
        for (name, expected) in cases {
            assert_eq!(escape(name).as_deref(), expected, "{name}");
            if let Some(identifier) = expected {
                assert_eq!(unescape(identifier), name);
            }
        }
    }
}
