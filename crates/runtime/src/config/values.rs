//! Kinds of values that settings have, as people write them.

use std::{borrow::Cow, fmt, net::SocketAddr, str::FromStr, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Reads text with `FromStr`, so that all of these are strings in the file.
fn from_text<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err = String>,
{
    let text = Cow::<'de, str>::deserialize(deserializer)?;
    text.parse().map_err(D::Error::custom)
}

macro_rules! written_as_text {
    ($name:ident, $format:literal) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                from_text(deserializer)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", "format": $format})
            }
        }
    };
}

/// A length of time, written as Go does: `15s`, `1m30s`, `250ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

written_as_text!(Span, "duration");

/// Units from the longest, in nanoseconds.
const UNITS: [(&str, u128); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem = || format!("{text:?} is not a duration such as 15s or 1m30s");
        let mut rest = text.trim();
        if rest == "0" {
            return Ok(Self(Duration::ZERO));
        }
        let mut nanoseconds = 0_u128;
        while !rest.is_empty() || text.trim().is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(problem)?;
            let number: u64 = rest[..digits].parse().map_err(|_| problem())?;
            rest = &rest[digits..];
            let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let unit = UNITS.iter().find(|(unit, _)| *unit == &rest[..letters]);
            let (_, length) = unit.ok_or_else(problem)?;
            nanoseconds += u128::from(number) * length;
            rest = &rest[letters..];
        }
        u64::try_from(nanoseconds)
            .map(|nanoseconds| Self(Duration::from_nanos(nanoseconds)))
            .map_err(|_| format!("{text:?} is longer than 584 years"))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.0.as_nanos();
        if left == 0 {
            return f.write_str("0s");
        }
        for (unit, length) in UNITS {
            if left >= length {
                write!(f, "{}{unit}", left / length)?;
                left %= length;
            }
        }
        Ok(())
    }
}

/// Where a server listens: `127.0.0.1:8081`, `:8081` for all addresses, or `0` for nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenAddress(pub Option<SocketAddr>);

written_as_text!(ListenAddress, "listen-address");

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "0" {
            return Ok(Self(None));
        }
        let full = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
        full.parse().map(|address| Self(Some(address))).map_err(|_| {
            format!("{text:?} is not an address such as 127.0.0.1:8081, :8081 or 0 for none")
        })
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("0"),
            Some(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written_as_go_does() {
        for (text, milliseconds, written) in [
            ("15s", 15_000, "15s"),
            ("1m30s", 90_000, "1m30s"),
            ("90s", 90_000, "1m30s"),
            ("250ms", 250, "250ms"),
            ("1h", 3_600_000, "1h"),
            ("0", 0, "0s"),
        ] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span, Span(Duration::from_millis(milliseconds)), "{text}");
            assert_eq!(span.to_string(), written);
        }
        for bad in ["", "15", "s", "-1s", "1.5s", "1 s", "1d", "99999999999999999999s", "9999999h"]
        {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
    }

    #[test]
    fn addresses() {
        let address = |text: &str| text.parse::<ListenAddress>().map(|read| read.to_string());
        assert_eq!(address(":8081").as_deref(), Ok("0.0.0.0:8081"));
        assert_eq!(address("[::1]:1").as_deref(), Ok("[::1]:1"));
        assert_eq!(address("0").as_deref(), Ok("0"));
        assert!(address("8081").is_err() && address(":99999").is_err() && address("").is_err());
    }
}
