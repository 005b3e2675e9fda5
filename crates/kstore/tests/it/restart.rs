//! What a durable store remembers.

use std::time::Duration;

use fleetwright_clock::Random;
use fleetwright_kstore::{
    At, Change, Event, Expect, Key, Options, Scope, Store, Write, fake_disk::FakeDisk,
};

use crate::support::{TestStore, body, delete, open, open_on, pod, put, run};

type State = (u64, u64, Vec<(Key, u64, u64, Vec<u8>)>, Vec<String>);

/// Everything that can be seen of a store.
fn state(store: &TestStore) -> State {
    let scopes = [Scope::all("/pods"), Scope::all("/nodes")];
    let mut items = Vec::new();
    let mut events = Vec::new();
    for scope in scopes {
        for item in store.list(&scope, At::Latest, None).unwrap().items {
            let bytes = item.json.to_vec();
            items.push((item.key.clone(), item.revision, item.created, bytes));
        }
        let mut watch = store.watch(&scope, store.compacted()).unwrap();
        while let Some(Event { revision, kind, object, previous }) = watch.try_next().unwrap() {
            events.push(format!("{revision} {kind:?} {object:?} {previous:?}"));
        }
        // Lists of the past depend on the previous objects of all events.
        for revision in store.compacted()..=store.revision() {
            events.push(format!("{:?}", store.list(&scope, At::Revision(revision), None)));
        }
    }
    (store.revision(), store.compacted(), items, events)
}

async fn fill(store: &TestStore) {
    let (x, y, node) = (pod("a", "x"), pod("b", "y"), Key::new("/nodes", "", "n"));
    put(store, &x, Expect::Absent, 1).await.unwrap();
    put(store, &y, Expect::Absent, 2).await.unwrap();
    put(store, &x, Expect::Any, 3).await.unwrap();
    delete(store, &y, Expect::Any).await.unwrap();
    put(store, &node, Expect::Absent, 4).await.unwrap();
    put(store, &y, Expect::Absent, 5).await.unwrap();
    let change = Change::Delete { last: Some(body(&x, 6)) };
    store.write(Write { key: x.clone(), expect: Expect::Any, change }).await.unwrap();
    put(store, &node, Expect::Any, 7).await.unwrap();
}

#[test]
fn objects_revisions_and_history_survive() {
    for options in [
        Options::default(),
        Options { history_events: 3, ..Options::default() },
        Options { history_events: 0, ..Options::default() },
        Options { history_age: Duration::ZERO, ..Options::default() },
    ] {
        let directory = tempfile::tempdir().unwrap();
        run(async {
            let store = open(directory.path(), options).unwrap();
            assert_eq!((store.revision(), store.compacted()), (1, 1));
            fill(&store).await;
            let before = state(&store);
            store.close().await;
            let store = open(directory.path(), options).unwrap();
            assert_eq!(state(&store), before);
            let next = put(&store, &pod("a", "x"), Expect::Absent, 1).await.unwrap();
            assert_eq!(next.revision, before.0 + 1);
            let before = state(&store);
            drop(store);
            assert_eq!(state(&open(directory.path(), options).unwrap()), before);
        });
    }
}

#[test]
fn a_watch_resumes_across_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    run(async {
        let store = open(directory.path(), Options::default()).unwrap();
        fill(&store).await;
        let mut watch = store.watch(&Scope::all("/pods"), 0).unwrap();
        let seen = watch.next().await.unwrap().revision;
        store.close().await;
        let store = open(directory.path(), Options::default()).unwrap();
        let mut watch = store.watch(&Scope::all("/pods"), seen).unwrap();
        for revision in [3, 4, 5, 7, 8] {
            assert_eq!(watch.next().await.unwrap().revision, revision);
        }
    });
}

#[test]
fn what_was_forgotten_stays_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    run(async {
        let store = open(directory.path(), Options::default()).unwrap();
        fill(&store).await;
        store.compact(6).await.unwrap();
        store.close().await;
        let store = open(directory.path(), Options::default()).unwrap();
        assert_eq!((store.revision(), store.compacted()), (9, 6));
        assert!(store.watch(&Scope::all("/pods"), 5).is_err());
    });
}

/// Random writes, restarted every now and then, with small histories: a reopened store cannot be
/// told from the one that was closed.
#[test]
fn a_reopened_store_is_the_same() {
    for seed in 0..20 {
        let random = Random::seeded(seed);
        let options = Options {
            history_events: usize::try_from(random.below(30)).unwrap(),
            ..Options::default()
        };
        let disk = FakeDisk::new();
        run(async {
            let mut store: TestStore = open_on(&disk, options).unwrap();
            for n in 0..200 {
                let key = pod("a", &random.below(5).to_string());
                match (random.below(3), store.get(&key)) {
                    (0, Some(_)) => drop(delete(&store, &key, Expect::Any).await.unwrap()),
                    (_, Some(_)) => drop(put(&store, &key, Expect::Any, n).await.unwrap()),
                    (_, None) => drop(put(&store, &key, Expect::Absent, n).await.unwrap()),
                }
                if random.below(20) == 0 {
                    let before = state(&store);
                    Store::close(&store).await;
                    drop(store);
                    store = open_on(&disk, options).unwrap();
                    assert_eq!(state(&store), before, "seed {seed}");
                }
            }
        });
    }
}
