//! Protobuf records: tags, integers, lengths.

/// Bytes that are not protobuf. The messages are those of the Go library.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The input ends inside a record.
    #[error("unexpected EOF")]
    Truncated,
    /// An integer of more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A field number that cannot be.
    #[error("proto: illegal tag {number} (wire type {wire})")]
    IllegalTag {
        /// The field number.
        number: u64,
        /// The wire type.
        wire: u64,
    },
    /// A wire type that does not exist, or groups, which Kubernetes does not use.
    #[error("proto: illegal wireType {0}")]
    IllegalWireType(u64),
    /// A field with the wire type of another.
    #[error("proto: wrong wireType = {wire} for field {field}")]
    WrongWireType {
        /// The wire type found.
        wire: u8,
        /// The field.
        field: String,
    },
}

/// A field's value on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

impl<'a> Wire<'a> {
    fn kind(self) -> u8 {
        match self {
            Wire::Varint(_) => 0,
            Wire::Fixed64(_) => 1,
            Wire::Bytes(_) => 2,
            Wire::Fixed32(_) => 5,
        }
    }

    fn wrong(self, field: &str) -> WireError {
        // Go names the field by its Go name, which is the JSON name with a capital.
        let mut letters = field.chars();
        let field = letters
            .next()
            .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect());
        WireError::WrongWireType { wire: self.kind(), field }
    }

    pub(crate) fn varint(self, field: &str) -> Result<u64, WireError> {
        match self {
            Wire::Varint(value) => Ok(value),
            _ => Err(self.wrong(field)),
        }
    }

    pub(crate) fn double(self, field: &str) -> Result<f64, WireError> {
        match self {
            Wire::Fixed64(bits) => Ok(f64::from_bits(bits)),
            _ => Err(self.wrong(field)),
        }
    }

    pub(crate) fn bytes(self, field: &str) -> Result<&'a [u8], WireError> {
        match self {
            Wire::Bytes(bytes) => Ok(bytes),
            _ => Err(self.wrong(field)),
        }
    }
}

/// Signed integers travel as 64 bits in two's complement.
#[expect(clippy::cast_possible_wrap, reason = "two's complement is the encoding")]
pub(crate) fn signed(value: u64) -> i64 {
    value as i64
}

/// 32-bit integers keep their low bits, as Go's conversion does.
#[expect(clippy::cast_possible_truncation, reason = "the high bits only extend the sign")]
pub(crate) fn signed32(value: u64) -> i32 {
    value as i32
}

/// Reads the records of a message.
pub(crate) struct Records<'a>(pub(crate) &'a [u8]);

impl<'a> Records<'a> {
    /// The next field number and value, or none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, WireError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let (number, wire) = (tag >> 3, tag & 7);
        let field = match u32::try_from(number) {
            Ok(field) if field > 0 => field,
            _ => return Err(WireError::IllegalTag { number, wire }),
        };
        let value = match wire {
            0 => Wire::Varint(self.varint()?),
            1 => {
                let bytes = self.take(8)?;
                Wire::Fixed64(u64::from_le_bytes(
                    bytes.try_into().map_err(|_| WireError::Truncated)?,
                ))
            }
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| WireError::Truncated)?;
                Wire::Bytes(self.take(length)?)
            }
            5 => {
                let bytes = self.take(4)?;
                Wire::Fixed32(u32::from_le_bytes(
                    bytes.try_into().map_err(|_| WireError::Truncated)?,
                ))
            }
            other => return Err(WireError::IllegalWireType(other)),
        };
        Ok(Some((field, value)))
    }

    /// An integer of seven bits a byte, least significant first.
    pub(crate) fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(WireError::Truncated)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(WireError::Overflow)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(WireError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_in_order() {
        let mut records = Records(&[
            0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i', 0x19, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f,
        ]);
        assert_eq!(records.next(), Ok(Some((1, Wire::Varint(150)))));
        assert_eq!(records.next(), Ok(Some((2, Wire::Bytes(b"hi")))));
        let (number, value) = records.next().unwrap().unwrap();
        assert_eq!((number, value.double("x")), (3, Ok(1.0)));
        assert_eq!(records.next(), Ok(None));
    }

    #[test]
    fn bad_records_are_refused() {
        for (bytes, expected) in [
            (&[0x08][..], WireError::Truncated),
            (&[0x12, 0x05, b'a'], WireError::Truncated),
            (&[0xff; 11], WireError::Overflow),
            (&[0x00, 0x00], WireError::IllegalTag { number: 0, wire: 0 }),
            (&[0x0c], WireError::IllegalWireType(4)),
        ] {
            assert_eq!(Records(bytes).next(), Err(expected), "{bytes:?}");
        }
        assert_eq!(
            Wire::Varint(1).bytes("replicas").unwrap_err().to_string(),
            "proto: wrong wireType = 0 for field Replicas"
        );
        assert_eq!(signed32(u64::MAX), -1);
    }
}
