//! Warnings for a client, as they go into `Warning` headers.

use std::collections::BTreeSet;

use http::HeaderValue;

/// More characters than this are not sent as they are,
const MOST: usize = 4 * 1024;
/// but each warning cut to so many.
const MOST_OF_ONE: usize = 256;

/// The headers of a response: each warning once, cut short if there are many.
pub(crate) fn headers(warnings: &[String]) -> Vec<HeaderValue> {
    let mut seen = BTreeSet::new();
    let texts: Vec<&str> = warnings
        .iter()
        .map(String::as_str)
        // A header has no place for control characters.
        .filter(|text| !text.is_empty() && !text.contains(char::is_control) && seen.insert(*text))
        .collect();
    let length: usize = texts.iter().map(|text| text.chars().count()).sum();
    if length <= MOST {
        return texts.into_iter().filter_map(header).collect();
    }
    let mut written = 0;
    let mut headers = Vec::new();
    for text in texts {
        if written >= MOST {
            break;
        }
        let cut: String = text.chars().take(MOST_OF_ONE).collect();
        written += cut.chars().count();
        headers.extend(header(&cut));
    }
    headers
}

/// `299 - "text"`.
fn header(text: &str) -> Option<HeaderValue> {
    let mut quoted = String::with_capacity(text.len() + 10);
    quoted.push_str("299 - \"");
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    HeaderValue::from_bytes(quoted.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(warnings: &[&str]) -> Vec<String> {
        let warnings: Vec<String> = warnings.iter().map(|&text| text.to_owned()).collect();
        let text = |value: HeaderValue| String::from_utf8(value.as_bytes().to_vec()).unwrap();
        headers(&warnings).into_iter().map(text).collect()
    }

    #[test]
    fn each_is_sent_once_and_quoted() {
        let found = sent(&["a \"b\"", "", "a \"b\"", "two\nlines", "ä"]);
        assert_eq!(found, [r#"299 - "a \"b\"""#, r#"299 - "ä""#]);
    }

    #[test]
    fn many_are_cut_short() {
        let long: Vec<String> = (0..20).map(|i| format!("{i}{}", "x".repeat(999))).collect();
        let long: Vec<&str> = long.iter().map(String::as_str).collect();
        assert_eq!(sent(&long[..4]).len(), 4);
        assert_eq!(sent(&long[..4])[0].len(), 8 + 1000);
        let cut = sent(&long);
        assert_eq!(cut.len(), MOST / MOST_OF_ONE);
        assert!(cut.iter().all(|header| header.len() == 8 + MOST_OF_ONE));
    }
}
