//! How fast the store is on this machine: `cargo run --example speed [directory]`.
#![expect(clippy::print_stdout, reason = "its output is the point")]

use std::{path::PathBuf, sync::Arc};

use fleetwright_clock::Clock;
use fleetwright_kstore::{
    At, Body, Change, Expect, Index, Key, OpenError, Options, Scope, Store, Write,
};
use serde_json::json;
use tokio::{task::JoinSet, time::Instant};

/// Derives nothing, to measure the store alone.
struct Nothing;

impl Index for Nothing {
    type Meta = ();

    fn index(&self, _: &Key, _: &[u8]) {}
}

const WRITES: usize = 20_000;

fn write(n: usize, bytes: usize) -> Write {
    let object = json!({"metadata": {"name": n.to_string()}, "data": "x".repeat(bytes)});
    Write {
        key: Key::new("/pods", "default", n.to_string()),
        expect: Expect::Absent,
        change: Body::from_json(&object).map_or(Change::Delete { last: None }, Change::Put),
    }
}

/// Writes with so many clients at once; returns writes a second.
async fn fill(store: &Arc<Store<Nothing>>, from: usize, writes: usize, clients: usize) -> f64 {
    let mut tasks = JoinSet::new();
    let start = Instant::now();
    for client in 0..clients {
        let store = Arc::clone(store);
        tasks.spawn(async move {
            for n in (client..writes).step_by(clients) {
                if let Err(error) = store.write(write(from + n, 2000)).await {
                    println!("{error}");
                }
            }
        });
    }
    while tasks.join_next().await.is_some() {}
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let count = writes as f64;
    count / start.elapsed().as_secs_f64()
}

fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    line.unwrap_or("VmRSS unknown").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What 10,000 objects of 5 KB cost.
async fn weigh() {
    println!("before 10,000 objects of 5 KB: {}", resident());
    let options = Options { history_events: 0, ..Options::default() };
    let store = Store::in_memory(Nothing, Clock::system(), options);
    for n in 0..10_000 {
        if let Err(error) = store.write(write(n, 5000)).await {
            println!("{error}");
        }
    }
    println!("with them: {}", resident());
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), OpenError> {
    weigh().await;
    let path = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let path = path.join(format!("kstore-speed-{}", std::process::id()));
    for (clients, writes) in [(1, 500), (16, 4000), (64, WRITES), (512, WRITES)] {
        let store = Arc::new(Store::open(&path, Nothing, Clock::system(), Options::default())?);
        println!(
            "{clients} clients: {:.0} durable writes/s",
            fill(&store, 0, writes, clients).await
        );
        store.close().await;
        let start = Instant::now();
        drop(store);
        let store = Store::open(&path, Nothing, Clock::system(), Options::default())?;
        println!(
            "  reopened {} objects in {:?}",
            store.count(&Scope::all("/pods")),
            start.elapsed()
        );
        drop(store);
        // Errors here would only leave a temporary directory behind.
        let _ = std::fs::remove_dir_all(&path);
    }

    let store = Arc::new(Store::in_memory(Nothing, Clock::system(), Options::default()));
    println!("memory: {:.0} writes/s", fill(&store, 0, WRITES, 1).await);
    let mut watches = JoinSet::new();
    for _ in 0..100 {
        let mut watch = store.list_and_watch(&Scope::all("/pods")).1;
        watches.spawn(async move {
            for _ in 0..2000 {
                if watch.next().await.is_err() {
                    break;
                }
            }
        });
    }
    let start = Instant::now();
    fill(&store, WRITES, 2000, 1).await;
    while watches.join_next().await.is_some() {}
    println!("2000 writes to 100 watchers: {:?}", start.elapsed());
    let start = Instant::now();
    let items =
        store.list(&Scope::all("/pods"), At::Latest, None).map_or(0, |list| list.items.len());
    println!("list of {items}: {:?}", start.elapsed());
    Ok(())
}
