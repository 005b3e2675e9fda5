//! Amounts as Kubernetes writes them: `100m`, `1.5Gi`, `2e3`.

/// Thousandths of the unit, rounded up; none if it is not an amount.
pub fn milli(text: &str) -> Option<i64> {
    scaled(text, 1000)
}

/// Whole units, rounded up; none if it is not an amount.
pub fn whole(text: &str) -> Option<i64> {
    scaled(text, 1)
}

/// The number that an amount stands for, as near as a float is; none if it is not an amount.
pub fn number(text: &str) -> Option<f64> {
    let billionths = i128::from(scaled(text, 1_000_000_000)?);
    // Written down and read again, since a quotient of floats may be one bit off.
    let (sign, size) = (if billionths < 0 { "-" } else { "" }, billionths.unsigned_abs());
    format!("{sign}{}.{:09}", size / 1_000_000_000, size % 1_000_000_000).parse().ok()
}

fn scaled(text: &str, times: i128) -> Option<i64> {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|(at, c)| !(c.is_ascii_digit() || *c == '.' || (*at == 0 && matches!(c, '+' | '-'))))
        .map_or(text.len(), |(at, _)| at);
    let (number, suffix) = text.split_at(end);
    let (numerator, denominator) = factor(suffix)?;
    let (negative, digits) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (integer, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if integer.is_empty() && fraction.is_empty() {
        return None;
    }
    let value: i128 = format!("{integer}{fraction}").parse().ok()?;
    let places = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let top = value.checked_mul(numerator)?.checked_mul(times)?;
    let bottom = denominator.checked_mul(places)?;
    // Kubernetes rounds away from zero.
    let rounded = (top + bottom - 1) / bottom;
    let signed = if negative { -rounded } else { rounded };
    Some(i64::try_from(signed).unwrap_or(if negative { i64::MIN } else { i64::MAX }))
}

/// What a suffix multiplies by, as a fraction.
fn factor(suffix: &str) -> Option<(i128, i128)> {
    let whole = |power| (1_i128 << (10 * power), 1);
    let thousands = |power| (1000_i128.pow(power), 1);
    Some(match suffix {
        "" => (1, 1),
        "n" => (1, 1_000_000_000),
        "u" => (1, 1_000_000),
        "m" => (1, 1000),
        "k" => thousands(1),
        "M" => thousands(2),
        "G" => thousands(3),
        "T" => thousands(4),
        "P" => thousands(5),
        "E" => thousands(6),
        "Ki" => whole(1),
        "Mi" => whole(2),
        "Gi" => whole(3),
        "Ti" => whole(4),
        "Pi" => whole(5),
        "Ei" => whole(6),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            let power = 10_i128.checked_pow(exponent.unsigned_abs())?;
            if exponent < 0 { (1, power) } else { (power, 1) }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts() {
        for (text, in_milli, in_whole) in [
            ("1", 1000, 1),
            ("100m", 100, 1),
            ("1.5", 1500, 2),
            ("0.5Gi", 536_870_912_000, 536_870_912),
            ("2e3", 2_000_000, 2000),
            ("1E", i64::MAX, 1_000_000_000_000_000_000),
            ("1500e-3", 1500, 2),
            ("128974848", 128_974_848_000, 128_974_848),
            ("-1", -1000, -1),
            ("250u", 1, 1),
        ] {
            assert_eq!((milli(text), whole(text)), (Some(in_milli), Some(in_whole)), "{text}");
        }
        for text in ["nonsense", "", "1Q", "1.2.3", "--1", "e3"] {
            assert_eq!((milli(text), whole(text), number(text)), (None, None, None), "{text}");
        }
    }

    #[test]
    fn numbers() {
        for (text, wanted) in [("0.001", 0.001), ("100m", 0.1), ("-1", -1.0), ("1.5", 1.5)] {
            let found = number(text).unwrap_or(f64::NAN);
            assert!((found - wanted).abs() < f64::EPSILON, "{text}: {found}");
        }
    }
}
