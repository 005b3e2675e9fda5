//! URLs in expressions.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::rc::Rc;

use super::eval::EvalError;
use super::value::{Key, Val};
use crate::formats::TextFormat;
use crate::gotext;

/// Calls a function of URLs; `None` if it is not one.
pub(super) fn call<'a>(
    name: &str,
    target: Option<&Val<'a>>,
    arguments: &[Val<'a>],
) -> Option<Result<Val<'a>, EvalError>> {
    match (name, target, arguments) {
        ("isURL", None, [Val::Text(text)]) => Some(Ok(Val::Bool(is_url(text)))),
        ("url", None, [Val::Text(text)]) => Some(if is_url(text) {
            Ok(Val::Url(text.clone()))
        } else {
            Err(EvalError::new(format!(
                "URL parse error during conversion from string: parse {}: invalid URI for request",
                gotext::quote(text)
            )))
        }),
        (_, Some(Val::Url(url)), []) => {
            let parts = Parts::of(url);
            Some(Ok(match name {
                "getScheme" => Val::text(&parts.scheme.to_lowercase()),
                "getHost" => Val::text(parts.host),
                "getHostname" => Val::text(parts.split_host().0),
                "getPort" => Val::text(parts.split_host().1),
                "getEscapedPath" => Val::text(&escaped(parts.path)),
                "getQuery" => query(parts.query),
                _ => return None,
            }))
        }
        _ => None,
    }
}

fn is_url(text: &str) -> bool {
    TextFormat::Uri.accepts(text)
}

struct Parts<'u> {
    scheme: &'u str,
    host: &'u str,
    path: &'u str,
    query: &'u str,
}

impl<'u> Parts<'u> {
    fn of(url: &'u str) -> Self {
        let (rest, query) = url.split_once('?').unwrap_or((url, ""));
        let (scheme, rest) = if rest.starts_with('/') {
            ("", rest)
        } else {
            rest.split_once(':').unwrap_or(("", rest))
        };
        let (authority, path) = match rest.strip_prefix("//") {
            Some(after) if !scheme.is_empty() => {
                after.split_at(after.find('/').unwrap_or(after.len()))
            }
            _ if rest.starts_with('/') => ("", rest),
            _ => ("", ""),
        };
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        Self { scheme, host, path, query }
    }

    /// The name without brackets, and the port.
    fn split_host(&self) -> (&'u str, &'u str) {
        if let Some(inner) = self.host.strip_prefix('[')
            && let Some((name, after)) = inner.split_once(']')
        {
            return (name, after.strip_prefix(':').unwrap_or_default());
        }
        self.host.rsplit_once(':').unwrap_or((self.host, ""))
    }
}

/// A path with everything escaped that must be.
fn escaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@%!'()*".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The values of each parameter.
fn query<'a>(text: &str) -> Val<'a> {
    let mut values: BTreeMap<Key, Vec<Val<'a>>> = BTreeMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(name), Some(value)) = (unescaped(name), unescaped(value)) else { continue };
        values.entry(Key::Text(Rc::from(name))).or_default().push(Val::text(&value));
    }
    let entries = values.into_iter().map(|(name, values)| (name, Val::list(values)));
    Val::Map(Rc::new(entries.collect()))
}

fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let pair = [rest.next()?, rest.next()?];
                let digits = std::str::from_utf8(&pair).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_urls() {
        let part = |name: &str, url: &str| match call(name, Some(&Val::Url(Rc::from(url))), &[]) {
            Some(Ok(Val::Text(text))) => text.to_string(),
            other => panic!("{other:?}"),
        };
        let url = "HTTPS://user@example.com:443/a%20b/é?x=1&x=%41+b";
        assert_eq!(part("getScheme", url), "https");
        assert_eq!(part("getHost", url), "example.com:443");
        assert_eq!(part("getHostname", url), "example.com");
        assert_eq!(part("getPort", url), "443");
        assert_eq!(part("getEscapedPath", url), "/a%20b/%C3%A9");
        assert_eq!(part("getHostname", "http://[::1]:80/"), "::1");
        assert_eq!(part("getHost", "/path"), "");
        let Some(Ok(query)) = call("getQuery", Some(&Val::Url(Rc::from(url))), &[]) else {
            panic!("no query");
        };
        let values = query.field("x").unwrap().items().unwrap();
        assert!(values[0].equals(&Val::text("1")) && values[1].equals(&Val::text("A b")));
    }
}
