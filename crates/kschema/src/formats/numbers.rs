//! Numbers with check digits.

use std::sync::LazyLock;

use regex::Regex;

use super::{Constant, constant};

constant!(
    CREDIT_CARD,
    "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|\
     3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$"
);

fn digit(byte: u8) -> u32 {
    u32::from(byte.saturating_sub(b'0'))
}

/// The number of a payment card; what is no digit does not count.
pub(super) fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !CREDIT_CARD.accepts(&digits) {
        return false;
    }
    let weigh = |(i, byte): (usize, u8)| {
        let value = if i % 2 == 1 { digit(byte) * 2 } else { digit(byte) };
        if value >= 10 { value % 10 + 1 } else { value }
    };
    digits.bytes().rev().enumerate().map(weigh).sum::<u32>().is_multiple_of(10)
}

fn without_separators(text: &str) -> Vec<u8> {
    text.bytes().filter(|b| !matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0xc | b'-')).collect()
}

/// A book number of ten digits, of which the last may be X.
pub(super) fn is_isbn10(text: &str) -> bool {
    let bytes = without_separators(text);
    let Some((last, first)) = bytes.split_last() else { return false };
    if first.len() != 9 || !first.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let check = match last {
        b'X' => 10,
        b if b.is_ascii_digit() => digit(*b),
        _ => return false,
    };
    let sum: u32 = first.iter().zip(1..).map(|(b, weight)| weight * digit(*b)).sum();
    (sum + 10 * check).is_multiple_of(11)
}

/// A book number of thirteen digits.
pub(super) fn is_isbn13(text: &str) -> bool {
    let bytes = without_separators(text);
    if bytes.len() != 13 || !bytes.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weights = [1, 3].into_iter().cycle();
    bytes.iter().zip(weights).map(|(b, weight)| weight * digit(*b)).sum::<u32>().is_multiple_of(10)
}
