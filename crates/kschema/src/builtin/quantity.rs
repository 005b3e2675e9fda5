//! Quantities of resources: parsed and written as Go's `resource.Quantity`.
//!
//! A number is kept as decimal digits and a power of ten, never as a float. Writing follows the
//! original to the letter, including that some texts are kept as they came (`0100m`, `1E3`) and
//! that a decimal amount beyond `E` loses its suffix.

/// A text that is no quantity; the messages are those of the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not a number and a suffix.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// The number cannot be read.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// The suffix means nothing.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    DecimalExponent,
    DecimalSi,
    BinarySi,
}

/// The largest number of digits that the original keeps in an `int64`.
const INT64_DIGITS: usize = 18;
/// The smallest power of ten: a billionth.
const NANO: i64 = -9;
const MILLI: i64 = -3;
/// Binary amounts are capped at the largest `int64`.
const MAX_BINARY: i128 = i64::MAX as i128;

/// An amount of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quantity {
    negative: bool,
    /// Decimal digits as numbers, most significant first, no leading zeros; none is zero.
    digits: Vec<u8>,
    exponent: i64,
    format: Format,
    /// The original text, where it is kept.
    text: Option<String>,
}

impl Quantity {
    /// Reads a quantity.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let parts = Parts::split(text)?;
        let (format, exponent) = suffix(parts.suffix).ok_or(QuantityError::Suffix)?;
        let zero_or = |digits: &[u8]| -> Vec<u8> {
            digits.iter().skip_while(|digit| **digit == b'0').map(|digit| digit - b'0').collect()
        };
        let digits = zero_or(&[parts.whole.as_bytes(), parts.fraction.as_bytes()].concat());
        let mut quantity = Quantity {
            negative: parts.negative && !digits.is_empty(),
            digits,
            exponent: -i64::try_from(parts.fraction.len()).unwrap_or(i64::MAX),
            format,
            text: None,
        };
        if text == "0" {
            quantity.text = Some(text.to_owned());
            return Ok(quantity);
        }
        if quantity.fits_int64(&parts, exponent) {
            quantity.text = quantity.kept_text(text, &parts, exponent);
            quantity.scale(exponent);
            return Ok(quantity);
        }
        if !parts.has_digits {
            return Err(QuantityError::Numeric);
        }
        quantity.scale(exponent);
        quantity.round_up(NANO);
        if format == Format::BinarySi {
            if quantity.magnitude().is_none_or(|nanos| nanos > MAX_BINARY * 1_000_000_000) {
                quantity.digits = i64::MAX.to_string().bytes().map(|digit| digit - b'0').collect();
                quantity.exponent = 0;
            } else if quantity.magnitude().is_some_and(|nanos| nanos < 1_000_000_000) {
                quantity.format = Format::DecimalSi;
            }
        }
        Ok(quantity)
    }

    /// Rounds up to a thousandth, as the defaults of resource lists do.
    pub fn round_up_to_milli(&mut self) {
        if self.exponent < MILLI && !self.digits.is_empty() {
            self.text = None;
            self.round_up(MILLI);
        }
    }

    /// Whether the original holds the amount in an `int64`, where it keeps some texts.
    fn fits_int64(&self, parts: &Parts<'_>, exponent: i64) -> bool {
        let length = parts.whole.len() + parts.fraction.len();
        match self.format {
            Format::DecimalExponent | Format::DecimalSi => {
                let scale = exponent - i64::try_from(parts.fraction.len()).unwrap_or(i64::MAX);
                length <= INT64_DIGITS && scale >= NANO
            }
            Format::BinarySi => {
                // About 3 decimal digits for every 10 binary ones must remain.
                let remaining = 15 - i64::try_from(parts.whole.len()).unwrap_or(i64::MAX);
                let fits = remaining - exponent * 3 / 10 > 0;
                let product = self
                    .magnitude()
                    .and_then(|nanos| (nanos / 1_000_000_000).checked_mul(1_i128 << exponent));
                parts.fraction.is_empty()
                    && fits
                    && product.is_some_and(|value| value <= MAX_BINARY)
            }
        }
    }

    fn kept_text(&self, text: &str, parts: &Parts<'_>, exponent: i64) -> Option<String> {
        let shifted = format!("{}{}", parts.whole, parts.fraction);
        let kept = match self.format {
            // Not a multiple of 8, so surely not of 1024.
            Format::BinarySi => {
                shifted.parse::<i64>().is_ok_and(|value| exponent % 10 == 0 && value & 7 != 0)
            }
            Format::DecimalExponent | Format::DecimalSi => {
                let scale = exponent - i64::try_from(parts.fraction.len()).unwrap_or(i64::MAX);
                scale % 3 == 0 && !shifted.ends_with("000") && !shifted.starts_with('0')
            }
        };
        kept.then(|| text.to_owned())
    }

    /// Multiplies by what the suffix means.
    fn scale(&mut self, exponent: i64) {
        if self.format != Format::BinarySi {
            self.exponent += exponent;
            return;
        }
        let factor = 1_u128 << exponent.clamp(0, 60);
        let mut carry = 0_u128;
        for digit in self.digits.iter_mut().rev() {
            let product = u128::from(*digit) * factor + carry;
            *digit = u8::try_from(product % 10).unwrap_or_default();
            carry = product / 10;
        }
        let mut leading = Vec::new();
        while carry > 0 {
            leading.push(u8::try_from(carry % 10).unwrap_or_default());
            carry /= 10;
        }
        leading.reverse();
        leading.append(&mut self.digits);
        self.digits = leading;
    }

    /// Rounds away from zero to a power of ten.
    fn round_up(&mut self, power: i64) {
        if self.exponent >= power || self.digits.is_empty() {
            return;
        }
        let dropped = usize::try_from(power - self.exponent).unwrap_or(usize::MAX);
        let kept = self.digits.len().saturating_sub(dropped);
        let inexact = self.digits.split_off(kept).iter().any(|digit| *digit != 0);
        self.exponent = power;
        if inexact {
            let mut position = self.digits.len();
            loop {
                let Some(before) = position.checked_sub(1) else {
                    self.digits.insert(0, 1);
                    break;
                };
                match self.digits.get_mut(before) {
                    Some(digit) if *digit < 9 => {
                        *digit += 1;
                        break;
                    }
                    Some(digit) => *digit = 0,
                    None => break,
                }
                position = before;
            }
        }
    }

    /// The amount in billionths, without its sign, where that fits.
    fn magnitude(&self) -> Option<i128> {
        let mut nanos = 0_i128;
        for digit in &self.digits {
            nanos = nanos.checked_mul(10)?.checked_add(i128::from(*digit))?;
        }
        let shift = u32::try_from(self.exponent - NANO).ok()?;
        nanos.checked_mul(10_i128.checked_pow(shift)?)
    }

    /// The amount as a whole number where it is one and is written with binary suffixes.
    fn whole_binary(&self) -> Option<i128> {
        if self.format != Format::BinarySi {
            return None;
        }
        let nanos = self.magnitude()?;
        let whole = nanos / 1_000_000_000;
        (nanos % 1_000_000_000 == 0 && whole >= 1024).then_some(whole)
    }
}

impl std::fmt::Display for Quantity {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(text) = &self.text {
            return out.write_str(text);
        }
        if self.digits.is_empty() {
            return out.write_str("0");
        }
        let sign = if self.negative { "-" } else { "" };
        if let Some(mut whole) = self.whole_binary() {
            let mut power = 0_usize;
            while whole >= 1024 && whole % 1024 == 0 {
                whole /= 1024;
                power += 1;
            }
            let suffix = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].get(power).unwrap_or(&"");
            return write!(out, "{sign}{whole}{suffix}");
        }
        let zeros = self.digits.iter().rev().take_while(|digit| **digit == 0).count();
        let significant = self.digits.len() - zeros;
        let mut exponent = self.exponent.saturating_add(i64::try_from(zeros).unwrap_or(i64::MAX));
        out.write_str(sign)?;
        for digit in self.digits.iter().take(significant) {
            write!(out, "{digit}")?;
        }
        while exponent % 3 != 0 {
            out.write_str("0")?;
            exponent -= 1;
        }
        match (self.format, exponent) {
            (_, 0) => Ok(()),
            (Format::DecimalExponent, _) => write!(out, "e{exponent}"),
            _ => out.write_str(decimal_suffix(exponent)),
        }
    }
}

/// Beyond the table the original writes no suffix at all.
fn decimal_suffix(exponent: i64) -> &'static str {
    match exponent {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => "",
    }
}

/// What a suffix means: the format, and the power of ten or of two.
fn suffix(text: &str) -> Option<(Format, i64)> {
    Some(match text {
        "" => (Format::DecimalSi, 0),
        "n" => (Format::DecimalSi, -9),
        "u" => (Format::DecimalSi, -6),
        "m" => (Format::DecimalSi, -3),
        "k" => (Format::DecimalSi, 3),
        "M" => (Format::DecimalSi, 6),
        "G" => (Format::DecimalSi, 9),
        "T" => (Format::DecimalSi, 12),
        "P" => (Format::DecimalSi, 15),
        "E" => (Format::DecimalSi, 18),
        "Ki" => (Format::BinarySi, 10),
        "Mi" => (Format::BinarySi, 20),
        "Gi" => (Format::BinarySi, 30),
        "Ti" => (Format::BinarySi, 40),
        "Pi" => (Format::BinarySi, 50),
        "Ei" => (Format::BinarySi, 60),
        _ => {
            let digits = text.strip_prefix(['e', 'E'])?;
            let exponent: i64 = digits.parse().ok()?;
            // The original keeps the low 32 bits.
            #[expect(clippy::cast_possible_truncation, reason = "as the original does")]
            let exponent = i64::from(exponent as i32);
            (Format::DecimalExponent, exponent)
        }
    })
}

struct Parts<'a> {
    negative: bool,
    /// Digits before the point without leading zeros, or one zero.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
    has_digits: bool,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let stripped = unsigned.trim_start_matches('0');
        let (whole, rest) = digits(stripped);
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(rest) => digits(rest),
            None => ("", rest),
        };
        let letters = rest.trim_start_matches(|letter| "eEinumkKMGTP".contains(letter));
        let number = letters.strip_prefix(['-', '+']).unwrap_or(letters);
        if !digits(number).1.is_empty() {
            return Err(QuantityError::Format);
        }
        let has_digits =
            stripped.len() < unsigned.len() || !whole.is_empty() || !fraction.is_empty();
        let whole = if whole.is_empty() { "0" } else { whole };
        Ok(Parts { negative, whole, fraction, suffix: rest, has_digits })
    }
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(text: &str) -> Result<String, String> {
        Quantity::parse(text).map(|q| q.to_string()).map_err(|error| error.to_string())
    }

    /// Recorded from kube-apiserver.
    #[test]
    fn quantities_are_written_as_the_server_writes_them() {
        for (text, expected) in [
            ("0100m", "0100m"),
            ("+100m", "+100m"),
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1024Ki", "1Mi"),
            ("1.5Gi", "1536Mi"),
            ("1e3", "1e3"),
            ("1E3", "1E3"),
            ("100.035k", "100.035k"),
            ("1.0", "1"),
            ("1.50", "1500m"),
            ("-1Ki", "-1Ki"),
            ("1023Ki", "1023Ki"),
            ("8Ki", "8Ki"),
            ("9223372036854775807", "9223372036854775807"),
            ("9223372036854775808", "9223372036854775808"),
            ("100000000000000000000000", "100"),
            ("1Ei", "1Ei"),
            ("16Ei", "9223372036854775807"),
            ("0", "0"),
            ("00", "0"),
            ("-0", "0"),
            ("1.G", "1.G"),
            (".5", "500m"),
            ("5.", "5."),
            ("1000k", "1M"),
            ("123456789123456789123.5", "123456789123456789123500m"),
            ("1e-3", "1e-3"),
            ("1.1Ki", "1126400m"),
            ("0.5Mi", "512Ki"),
            ("3e100", "30e99"),
            ("0Ki", "0"),
            ("1E", "1E"),
            ("-1.5", "-1500m"),
            ("-0.5Ki", "-512"),
        ] {
            assert_eq!(written(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn refusals_are_those_of_the_server() {
        let format = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
        for (text, expected) in [
            ("", format),
            ("abc", format),
            ("1Zi", format),
            ("true", format),
            ("1 k", format),
            ("1e", "unable to parse quantity's suffix"),
            ("1KiKi", "unable to parse quantity's suffix"),
        ] {
            assert_eq!(written(text), Err(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn resource_lists_are_rounded_up_to_thousandths() {
        for (text, expected) in [
            ("0.1n", "1m"),
            ("1u", "1m"),
            ("1000u", "1m"),
            ("1e-10", "1e-3"),
            ("0.000001Ki", "2m"),
            ("100m", "100m"),
            ("0", "0"),
        ] {
            let mut quantity = Quantity::parse(text).unwrap();
            quantity.round_up_to_milli();
            assert_eq!(quantity.to_string(), expected, "{text}");
        }
    }

    #[test]
    fn huge_exponents_cost_nothing() {
        assert_eq!(written("1e2147483648").as_deref(), Ok("1e-9"));
        assert!(written("1e2147483647").is_ok());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(text in "[+-]?[0-9]{1,20}(\\.[0-9]{1,12})?(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?") {
            let once = written(&text).unwrap();
            prop_assert_eq!(written(&once).unwrap(), once);
        }

        #[test]
        fn anything_is_read_or_refused(text in ".{0,30}") {
            let _ = written(&text);
        }
    }
}
