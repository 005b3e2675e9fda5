//! A disk that fills up, fails, and loses power.

use fleetwright_clock::Random;
use fleetwright_kstore::{
    At, Expect, Options, Scope, WriteError,
    fake_disk::{FakeDisk, Faults},
};

use crate::support::{TestStore, open_on, pod, put, run};

fn values(store: &TestStore) -> Vec<(String, u64, u64)> {
    let listing = store.list(&Scope::all("/pods"), At::Latest, None).unwrap();
    listing.items.iter().map(|item| (item.key.name.to_string(), item.revision, item.meta)).collect()
}

/// A write that fails changes nothing, in memory or on disk, and the store works again as soon as
/// the disk does.
fn refuses_then_recovers(faults: Faults) -> String {
    let disk = FakeDisk::new();
    run(async {
        let store = open_on(&disk, Options::default()).unwrap();
        for n in 0..10 {
            put(&store, &pod("a", &n.to_string()), Expect::Absent, n).await.unwrap();
        }
        let (before, revision) = (values(&store), store.revision());
        let mut watch = store.watch(&Scope::all("/pods"), revision).unwrap();
        disk.set_faults(faults);
        let mut message = String::new();
        for n in 0..5 {
            match put(&store, &pod("a", "0"), Expect::Any, 100 + n).await {
                Err(WriteError::Unavailable(reason)) => message = reason,
                other => panic!("{other:?}"),
            }
            assert_eq!((values(&store), store.revision()), (before.clone(), revision));
            assert!(watch.try_next().unwrap().is_none());
        }
        disk.set_faults(Faults::default());
        let written = put(&store, &pod("a", "0"), Expect::Any, 200).await.unwrap();
        assert_eq!(written.revision, revision + 1);
        assert_eq!(watch.next().await.unwrap().object.meta, 200);
        put(&store, &pod("a", "1"), Expect::Any, 201).await.unwrap();
        let after = values(&store);
        // Whatever the faults did to the file is gone, also when the power goes.
        drop(store);
        disk.lose_power(&Random::seeded(1));
        let store = open_on(&disk, Options::default()).unwrap();
        assert_eq!((values(&store), store.revision()), (after, revision + 2));
        message
    })
}

#[test]
fn a_full_disk_refuses_then_recovers() {
    let message = refuses_then_recovers(Faults { capacity: Some(0), ..Faults::default() });
    assert!(message.contains("no space left"), "{message}");
    assert!(message.contains("the fake disk"), "{message}");
}

#[test]
fn failing_writes_refuse_then_recover() {
    refuses_then_recovers(Faults { fail_writes: true, ..Faults::default() });
}

#[test]
fn failing_syncs_refuse_then_recover() {
    refuses_then_recovers(Faults { fail_syncs: true, ..Faults::default() });
}

/// A commit that does not change the revision cannot be told from its absence by looking.
#[test]
fn a_failed_sync_of_a_compaction_is_not_trusted() {
    for seed in 0..10 {
        let disk = FakeDisk::new();
        run(async {
            let store = open_on(&disk, Options::default()).unwrap();
            for n in 0..200 {
                put(&store, &pod("a", &n.to_string()), Expect::Absent, n).await.unwrap();
            }
            disk.set_faults(Faults { fail_syncs: true, ..Faults::default() });
            assert!(store.compact(150).await.is_err());
            assert_eq!(store.compacted(), 1);
            disk.set_faults(Faults::default());
            put(&store, &pod("a", "0"), Expect::Any, 1000).await.unwrap();
            let after = values(&store);
            drop(store);
            disk.lose_power(&Random::seeded(seed));
            let store = open_on(&disk, Options::default()).unwrap();
            assert_eq!((values(&store), store.compacted()), (after, 1));
        });
    }
}

#[test]
fn a_disk_that_fills_up_loses_nothing() {
    let disk = FakeDisk::new();
    run(async {
        let store = open_on(&disk, Options::default()).unwrap();
        disk.set_faults(Faults { capacity: Some(256 << 10), ..Faults::default() });
        let mut written = 0;
        loop {
            match put(&store, &pod("a", &format!("{written:06}")), Expect::Absent, written).await {
                Ok(_) => written += 1,
                Err(WriteError::Unavailable(_)) => break,
                Err(error) => panic!("{error:?}"),
            }
            assert!(written < 100_000, "it never filled up");
        }
        assert!(written > 10, "{written}");
        assert_eq!(store.revision(), written + 1);
        drop(store);
        disk.lose_power(&Random::seeded(3));
        let store = open_on(&disk, Options::default()).unwrap();
        assert_eq!((store.revision(), values(&store).len() as u64), (written + 1, written));
    });
}

/// The power fails at every possible operation in turn, with different fates for what was not
/// synced. Every acknowledged write is there afterwards; an unacknowledged one is there whole or
/// not at all.
#[test]
fn power_failure_at_any_instant_loses_no_acknowledged_write() {
    let mut unacknowledged = 0;
    for fate in 0..6 {
        let mut instant = 0;
        while !power_failure_at(
            instant,
            &Random::seeded(fate * 1000 + instant),
            &mut unacknowledged,
        ) {
            instant += 1;
        }
        assert!(instant > 100, "{instant}");
    }
    assert!(unacknowledged > 0, "the disk never kept what was not synced: a weak test");
}

/// Returns whether all was done before that instant.
fn power_failure_at(instant: u64, random: &Random, unacknowledged: &mut u64) -> bool {
    let disk = FakeDisk::new();
    let mut acknowledged = 0;
    let mut done = false;
    run(async {
        disk.set_faults(Faults { dead_from: Some(instant), ..Faults::default() });
        let Ok(store) = open_on(&disk, Options { history_events: 5, ..Options::default() }) else {
            return;
        };
        for n in 0..12 {
            if put(&store, &pod("a", &n.to_string()), Expect::Absent, n).await.is_err() {
                return;
            }
            acknowledged += 1;
        }
        store.close().await;
        done = disk.operations() <= instant;
    });
    disk.lose_power(random);
    let store =
        open_on(&disk, Options::default()).unwrap_or_else(|error| panic!("at {instant}: {error}"));
    let found = values(&store).len() as u64;
    assert!((acknowledged..=acknowledged + 1).contains(&found), "{found} at {instant}");
    assert_eq!(store.revision(), found + 1);
    *unacknowledged += found - acknowledged;
    run(async { put(&store, &pod("a", "new"), Expect::Absent, 1).await.unwrap() });
    done
}

/// Faults come and go at random while a model keeps book.
#[test]
fn random_faults_lose_nothing() {
    for seed in 0..30 {
        let random = Random::seeded(seed);
        let disk = FakeDisk::new();
        let options = Options { history_events: 20, ..Options::default() };
        run(async {
            let mut store = open_on(&disk, options).unwrap();
            let mut model = std::collections::BTreeMap::new();
            let mut revision = store.revision();
            for n in 0..150 {
                let faults = match random.below(12) {
                    0 => Faults { capacity: Some(random.below(200) << 10), ..Faults::default() },
                    1 => Faults { fail_writes: true, ..Faults::default() },
                    2 => Faults { fail_syncs: true, ..Faults::default() },
                    3 => Faults {
                        dead_from: Some(disk.operations() + random.below(12)),
                        ..Faults::default()
                    },
                    _ => Faults::default(),
                };
                disk.set_faults(faults);
                let name = random.below(8).to_string();
                let key = pod("a", &name);
                let expect = if model.contains_key(&name) { Expect::Any } else { Expect::Absent };
                match put(&store, &key, expect, n).await {
                    Ok(object) => {
                        revision += 1;
                        assert_eq!(object.revision, revision);
                        model.insert(name, n);
                    }
                    Err(WriteError::Unavailable(_)) => {}
                    Err(error) => panic!("{error:?}"),
                }
                assert_eq!(store.revision(), revision);
                if random.below(25) == 0 && faults == Faults::default() {
                    drop(store);
                    disk.lose_power(&random);
                    store = open_on(&disk, options).unwrap();
                    assert_eq!(store.revision(), revision, "seed {seed}");
                }
                let found: std::collections::BTreeMap<_, _> =
                    values(&store).into_iter().map(|(name, _, value)| (name, value)).collect();
                assert_eq!(found, model, "seed {seed}");
            }
        });
    }
}
