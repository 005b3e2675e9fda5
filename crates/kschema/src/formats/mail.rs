//! Mail addresses as RFC 5322 has them: `a@b`, or `Name <a@b>`.

/// Whether the text is one address, with or without a name.
pub(super) fn is_address(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t']);
    if is_spec(text) {
        return true;
    }
    let Some(inner) = text.strip_suffix('>') else { return false };
    let Some((name, spec)) = inner.rsplit_once('<') else { return false };
    is_spec(spec.trim_matches([' ', '\t'])) && is_phrase(name.trim_matches([' ', '\t']))
}

fn is_spec(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    (is_dotted_atom(local) || is_quoted(local)) && (is_dotted_atom(domain) || is_literal(domain))
}

fn is_phrase(text: &str) -> bool {
    text.is_empty()
        || is_quoted(text)
        || text.split([' ', '\t']).all(|w| w.is_empty() || is_atom(w, true))
}

fn is_atom(text: &str, dots: bool) -> bool {
    let allowed = |c: char| {
        c.is_ascii_alphanumeric()
            || "!#$%&'*+-/=?^_`{|}~".contains(c)
            || !c.is_ascii()
            || (dots && c == '.')
    };
    !text.is_empty() && text.chars().all(allowed)
}

fn is_dotted_atom(text: &str) -> bool {
    text.split('.').all(|atom| is_atom(atom, false))
}

fn is_quoted(text: &str) -> bool {
    let Some(inner) = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) else {
        return false;
    };
    let mut escaped = false;
    for c in inner.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return false,
            _ if c.is_control() && c != '\t' => return false,
            _ => {}
        }
    }
    !escaped && !inner.is_empty()
}

fn is_literal(text: &str) -> bool {
    text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).is_some_and(|inner| {
        let address = inner.strip_prefix("IPv6:").unwrap_or(inner);
        address.parse::<std::net::IpAddr>().is_ok()
    })
}
