//! The query of a URL.

use std::collections::BTreeMap;

use crate::status::{ApiError, Result};

/// Decoded query parameters.
#[derive(Clone, Debug, Default)]
pub struct Query(BTreeMap<String, Vec<String>>);

impl Query {
    /// Reads a raw query string. Pairs that cannot be decoded are left out, as Go does.
    pub fn parse(raw: &str) -> Self {
        let mut map: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in raw.split('&').filter(|p| !p.is_empty() && !p.contains(';')) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let (Some(key), Some(value)) =
                (percent_decode(key, true), percent_decode(value, true))
            {
                map.entry(key).or_default().push(value);
            }
        }
        Self(map)
    }

    /// The first value of a parameter, or `""`.
    pub fn text(&self, key: &str) -> &str {
        self.0.get(key).and_then(|v| v.first()).map_or("", String::as_str)
    }

    /// All values of a parameter.
    pub fn all(&self, key: &str) -> &[String] {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }

    /// A switch: on when present with anything but `false` and `0`.
    pub fn flag(&self, key: &str) -> Option<bool> {
        let value = self.0.get(key)?.first()?;
        Some(!matches!(value.to_ascii_lowercase().as_str(), "false" | "0"))
    }

    /// An integer.
    pub fn integer(&self, key: &str) -> Result<Option<i64>> {
        let value = self.text(key);
        if value.is_empty() {
            return if self.0.contains_key(key) { Ok(Some(0)) } else { Ok(None) };
        }
        parse_int(value).map(Some)
    }
}

/// Parses as Go's `strconv.ParseInt` does, with its complaints.
fn parse_int(text: &str) -> Result<i64> {
    text.parse::<i64>().map_err(|error| {
        let why = match error.kind() {
            std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                "value out of range"
            }
            _ => "invalid syntax",
        };
        ApiError::bad_request(format!(
            "strconv.ParseInt: parsing {}: {why}",
            fleetwright_kschema::gotext::quote(text)
        ))
    })
}

/// Decodes `%41`, and `+` as a space in queries. `None` if the encoding is broken.
pub fn percent_decode(text: &str, plus_is_space: bool) -> Option<String> {
    if !text.contains(['%', '+']) {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                bytes.push(u8::try_from(high * 16 + low).ok()?);
            }
            b'+' if plus_is_space => bytes.push(b' '),
            other => bytes.push(other),
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes() {
        let query = Query::parse("a=1&b=x%2Cy+z&watch&c=%zz&d=false");
        assert_eq!(query.integer("a").unwrap(), Some(1));
        assert_eq!(query.text("b"), "x,y z");
        assert_eq!(query.flag("watch"), Some(true));
        assert_eq!(query.flag("d"), Some(false));
        assert_eq!(query.text("c"), "");
    }

    #[test]
    fn refuses_what_is_no_integer() {
        let error = Query::parse("limit=abc").integer("limit").unwrap_err();
        assert_eq!(error.message(), "strconv.ParseInt: parsing \"abc\": invalid syntax");
    }
}
