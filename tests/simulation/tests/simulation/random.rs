//! Worlds drawn from seeds, with faults of all kinds mixed.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;

use crate::{
    run::{Outcome, run},
    schedule::Schedule,
};

/// How long seeds are tried unless it is said.
const SECONDS: u64 = 90;
/// One seed in so many is run twice.
const TWICE: u64 = 20;

/// A number in the environment.
pub(crate) fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text:?}")))
}

/// How many worlds run at the same time.
pub(crate) fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The machine's own time, which decides nothing but when to stop.
#[expect(clippy::disallowed_methods, reason = "the time box is real time")]
fn now() -> SystemTime {
    SystemTime::now()
}

fn live(seed: u64) -> Outcome {
    run(seed, &Schedule::random(seed))
}

fn tell(seed: u64, outcome: &Outcome) {
    println!("seed {seed}: {:#?}\nschedule:\n{}", outcome.violations, Schedule::random(seed));
    println!(
        "replay with SIM_SEED={seed} cargo test --workspace --test simulation random -- --nocapture"
    );
}

#[test]
fn random_worlds() {
    if let Some(seed) = number("SIM_SEED") {
        let outcome = live(seed);
        for line in &outcome.trace {
            println!("{line}");
        }
        tell(seed, &outcome);
        assert!(outcome.violations.is_empty(), "seed {seed}");
        return;
    }
    let most = number("SIM_SEEDS").unwrap_or(u64::MAX);
    let limit = match (number("SIM_SECONDS"), number("SIM_SEEDS")) {
        (Some(seconds), _) => Duration::from_secs(seconds),
        (None, Some(_)) => Duration::MAX,
        (None, None) => Duration::from_secs(SECONDS),
    };
    let first = number("SIM_FIRST").unwrap_or(0);
    let start = now();
    let next = AtomicU64::new(0);
    let failed = Mutex::new(Vec::new());
    let twice = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..workers() {
            scope.spawn(|| {
                while start.elapsed().is_ok_and(|spent| spent < limit) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= most {
                        break;
                    }
                    let seed = first + number;
                    let mut outcome = live(seed);
                    if number.is_multiple_of(TWICE) {
                        twice.fetch_add(1, Ordering::Relaxed);
                        let parting = outcome.parting(&live(seed));
                        outcome.violations.extend(parting);
                    }
                    if !outcome.violations.is_empty() {
                        failed.lock().push((seed, outcome));
                    }
                }
            });
        }
    });
    let seeds = next.into_inner().min(most);
    let failed = failed.into_inner();
    for (seed, outcome) in &failed {
        tell(*seed, outcome);
    }
    println!(
        "simulation: {seeds} seeds, {} violations ({} seeds run twice)",
        failed.len(),
        twice.into_inner()
    );
    assert!(failed.is_empty(), "see above");
}
