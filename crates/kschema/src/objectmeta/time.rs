//! Times as metadata has them: whole seconds in UTC.

use jiff::Timestamp;

use crate::gotext;

const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";

/// What a time is made of: the piece of the layout, and how many digits it has; 0 for a separator.
const PIECES: [(&str, usize, u32, u32, &str); 11] = [
    ("2006", 4, 0, 9999, "year"),
    ("-", 0, 0, 0, ""),
    ("01", 2, 1, 12, "month"),
    ("-", 0, 0, 0, ""),
    ("02", 2, 1, 31, "day"),
    ("T", 0, 0, 0, ""),
    ("15", 2, 0, 23, "hour"),
    (":", 0, 0, 0, ""),
    ("04", 2, 0, 59, "minute"),
    (":", 0, 0, 0, ""),
    ("05", 2, 0, 59, "second"),
];

/// The time in UTC and without fractions, or what is wrong with it.
pub(super) fn normalized(text: &str) -> Result<String, String> {
    check(text)?;
    let time: Timestamp = text.parse().map_err(|_| failure(text, ": day out of range"))?;
    let seconds = Timestamp::from_second(time.as_second() - i64::from(is_before_second(time)))
        .map_err(|_| failure(text, ": year out of range"))?;
    Ok(seconds.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Fractions are cut off towards the past, also before 1970.
fn is_before_second(time: Timestamp) -> bool {
    time.subsec_nanosecond() < 0
}

fn failure(text: &str, reason: &str) -> String {
    format!("parsing time {} as {}{reason}", gotext::quote(text), gotext::quote(LAYOUT))
}

fn check(text: &str) -> Result<(), String> {
    let unparsed = |rest: &str, piece: &str| {
        let reason = format!(": cannot parse {} as {}", gotext::quote(rest), gotext::quote(piece));
        failure(text, &reason)
    };
    let mut rest = text;
    for (piece, digits, low, high, name) in PIECES {
        if digits == 0 {
            rest = rest.strip_prefix(piece).ok_or_else(|| unparsed(rest, piece))?;
            continue;
        }
        let number = rest
            .get(..digits)
            .filter(|number| number.bytes().all(|b| b.is_ascii_digit()))
            .ok_or_else(|| unparsed(rest, piece))?;
        let value: u32 = number.parse().map_err(|_| unparsed(rest, piece))?;
        if !(low..=high).contains(&value) {
            return Err(failure(text, &format!(": {name} out of range")));
        }
        rest = rest.get(digits..).unwrap_or_default();
    }
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        let end = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
        if end > 0 {
            rest = fraction.get(end..).unwrap_or_default();
        }
    }
    let zone = if let Some(after) = rest.strip_prefix('Z') {
        after
    } else {
        let offset = rest.as_bytes();
        let digits = |range: std::ops::Range<usize>| {
            offset.get(range).is_some_and(|d| d.iter().all(u8::is_ascii_digit))
        };
        let signed = matches!(offset.first(), Some(b'+' | b'-')) && offset.get(3) == Some(&b':');
        if !signed || !digits(1..3) || !digits(4..6) {
            return Err(unparsed(rest, "Z07:00"));
        }
        rest.get(6..).unwrap_or_default()
    };
    if zone.is_empty() {
        Ok(())
    } else {
        Err(failure(text, &format!(": extra text: {}", gotext::quote(zone))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_normalized() {
        let cases = [
            ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
            ("2026-01-01T00:00:00.999Z", "2026-01-01T00:00:00Z"),
            ("2026-01-01T01:00:00+02:00", "2025-12-31T23:00:00Z"),
            ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59Z"),
        ];
        for (text, expected) in cases {
            assert_eq!(normalized(text).unwrap(), expected);
        }
        let cases = [
            ("", ": cannot parse \"\" as \"2006\""),
            ("2026-1", ": cannot parse \"1\" as \"01\""),
            ("2026-13-01T00:00:00Z", ": month out of range"),
            ("2026-02-30T00:00:00Z", ": day out of range"),
            ("2026-01-01 00:00:00Z", ": cannot parse \" 00:00:00Z\" as \"T\""),
            ("2026-01-01T00:00:00", ": cannot parse \"\" as \"Z07:00\""),
            ("2026-01-01T00:00:00Zx", ": extra text: \"x\""),
        ];
        for (text, reason) in cases {
            assert_eq!(
                normalized(text).unwrap_err(),
                format!("parsing time \"{text}\" as \"2006-01-02T15:04:05Z07:00\"{reason}")
            );
        }
    }
}
