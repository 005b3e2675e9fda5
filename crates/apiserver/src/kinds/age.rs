//! How tables write times: `5m10s`, `3d`.

use jiff::Timestamp;
use serde_json::Value;

use crate::object;

/// A duration of so many seconds with two or three significant figures.
pub fn human_duration(seconds: i64) -> String {
    const HOUR: i64 = 3600;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365;
    let pair = |high: i64, unit: char, low: i64, small: char| {
        if low == 0 { format!("{high}{unit}") } else { format!("{high}{unit}{low}{small}") }
    };
    // Clocks that differ by a second or two are not worth a word.
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => pair(seconds / 60, 'm', seconds % 60, 's'),
        600..10_800 => format!("{}m", seconds / 60),
        10_800..28_800 => pair(seconds / HOUR, 'h', seconds / 60 % 60, 'm'),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => pair(seconds / DAY, 'd', seconds / HOUR % 24, 'h'),
        _ => {
            let days = seconds / DAY;
            if days < 2 * YEAR {
                format!("{days}d")
            } else if days < 8 * YEAR {
                pair(days / YEAR, 'y', days % YEAR, 'd')
            } else {
                format!("{}y", days / YEAR)
            }
        }
    }
}

/// The time at `path`, if there is one.
pub fn time(object: &Value, path: &[&str]) -> Option<Timestamp> {
    object::text(object, path).parse().ok()
}

/// How long ago the time at `path` was.
pub fn since(object: &Value, path: &[&str], now: Timestamp) -> String {
    time(object, path).map_or_else(|| "<unknown>".to_owned(), |then| between(then, now))
}

/// The time from one instant to another.
pub fn between(from: Timestamp, to: Timestamp) -> String {
    human_duration(to.duration_since(from).as_secs())
}

/// The age of an object.
pub fn age(object: &Value, now: Timestamp) -> Value {
    since(object, &["metadata", "creationTimestamp"], now).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        const DAY: i64 = 24 * 3600;
        let cases = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (190, "3m10s"),
            (600, "10m"),
            (179 * 60, "179m"),
            (3 * 3600, "3h"),
            (7 * 3600 + 60, "7h1m"),
            (47 * 3600, "47h"),
            (49 * 3600, "2d1h"),
            (8 * DAY, "8d"),
            (729 * DAY, "729d"),
            (730 * DAY, "2y"),
            (800 * DAY, "2y70d"),
            (8 * 365 * DAY, "8y"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(human_duration(seconds), expected);
        }
    }
}
