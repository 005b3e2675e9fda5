//! What the tests share.

use std::{path::Path, sync::Arc};

use fleetwright_clock::Clock;
use fleetwright_kstore::{
    Body, Change, Event, Expect, Index, Key, OpenError, Options, Store, Stored, Write, WriteError,
    fake_disk::FakeDisk, history_check::Logged,
};
use serde_json::{Value, json};

/// Derives the number that an object carries.
#[derive(Debug)]
pub(crate) struct Number;

impl Index for Number {
    type Meta = u64;

    fn index(&self, _: &Key, json: &[u8]) -> u64 {
        let object: Value = serde_json::from_slice(json).unwrap();
        object["n"].as_u64().unwrap()
    }
}

pub(crate) type TestStore = Store<Number>;
pub(crate) type Outcome = Result<Arc<Stored<u64>>, WriteError<u64>>;

/// The backends that must not be told apart. Durable ones on a real disk last as long as the
/// directory.
pub(crate) fn backends(options: Options) -> Vec<(&'static str, TestStore, tempfile::TempDir)> {
    let directory = tempfile::tempdir().unwrap();
    let unused = || tempfile::tempdir().unwrap();
    let durable = open(directory.path(), options).unwrap();
    vec![
        ("memory", Store::in_memory(Number, Clock::system(), options), unused()),
        ("durable", durable, directory),
        ("durable inline", open_on(&FakeDisk::new(), options).unwrap(), unused()),
    ]
}

pub(crate) fn open(path: &Path, options: Options) -> Result<TestStore, OpenError> {
    Store::open(path, Number, Clock::system(), options)
}

pub(crate) fn open_on(disk: &FakeDisk, options: Options) -> Result<TestStore, OpenError> {
    Store::open_on(disk.clone(), Number, Clock::system(), options)
}

pub(crate) fn pod(namespace: &str, name: &str) -> Key {
    Key::new("/pods", namespace, name)
}

pub(crate) fn body(key: &Key, n: u64) -> Body {
    Body::from_json(&json!({
        "metadata": {"name": &*key.name, "namespace": &*key.namespace},
        "n": n,
    }))
    .unwrap()
}

pub(crate) async fn put(store: &TestStore, key: &Key, expect: Expect, n: u64) -> Outcome {
    let change = Change::Put(body(key, n));
    store.write(Write { key: key.clone(), expect, change }).await
}

pub(crate) async fn delete(store: &TestStore, key: &Key, expect: Expect) -> Outcome {
    let change = Change::Delete { last: None };
    store.write(Write { key: key.clone(), expect, change }).await
}

pub(crate) fn logged(event: &Event<u64>) -> Logged {
    Logged {
        revision: event.revision,
        key: event.object.key.clone(),
        kind: event.kind,
        value: event.object.meta,
    }
}

/// What the JSON of an object says of its revision.
pub(crate) fn resource_version(json: &[u8]) -> u64 {
    let object: Value = serde_json::from_slice(json).unwrap();
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

/// Runs on one thread without an I/O driver, as the simulation does.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}
