//! Numbers that may be shares: `2`, `"2"`, `"40%"`.

use std::fmt;

/// A number or a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntOrPercent {
    /// So many.
    Int(i64),
    /// So many of a hundred.
    Percent(i64),
}

/// What to do with what is left of a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// Drop it.
    Down,
    /// Count it whole.
    Up,
}

/// Text that is neither; told as Go tells it, since users know it so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid value {text:?}: strconv.Atoi: parsing {number:?}: {why}")]
pub struct NotANumber {
    text: String,
    number: String,
    why: &'static str,
}

impl NotANumber {
    /// Whether it was meant as a share.
    pub fn percent(&self) -> bool {
        self.text.ends_with('%')
    }
}

impl IntOrPercent {
    /// Reads text. A number without a sign of percent is a number.
    pub fn parse(text: &str) -> Result<Self, NotANumber> {
        let (number, percent) = match text.strip_suffix('%') {
            Some(number) => (number, true),
            None => (text, false),
        };
        let value = number.parse::<i64>().map_err(|error| {
            use std::num::IntErrorKind::{NegOverflow, PosOverflow};
            let why = match error.kind() {
                PosOverflow | NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            NotANumber { text: text.to_owned(), number: number.to_owned(), why }
        })?;
        Ok(if percent { Self::Percent(value) } else { Self::Int(value) })
    }

    /// How many that is of `total`; never less than none.
    pub fn of(self, total: usize, round: Round) -> usize {
        let value = match self {
            Self::Int(value) => i128::from(value),
            Self::Percent(percent) => {
                let hundredths = i128::from(percent) * total as i128;
                match round {
                    Round::Down => hundredths.div_euclid(100),
                    Round::Up => -((-hundredths).div_euclid(100)),
                }
            }
        };
        usize::try_from(value.max(0)).unwrap_or(usize::MAX)
    }
}

impl fmt::Display for IntOrPercent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_share() {
        let share = IntOrPercent::parse("34%").unwrap();
        assert_eq!((share.of(3, Round::Down), share.of(3, Round::Up)), (1, 2));
        assert_eq!((share.of(0, Round::Down), share.of(0, Round::Up)), (0, 0));
        let whole = IntOrPercent::parse("50%").unwrap();
        assert_eq!((whole.of(4, Round::Down), whole.of(4, Round::Up)), (2, 2));
        for negative in ["-5", "-5%"] {
            let value = IntOrPercent::parse(negative).unwrap();
            assert_eq!((value.of(100, Round::Down), value.of(100, Round::Up)), (0, 0));
            assert_eq!(value.to_string(), negative);
        }
    }

    #[test]
    fn numbers_that_are_none() {
        let error = IntOrPercent::parse("99999999999999999999").unwrap_err();
        assert!(error.to_string().ends_with("value out of range"));
        assert!(!error.percent());
        assert!(IntOrPercent::parse("%").unwrap_err().percent());
        assert!(IntOrPercent::parse("").is_err());
        assert_eq!(IntOrPercent::parse("+5"), Ok(IntOrPercent::Int(5)));
    }
}
