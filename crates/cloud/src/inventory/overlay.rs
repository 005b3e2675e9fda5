//! What we did ourselves and reads may not show yet.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    time::Duration,
};

use tokio::time::Instant;

use super::InventoryOptions;
use crate::{Instance, InstanceState, Tag};

#[derive(Debug, Default)]
pub(super) struct Overlay(BTreeMap<String, Known>);

#[derive(Debug)]
struct Known {
    /// As we saw it last.
    instance: Instance,
    /// When that was, or when it was told to go.
    at: Instant,
    /// Tags that were put on it and that no read has shown yet.
    tags: BTreeMap<String, String>,
    tagged: Option<Instant>,
    /// It was told to go.
    retired: bool,
}

impl Overlay {
    pub(super) fn saw(&mut self, instance: Instance, now: Instant) {
        let known = self.known(&instance, now);
        known.instance = instance;
        known.at = now;
    }

    pub(super) fn tagged(&mut self, instance: &Instance, tags: &[Tag], now: Instant) {
        let known = self.known(instance, now);
        known.tags.extend(tags.iter().map(|tag| (tag.key.clone(), tag.value.clone())));
        known.tagged = Some(now);
    }

    pub(super) fn retired(&mut self, instance: &Instance, now: Instant) {
        let known = self.known(instance, now);
        known.retired = true;
        known.at = now;
    }

    fn known(&mut self, instance: &Instance, now: Instant) -> &mut Known {
        self.0.entry(instance.id.clone()).or_insert_with(|| Known {
            instance: instance.clone(),
            at: now,
            tags: BTreeMap::new(),
            tagged: None,
            retired: false,
        })
    }

    /// What a read that began at some time showed, with what it does not show yet.
    pub(super) fn correct(
        &mut self,
        read: Vec<Instance>,
        began: Instant,
        now: Instant,
        options: InventoryOptions,
    ) -> BTreeMap<String, Instance> {
        let mut shown: BTreeMap<String, Instance> =
            read.into_iter().map(|instance| (instance.id.clone(), instance)).collect();
        let fresh = |at: Instant, grace: Duration| now.duration_since(at) < grace;
        self.0.retain(|id, known| {
            let seen = shown.get(id);
            let shows = seen.is_some_and(|seen| {
                known.tags.iter().all(|(key, value)| seen.tags.get(key) == Some(value))
            });
            let recent = fresh(known.at, options.grace);
            // One read may show them, and the next not yet: at first nothing is forgotten.
            let settled = known.tagged.is_some_and(|at| {
                (shows && began >= at) || seen.is_none() || !fresh(at, options.tag_grace)
            });
            if settled && !recent {
                known.tags.clear();
                known.tagged = None;
            }
            recent || known.tagged.is_some()
        });
        for (id, known) in &self.0 {
            let recent = fresh(known.at, options.grace);
            let instance = match shown.entry(id.clone()) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) if recent => entry.insert(known.instance.clone()),
                Entry::Vacant(_) => continue,
            };
            known.correct(instance, recent);
        }
        shown
    }

    /// One instance as it was shown, with what we know better.
    pub(super) fn correct_one(&self, id: &str, shown: Option<&Instance>) -> Option<Instance> {
        let known = self.0.get(id);
        let mut instance = shown.or(known.map(|known| &known.instance))?.clone();
        if let Some(known) = known {
            known.correct(&mut instance, true);
        }
        Some(instance)
    }
}

impl Known {
    /// `recent`: what was seen of it, and that it was told to go, still counts.
    fn correct(&self, instance: &mut Instance, recent: bool) {
        for (key, value) in self.instance.tags.iter().filter(|_| recent) {
            instance.tags.entry(key.clone()).or_insert_with(|| value.clone());
        }
        for (key, value) in &self.tags {
            instance.tags.insert(key.clone(), value.clone());
        }
        let going =
            matches!(instance.state, InstanceState::ShuttingDown | InstanceState::Terminated);
        if self.retired && recent && !going {
            instance.state = InstanceState::ShuttingDown;
        }
    }
}
