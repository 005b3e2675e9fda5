//! A process that is killed while it writes.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write as _},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use fleetwright_clock::Random;
use fleetwright_kstore::{At, Expect, Options, Scope};
use tokio::task::JoinSet;

use crate::support::{logged, open, pod, put, resource_version, run};

const DIRECTORY: &str = "KSTORE_TEST_DIRECTORY";
const WRITERS: u64 = 8;

fn options() -> Options {
    Options { history_events: 50, ..Options::default() }
}

/// Not a test of its own: what [`acknowledged_writes_survive_a_kill`] starts and kills. It prints
/// one line for each acknowledged write.
#[test]
#[ignore = "started by another test"]
fn child() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    run(async {
        let store = Arc::new(open(Path::new(&directory), options()).unwrap());
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let store = Arc::clone(&store);
            writers.spawn(async move {
                let key = pod("a", &writer.to_string());
                let mut value = store.get(&key).map_or(0, |object| object.meta);
                loop {
                    value += 1;
                    let expect =
                        if store.get(&key).is_some() { Expect::Any } else { Expect::Absent };
                    let object = put(&store, &key, expect, value).await.unwrap();
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "ack {writer} {value} {}", object.revision).unwrap();
                    out.flush().unwrap();
                }
            });
        }
        writers.join_next().await
    });
}

#[test]
fn acknowledged_writes_survive_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let random = Random::seeded(11);
    let mut newest = 1;
    let mut acknowledged: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for round in 0..12 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::child", "--ignored", "--nocapture"])
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let stop = random.below(400);
        let mut acks = 0;
        let mut note = |line: std::io::Result<String>| {
            // The last line may be torn: then it was not acknowledged.
            let Ok(line) = line else { return };
            let words: Vec<&str> = line.split(' ').collect();
            if let ["ack", writer, value, revision] = words[..]
                && let (Ok(value), Ok(revision)) = (value.parse(), revision.parse::<u64>())
            {
                acknowledged.insert(writer.to_owned(), (value, revision));
                newest = newest.max(revision);
            }
        };
        while acks < stop {
            note(lines.next().expect("the child ended by itself"));
            acks += 1;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        lines.for_each(&mut note);

        let store = open(directory.path(), options()).unwrap();
        let revision = store.revision();
        assert!(revision >= newest, "round {round}: {revision} < {newest}");
        for (writer, (value, at)) in &acknowledged {
            let object = store.get(&pod("a", writer)).expect("an acknowledged object is missing");
            assert!(object.meta >= *value && object.revision >= *at, "round {round}: {writer}");
            assert_eq!(resource_version(&object.json), object.revision);
        }
        // Each writer had at most one write on its way.
        let total: u64 = store
            .list(&Scope::all("/pods"), At::Latest, None)
            .unwrap()
            .items
            .iter()
            .map(|item| item.meta)
            .sum();
        assert_eq!(total + 1, revision);
        let mut watch = store.watch(&Scope::all("/pods"), store.compacted()).unwrap();
        let mut expected = store.compacted();
        while let Some(event) = watch.try_next().unwrap() {
            expected += 1;
            assert_eq!(logged(&event).revision, expected);
        }
        assert_eq!(expected, revision);
        newest = revision;
    }
}
