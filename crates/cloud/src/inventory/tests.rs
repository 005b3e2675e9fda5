use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::*;
use crate::{
    ErrorClass, InstanceState, InstanceType, Launch, LaunchOrder, MACHINE_UID_TAG, PortFuture,
    ResolveRequest,
};

/// A cloud of which only the inventory is asked; each read takes a second.
#[derive(Default)]
struct Fake {
    shown: Mutex<Vec<Instance>>,
    reads: Mutex<u32>,
    failing: Mutex<bool>,
}

const NEVER: &str = "only the inventory is asked here";

impl Cloud for Fake {
    fn inventory<'a>(&'a self, _: &'a str) -> PortFuture<'a, Vec<Instance>> {
        Box::pin(async {
            *self.reads.lock() += 1;
            let shown = self.shown.lock().clone();
            tokio::time::sleep(Duration::from_secs(1)).await;
            if *self.failing.lock() {
                return Err(CloudError::new(ErrorClass::Transient, "Read", "Busy", "no"));
            }
            Ok(shown)
        })
    }
    fn resolve(&self, _: ResolveRequest) -> PortFuture<'_, Launch> {
        unreachable!("{NEVER}")
    }
    fn launch(&self, _: LaunchOrder) -> PortFuture<'_, Vec<Instance>> {
        unreachable!("{NEVER}")
    }
    fn instances(&self, _: BTreeSet<String>) -> PortFuture<'_, Vec<Instance>> {
        unreachable!("{NEVER}")
    }
    fn tagged<'a>(&'a self, _: &'a str, _: &'a str) -> PortFuture<'a, Vec<Instance>> {
        unreachable!("{NEVER}")
    }
    fn tag<'a>(&'a self, _: &'a [String], _: &'a [Tag]) -> PortFuture<'a, ()> {
        unreachable!("{NEVER}")
    }
    fn retire<'a>(&'a self, _: &'a [String]) -> PortFuture<'a, ()> {
        unreachable!("{NEVER}")
    }
    fn register<'a>(&'a self, _: &'a Value, _: &'a Instance) -> PortFuture<'a, ()> {
        unreachable!("{NEVER}")
    }
    fn deregister<'a>(&'a self, _: &'a Value, _: &'a Instance) -> PortFuture<'a, ()> {
        unreachable!("{NEVER}")
    }
    fn instance_type<'a>(&'a self, _: &'a str) -> PortFuture<'a, Option<InstanceType>> {
        unreachable!("{NEVER}")
    }
}

fn instance(id: &str, state: InstanceState, uid: &str) -> Instance {
    Instance {
        id: id.to_owned(),
        provider_id: format!("aws:///z/{id}"),
        state,
        state_reason: None,
        region: "r".to_owned(),
        zone: "z".to_owned(),
        instance_type: "t".to_owned(),
        interruptible: false,
        addresses: Vec::new(),
        launched_at: None,
        token: None,
        launch_index: None,
        group: None,
        partition: None,
        volumes: Vec::new(),
        tags: BTreeMap::from([(MACHINE_UID_TAG.to_owned(), uid.to_owned())]),
    }
}

fn inventory() -> (Arc<Fake>, Inventory) {
    let fake = Arc::new(Fake::default());
    let options = InventoryOptions::default();
    (Arc::clone(&fake), Inventory::new(fake, "c", options))
}

fn ids(changes: &mut mpsc::UnboundedReceiver<Change>) -> Vec<(String, bool)> {
    let mut ids = Vec::new();
    while let Ok(change) = changes.try_recv() {
        ids.push((change.id, change.after.is_some()));
    }
    ids
}

#[tokio::test(start_paused = true)]
async fn those_who_want_a_read_at_about_the_same_time_share_it() {
    let (fake, inventory) = inventory();
    let now = Instant::now();
    let wants = (0..100).map(|number| {
        let inventory = inventory.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(number)).await;
            inventory.since(Instant::now()).await
        }
    });
    let outcomes = futures::future::join_all(wants).await;
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(*fake.reads.lock(), 1);
    inventory.since(now).await.unwrap();
    inventory.at_most(Duration::from_mins(1)).await.unwrap();
    assert_eq!(*fake.reads.lock(), 1, "what is known is new enough");
}

#[tokio::test(start_paused = true)]
async fn a_read_that_began_too_early_is_not_taken_for_a_newer_one() {
    let (fake, inventory) = inventory();
    let first = inventory.since(Instant::now());
    let later = async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        fake.shown.lock().push(instance("i-1", InstanceState::Pending, "u"));
        inventory.since(Instant::now()).await.unwrap();
        assert!(inventory.get("i-1").is_some());
    };
    let (outcome, ()) = futures::join!(first, later);
    outcome.unwrap();
    assert_eq!(*fake.reads.lock(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_somebody_gave_up_on_is_finished_by_the_next() {
    let (fake, inventory) = inventory();
    let moment = Instant::now();
    let gave_up = tokio::time::timeout(Duration::from_millis(500), inventory.since(moment)).await;
    assert!(gave_up.is_err());
    inventory.since(moment).await.unwrap();
    assert_eq!(*fake.reads.lock(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_read_is_told_and_the_next_is_tried() {
    let (fake, inventory) = inventory();
    *fake.failing.lock() = true;
    let (one, two) =
        futures::join!(inventory.since(Instant::now()), inventory.since(Instant::now()));
    assert!(one.is_err() && two.is_err());
    assert_eq!(inventory.age(), None);
    *fake.failing.lock() = false;
    inventory.at_most(Duration::from_secs(10)).await.unwrap();
    assert_eq!(*fake.reads.lock(), 2);
    assert_eq!(inventory.age(), Some(Duration::from_secs(1)), "counted from where it began");
}

#[tokio::test(start_paused = true)]
async fn what_we_launched_outlives_stale_reads_for_a_while() {
    let (_fake, inventory) = inventory();
    let mut changes = inventory.changes();
    inventory.seen(&[instance("i-1", InstanceState::Pending, "u")]);
    assert_eq!(ids(&mut changes), [("i-1".to_owned(), true)]);
    inventory.since(Instant::now()).await.unwrap();
    assert_eq!(inventory.by_machine_uid("u").len(), 1, "the read does not show it yet");
    tokio::time::advance(Duration::from_secs(90)).await;
    inventory.since(Instant::now()).await.unwrap();
    assert!(inventory.by_machine_uid("u").is_empty(), "it never came to be");
    assert_eq!(ids(&mut changes), [("i-1".to_owned(), false)]);
}

#[tokio::test(start_paused = true)]
async fn tags_and_retirement_are_known_at_once() {
    let (fake, inventory) = inventory();
    fake.shown.lock().push(instance("i-1", InstanceState::Running, "u"));
    inventory.since(Instant::now()).await.unwrap();
    let tags = [Tag { key: "Name".to_owned(), value: "worker-0".to_owned() }];
    inventory.tagged(&["i-1".to_owned()], &tags);
    inventory.retired(&["i-1".to_owned(), "i-unknown".to_owned()]);
    for _ in 0..2 {
        let found = inventory.by_name("worker-0");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].state, InstanceState::ShuttingDown);
        // A stale read changes nothing of it.
        inventory.since(Instant::now()).await.unwrap();
    }
    fake.shown.lock()[0].state = InstanceState::Terminated;
    inventory.since(Instant::now()).await.unwrap();
    assert_eq!(inventory.get("i-1").unwrap().state, InstanceState::Terminated);
}

#[tokio::test(start_paused = true)]
async fn tags_are_remembered_until_a_read_shows_them_and_no_longer() {
    let (fake, inventory) = inventory();
    fake.shown.lock().push(instance("i-1", InstanceState::Running, "u"));
    inventory.since(Instant::now()).await.unwrap();
    let named = |inventory: &Inventory| inventory.by_name("worker-0").len();
    inventory.tagged(&["i-1".to_owned()], &[Tag::name("worker-0")]);
    for _ in 0..5 {
        tokio::time::advance(Duration::from_mins(2)).await;
        inventory.since(Instant::now()).await.unwrap();
        assert_eq!(named(&inventory), 1, "it does not show yet");
    }
    let tag = ("Name".to_owned(), "worker-0".to_owned());
    fake.shown.lock()[0].tags.extend([tag]);
    inventory.since(Instant::now()).await.unwrap();
    assert_eq!(named(&inventory), 1);
    fake.shown.lock()[0].tags.remove("Name");
    inventory.since(Instant::now()).await.unwrap();
    assert_eq!(named(&inventory), 0, "somebody took it off");
    // What never shows is not believed for ever.
    inventory.tagged(&["i-1".to_owned()], &[Tag::name("worker-0")]);
    tokio::time::advance(Duration::from_mins(15)).await;
    inventory.since(Instant::now()).await.unwrap();
    assert_eq!(named(&inventory), 0);
}

#[tokio::test(start_paused = true)]
async fn instances_are_found_by_their_group() {
    let (_fake, inventory) = inventory();
    let in_group = |id: &str, group: &str| Instance {
        group: Some(group.to_owned()),
        ..instance(id, InstanceState::Running, id)
    };
    inventory.seen(&[in_group("i-1", "g"), in_group("i-2", "other")]);
    let ids = |group: &str| -> Vec<String> {
        inventory.by_group(group).iter().map(|instance| instance.id.clone()).collect()
    };
    assert_eq!((ids("g"), ids("none")), (vec!["i-1".to_owned()], Vec::new()));
    inventory.seen(&[in_group("i-1", "other")]);
    assert_eq!((ids("g").len(), ids("other").len()), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn only_what_changed_is_told() {
    let (fake, inventory) = inventory();
    let mut changes = inventory.changes();
    *fake.shown.lock() =
        (0..3).map(|n| instance(&format!("i-{n}"), InstanceState::Running, "u")).collect();
    inventory.since(Instant::now()).await.unwrap();
    assert_eq!(ids(&mut changes).len(), 3);
    inventory.since(Instant::now()).await.unwrap();
    assert_eq!(ids(&mut changes), []);
    {
        let mut shown = fake.shown.lock();
        shown.remove(0);
        shown[0].state = InstanceState::Stopped;
    }
    inventory.since(Instant::now()).await.unwrap();
    assert_eq!(ids(&mut changes), [("i-0".to_owned(), false), ("i-1".to_owned(), true)]);
}

#[tokio::test(start_paused = true)]
async fn a_resting_inventory_reads_once_a_period() {
    let (fake, inventory) = inventory();
    let hour = Duration::from_hours(1);
    let period = Duration::from_mins(1);
    assert!(tokio::time::timeout(hour, inventory.keep_fresh(period)).await.is_err());
    let reads = *fake.reads.lock();
    assert!((59..=61).contains(&reads), "{reads}");
    *fake.failing.lock() = true;
    assert!(tokio::time::timeout(hour, inventory.keep_fresh(period)).await.is_err());
    let failed = *fake.reads.lock() - reads;
    assert!((50..=61).contains(&failed), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn a_read_under_way_does_not_keep_an_inventory_that_nobody_has() {
    let (fake, inventory) = inventory();
    let gave_up =
        tokio::time::timeout(Duration::from_millis(500), inventory.since(Instant::now())).await;
    assert!(gave_up.is_err());
    drop(inventory);
    assert_eq!(Arc::strong_count(&fake), 1);
}
