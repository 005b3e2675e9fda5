//! Spans of time as `kubectl get` writes them.

use jiff::Timestamp;

/// How long ago something was: `45s`, `12m`, `3h25m`, `6d`.
pub(crate) fn ago(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(then).as_secs();
    if seconds < 0 {
        return "0s".to_owned();
    }
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let with_rest = |whole: i64, unit: char, rest: i64, small: char| {
        if rest == 0 { format!("{whole}{unit}") } else { format!("{whole}{unit}{rest}{small}") }
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => with_rest(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => with_rest(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => with_rest(days, 'd', hours % 24, 'h'),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan;

    use super::*;

    #[test]
    fn spans_are_as_kubectl_writes_them() {
        let now: Timestamp = "2026-01-10T00:00:00Z".parse().unwrap();
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (125, "2m5s"),
            (600, "10m"),
            (3 * 3600 + 60, "3h1m"),
            (9 * 3600, "9h"),
            (2 * 86_400 + 3600, "2d1h"),
            (9 * 86_400, "9d"),
        ] {
            let then = now.checked_sub(seconds.seconds()).unwrap();
            assert_eq!(ago(then, now), text);
        }
        assert_eq!(ago(now.checked_add(1.second()).unwrap(), now), "0s");
    }
}
