//! Texts that are names of other things: ports, headers, variables, keys.

use super::{max_length_reason, pattern_reason};

const CONFIG_KEY_MAX: usize = 253;

/// A name that fits in one segment of a URL path.
pub fn path_segment_name(text: &str) -> Vec<String> {
    if text == "." || text == ".." {
        return vec![format!("may not be '{text}'")];
    }
    path_segment_prefix(text)
}

/// The beginning of a name that fits in one segment of a URL path.
pub fn path_segment_prefix(text: &str) -> Vec<String> {
    ["/", "%"]
        .into_iter()
        .filter(|illegal| text.contains(illegal))
        .map(|illegal| format!("may not contain '{illegal}'"))
        .collect()
}

/// An IANA service name: what a port may be called.
pub fn port_name(text: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    if text.len() > 15 {
        reasons.push(max_length_reason(15));
    }
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if text.is_empty() || !text.bytes().all(allowed) {
        reasons.push(
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned(),
        );
    }
    if !text.bytes().any(|b| b.is_ascii_lowercase()) {
        reasons.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        reasons.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        reasons.push("must not begin or end with a hyphen".to_owned());
    }
    reasons
}

/// A port number.
pub fn port_number(port: i64) -> Vec<String> {
    in_range(port, 1, 65535)
}

/// A number between two others, inclusive.
pub fn in_range(value: i64, low: i64, high: i64) -> Vec<String> {
    if (low..=high).contains(&value) {
        Vec::new()
    } else {
        vec![format!("must be between {low} and {high}, inclusive")]
    }
}

/// A percentage such as `25%`.
pub fn percent(text: &str) -> Vec<String> {
    let number = text.strip_suffix('%').unwrap_or_default();
    if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) {
        return Vec::new();
    }
    let reason = "a valid percent string must be a numeric string followed by an ending '%'";
    vec![pattern_reason(reason, "[0-9]+%", &["1%", "93%"])]
}

/// The name of an HTTP header.
pub fn http_header_name(text: &str) -> Vec<String> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Vec::new();
    }
    let reason = "a valid HTTP header must consist of alphanumeric characters or '-'";
    vec![pattern_reason(reason, "[-A-Za-z0-9]+", &["X-Header-Name"])]
}

/// An identifier of the C language.
pub fn c_identifier(text: &str) -> Vec<String> {
    let mut bytes = text.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    if first && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Vec::new();
    }
    let reason = "a valid C identifier must start with alphabetic character or '_', followed by \
         a string of alphanumeric characters or '_'";
    vec![pattern_reason(reason, "[A-Za-z_][A-Za-z0-9_]*", &["my_name", "MY_NAME", "MyName"])]
}

/// The name of an environment variable, as required when names are not relaxed.
pub fn env_var_name(text: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    let digit_first = text.bytes().next().is_none_or(|b| b.is_ascii_digit());
    if digit_first || !text.bytes().all(allowed) {
        let reason = "a valid environment variable name must consist of alphabetic characters, \
             digits, '_', '-', or '.', and must not start with a digit";
        reasons.push(pattern_reason(
            reason,
            "[-._a-zA-Z][-._a-zA-Z0-9]*",
            &["my.env-name", "MY_ENV.NAME", "MyEnvName1"],
        ));
    }
    reasons.extend(directory_reason(text));
    reasons
}

/// The name of an environment variable: printable ASCII without `=`.
pub fn relaxed_env_var_name(text: &str) -> Vec<String> {
    if text.is_empty() {
        return vec!["environment variable name must be non-empty".to_owned()];
    }
    if text.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'=') {
        return Vec::new();
    }
    vec![
        "a valid environment variable name must consist only of printable ASCII characters \
         other than '='"
            .to_owned(),
    ]
}

/// A key of a ConfigMap or Secret.
pub fn config_map_key(text: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    if text.len() > CONFIG_KEY_MAX {
        reasons.push(max_length_reason(CONFIG_KEY_MAX));
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    if text.is_empty() || !text.bytes().all(allowed) {
        let reason = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        reasons.push(pattern_reason(
            reason,
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    reasons.extend(directory_reason(text));
    reasons
}

/// Names that a shell or a file system would take as another directory.
fn directory_reason(text: &str) -> Option<String> {
    match text {
        "." | ".." => Some(format!("must not be '{text}'")),
        _ if text.starts_with("..") => Some("must not start with '..'".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_pass() {
        assert!(path_segment_name("a:b").is_empty());
        assert!(port_name("http-1").is_empty());
        assert!(port_number(65535).is_empty());
        assert!(percent("10%").is_empty());
        assert!(http_header_name("X-A").is_empty());
        assert!(c_identifier("_a1").is_empty());
        assert!(env_var_name("A.b-c").is_empty());
        assert!(relaxed_env_var_name("1 a:b").is_empty());
        assert!(config_map_key("a.b_C-1").is_empty());
    }

    #[test]
    fn texts_that_fail() {
        let cases = [
            (path_segment_name("a/b%"), vec!["may not contain '/'", "may not contain '%'"]),
            (
                port_name("-0--1234567890123"),
                vec![
                    "must be no more than 15 characters",
                    "must contain at least one letter (a-z)",
                    "must not contain consecutive hyphens",
                    "must not begin or end with a hyphen",
                ],
            ),
            (port_number(0), vec!["must be between 1 and 65535, inclusive"]),
            (
                percent("%"),
                vec![
                    "a valid percent string must be a numeric string followed by an ending '%' \
                     (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
                ],
            ),
            (env_var_name("..a"), vec!["must not start with '..'"]),
            (config_map_key(".."), vec!["must not be '..'"]),
            (
                config_map_key("a b"),
                vec![
                    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' \
                     (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for \
                     validation is '[-._a-zA-Z0-9]+')",
                ],
            ),
        ];
        for (reasons, expected) in cases {
            assert_eq!(reasons, expected);
        }
    }
}
