//! Random clients on several threads; what they saw is checked against what happened.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use fleetwright_clock::Random;
use fleetwright_kstore::{
    At, Expect, Key, Options, Scope, Store, WriteError,
    history_check::{Answer, Logged, Seen, Stream, What, check},
};
use tokio::task::JoinSet;

use crate::support::{Number, TestStore, backends, delete, logged, put};

const RESOURCES: [&str; 2] = ["/pods", "apps/deployments"];
const NAMESPACES: [&str; 2] = ["a", "b"];

fn pick<'a>(random: &Random, of: &[&'a str]) -> &'a str {
    of[usize::try_from(random.below(of.len() as u64)).unwrap()]
}

fn any_key(random: &Random) -> Key {
    let name = pick(random, &["x", "y", "z"]);
    Key::new(pick(random, &RESOURCES), pick(random, &NAMESPACES), name)
}

fn any_scope(random: &Random) -> Scope {
    let resource = pick(random, &RESOURCES);
    match random.below(3) {
        0 => Scope::in_namespace(resource, pick(random, &NAMESPACES)),
        _ => Scope::all(resource),
    }
}

/// What all clients share.
struct World {
    store: TestStore,
    ticks: AtomicU64,
    values: AtomicU64,
}

impl World {
    fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::SeqCst)
    }
}

async fn client(world: Arc<World>, random: Random, calls: usize) -> Vec<Seen> {
    let mut seen = Vec::new();
    for _ in 0..calls {
        let began = world.tick();
        let what = call(&world, &random).await;
        seen.push(Seen { began, ended: world.tick(), what });
    }
    seen
}

async fn call(world: &World, random: &Random) -> What {
    let store = &world.store;
    let key = any_key(random);
    match random.below(10) {
        0 => What::Got { found: store.get(&key).map(|object| object.revision), key },
        1 => {
            let scope = any_scope(random);
            let listing = store.list(&scope, At::Latest, None).unwrap();
            let items =
                listing.items.iter().map(|item| (item.key.clone(), item.revision)).collect();
            What::Listed { scope, revision: listing.revision, items }
        }
        2 => {
            let scope = any_scope(random);
            let now = store.revision();
            let revision = (now.saturating_sub(random.below(40))).max(store.compacted());
            match store.list(&scope, At::Revision(revision), None) {
                Ok(listing) => What::ListedAt {
                    scope,
                    revision,
                    items: listing
                        .items
                        .iter()
                        .map(|item| (item.key.clone(), item.revision))
                        .collect(),
                },
                // Forgotten between the look and the list.
                Err(_) => What::Got { found: store.get(&key).map(|object| object.revision), key },
            }
        }
        kind => {
            let current = store.get(&key).map(|object| object.revision);
            let expect = match (random.below(4), current) {
                (0, _) | (_, None) => Expect::Absent,
                (1, _) => Expect::Any,
                (_, Some(revision)) => Expect::Revision(revision),
            };
            let value = (kind != 3).then(|| world.values.fetch_add(1, Ordering::SeqCst));
            let outcome = match value {
                Some(value) => put(store, &key, expect, value).await,
                None => delete(store, &key, expect).await,
            };
            let answer = match outcome {
                Ok(object) => Answer::Done(object.revision),
                Err(WriteError::AlreadyExists) => Answer::AlreadyExists,
                Err(WriteError::NotFound) => Answer::NotFound,
                Err(WriteError::Conflict { current }) => Answer::Conflict(current.revision),
                Err(WriteError::Unavailable(reason)) => panic!("{reason}"),
            };
            What::Wrote { key, expect, value, answer }
        }
    }
}

/// Watches and sometimes starts over, by list and watch or from where it was.
async fn watcher(world: Arc<World>, random: Random, until: u64) -> (Vec<Seen>, Vec<Stream>) {
    let (mut seen, mut streams) = (Vec::new(), Vec::new());
    let scope = any_scope(&random);
    let mut since = 0;
    loop {
        let mut watch = if random.below(2) == 0 {
            let began = world.tick();
            let (listing, watch) = world.store.list_and_watch(&scope);
            since = listing.revision;
            let items =
                listing.items.iter().map(|item| (item.key.clone(), item.revision)).collect();
            let what = What::Listed { scope: scope.clone(), revision: since, items };
            seen.push(Seen { began, ended: world.tick(), what });
            watch
        } else {
            match world.store.watch(&scope, since) {
                Ok(watch) => watch,
                Err(_) => continue,
            }
        };
        let mut events = Vec::new();
        let stop = random.below(60);
        while watch.position() < until && events.len() as u64 <= stop {
            tokio::select! {
                event = watch.next() => match event {
                    Ok(event) => events.push(logged(&event)),
                    Err(_) => break,
                },
                () = world.store.wait_for(until) => {
                    while let Ok(Some(event)) = watch.try_next() {
                        events.push(logged(&event));
                    }
                    break;
                }
            }
        }
        let position = watch.position();
        streams.push(Stream { scope: scope.clone(), since, position, events });
        since = position;
        if position >= until {
            return (seen, streams);
        }
    }
}

async fn history(store: TestStore, seed: u64, clients: usize, calls: usize) -> Result<(), String> {
    let random = Random::seeded(seed);
    let world = Arc::new(World { store, ticks: AtomicU64::new(0), values: AtomicU64::new(0) });
    // Followed from the beginning, so that it is whole whatever is forgotten.
    let mut follow: Vec<_> =
        RESOURCES.iter().map(|name| world.store.watch(&Scope::all(*name), 0).unwrap()).collect();
    let mut tasks = JoinSet::new();
    let mut watchers = JoinSet::new();
    // The clients together surely write this much; watchers end there.
    let until = (clients * calls / 8) as u64;
    for _ in 0..4 {
        watchers.spawn(watcher(Arc::clone(&world), random.fork(), until));
    }
    for _ in 0..clients {
        tasks.spawn(client(Arc::clone(&world), random.fork(), calls));
    }
    let (mut seen, mut streams, mut log): (Vec<Seen>, Vec<Stream>, Vec<Logged>) =
        Default::default();
    while let Some(more) = tasks.join_next().await {
        seen.extend(more.unwrap());
    }
    for watch in &mut follow {
        while let Some(event) = watch.try_next().map_err(|error| error.to_string())? {
            log.push(logged(&event));
        }
    }
    log.sort_by_key(|event| event.revision);
    assert!(world.store.revision() >= until, "the clients wrote too little");
    while let Some(more) = watchers.join_next().await {
        let (more_seen, more_streams) = more.unwrap();
        seen.extend(more_seen);
        streams.extend(more_streams);
    }
    assert_eq!(log.last().map(|event| event.revision), Some(world.store.revision()));
    check(&log, &seen, &streams)
}

#[test]
fn concurrent_histories_are_linearizable() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(3)
        .enable_time()
        .build()
        .unwrap();
    for seed in 0..8 {
        for (name, store, _directory) in backends(Options::default()) {
            let checked = runtime.block_on(history(store, seed, 6, 200));
            assert_eq!(checked, Ok(()), "{name}, seed {seed}");
        }
    }
}

#[test]
fn one_thread_replays_exactly() {
    let outcome = |seed| {
        crate::support::run(async {
            let store =
                Store::in_memory(Number, fleetwright_clock::Clock::system(), Options::default());
            let mut watch = store.watch(&Scope::all("/pods"), 0).unwrap();
            let world = World { store, ticks: AtomicU64::new(0), values: AtomicU64::new(0) };
            let seen = client(Arc::new(world), Random::seeded(seed), 300).await;
            let mut events = Vec::new();
            while let Some(event) = watch.try_next().unwrap() {
                events.push(logged(&event));
            }
            (format!("{seen:?}"), events)
        })
    };
    assert_eq!(outcome(7), outcome(7));
    assert_ne!(outcome(7).0, outcome(8).0);
}
