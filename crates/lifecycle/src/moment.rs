//! Moments before and after others. Times and lengths come from objects that anybody may write, so
//! the end of time is a moment like any other.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// The moment so much later.
pub fn after(time: Timestamp, length: Duration) -> Timestamp {
    SignedDuration::try_from(length)
        .ok()
        .and_then(|length| time.checked_add(length).ok())
        .unwrap_or(Timestamp::MAX)
}

/// The moment so much sooner.
pub fn before(time: Timestamp, length: Duration) -> Timestamp {
    SignedDuration::try_from(length)
        .ok()
        .and_then(|length| time.checked_sub(length).ok())
        .unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_time() {
        for length in [Duration::from_secs(1), Duration::MAX] {
            assert_eq!(after(Timestamp::MAX, length), Timestamp::MAX);
            assert_eq!(before(Timestamp::MIN, length), Timestamp::MIN);
        }
        let second = Duration::from_secs(1);
        assert_eq!(before(after(Timestamp::UNIX_EPOCH, second), second), Timestamp::UNIX_EPOCH);
    }
}
