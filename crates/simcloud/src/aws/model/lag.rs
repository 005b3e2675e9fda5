//! Eventual consistency: readers see a write some time after it was made.

use std::time::Duration;

use jiff::Timestamp;

/// A value whose readers lag behind its writers.
#[derive(Clone, Debug)]
pub struct Lagged<T> {
    latest: T,
    /// What readers see until a time, oldest first. `None`: nothing, it was not there yet.
    shadows: Vec<(Timestamp, Option<T>)>,
}

impl<T: Clone> Lagged<T> {
    /// A new value, visible after `lag`.
    pub fn new(value: T, now: Timestamp, lag: Duration) -> Self {
        let shadows = if lag.is_zero() { Vec::new() } else { vec![(now + lag, None)] };
        Self { latest: value, shadows }
    }

    /// What a writer sees.
    pub fn latest(&self) -> &T {
        &self.latest
    }

    /// What a reader sees; `None` if the value is not visible yet.
    pub fn seen(&self, now: Timestamp) -> Option<&T> {
        match self.shadows.iter().find(|(until, _)| *until > now) {
            Some((_, shadow)) => shadow.as_ref(),
            None => Some(&self.latest),
        }
    }

    /// Changes the value; readers see the change after `lag`.
    pub fn change<R>(
        &mut self,
        now: Timestamp,
        lag: Duration,
        change: impl FnOnce(&mut T) -> R,
    ) -> R {
        self.shadows.retain(|(until, _)| *until > now);
        if !lag.is_zero() {
            self.shadows.push((now + lag, Some(self.latest.clone())));
        }
        change(&mut self.latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_lag_and_see_changes_in_order() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let lag = Duration::from_secs(5);
        let mut value = Lagged::new(1, at(0), lag);
        assert_eq!((value.latest(), value.seen(at(4)), value.seen(at(5))), (&1, None, Some(&1)));
        value.change(at(3), lag, |v| *v = 2);
        assert_eq!(value.seen(at(4)), None);
        value.change(at(6), lag, |v| *v = 3);
        assert_eq!(value.latest(), &3);
        let seen: Vec<_> = [7, 8, 10, 11].map(|s| value.seen(at(s)).copied()).into();
        assert_eq!(seen, [Some(1), Some(2), Some(2), Some(3)]);
    }

    #[test]
    fn without_lag_readers_see_the_latest() {
        let now = Timestamp::UNIX_EPOCH;
        let mut value = Lagged::new(1, now, Duration::ZERO);
        value.change(now, Duration::ZERO, |v| *v = 2);
        assert_eq!(value.seen(now), Some(&2));
    }
}
