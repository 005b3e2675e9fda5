//! Quantities such as `500m` or `2Gi`: their one text, and amounts to compare and add.

use std::fmt;

use fleetwright_kschema::builtin;
pub use fleetwright_kschema::builtin::QuantityError;

/// Billionths in one.
const NANOS: i128 = 1_000_000_000;
/// More than can be asked for; far above what the API can represent.
const MAX_NANOS: i128 = i128::MAX / 1024;
/// What suffixes stand for: powers of ten and of two.
const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: [(&str, u32); 6] =
    [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// The text as the API writes it back. With `whole_millis`, as in lists of resources, it is
/// rounded up to thousandths.
pub fn canonical(text: &str, whole_millis: bool) -> Result<String, QuantityError> {
    let mut quantity = builtin::Quantity::parse(text.trim())?;
    if whole_millis {
        quantity.round_up_to_milli();
    }
    Ok(quantity.to_string())
}

/// An exact amount, to a billionth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity {
    nanos: i128,
}

impl Quantity {
    /// Reads a quantity.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        // The canonical text is simple: a sign, digits, a dot at most, a suffix.
        let text = canonical(text, false)?;
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(&text)),
        };
        let end =
            unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let mut amount: i128 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            let digit = i128::from(digit.saturating_sub(b'0'));
            amount = amount.saturating_mul(10).saturating_add(digit).min(MAX_NANOS);
        }
        let places = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
        let mut exponent = 9_i32.saturating_sub(places);
        if let Some((_, bits)) = BINARY.iter().find(|(known, _)| *known == suffix) {
            amount = amount.saturating_mul(1 << bits).min(MAX_NANOS);
        } else if let Some((_, power)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
            exponent = exponent.saturating_add(*power);
        } else {
            let power = suffix.trim_start_matches(['e', 'E']).parse().unwrap_or(0);
            exponent = exponent.saturating_add(power);
        }
        let nanos = scale(amount, exponent);
        Ok(Self { nanos: if negative { -nanos } else { nanos } })
    }

    /// The sum of amounts.
    pub fn sum(amounts: impl IntoIterator<Item = Self>) -> Self {
        let nanos = amounts.into_iter().fold(0_i128, |sum, next| sum.saturating_add(next.nanos));
        Self { nanos }
    }

    /// The amount, rounded up to a whole number.
    pub fn value(self) -> i128 {
        round_up(self.nanos, NANOS) / NANOS
    }

    /// Whether a whole number.
    pub fn is_whole(self) -> bool {
        self.nanos % NANOS == 0
    }

    /// Whether nothing.
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Whether less than nothing.
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match canonical(&format!("{}n", self.nanos), false) {
            Ok(text) => f.write_str(&text),
            Err(_) => write!(f, "{}n", self.nanos),
        }
    }
}

/// Multiplies by a power of ten; what gets lost is rounded up, so that a little is never nothing.
fn scale(amount: i128, exponent: i32) -> i128 {
    let mut power: i128 = 1;
    for _ in 0..exponent.unsigned_abs().min(38) {
        power = power.saturating_mul(10);
    }
    if exponent >= 0 {
        amount.saturating_mul(power).min(MAX_NANOS)
    } else {
        round_up(amount, power) / power
    }
}

fn round_up(nanos: i128, unit: i128) -> i128 {
    let rest = nanos % unit;
    if rest == 0 { nanos } else { nanos - rest + unit * rest.signum() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_written_in_one_way() {
        let cases = [
            ("0", "0"),
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1500m", "1500m"),
            ("2", "2"),
            ("1000", "1k"),
            ("1024Mi", "1Gi"),
            ("100Mi", "100Mi"),
            ("0.5Gi", "512Mi"),
            ("1.5Gi", "1536Mi"),
            ("512", "512"),
            ("1e3", "1e3"),
            ("1000e3", "1e6"),
            ("1E", "1E"),
            ("007", "007"),
            ("1.500", "1.500"),
            ("0Mi", "0"),
            ("-1000m", "-1"),
            ("100u", "1m"),
            ("1.0001", "1001m"),
        ];
        for (text, expected) in cases {
            assert_eq!(canonical(text, true).unwrap(), expected, "{text}");
        }
        assert_eq!(canonical("100u", false).unwrap(), "100u");
    }

    #[test]
    fn what_is_not_a_quantity_is_refused() {
        assert_eq!(Quantity::parse(""), Err(QuantityError::Format));
        assert_eq!(Quantity::parse("1 Gi"), Err(QuantityError::Format));
        assert_eq!(Quantity::parse("1K"), Err(QuantityError::Suffix));
        assert_eq!(Quantity::parse("1giga"), Err(QuantityError::Format));
    }

    #[test]
    fn amounts_compare() {
        let parse = |text| Quantity::parse(text).unwrap();
        assert_eq!(parse("1Ki"), parse("1024"));
        assert!(parse("1G") < parse("1Gi"));
        assert_eq!(parse("1500m").value(), 2);
        assert!(!parse("1500m").is_whole());
        assert!(parse("99999999999999999999999999999999999999999E") > parse("1E"));
    }
}
