//! Tables for the plan: who goes with whom, who waits, who is looked for. The letters are the
//! pitfalls of launching several Machines at once.

use fleetwright_cloud::ErrorClass;

use super::*;

/// What is known, in a form that tests can build up.
struct World {
    waiting: Vec<Waiting>,
    holders: BTreeMap<String, BTreeMap<u32, Holder>>,
    sets: BTreeMap<String, GangSet>,
    tokens: BTreeMap<String, TokenMemory>,
    capacity: CapacityMemory,
    probing: BTreeSet<Pool>,
    limits: BTreeMap<String, u32>,
    settings: PlanSettings,
    now: Timestamp,
}

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

impl World {
    fn new() -> Self {
        Self {
            waiting: Vec::new(),
            holders: BTreeMap::new(),
            sets: BTreeMap::new(),
            tokens: BTreeMap::new(),
            capacity: CapacityMemory::default(),
            probing: BTreeSet::new(),
            limits: BTreeMap::new(),
            settings: PlanSettings {
                coalesce: true,
                coalesce_window: Duration::from_millis(200),
                gang_window: Duration::from_secs(20),
                max_batch: 100,
            },
            now: start() + Duration::from_secs(10),
        }
    }

    /// Machines `0..count` of a gang.
    fn gang(count: u32, replicas: u32, policy: GangPolicy) -> Self {
        let mut world = Self::new();
        for number in 0..count {
            world.add(number).gang = Some(("set".to_owned(), policy));
        }
        world.sets.insert("set".to_owned(), GangSet { replicas, settled: 0 });
        world
    }

    fn add(&mut self, number: u32) -> &mut Waiting {
        self.waiting.push(Waiting {
            key: ObjectKey::new("ns", format!("m{number:03}")),
            uid: format!("uid-{number:03}"),
            account: "here".to_owned(),
            hash: "hash".to_owned(),
            shape: Shape { zone: "a".to_owned(), ..Shape::default() },
            intent: None,
            gang: None,
            headroom: None,
            since: start(),
        });
        self.waiting.last_mut().unwrap()
    }

    fn plan(&self) -> Plan {
        plan(&Known {
            waiting: &self.waiting,
            holders: &self.holders,
            sets: &self.sets,
            tokens: &self.tokens,
            capacity: &self.capacity,
            probing: &self.probing,
            limits: &self.limits,
            settings: self.settings,
            now: self.now,
        })
    }

    /// The intents of the one batch of the plan are written.
    fn write_intents(&mut self) -> Batch {
        let mut plan = self.plan();
        assert_eq!(plan.batches.len(), 1, "{plan:?}");
        let batch = plan.batches.remove(0);
        for member in &batch.members {
            let machine = self.waiting.iter_mut().find(|w| w.uid == member.uid).unwrap();
            machine.intent = Some(Intent::launch(&batch, member, start()));
            let holders = self.holders.entry(batch.token.clone()).or_default();
            holders.insert(member.index, Holder::Waiting);
        }
        batch
    }

    fn remember(&mut self, token: &str, last: LastAnswer) {
        self.tokens.insert(token.to_owned(), TokenMemory { last, ..TokenMemory::default() });
    }
}

fn sizes(plan: &Plan) -> Vec<(u32, u32)> {
    plan.batches.iter().map(|batch| (batch.min, batch.size)).collect()
}

#[test]
fn a_gang_goes_whole_when_all_are_there() {
    let plan = World::gang(4, 4, GangPolicy::AllOrNothing).plan();
    assert_eq!(sizes(&plan), [(4, 4)]);
    let indices: Vec<u32> = plan.batches[0].members.iter().map(|member| member.index).collect();
    assert_eq!(indices, [0, 1, 2, 3]);
}

#[test]
fn a_gang_waits_for_its_members_but_not_for_ever() {
    let mut world = World::gang(3, 4, GangPolicy::AllOrNothing);
    let plan = world.plan();
    assert!(plan.batches.is_empty());
    assert_eq!(plan.wake, Some(start() + Duration::from_secs(20)));
    world.now = start() + Duration::from_secs(20);
    assert_eq!(sizes(&world.plan()), [(3, 3)]);
}

#[test]
fn a_gang_does_not_wait_for_those_who_have_what_they_need() {
    let mut world = World::gang(2, 6, GangPolicy::AllOrNothing);
    world.sets.insert("set".to_owned(), GangSet { replicas: 6, settled: 4 });
    assert_eq!(sizes(&world.plan()), [(2, 2)]);
}

#[test]
fn others_wait_a_moment_for_their_like() {
    let mut world = World::new();
    world.now = start() + Duration::from_millis(100);
    for number in 0..3 {
        world.add(number);
    }
    let plan = world.plan();
    assert_eq!((plan.batches.len(), plan.wake), (0, Some(start() + Duration::from_millis(200))));
    world.now = start() + Duration::from_millis(200);
    assert_eq!(sizes(&world.plan()), [(1, 3)]);
    world.settings.coalesce = false;
    assert_eq!(sizes(&world.plan()), [(1, 1), (1, 1), (1, 1)]);
}

#[test]
fn a_crowd_goes_in_chunks() {
    let mut world = World::gang(250, 250, GangPolicy::AllOrNothing);
    assert_eq!(sizes(&world.plan()), [(100, 100), (100, 100), (50, 50)]);
    world.limits.insert("here".to_owned(), 70);
    assert_eq!(sizes(&world.plan()), [(70, 70), (70, 70), (70, 70), (40, 40)]);
}

/// (a) Who is in a launch is fixed before it is sent: one who leaves afterwards keeps its index,
/// and the others are looked for instead of being launched with a hole or under another token.
#[test]
fn a_membership_is_frozen() {
    let mut world = World::gang(3, 3, GangPolicy::AllOrNothing);
    let batch = world.write_intents();
    world.waiting.remove(1);
    world.holders.get_mut(&batch.token).unwrap().insert(1, Holder::Leaving);
    let plan = world.plan();
    assert!(plan.batches.is_empty());
    let recovery = &plan.recoveries[0];
    assert_eq!((recovery.token.as_str(), recovery.size), (batch.token.as_str(), 3));
    assert_eq!(recovery.members.iter().map(|m| m.index).collect::<Vec<_>>(), [0, 2]);
    assert!(!recovery.used && !recovery.refused);
    // The same when nothing is left of it.
    world.holders.get_mut(&batch.token).unwrap().remove(&1);
    assert_eq!(world.plan().recoveries.len(), 1);
}

/// (b) After a crash the same token goes out again with the same count, even when more Machines
/// wait by then.
#[test]
fn b_a_crash_is_followed_by_the_same_token() {
    let mut world = World::gang(3, 3, GangPolicy::AllOrNothing);
    let batch = world.write_intents();
    world.add(7).gang = Some(("set".to_owned(), GangPolicy::AllOrNothing));
    let plan = world.plan();
    let again = plan.batches.iter().find(|other| other.token == batch.token).unwrap();
    assert_eq!(again, &Batch { again: true, ..batch });
    assert_eq!(plan.batches.len(), 2);
}

#[test]
fn b_a_gang_is_not_sent_again_before_all_of_it_is_back() {
    let mut world = World::gang(3, 3, GangPolicy::AllOrNothing);
    world.write_intents();
    world.waiting.remove(0);
    let plan = world.plan();
    assert!(plan.batches.is_empty() && plan.recoveries.is_empty());
    world.now = plan.wake.unwrap();
    let plan = world.plan();
    assert!(plan.batches.is_empty());
    assert_eq!(plan.recoveries[0].members.len(), 2, "one that never comes does not hold them");
}

/// (c) One that has no name of its own yet is found by gang and index; see `machine::find`. Here:
/// as soon as one of a launch is placed, the others are looked for, not launched again.
#[test]
fn c_what_is_launched_is_looked_for() {
    let mut world = World::gang(2, 2, GangPolicy::AllOrNothing);
    let batch = world.write_intents();
    world.waiting.remove(0);
    world.holders.get_mut(&batch.token).unwrap().insert(0, Holder::Placed);
    let plan = world.plan();
    assert!(plan.batches.is_empty());
    assert!(plan.recoveries[0].used);
}

/// (d) A token is never sent with other parameters than those it was first sent with.
#[test]
fn d_other_parameters_are_never_sent_under_an_old_token() {
    let mut world = World::gang(2, 2, GangPolicy::AllOrNothing);
    let batch = world.write_intents();
    for machine in &mut world.waiting {
        machine.hash = "other".to_owned();
    }
    let plan = world.plan();
    assert!(plan.batches.is_empty());
    assert_eq!(plan.recoveries[0].token, batch.token);
    // One that still has them can speak for all.
    world.waiting[1].hash = "hash".to_owned();
    assert_eq!(world.plan().batches[0].hash, "hash");
    // Once it is proven that nothing came of it, there is a new attempt under a new token.
    world.waiting[1].hash = "other".to_owned();
    world.remember(&batch.token, LastAnswer::Released { floor: None });
    let next = &world.plan().batches[0];
    assert_ne!(next.token, batch.token);
    assert_eq!((next.hash.as_str(), next.members[0].attempt), ("other", 1));
}

/// (e) A gang that cannot be had waits as a whole, or takes half of it, and so on.
#[test]
fn e_a_refused_gang_waits_or_takes_less() {
    let mut world = World::gang(8, 8, GangPolicy::AllOrNothing);
    let batch = world.write_intents();
    let error = CloudError::new(ErrorClass::Capacity, "RunInstances", "ICE", "none");
    world.capacity.refused(batch.pool.clone(), 8, error.clone(), world.now);
    world.remember(&batch.token, LastAnswer::Refused);
    let plan = world.plan();
    assert!(plan.batches.is_empty());
    assert_eq!(plan.held.len(), 8);
    let until = plan.wake.unwrap();
    world.now = until;
    assert_eq!(sizes(&world.plan()), [(8, 8)]);
    assert!(world.plan().batches[0].again);

    let mut world = World::gang(8, 8, GangPolicy::BestEffort);
    let batch = world.write_intents();
    world.capacity.refused(batch.pool.clone(), 8, error, world.now);
    world.remember(
        &batch.token,
        LastAnswer::Released { floor: GangPolicy::BestEffort.next_floor(8) },
    );
    assert_eq!(sizes(&world.plan()), [(4, 8)], "fewer may be had at once");
}

#[test]
fn e_best_effort_goes_down_to_one() {
    let floors = std::iter::successors(Some(9), |min| GangPolicy::BestEffort.next_floor(*min));
    assert_eq!(floors.collect::<Vec<_>>(), [9, 4, 2, 1]);
    assert_eq!(GangPolicy::AllOrNothing.next_floor(9), None);
}

/// (f) No more go out than a spread group has room for.
#[test]
fn f_a_spread_group_takes_what_it_has_room_for() {
    let mut world = World::new();
    for number in 0..9 {
        world.add(number).headroom = Some(7);
    }
    let plan = world.plan();
    assert_eq!(sizes(&plan), [(1, 7)]);
    assert_eq!(plan.held.keys().collect::<Vec<_>>(), ["uid-007", "uid-008"]);
    assert!(plan.held.values().all(|held| *held == Held::GroupFull));
    // All or nothing means nothing.
    for machine in &mut world.waiting {
        machine.gang = Some(("set".to_owned(), GangPolicy::AllOrNothing));
    }
    let plan = world.plan();
    assert_eq!((plan.batches.len(), plan.held.len()), (0, 9));
}

/// (i) Tokens are known in one zone only: the same token would launch again in another. The zone
/// is one of the parameters, so (d) holds for it.
#[test]
fn i_another_zone_is_another_launch() {
    let mut world = World::new();
    world.add(0);
    let batch = world.write_intents();
    world.waiting[0].shape.zone = "b".to_owned();
    world.waiting[0].hash = "hash in b".to_owned();
    let plan = world.plan();
    assert!(plan.batches.is_empty());
    assert_eq!(plan.recoveries[0].token, batch.token);
}

/// (j) Machines on dedicated hosts go alone; other prices are other parameters.
#[test]
fn j_hosts_are_not_shared() {
    let mut world = World::new();
    for number in 0..2 {
        world.add(number).shape.tenancy = Some("host".to_owned());
    }
    for (number, hash) in [(2, "one price"), (3, "another")] {
        world.add(number).hash = hash.to_owned();
    }
    assert_eq!(sizes(&world.plan()), [(1, 1); 4]);
}

/// (k) One Machine that differs is not part of the gang, and does not hold it up.
#[test]
fn k_only_equals_go_together() {
    let mut world = World::gang(4, 4, GangPolicy::AllOrNothing);
    world.waiting[2].hash = "bad".to_owned();
    let plan = world.plan();
    let mut found = sizes(&plan);
    found.sort_unstable();
    assert_eq!(found, [(1, 1), (3, 3)]);
}

/// (l) A launch that came up short is not filled up: who got nothing goes under a new token.
#[test]
fn l_nobody_is_refilled_into_an_old_token() {
    let mut world = World::new();
    for number in 0..3 {
        world.add(number);
    }
    let batch = world.write_intents();
    world.waiting.remove(0);
    world.holders.get_mut(&batch.token).unwrap().insert(0, Holder::Placed);
    world.remember(&batch.token, LastAnswer::Released { floor: None });
    let next = &world.plan().batches[0];
    assert_eq!((next.size, next.again), (2, false));
    assert_ne!(next.token, batch.token);
    assert!(next.members.iter().all(|member| member.attempt == 1));
}

#[test]
fn a_full_pool_is_probed_by_one() {
    let mut world = World::new();
    world.settings.coalesce = false;
    for number in 0..4 {
        world.add(number);
    }
    let pool = Pool::of("here", &world.waiting[0].shape);
    let error = CloudError::new(ErrorClass::Capacity, "RunInstances", "ICE", "none");
    world.capacity.refused(pool.clone(), 1, error, start());
    let plan = world.plan();
    assert_eq!((plan.batches.len(), plan.held.len()), (0, 4));
    world.now = plan.wake.unwrap();
    let plan = world.plan();
    assert_eq!((plan.batches.len(), plan.held.len()), (1, 3));
    world.probing.insert(pool.clone());
    assert_eq!(world.plan().batches.len(), 0, "while it is being probed, nobody else asks");
    world.probing.clear();
    world.capacity.served(&pool);
    assert_eq!(world.plan().batches.len(), 4);
}

#[test]
fn a_lost_answer_is_asked_for_whatever_others_were_told() {
    let mut world = World::new();
    world.add(0);
    let batch = world.write_intents();
    let error = CloudError::new(ErrorClass::Capacity, "RunInstances", "ICE", "none");
    world.capacity.refused(batch.pool.clone(), 1, error, world.now);
    assert_eq!(world.plan().batches[0].token, batch.token);
    let later = world.now + Duration::from_secs(2);
    let memory = TokenMemory { not_before: Some(later), ..TokenMemory::default() };
    world.tokens.insert(batch.token, memory);
    let plan = world.plan();
    assert_eq!((plan.batches.len(), plan.wake), (0, Some(later)));
}
