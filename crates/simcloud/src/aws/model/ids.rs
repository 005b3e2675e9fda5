//! Identifiers as EC2 makes them.

use fleetwright_clock::Random;

/// A new identifier: the prefix, a dash and seventeen hexadecimal digits.
pub(crate) fn fresh(random: &Random, prefix: &str) -> String {
    // The first digit is 0 in all that EC2 gives out today.
    let number = random.u64();
    format!("{prefix}-0{number:016x}")
}

/// A spot request's identifier: `sir-` and eight letters or digits.
pub(crate) fn fresh_spot_request(random: &Random) -> String {
    format!("sir-{}", random.name_suffix(8))
}

/// Whether `id` looks like an identifier with this prefix: eight or seventeen hexadecimal digits.
pub(crate) fn well_formed(id: &str, prefix: &str) -> bool {
    id.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('-')).is_some_and(|digits| {
        matches!(digits.len(), 8 | 17)
            && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_identifiers_are_well_formed_and_differ() {
        let random = Random::seeded(1);
        let (a, b) = (fresh(&random, "i"), fresh(&random, "i"));
        assert!(well_formed(&a, "i") && a.len() == 19 && a != b, "{a} {b}");
        assert!(well_formed("i-01234567", "i"));
        for bad in ["i-0123", "i-0123456G", "vol-01234567", "i01234567", "", "i-"] {
            assert!(!well_formed(bad, "i"), "{bad}");
        }
    }
}
