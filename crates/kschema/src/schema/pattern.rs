//! Regular expressions as Go understands them.
//!
//! Both engines are of the RE2 family. What differs is translated: Go's `\d`, `\w`, `\s` and `\b`
//! know ASCII only, its character classes have no set operations, and a brace that starts no
//! repetition is literal.

use std::sync::Arc;

use regex::Regex;

/// A compiled pattern with its source.
#[derive(Clone, Debug)]
pub struct Pattern {
    source: String,
    compiled: Result<Arc<Regex>, String>,
}

impl Pattern {
    /// Compiles `source`. A pattern that does not compile is kept with its error.
    pub fn new(source: &str) -> Self {
        let compiled =
            Regex::new(&translate(source)).map(Arc::new).map_err(|error| describe(source, &error));
        Self { source: source.to_owned(), compiled }
    }

    /// The pattern as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Why the pattern does not compile.
    pub fn error(&self) -> Option<&str> {
        self.compiled.as_ref().err().map(String::as_str)
    }

    /// Whether the pattern matches somewhere in the text; nothing matches a broken pattern.
    pub fn is_match(&self, text: &str) -> bool {
        self.compiled.as_ref().is_ok_and(|regex| regex.is_match(text))
    }
}

/// The error in the words of Go for what is commonly wrong.
fn describe(source: &str, error: &regex::Error) -> String {
    let text = error.to_string();
    let reason = if text.contains("unclosed group") {
        format!("missing closing ): `{source}`")
    } else if text.contains("unopened group") {
        format!("unexpected ): `{source}`")
    } else if text.contains("unclosed character class") {
        let open = source.find('[').unwrap_or(0);
        format!("missing closing ]: `{}`", source.get(open..).unwrap_or(source))
    } else if text.contains("repetition operator missing expression") {
        let operator: String = source.chars().filter(|c| "*+?".contains(*c)).take(1).collect();
        format!("missing argument to repetition operator: `{operator}`")
    } else if text.contains("look-around") {
        let open = source.find("(?").unwrap_or(0);
        let shown: String = source.chars().skip(open).take(3).collect();
        format!("invalid or unsupported Perl syntax: `{shown}`")
    } else {
        let last = text.lines().last().unwrap_or_default();
        format!("{}: `{source}`", last.trim_start_matches("error: "))
    };
    format!("error parsing regexp: {reason}")
}

fn translate(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 8);
    let mut rest = source;
    let mut class = ClassPosition::Outside;
    while let Some(c) = rest.chars().next() {
        let tail = rest.get(c.len_utf8()..).unwrap_or_default();
        let after = match (c, class) {
            ('\\', _) => escape(tail, class != ClassPosition::Outside, &mut out),
            ('[', ClassPosition::Outside) => {
                out.push('[');
                class = ClassPosition::First;
                match tail.strip_prefix('^') {
                    Some(negated) => {
                        out.push('^');
                        rest = negated;
                    }
                    None => rest = tail,
                }
                continue;
            }
            ('{', ClassPosition::Outside) if !starts_repetition(tail) => {
                out.push_str("\\{");
                tail
            }
            (']', ClassPosition::Inside) => {
                out.push(']');
                class = ClassPosition::Outside;
                rest = tail;
                continue;
            }
            ('[', _) => match tail.find(":]") {
                Some(end) if tail.starts_with(':') => {
                    let end = end + 2;
                    out.push('[');
                    out.push_str(tail.get(..end).unwrap_or_default());
                    tail.get(end..).unwrap_or_default()
                }
                _ => {
                    out.push_str("\\[");
                    tail
                }
            },
            (']', ClassPosition::First) => {
                out.push_str("\\]");
                tail
            }
            ('&' | '~', ClassPosition::First | ClassPosition::Inside) => {
                out.push('\\');
                out.push(c);
                tail
            }
            _ => {
                out.push(c);
                tail
            }
        };
        if class == ClassPosition::First {
            class = ClassPosition::Inside;
        }
        rest = after;
    }
    out
}

#[derive(Clone, Copy, PartialEq)]
enum ClassPosition {
    Outside,
    First,
    Inside,
}

/// Writes the escape that starts at `tail` (after the backslash) and returns what follows it.
fn escape<'a>(tail: &'a str, in_class: bool, out: &mut String) -> &'a str {
    let Some(c) = tail.chars().next() else {
        out.push('\\');
        return tail;
    };
    let rest = tail.get(c.len_utf8()..).unwrap_or_default();
    match (c, in_class) {
        ('d', true) => out.push_str("0-9"),
        ('w', true) => out.push_str("0-9A-Za-z_"),
        ('s', true) => out.push_str("\\t\\n\\f\\r "),
        ('d', false) => out.push_str("[0-9]"),
        ('w', false) => out.push_str("[0-9A-Za-z_]"),
        ('s', false) => out.push_str("[\\t\\n\\f\\r ]"),
        ('D', _) => out.push_str("[^0-9]"),
        ('W', _) => out.push_str("[^0-9A-Za-z_]"),
        ('S', _) => out.push_str("[^\\t\\n\\f\\r ]"),
        ('b', false) => out.push_str("(?-u:\\b)"),
        ('B', false) => out.push_str("(?-u:\\B)"),
        ('<' | '>', _) => out.push(c),
        ('Q', false) => {
            let (literal, after) = rest.split_once("\\E").unwrap_or((rest, ""));
            out.push_str(&regex::escape(literal));
            return after;
        }
        ('p' | 'P' | 'x', _) if rest.starts_with('{') => {
            let end = rest.find('}').map_or(rest.len(), |end| end + 1);
            out.push('\\');
            out.push(c);
            out.push_str(rest.get(..end).unwrap_or_default());
            return rest.get(end..).unwrap_or_default();
        }
        _ => {
            out.push('\\');
            out.push(c);
        }
    }
    rest
}

/// Whether what follows a brace makes it a repetition: `3}`, `3,}` or `3,5}`.
fn starts_repetition(tail: &str) -> bool {
    let Some((bounds, _)) = tail.split_once('}') else { return false };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match bounds.split_once(',') {
        None => digits(bounds),
        Some((low, high)) => digits(low) && (high.is_empty() || digits(high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_go() {
        let cases = [
            (r"^\d+$", "123", true),
            (r"^\d+$", "١٢", false),
            (r"^\w$", "é", false),
            (r"^[\w.-]+$", "a.b-c", true),
            (r"^[^\s]+$", "a b", false),
            (r"^[\D]$", "a", true),
            (r"^.$", "é", true),
            (r"^[^[]+$", "a[b", false),
            (r"^[^[]+$", "ab", true),
            (r"^[]a]+$", "]a", true),
            (r"^[a&&b~~c]+$", "a&~", true),
            (r"^[[:alpha:]]+$", "abc", true),
            (r"^a{2,3}$", "aaa", true),
            (r"^{a}$", "{a}", true),
            (r"^\<a\>$", "<a>", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^a\/b$", "a/b", true),
            (r"\bfoo\b", "a foo b", true),
            (r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]+)*)$", "a.b", true),
            (r"^\p{L}+$", "é", true),
        ];
        for (pattern, text, expected) in cases {
            let compiled = Pattern::new(pattern);
            assert_eq!(compiled.error(), None, "{pattern}");
            assert_eq!(compiled.is_match(text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn broken_patterns_say_why() {
        let cases = [
            ("(a", "error parsing regexp: missing closing ): `(a`"),
            ("a)", "error parsing regexp: unexpected ): `a)`"),
            ("a[b", "error parsing regexp: missing closing ]: `[b`"),
            ("*a", "error parsing regexp: missing argument to repetition operator: `*`"),
            ("(?=a)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
        ];
        for (pattern, expected) in cases {
            assert_eq!(Pattern::new(pattern).error(), Some(expected));
        }
        for garbage in ["\\", "[", "[^", "[[:", "{", "(?P<", "[a-", "\\x"] {
            assert!(!Pattern::new(garbage).is_match("\u{0}"), "{garbage}");
        }
    }
}
