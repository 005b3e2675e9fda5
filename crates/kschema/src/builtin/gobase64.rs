//! Go's standard base64, for its idea of where an input goes wrong.

/// Checks padded base64 as Go's decoder does: line breaks are skipped, and an error names the
/// byte that the decoder stopped at.
pub(super) fn decode(text: &str) -> Result<Vec<u8>, usize> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut input = text.bytes().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    loop {
        let mut group = [0_u8; 4];
        let mut length = 0;
        while length < 4 {
            let Some((at, byte)) = input.next() else {
                return match length {
                    0 => Ok(bytes),
                    _ => Err(text.len() - length),
                };
            };
            if byte == b'=' {
                return padding(text, group, length, at, &mut input).map(|tail| {
                    bytes.extend(tail);
                    bytes
                });
            }
            let Some(value) = sextet(byte) else { return Err(at) };
            if let Some(slot) = group.get_mut(length) {
                *slot = value;
            }
            length += 1;
        }
        bytes.extend(join(group));
    }
}

/// What follows the first `=`.
fn padding(
    text: &str,
    group: [u8; 4],
    length: usize,
    at: usize,
    input: &mut impl Iterator<Item = (usize, u8)>,
) -> Result<Vec<u8>, usize> {
    let kept = match length {
        2 => match input.next() {
            None => return Err(text.len()),
            Some((_, b'=')) => 1,
            Some((other, _)) => return Err(other - 1),
        },
        3 => 2,
        _ => return Err(at),
    };
    if let Some((trailing, _)) = input.next() {
        return Err(trailing);
    }
    Ok(join(group).into_iter().take(kept).collect())
}

fn join([a, b, c, d]: [u8; 4]) -> [u8; 3] {
    [a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d]
}

fn sextet(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_and_says_where_it_stops() {
        for (text, expected) in [
            ("", Ok(&b""[..])),
            ("aGk=", Ok(b"hi")),
            ("aA==", Ok(b"h")),
            ("aGlo", Ok(b"hih")),
            ("aG\nk=\n", Ok(b"hi")),
            ("a", Err(0)),
            ("aG", Err(0)),
            ("aGloa", Err(4)),
            ("!", Err(0)),
            ("aG*=", Err(2)),
            ("aA=", Err(3)),
            ("aA=x", Err(2)),
            ("a===", Err(1)),
            ("aGk=x", Err(4)),
        ] {
            assert_eq!(decode(text).as_deref(), expected.as_ref().copied(), "{text}");
        }
    }
}
