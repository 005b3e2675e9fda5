//! Names as DNS has them.

use super::{max_length_reason, pattern_reason};

const LABEL_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;
const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_WITH_UNDERSCORE: &str = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const LABEL_REASON: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
     characters or '-', and must start and end with an alphanumeric character";
const SUBDOMAIN_REASON: &str = "a lowercase RFC 1123 subdomain must consist of lower case \
     alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const SUBDOMAIN_WITH_UNDERSCORE_REASON: &str = "a lowercase RFC 1123 subdomain must consist of \
     lower case alphanumeric characters, '_', '-' or '.', and must start and end with an \
     alphanumeric character";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const LABEL_1035_REASON: &str = "a DNS-1035 label must consist of lower case alphanumeric \
     characters or '-', start with an alphabetic character, and end with an alphanumeric character";
const WILDCARD_REASON: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a \
     valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' \
     and end with an alphanumeric character";

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().copied().is_some_and(is_alphanumeric)
        && bytes.last().copied().is_some_and(is_alphanumeric)
        && bytes.iter().all(|&b| is_alphanumeric(b) || b == b'-')
}

pub(super) fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_label_with_underscore(text: &str) -> bool {
    let rest = text.strip_prefix('_').unwrap_or(text);
    let bytes = rest.as_bytes();
    bytes.first().copied().is_some_and(is_alphanumeric)
        && bytes.last().copied().is_some_and(is_alphanumeric)
        && bytes.iter().all(|&b| is_alphanumeric(b) || b == b'-' || b == b'_')
}

/// The pattern of labels joined by dots.
fn dotted(label: &str) -> String {
    format!("{label}(\\.{label})*")
}

/// A DNS-1123 label: at most 63 of `a-z0-9-`, neither starting nor ending with a dash.
pub fn dns_1123_label(text: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    if text.len() > LABEL_MAX {
        reasons.push(max_length_reason(LABEL_MAX));
    }
    if !is_label(text) {
        reasons.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            pattern_reason(LABEL_REASON, LABEL, &["my-name", "123-abc"])
        });
    }
    reasons
}

/// A DNS-1123 subdomain: labels joined by dots, at most 253 characters.
pub fn dns_1123_subdomain(text: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    if text.len() > SUBDOMAIN_MAX {
        reasons.push(max_length_reason(SUBDOMAIN_MAX));
    }
    if !is_subdomain(text) {
        reasons.push(pattern_reason(SUBDOMAIN_REASON, &dotted(LABEL), &["example.com"]));
    }
    reasons
}

/// The reason for a prefix of a label key that is no subdomain; it counts in bytes.
pub(super) fn key_prefix(text: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    if text.len() > SUBDOMAIN_MAX {
        reasons.push(format!("must be no more than {SUBDOMAIN_MAX} bytes"));
    }
    if !is_subdomain(text) {
        reasons.push(pattern_reason(SUBDOMAIN_REASON, &dotted(LABEL), &["example.com"]));
    }
    reasons
}

/// A DNS-1123 subdomain whose labels may hold underscores.
pub fn dns_1123_subdomain_with_underscore(text: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    if text.len() > SUBDOMAIN_MAX {
        reasons.push(max_length_reason(SUBDOMAIN_MAX));
    }
    if !text.split('.').all(is_label_with_underscore) {
        reasons.push(pattern_reason(
            SUBDOMAIN_WITH_UNDERSCORE_REASON,
            &dotted(LABEL_WITH_UNDERSCORE),
            &["example.com"],
        ));
    }
    reasons
}

/// A DNS-1035 label: as a DNS-1123 label, but starting with a letter.
pub fn dns_1035_label(text: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    if text.len() > LABEL_MAX {
        reasons.push(max_length_reason(LABEL_MAX));
    }
    if !is_label(text) || text.as_bytes().first().is_some_and(u8::is_ascii_digit) {
        reasons.push(pattern_reason(LABEL_1035_REASON, LABEL_1035, &["my-name", "abc-123"]));
    }
    reasons
}

/// A subdomain after `*.`.
pub fn wildcard_dns_1123_subdomain(text: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    if text.len() > SUBDOMAIN_MAX {
        reasons.push(max_length_reason(SUBDOMAIN_MAX));
    }
    if !text.strip_prefix("*.").is_some_and(is_subdomain) {
        let pattern = format!("\\*\\.{}", dotted(LABEL));
        reasons.push(pattern_reason(WILDCARD_REASON, &pattern, &["*.example.com"]));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels() {
        let long = "a".repeat(64);
        assert!(dns_1123_label("a-1").is_empty());
        assert!(dns_1035_label("a-1").is_empty());
        assert_eq!(dns_1123_label("a.b"), ["must not contain dots"]);
        assert_eq!(dns_1123_label(&long), ["must be no more than 63 characters"]);
        for bad in ["", "-a", "a-", "A", "a_b", "é"] {
            assert_eq!(
                dns_1123_label(bad),
                ["a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
                  or '-', and must start and end with an alphanumeric character (e.g. \
                  'my-name',  or '123-abc', regex used for validation is \
                  '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"],
                "{bad}"
            );
        }
        for bad in ["", "1a", "a.b", "A"] {
            assert_eq!(
                dns_1035_label(bad),
                ["a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
                  start with an alphabetic character, and end with an alphanumeric character \
                  (e.g. 'my-name',  or 'abc-123', regex used for validation is \
                  '[a-z]([-a-z0-9]*[a-z0-9])?')"],
                "{bad}"
            );
        }
    }

    #[test]
    fn subdomains() {
        assert!(dns_1123_subdomain("a.b-c.1").is_empty());
        assert!(dns_1123_subdomain_with_underscore("_a.b_c").is_empty());
        assert!(wildcard_dns_1123_subdomain("*.a.b").is_empty());
        assert_eq!(
            dns_1123_subdomain("a..b"),
            ["a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
              '-' or '.', and must start and end with an alphanumeric character (e.g. \
              'example.com', regex used for validation is \
              '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"]
        );
        assert_eq!(dns_1123_subdomain(&"a".repeat(254)), ["must be no more than 253 characters"]);
        assert_eq!(wildcard_dns_1123_subdomain("a.b").len(), 1);
    }
}
