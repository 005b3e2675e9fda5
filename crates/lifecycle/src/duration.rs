//! Lengths of time as Go writes them: `10m`, `1h30m`, `1.5s`, `300ms`.

use std::time::Duration;

/// Text that is no length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotADuration {
    /// Nobody can read it.
    #[error("time: invalid duration {0:?}")]
    Invalid(String),
    /// A number without a unit.
    #[error("time: missing unit in duration {0:?}")]
    MissingUnit(String),
    /// Go reads it, but time does not run backwards here.
    #[error("a duration cannot be negative: {0:?}")]
    Negative(String),
}

const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads a length of time. `0` needs no unit.
pub fn parse(text: &str) -> Result<Duration, NotADuration> {
    let invalid = || NotADuration::Invalid(text.to_owned());
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if unsigned == "0" {
        return Ok(Duration::ZERO);
    }
    if unsigned.is_empty() {
        return Err(invalid());
    }
    let mut rest = unsigned;
    let mut nanoseconds: u128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        if unit.is_empty() {
            return Err(NotADuration::MissingUnit(text.to_owned()));
        }
        let size = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(invalid)?.1;
        let part = scaled(number, size).ok_or_else(invalid)?;
        nanoseconds = nanoseconds.checked_add(part).ok_or_else(invalid)?;
        rest = next;
    }
    // What Go can hold.
    let nanoseconds = i64::try_from(nanoseconds).map_err(|_| invalid())?;
    if negative && nanoseconds > 0 {
        return Err(NotADuration::Negative(text.to_owned()));
    }
    Ok(Duration::from_nanos(nanoseconds.unsigned_abs()))
}

/// `1.5` of a unit of so many nanoseconds.
fn scaled(number: &str, size: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // Finer than a nanosecond cannot be told apart.
    let fraction = &fraction[..fraction.len().min(18)];
    let part = if fraction.is_empty() {
        0
    } else {
        let places = u32::try_from(fraction.len()).ok()?;
        fraction.parse::<u128>().ok()?.checked_mul(size)? / 10_u128.pow(places)
    };
    whole.checked_mul(size)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_reads() {
        let cases = [
            ("0", 0),
            ("-0", 0),
            ("10m", 600_000),
            ("1h30m", 5_400_000),
            ("1.5s", 1_500),
            (".5s", 500),
            ("300ms", 300),
            ("1h0.25m", 3_615_000),
            ("2000us", 2),
            ("2000µs", 2),
        ];
        for (text, milliseconds) in cases {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn what_it_does_not() {
        for text in ["", "abc10m", "0foo", "10", "10 m", "1d", ".s", "1..5s", "9999999999h", "-"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse("10"), Err(NotADuration::MissingUnit("10".to_owned())));
        assert_eq!(parse("-10m"), Err(NotADuration::Negative("-10m".to_owned())));
    }
}
