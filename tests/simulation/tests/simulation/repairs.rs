//! What health checks may do: never more repairs at once than their limit allows.
//!
//! By the arithmetic of a check, who starts, who goes, who Failed, and whose Node is gone, in doubt
//! or about to be taken back is not healthy, and repairs are made while no more than `maxUnhealthy`
//! are so. Two things follow, whatever a process knows or has missed:
//!
//! - S11: repairs that are under way at the same time are no more than the limit: all of them were
//!   not healthy when the last of them was begun.
//! - S12: nothing is repaired when too many have been unhealthy for longer than news can take.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use fleetwright_lifecycle::{health::limit::Limit, selector::Selector};
use tokio::time::Instant;

use crate::mirror::{Machine, Mirror};

/// News reach a process within this time: an incident holds them back for a minute at most, and two
/// may follow each other.
const NEWS: Duration = Duration::from_secs(130);

/// A check.
struct Check {
    selector: Selector,
    limit: Limit,
    /// Since when too many are unhealthy.
    denied: Option<Instant>,
}

/// What checks did.
#[derive(Default)]
pub(crate) struct Repairs {
    checks: BTreeMap<String, Check>,
    /// UIDs of Machines that a check asked to delete.
    asked: BTreeSet<String>,
}

impl Repairs {
    /// A check is new, different, or gone.
    pub(crate) fn check(&mut self, name: &str, rules: Option<(Selector, Limit)>) {
        match rules {
            None => drop(self.checks.remove(name)),
            Some((selector, limit)) => {
                self.checks.insert(name.to_owned(), Check { selector, limit, denied: None });
            }
        }
    }

    /// The world changed.
    pub(crate) fn look(&mut self, world: &Mirror, now: Instant) {
        for check in self.checks.values_mut() {
            let (total, healthy) = count(world, check);
            if check.limit.allows(total, healthy) {
                check.denied = None;
            } else {
                check.denied.get_or_insert(now);
            }
        }
    }

    /// A check asks to delete a Machine. Says what is wrong with it.
    pub(crate) fn asks(&mut self, name: &str, world: &Mirror, now: Instant) -> Option<String> {
        let machine = world.machines.values().find(|machine| machine.name == name)?;
        self.asked.insert(machine.uid.clone());
        let late = |check: &Check| check.denied.is_some_and(|since| since + NEWS < now);
        let mut checks = self.of(machine).peekable();
        let denied = checks.peek().is_some() && checks.all(late);
        denied.then(|| format!("S12 {name} is repaired, and too many are unhealthy for long"))
    }

    /// A Machine begins to go. Says what is wrong with it.
    pub(crate) fn goes(&self, machine: &Machine, world: &Mirror) -> Option<String> {
        if !machine.deleting || !self.asked.contains(&machine.uid) {
            return None;
        }
        let exceeded = |check: &Check| {
            let (total, _) = count(world, check);
            let under_way = selected(world, check)
                .filter(|machine| machine.deleting && self.asked.contains(&machine.uid))
                .count();
            (under_way > check.limit.most(total)).then_some(under_way)
        };
        // Who of several checks asked is not known: one that may is enough.
        let mut exceeding = self.of(machine).map(exceeded).collect::<Option<Vec<_>>>()?;
        let under_way = exceeding.pop()?;
        Some(format!("S11 {} is repair number {under_way} at the same time", machine.name))
    }

    fn of(&self, machine: &Machine) -> impl Iterator<Item = &Check> {
        self.checks.values().filter(|check| check.selector.matches(&machine.labels))
    }
}

fn selected<'a>(world: &'a Mirror, check: &'a Check) -> impl Iterator<Item = &'a Machine> {
    world.machines.values().filter(|machine| check.selector.matches(&machine.labels))
}

/// How many Machines there are, and how many are healthy.
fn count(world: &Mirror, check: &Check) -> (usize, usize) {
    let healthy = |machine: &&Machine| {
        let node = machine.node.as_ref().and_then(|node| world.nodes.get(node));
        !machine.deleting && machine.phase != "Failed" && node == Some(&true)
    };
    (selected(world, check).count(), selected(world, check).filter(healthy).count())
}

#[cfg(test)]
mod tests {
    use fleetwright_clock::Random;
    use fleetwright_lifecycle::int_or_percent::IntOrPercent;

    use super::*;

    /// The limit of the checks here.
    const LIMIT: usize = 2;

    fn limit() -> Limit {
        Limit::AtMost(IntOrPercent::Int(2))
    }

    fn everybody() -> Selector {
        let labels = BTreeMap::from([("set".to_owned(), "a".to_owned())]);
        Selector { match_labels: labels, ..Selector::default() }
    }

    fn world(count: usize) -> Mirror {
        let mut world = Mirror::empty();
        for place in 0..count {
            let machine = Machine {
                name: format!("m{place}"),
                uid: format!("uid{place}"),
                labels: BTreeMap::from([("set".to_owned(), "a".to_owned())]),
                phase: "Running".to_owned(),
                node: Some(format!("n{place}")),
                ..Machine::default()
            };
            world.machines.insert(machine.uid.clone(), machine);
            world.nodes.insert(format!("n{place}"), true);
        }
        world
    }

    fn delete(repairs: &mut Repairs, world: &mut Mirror, place: usize) -> Option<String> {
        let asked = repairs.asks(&format!("m{place}"), world, Instant::now());
        let machine = world.machines.get_mut(&format!("uid{place}")).unwrap();
        machine.deleting = true;
        let machine = machine.clone();
        asked.or(repairs.goes(&machine, world))
    }

    #[test]
    fn one_repair_too_many_is_found() {
        let (mut repairs, mut world) = (Repairs::default(), world(5));
        repairs.check("c", Some((everybody(), limit())));
        assert_eq!(delete(&mut repairs, &mut world, 0), None);
        assert_eq!(delete(&mut repairs, &mut world, 1), None);
        // Users may delete as many as they like.
        let user = world.machines.get_mut("uid4").unwrap();
        user.deleting = true;
        let user = user.clone();
        assert_eq!(repairs.goes(&user, &world), None);
        let found = delete(&mut repairs, &mut world, 2).unwrap();
        assert_eq!(found, "S11 m2 is repair number 3 at the same time");
        // What is gone is no longer under way.
        world.machines.remove("uid0");
        world.machines.remove("uid1");
        assert_eq!(delete(&mut repairs, &mut world, 3), None);
        // Another check may.
        repairs.check("all", Some((everybody(), Limit::default())));
        let again = world.machines["uid2"].clone();
        assert_eq!(repairs.goes(&again, &world), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_repair_long_after_there_were_too_many_is_found() {
        let (mut repairs, mut world) = (Repairs::default(), world(5));
        repairs.check("c", Some((everybody(), limit())));
        for place in 0..=LIMIT {
            world.nodes.insert(format!("n{place}"), false);
        }
        repairs.look(&world, Instant::now());
        assert_eq!(delete(&mut repairs, &mut world, 0), None, "it may not know yet");
        tokio::time::advance(NEWS * 2).await;
        let found = delete(&mut repairs, &mut world, 1).unwrap();
        assert!(found.starts_with("S12 m1 is repaired"), "{found}");
        // Fewer again: it may.
        world.nodes.insert("n2".to_owned(), true);
        world.machines.remove("uid0");
        repairs.look(&world, Instant::now());
        world.machines.get_mut("uid1").unwrap().deleting = false;
        assert_eq!(delete(&mut repairs, &mut world, 1), None);
    }

    /// A world in which Machines fall sick and are replaced, and a check that repairs by `allows`.
    /// Says how often it was found to do wrong.
    async fn repaired(seed: u64, allows: impl Fn(usize, usize) -> bool) -> usize {
        let (mut repairs, mut world) = (Repairs::default(), world(6));
        repairs.check("c", Some((everybody(), limit())));
        let random = Random::seeded(seed);
        let place = || usize::try_from(random.below(6)).unwrap();
        let mut found = 0;
        for _ in 0..300 {
            tokio::time::advance(Duration::from_secs(random.below(60))).await;
            let one = place();
            match random.below(3) {
                // Sick, for whatever reason.
                0 => drop(world.nodes.insert(format!("n{one}"), false)),
                // Gone, and another in its place that works.
                1 => {
                    let machine = world.machines.get_mut(&format!("uid{one}")).unwrap();
                    if machine.deleting {
                        machine.deleting = false;
                        repairs.asked.remove(&format!("uid{one}"));
                        world.nodes.insert(format!("n{one}"), true);
                    }
                }
                _ => {}
            }
            repairs.look(&world, Instant::now());
            let (total, healthy) = count(&world, &repairs.checks["c"]);
            if !allows(total, healthy) {
                continue;
            }
            for sick in 0..6 {
                let machine = &world.machines[&format!("uid{sick}")];
                if !machine.deleting && !world.nodes[&format!("n{sick}")] {
                    found += usize::from(delete(&mut repairs, &mut world, sick).is_some());
                }
            }
        }
        found
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_that_counts_wrong_is_found_and_one_that_counts_right_is_not() {
        for seed in 0..20 {
            let right = limit();
            assert_eq!(repaired(seed, |total, healthy| right.allows(total, healthy)).await, 0);
        }
        // One too many; those that go are not counted; no limit at all.
        let more = Limit::AtMost(IntOrPercent::Int(3));
        let mut mutants = [0; 3];
        for seed in 0..20 {
            mutants[0] += repaired(seed, |total, healthy| more.allows(total, healthy)).await;
            mutants[1] += repaired(seed, |_, healthy| healthy >= 2).await;
            mutants[2] += repaired(seed, |_, _| true).await;
        }
        assert!(mutants.iter().all(|found| *found > 0), "{mutants:?}");
    }
}
