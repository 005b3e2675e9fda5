//! Addresses of networks and cards.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Parses an address; IPv4 octets may have leading zeros, which count as decimal.
pub(super) fn parse_ip_sloppy(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    let mut octets = [0u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *octet = part.parse().ok()?;
    }
    parts.next().is_none().then(|| IpAddr::V4(Ipv4Addr::from(octets)))
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let Some(address) = parse_ip_sloppy(address) else { return false };
    let max = if address.is_ipv4() { 32 } else { 128 };
    let digits = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
    digits && length.parse::<u32>().is_ok_and(|length| length <= max)
}

/// A hardware address of 6, 8 or 20 bytes: pairs joined by one of `:` and `-`, or groups of four
/// joined by dots.
pub(super) fn is_mac(text: &str) -> bool {
    let (separator, width) = match text.as_bytes() {
        [_, _, sep @ (b':' | b'-'), ..] => (char::from(*sep), 2),
        [_, _, _, _, b'.', ..] => ('.', 4),
        _ => return false,
    };
    let mut digits = 0;
    for group in text.split(separator) {
        if group.len() != width || !group.bytes().all(|b| b.is_ascii_hexdigit()) {
            return false;
        }
        digits += group.len();
    }
    matches!(digits, 12 | 16 | 40)
}
