//! What every backend must do.

use std::time::Duration;

use fleetwright_clock::Clock;
use fleetwright_kstore::{
    At, Change, EventKind, Expect, Key, Lagged, ListError, Options, Scope, Store, Watch,
    WatchError, Write, WriteError,
};

use crate::support::{Number, TestStore, backends, body, delete, pod, put, resource_version, run};

/// Runs a check on each backend, with the default options.
fn on_each(check: impl AsyncFn(&TestStore)) {
    on_each_with(Options::default(), check);
}

#[expect(clippy::needless_pass_by_value, reason = "a closure at the call site reads best")]
fn on_each_with(options: Options, check: impl AsyncFn(&TestStore)) {
    for (name, store, _directory) in backends(options) {
        eprintln!("on {name}");
        run(check(&store));
    }
}

fn names(store: &TestStore, scope: &Scope, at: At, after: Option<(&str, &str)>) -> Vec<String> {
    let listing = store.list(scope, at, after).unwrap();
    let name = |key: &Key| format!("{}/{}", key.namespace, key.name);
    listing.items.iter().map(|item| format!("{}={}", name(&item.key), item.meta)).collect()
}

fn drain(watch: &mut Watch<u64>) -> Vec<(u64, EventKind, u64)> {
    let mut events = Vec::new();
    while let Some(event) = watch.try_next().unwrap() {
        assert_eq!(event.revision, event.object.revision);
        assert_eq!(event.revision, resource_version(&event.object.json));
        events.push((event.revision, event.kind, event.object.meta));
    }
    events
}

#[test]
fn expectations_decide() {
    on_each(async |store| {
        let key = pod("a", "x");
        assert_eq!(store.revision(), 1);
        assert!(store.get(&key).is_none());
        for expect in [Expect::Any, Expect::Revision(1)] {
            assert!(matches!(put(store, &key, expect, 1).await, Err(WriteError::NotFound)));
            assert!(matches!(delete(store, &key, expect).await, Err(WriteError::NotFound)));
        }
        assert!(matches!(delete(store, &key, Expect::Absent).await, Err(WriteError::NotFound)));

        let first = put(store, &key, Expect::Absent, 1).await.unwrap();
        assert_eq!((first.revision, first.created, first.meta), (2, 2, 1));
        assert_eq!(resource_version(&first.json), 2);
        let again = put(store, &key, Expect::Absent, 2).await;
        assert!(matches!(again, Err(WriteError::AlreadyExists)));

        let second = put(store, &key, Expect::Revision(2), 2).await.unwrap();
        assert_eq!((second.revision, second.created), (3, 2));
        match put(store, &key, Expect::Revision(2), 3).await {
            Err(WriteError::Conflict { current }) => assert_eq!(current.revision, 3),
            other => panic!("{other:?}"),
        }
        let third = put(store, &key, Expect::Any, 3).await.unwrap();
        assert_eq!(third.revision, 4);
        assert_eq!(store.get(&key).unwrap().meta, 3);

        let gone = delete(store, &key, Expect::Revision(4)).await.unwrap();
        assert_eq!((gone.revision, gone.created, gone.meta), (5, 2, 3));
        assert_eq!(resource_version(&gone.json), 5);
        assert!(store.get(&key).is_none());
        assert_eq!(store.revision(), 5);

        let reborn = put(store, &key, Expect::Absent, 4).await.unwrap();
        assert_eq!((reborn.revision, reborn.created), (6, 6));
    });
}

#[test]
fn a_deletion_can_show_a_final_state() {
    on_each(async |store| {
        let key = pod("a", "x");
        put(store, &key, Expect::Absent, 1).await.unwrap();
        let mut watch = store.watch(&Scope::all("/pods"), store.revision()).unwrap();
        let change = Change::Delete { last: Some(body(&key, 7)) };
        let write = Write { key: key.clone(), expect: Expect::Any, change };
        assert_eq!(store.write(write).await.unwrap().meta, 7);
        let event = watch.next().await.unwrap();
        assert_eq!((event.kind, event.object.meta), (EventKind::Deleted, 7));
        assert_eq!(event.previous.unwrap().meta, 1);
    });
}

#[test]
fn lists_are_ordered_scoped_and_continued() {
    on_each(async |store| {
        for (n, (namespace, name)) in
            (1..).zip([("b", "y"), ("a", "z"), ("b", "x"), ("", "node"), ("a", "y"), ("c", "x")])
        {
            put(store, &pod(namespace, name), Expect::Absent, n).await.unwrap();
        }
        put(store, &Key::new("apps/deployments", "b", "x"), Expect::Absent, 9).await.unwrap();
        let all = Scope::all("/pods");
        let b = Scope::in_namespace("/pods", "b");
        let expected = ["/node=4", "a/y=5", "a/z=2", "b/x=3", "b/y=1", "c/x=6"];
        assert_eq!(names(store, &all, At::Latest, None), expected);
        assert_eq!(names(store, &all, At::Latest, Some(("a", "y"))), expected[2..]);
        assert_eq!(names(store, &all, At::Latest, Some(("a", "zz"))), expected[3..]);
        assert_eq!(names(store, &all, At::Latest, Some(("d", ""))), [""; 0]);
        assert_eq!(names(store, &b, At::Latest, None), ["b/x=3", "b/y=1"]);
        assert_eq!(names(store, &b, At::Latest, Some(("b", "x"))), ["b/y=1"]);
        assert_eq!(names(store, &b, At::Latest, Some(("a", "z"))), ["b/x=3", "b/y=1"]);
        assert_eq!(names(store, &b, At::Latest, Some(("c", "a"))), [""; 0]);
        assert_eq!(names(store, &Scope::all("/none"), At::Latest, None), [""; 0]);
        assert_eq!((store.count(&all), store.count(&b)), (6, 2));
        assert_eq!(store.counts(), [("/pods".into(), 6), ("apps/deployments".into(), 1)]);
    });
}

#[test]
fn an_older_list_shows_what_was() {
    on_each(async |store| {
        let scope = Scope::all("/pods");
        let (x, y, z) = (pod("a", "x"), pod("b", "y"), pod("c", "z"));
        put(store, &x, Expect::Absent, 1).await.unwrap(); // 2
        put(store, &y, Expect::Absent, 1).await.unwrap(); // 3
        put(store, &x, Expect::Any, 2).await.unwrap(); // 4
        delete(store, &y, Expect::Any).await.unwrap(); // 5
        put(store, &z, Expect::Absent, 1).await.unwrap(); // 6
        put(store, &x, Expect::Any, 3).await.unwrap(); // 7
        for (revision, expected) in [
            (1, vec![]),
            (2, vec!["a/x=1"]),
            (3, vec!["a/x=1", "b/y=1"]),
            (4, vec!["a/x=2", "b/y=1"]),
            (5, vec!["a/x=2"]),
            (6, vec!["a/x=2", "c/z=1"]),
            (7, vec!["a/x=3", "c/z=1"]),
        ] {
            assert_eq!(names(store, &scope, At::Revision(revision), None), expected);
            let listing = store.list(&scope, At::Revision(revision), Some(("a", "x"))).unwrap();
            let rest: Vec<_> = expected.iter().filter(|name| !name.starts_with('a')).collect();
            assert_eq!((listing.revision, listing.items.len()), (revision, rest.len()));
            let b = Scope::in_namespace("/pods", "b");
            let here = expected.iter().filter(|name| name.starts_with('b')).count();
            assert_eq!(names(store, &b, At::Revision(revision), None).len(), here);
        }
        assert_eq!(store.list(&scope, At::Revision(8), None).unwrap_err(), ListError::Future);
    });
}

#[test]
fn watches_begin_where_they_are_told() {
    use EventKind::{Added, Deleted, Modified};
    on_each(async |store| {
        let scope = Scope::all("/pods");
        let mut early = store.watch(&scope, 0).unwrap();
        let mut future = store.watch(&scope, 4).unwrap();
        let mut narrow = store.watch(&Scope::in_namespace("/pods", "b"), 1).unwrap();
        put(store, &pod("a", "x"), Expect::Absent, 1).await.unwrap(); // 2
        put(store, &pod("a", "x"), Expect::Any, 2).await.unwrap(); // 3
        put(store, &pod("b", "y"), Expect::Absent, 3).await.unwrap(); // 4
        let (listing, mut rest) = store.list_and_watch(&scope);
        delete(store, &pod("a", "x"), Expect::Any).await.unwrap(); // 5
        put(store, &Key::new("/nodes", "", "n"), Expect::Absent, 5).await.unwrap(); // 6

        let all = [(2, Added, 1), (3, Modified, 2), (4, Added, 3), (5, Deleted, 2)];
        assert_eq!(drain(&mut early), all);
        assert_eq!(drain(&mut future), all[3..]);
        assert_eq!(drain(&mut narrow), [(4, Added, 3)]);
        assert_eq!(listing.revision, 4);
        assert_eq!(drain(&mut rest), all[3..]);
        assert_eq!(drain(&mut store.watch(&scope, 3).unwrap()), all[2..]);
        for watch in [&early, &future, &narrow, &rest] {
            assert_eq!(watch.position(), 6);
        }
    });
}

#[test]
fn a_position_never_claims_what_was_not_delivered() {
    on_each(async |store| {
        let scope = Scope::in_namespace("/pods", "b");
        let mut watch = store.watch(&scope, 1).unwrap();
        assert_eq!(watch.position(), 1);
        put(store, &pod("a", "x"), Expect::Absent, 1).await.unwrap(); // 2
        assert_eq!(watch.position(), 2, "nothing of the scope is missing");
        put(store, &pod("b", "x"), Expect::Absent, 1).await.unwrap(); // 3
        put(store, &pod("a", "y"), Expect::Absent, 1).await.unwrap(); // 4
        put(store, &pod("b", "y"), Expect::Absent, 1).await.unwrap(); // 5
        put(store, &pod("a", "z"), Expect::Absent, 1).await.unwrap(); // 6
        assert!(watch.position() < 3);
        assert_eq!(watch.next().await.unwrap().revision, 3);
        assert!((3..5).contains(&watch.position()));
        assert_eq!(watch.next().await.unwrap().revision, 5);
        assert_eq!(watch.position(), 6);
        let future = store.watch(&scope, 100).unwrap();
        assert_eq!(future.position(), 100);
    });
}

#[test]
fn a_waiting_watch_is_woken_and_may_be_cancelled() {
    on_each(async |store| {
        let mut watch = store.watch(&Scope::all("/pods"), 1).unwrap();
        for n in 0..3 {
            // Cancelled before and after the event: nothing is lost or doubled.
            assert!(tokio::time::timeout(Duration::from_millis(1), watch.next()).await.is_err());
            let key = pod("a", &n.to_string());
            let (event, written) = tokio::join!(watch.next(), put(store, &key, Expect::Absent, n));
            assert_eq!(event.unwrap().revision, written.unwrap().revision);
        }
    });
}

#[test]
fn revisions_can_be_waited_for() {
    on_each(async |store| {
        store.wait_for(1).await;
        let key = pod("a", "x");
        let write = async {
            put(store, &key, Expect::Absent, 1).await.unwrap();
            put(store, &key, Expect::Any, 2).await.unwrap();
        };
        let wait = async {
            store.wait_for(3).await;
            store.revision()
        };
        assert_eq!(tokio::join!(wait, write).0, 3);
        let never = tokio::time::timeout(Duration::from_millis(1), store.wait_for(4));
        assert!(never.await.is_err());
    });
}

#[test]
fn history_is_bounded_by_count() {
    on_each_with(Options { history_events: 10, ..Options::default() }, async |store| {
        let scope = Scope::all("/pods");
        let mut slow = store.watch(&scope, 1).unwrap();
        let mut reading = store.watch(&scope, 1).unwrap();
        let mut other = store.watch(&Scope::all("/nodes"), 1).unwrap();
        for n in 0..25 {
            put(store, &pod("a", &n.to_string()), Expect::Absent, n).await.unwrap();
            assert_eq!(reading.next().await.unwrap().object.meta, n);
        }
        assert_eq!((store.revision(), store.compacted()), (26, 16));
        assert_eq!(slow.next().await.unwrap_err(), Lagged);
        assert_eq!(slow.position(), 1);
        assert_eq!(store.watch(&scope, 15).unwrap_err(), WatchError::Compacted);
        assert_eq!(drain(&mut store.watch(&scope, 16).unwrap()).len(), 10);
        assert_eq!(store.list(&scope, At::Revision(15), None).unwrap_err(), ListError::Compacted);
        assert_eq!(store.list(&scope, At::Revision(16), None).unwrap().items.len(), 15);
        // What was forgotten was not of its resource, so it missed nothing.
        put(store, &Key::new("/nodes", "", "n"), Expect::Absent, 1).await.unwrap();
        assert_eq!(drain(&mut other).len(), 1);
    });
}

#[test]
fn history_is_bounded_by_bytes() {
    on_each_with(Options { history_bytes: 4096, ..Options::default() }, async |store| {
        for n in 0..50 {
            put(store, &pod("a", &n.to_string()), Expect::Absent, n).await.unwrap();
        }
        let kept = store.revision() - store.compacted();
        assert!((5..=15).contains(&kept), "{kept}");
        assert_eq!(store.count(&Scope::all("/pods")), 50);
    });
}

#[test]
fn history_is_bounded_by_age() {
    let run = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    run.block_on(async {
        let clock = Clock::simulated(jiff::Timestamp::UNIX_EPOCH);
        let store = Store::in_memory(Number, clock, Options::default());
        for n in 0..10 {
            put(&store, &pod("a", &n.to_string()), Expect::Absent, n).await.unwrap();
            tokio::time::sleep(Duration::from_mins(1)).await;
        }
        // At minute 9: minutes 4 to 9 are kept.
        assert_eq!((store.revision(), store.compacted()), (11, 5));
    });
}

#[test]
fn history_can_be_forgotten_at_will() {
    on_each(async |store| {
        let scope = Scope::all("/pods");
        for n in 0..5 {
            put(store, &pod("a", &n.to_string()), Expect::Absent, n).await.unwrap();
        }
        let mut watch = store.watch(&scope, 2).unwrap();
        store.compact(4).await.unwrap();
        assert_eq!(store.compacted(), 4);
        assert_eq!(watch.next().await.unwrap_err(), Lagged);
        store.compact(2).await.unwrap();
        assert_eq!(store.compacted(), 4);
        store.compact(1000).await.unwrap();
        assert_eq!((store.compacted(), store.revision()), (6, 6));
        assert_eq!(store.list(&scope, At::Revision(6), None).unwrap().items.len(), 5);
        let mut watch = store.watch(&scope, 6).unwrap();
        put(store, &pod("a", "new"), Expect::Absent, 9).await.unwrap();
        assert_eq!(watch.next().await.unwrap().revision, 7);
    });
}

#[test]
fn a_watcher_reads_more_than_it_looks_ahead() {
    on_each(async |store| {
        let mut watch = store.watch(&Scope::all("/pods"), 1).unwrap();
        for n in 0..1000 {
            put(store, &pod("a", &n.to_string()), Expect::Absent, n).await.unwrap();
        }
        for n in 0..1000 {
            let event = watch.next().await.unwrap();
            assert_eq!(event.object.meta, n);
            assert!(watch.position() >= event.revision);
        }
        assert_eq!(watch.position(), store.revision());
    });
}

#[test]
fn a_closed_store_refuses_writes_and_still_reads() {
    on_each(async |store| {
        let key = pod("a", "x");
        put(store, &key, Expect::Absent, 1).await.unwrap();
        store.close().await;
        store.close().await;
        let refused = put(store, &key, Expect::Any, 2).await;
        assert!(matches!(refused, Err(WriteError::Unavailable(_))));
        assert!(store.compact(1).await.is_err());
        assert_eq!(store.get(&key).unwrap().meta, 1);
    });
}
