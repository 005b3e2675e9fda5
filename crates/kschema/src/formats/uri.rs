//! URIs as a request would carry them.

/// Whether the text is an absolute URI or an absolute path.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else { return false };
    let (rest, _) = rest.split_once('?').unwrap_or((rest, ""));
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    let path = match rest.strip_prefix("//") {
        Some(after) if !scheme.is_empty() => {
            let end = after.find('/').unwrap_or(after.len());
            let (authority, path) = after.split_at(end);
            if !is_authority(authority) {
                return false;
            }
            path
        }
        _ => rest,
    };
    has_valid_escapes(path)
}

/// Whether the text is a URI with a scheme and a host.
pub(crate) fn is_absolute_uri(text: &str) -> bool {
    let host = text.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or_default());
    is_request_uri(text) && host.is_some_and(|host| !host.is_empty())
}

/// The scheme, which may be missing, and the rest; `None` for a colon without a scheme.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (i, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' => {
                if i == 0 {
                    return Some(("", text));
                }
            }
            b':' => {
                return if i == 0 { None } else { Some((text.get(..i)?, text.get(i + 1..)?)) };
            }
            _ => return Some(("", text)),
        }
    }
    Some(("", text))
}

fn has_valid_escapes(text: &str) -> bool {
    text.split('%').skip(1).all(|part| {
        part.as_bytes().get(..2).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
    })
}

fn is_authority(authority: &str) -> bool {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (user, host),
        None => ("", authority),
    };
    let user_ok = has_valid_escapes(user)
        && user.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b));
    user_ok && is_host(host)
}

fn is_host(host: &str) -> bool {
    let (name, port) = if host.starts_with('[') {
        match host.rfind(']') {
            Some(end) => host.split_at(end + 1),
            None => return false,
        }
    } else {
        match host.rfind(':') {
            Some(colon) => host.split_at(colon),
            None => (host, ""),
        }
    };
    let port_ok = port.is_empty()
        || port.strip_prefix(':').is_some_and(|p| p.bytes().all(|b| b.is_ascii_digit()));
    let allowed =
        |b: u8| b >= 0x80 || b.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"%".contains(&b);
    port_ok && name.bytes().all(allowed) && has_valid_escapes(name)
}
