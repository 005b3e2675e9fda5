//! A learning run writes down every write to the API and the cloud; then the same world is run
//! again and again, each time with one of them harmed.

use std::collections::BTreeMap;

use crate::{
    random::{number, workers},
    run::{Outcome, run},
    schedule::{Count, Harm, Schedule},
};

const SEED: u64 = 1;

/// How many writes that look the same are harmed, unless all are.
const ALIKE: usize = 1;

/// Numbers of writes to harm: all to the cloud, of others all or the first of those that look the
/// same.
fn chosen(outcome: &Outcome, cloud: bool) -> Vec<u64> {
    let all = number("SIM_ALL").is_some();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let writes = outcome.writes.iter().filter(|(_, of_cloud)| *of_cloud || !cloud);
    let numbered = (0u64..).zip(writes).filter(|(_, (text, _))| {
        let alike = seen.entry(anonymous(text)).or_default();
        *alike += 1;
        all || cloud || *alike <= ALIKE
    });
    numbered.map(|(number, _)| number).collect()
}

/// A request without the random part of the name in it.
fn anonymous(text: &str) -> String {
    let parts = text.split('/').map(|part| match part.split_once('-') {
        Some((set, suffix)) if suffix.len() == 5 => set,
        _ => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

fn harm_each(count: Count, harm: Harm) {
    let learned = run(SEED, &Schedule::calm());
    assert_eq!(learned.violations, Vec::<String>::new(), "{}", learned.trace.join("\n"));
    let chosen = chosen(&learned, count == Count::CloudWrites);
    let mut failed = Vec::new();
    for numbers in chosen.chunks(workers()) {
        let outcomes: Vec<(u64, Outcome)> = std::thread::scope(|scope| {
            let threads: Vec<_> = numbers
                .iter()
                .map(|number| {
                    let schedule = Schedule::calm().with(count, *number, harm);
                    scope.spawn(move || (*number, run(SEED, &schedule)))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        failed.extend(outcomes.into_iter().filter(|(_, outcome)| !outcome.violations.is_empty()));
    }
    println!(
        "simulation: {harm:?} at {} of {} {count:?}, {} violated",
        chosen.len(),
        learned.writes.iter().filter(|(_, cloud)| *cloud || count == Count::Writes).count(),
        failed.len()
    );
    for (number, outcome) in &failed {
        let (text, _) = learned
            .writes
            .iter()
            .filter(|(_, cloud)| *cloud || count == Count::Writes)
            .nth(usize::try_from(*number).unwrap_or_default())
            .unwrap();
        println!("{count:?} {number} ({text}): {harm:?}: {:#?}", outcome.violations);
    }
    if let Some((_, outcome)) = failed.first() {
        for line in &outcome.trace {
            println!("{line}");
        }
    }
    assert!(failed.is_empty(), "see above");
}

#[test]
fn a_crash_before_each_write() {
    harm_each(Count::Writes, Harm::CrashBefore);
}

#[test]
fn a_crash_after_each_write() {
    harm_each(Count::Writes, Harm::CrashAfter);
}

#[test]
fn the_answer_of_each_write_to_the_cloud_lost() {
    harm_each(Count::CloudWrites, Harm::LoseAnswer);
}

#[test]
fn a_run_replays_exactly() {
    let calm = [run(SEED, &Schedule::calm()), run(SEED, &Schedule::calm())];
    let [first, second] = calm.map(|outcome| outcome.trace);
    assert_eq!(first, second);
}
