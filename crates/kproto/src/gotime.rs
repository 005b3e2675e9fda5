//! Times as Go reads and writes them in API objects: RFC 3339, in UTC, with Go's messages.

use std::fmt::Write as _;

/// How fine a time is written, and how strictly it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// `metav1.Time`: seconds are written, any fraction is read and dropped.
    Seconds,
    /// `metav1.MicroTime`: exactly six digits of a fraction.
    Micros,
}

impl Precision {
    fn layout(self) -> &'static str {
        match self {
            Precision::Seconds => "2006-01-02T15:04:05Z07:00",
            Precision::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// The seconds from the Unix epoch to Go's zero time, the first of January of the year 1.
const ZERO_SECONDS: i64 = -62_135_596_800;

/// A moment in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Seconds since the Unix epoch.
    pub seconds: i64,
    /// Microseconds of the second.
    pub micros: u32,
}

impl Moment {
    /// Whether this is the zero time, which Go writes as `null`.
    pub fn is_zero(self) -> bool {
        self.seconds == ZERO_SECONDS && self.micros == 0
    }

    /// The time as Go writes it.
    pub fn format(self, precision: Precision) -> String {
        let days = self.seconds.div_euclid(86_400);
        let second = self.seconds.rem_euclid(86_400);
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let sign = if year < 0 { "-" } else { "" };
        let year = year.abs();
        let mut text =
            format!("{sign}{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
        if precision == Precision::Micros {
            let _ = write!(text, ".{:06}", self.micros);
        }
        text.push('Z');
        text
    }

    /// Reads a time as Go's `time.Parse` does.
    pub fn parse(value: &str, precision: Precision) -> Result<Self, ParseTimeError> {
        Reader { value, rest: value.as_bytes(), precision }.read()
    }
}

/// A time that Go would not read; the message is Go's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseTimeError(String);

struct Reader<'a> {
    value: &'a str,
    rest: &'a [u8],
    precision: Precision,
}

impl<'a> Reader<'a> {
    fn read(mut self) -> Result<Moment, ParseTimeError> {
        let year = self.year()?;
        self.literal("-")?;
        let month = self.two_digits("01", true)?;
        if !(1..=12).contains(&month) {
            return Err(self.out_of_range("month"));
        }
        self.literal("-")?;
        let day = self.two_digits("02", true)?;
        self.literal("T")?;
        let hour = self.two_digits("15", false)?;
        if hour >= 24 {
            return Err(self.out_of_range("hour"));
        }
        self.literal(":")?;
        let minute = self.two_digits("04", true)?;
        if minute >= 60 {
            return Err(self.out_of_range("minute"));
        }
        self.literal(":")?;
        let second = self.two_digits("05", true)?;
        if second >= 60 {
            return Err(self.out_of_range("second"));
        }
        let micros = self.fraction()?;
        let offset = self.zone()?;
        if !self.rest.is_empty() {
            return Err(self.message(&format!(": extra text: {}", quote(self.rest))));
        }
        if day < 1 || day > days_in(year, month) {
            return Err(self.out_of_range("day"));
        }
        let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
        Ok(Moment { seconds, micros })
    }

    fn year(&mut self) -> Result<i64, ParseTimeError> {
        match self.rest.split_at_checked(4) {
            Some((digits, rest)) if digits.iter().all(u8::is_ascii_digit) => {
                self.rest = rest;
                Ok(number(digits))
            }
            _ => Err(self.cannot_parse(self.rest, "2006")),
        }
    }

    fn literal(&mut self, text: &'static str) -> Result<(), ParseTimeError> {
        match self.rest.strip_prefix(text.as_bytes()) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(self.cannot_parse(self.rest, text)),
        }
    }

    fn two_digits(&mut self, element: &str, fixed: bool) -> Result<i64, ParseTimeError> {
        let length = self.rest.iter().take(2).take_while(|byte| byte.is_ascii_digit()).count();
        if length == 0 || (fixed && length == 1) {
            return Err(self.cannot_parse(self.rest, element));
        }
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest;
        Ok(number(digits))
    }

    fn fraction(&mut self) -> Result<u32, ParseTimeError> {
        let starts = matches!(self.rest, [b'.' | b',', ..]);
        let digits = self.rest.get(1..).unwrap_or_default();
        let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let take = match self.precision {
            Precision::Seconds if starts && length > 0 => length,
            Precision::Seconds => return Ok(0),
            Precision::Micros if starts && length >= 6 => 6,
            Precision::Micros => return Err(self.cannot_parse(self.rest, ".000000")),
        };
        let (digits, rest) = digits.split_at(take);
        self.rest = rest;
        let mut micros = digits.get(..6).unwrap_or(digits).to_vec();
        micros.resize(6, b'0');
        Ok(u32::try_from(number(&micros)).unwrap_or_default())
    }

    fn zone(&mut self) -> Result<i64, ParseTimeError> {
        const ELEMENT: &str = "Z07:00";
        if let [b'Z', rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(0);
        }
        let [sign, h1, h2, b':', m1, m2, rest @ ..] = self.rest else {
            return Err(self.cannot_parse(self.rest, ELEMENT));
        };
        if ![h1, h2, m1, m2].iter().all(|byte| byte.is_ascii_digit()) {
            return Err(self.cannot_parse(self.rest, ELEMENT));
        }
        let (hours, minutes) = (number(&[*h1, *h2]), number(&[*m1, *m2]));
        let before = std::mem::replace(&mut self.rest, rest);
        if hours > 24 {
            return Err(self.out_of_range("time zone offset hour"));
        }
        if minutes > 60 {
            return Err(self.out_of_range("time zone offset minute"));
        }
        let offset = (hours * 60 + minutes) * 60;
        match sign {
            b'+' => Ok(offset),
            b'-' => Ok(-offset),
            _ => Err(self.cannot_parse(before, ELEMENT)),
        }
    }

    fn cannot_parse(&self, at: &'a [u8], element: &str) -> ParseTimeError {
        ParseTimeError(format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote(self.value.as_bytes()),
            quote(self.precision.layout().as_bytes()),
            quote(at),
            quote(element.as_bytes()),
        ))
    }

    fn out_of_range(&self, what: &str) -> ParseTimeError {
        self.message(&format!(": {what} out of range"))
    }

    fn message(&self, message: &str) -> ParseTimeError {
        ParseTimeError(format!("parsing time {}{message}", quote(self.value.as_bytes())))
    }
}

/// Quotes as Go's time package does: anything but printable ASCII byte by byte.
fn quote(text: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for byte in text {
        match byte {
            b'"' | b'\\' => {
                quoted.push('\\');
                quoted.push(char::from(*byte));
            }
            b' '..=0x7f => quoted.push(char::from(*byte)),
            _ => {
                let _ = write!(quoted, "\\x{byte:02x}");
            }
        }
    }
    quoted.push('"');
    quoted
}

fn number(digits: &[u8]) -> i64 {
    digits.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'))
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from the Unix epoch to a date; years start in March, so that leap days come last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The date of a number of days from the Unix epoch.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rewritten(text: &str, precision: Precision) -> Result<String, String> {
        Moment::parse(text, precision)
            .map(|moment| moment.format(precision))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn seconds_are_read_with_zones_and_fractions() {
        for (text, expected) in [
            ("2024-02-29T23:59:59Z", "2024-02-29T23:59:59Z"),
            ("2024-03-01T01:30:00+02:00", "2024-02-29T23:30:00Z"),
            ("1969-12-31T23:59:59.999999999-01:00", "1970-01-01T00:59:59Z"),
            ("2024-01-01T7:00:00,5Z", "2024-01-01T07:00:00Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ] {
            assert_eq!(rewritten(text, Precision::Seconds).as_deref(), Ok(expected), "{text}");
        }
        assert!(Moment::parse("0001-01-01T00:00:00Z", Precision::Seconds).unwrap().is_zero());
    }

    #[test]
    fn refusals_read_as_go_writes_them() {
        let seconds = "\"2006-01-02T15:04:05Z07:00\"";
        for (text, expected) in [
            ("foo", format!("parsing time \"foo\" as {seconds}: cannot parse \"foo\" as \"2006\"")),
            ("", format!("parsing time \"\" as {seconds}: cannot parse \"\" as \"2006\"")),
            (
                "2024-01-01",
                format!("parsing time \"2024-01-01\" as {seconds}: cannot parse \"\" as \"T\""),
            ),
            (
                "2024-01-01T00:00:00",
                format!(
                    "parsing time \"2024-01-01T00:00:00\" as {seconds}: cannot parse \"\" as \"Z07:00\""
                ),
            ),
            (
                "2024-13-01T00:00:00Z",
                "parsing time \"2024-13-01T00:00:00Z\": month out of range".into(),
            ),
            (
                "2023-02-29T00:00:00Z",
                "parsing time \"2023-02-29T00:00:00Z\": day out of range".into(),
            ),
            (
                "2024-01-01T00:00:00Zü",
                "parsing time \"2024-01-01T00:00:00Z\\xc3\\xbc\": extra text: \"\\xc3\\xbc\""
                    .into(),
            ),
        ] {
            assert_eq!(rewritten(text, Precision::Seconds), Err(expected), "{text}");
        }
        assert_eq!(
            rewritten("2024-01-01T00:00:00Z", Precision::Micros),
            Err("parsing time \"2024-01-01T00:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\"".into())
        );
    }

    proptest! {
        #[test]
        fn every_moment_survives_writing(seconds in ZERO_SECONDS..253_402_300_800_i64, micros in 0..1_000_000_u32) {
            let moment = Moment { seconds, micros };
            let read = Moment::parse(&moment.format(Precision::Micros), Precision::Micros);
            prop_assert_eq!(read, Ok(moment));
        }

        #[test]
        fn anything_is_read_or_refused(text in ".{0,40}") {
            let _ = Moment::parse(&text, Precision::Seconds);
            let _ = Moment::parse(&text, Precision::Micros);
        }
    }
}
