//! What we did ourselves and reads may not show yet.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    time::Duration,
};

use tokio::time::Instant;

use crate::{Instance, InstanceState, Tag};

#[derive(Debug, Default)]
pub(super) struct Overlay(BTreeMap<String, Known>);

#[derive(Debug)]
struct Known {
    /// As we saw it last.
    instance: Instance,
    /// Tags that were put on it.
    tags: BTreeMap<String, String>,
    /// It was told to go.
    retired: bool,
    at: Instant,
}

impl Overlay {
    pub(super) fn saw(&mut self, instance: Instance, now: Instant) {
        let known = self.known(&instance, now);
        known.instance = instance;
    }

    pub(super) fn tagged(&mut self, instance: &Instance, tags: &[Tag], now: Instant) {
        let known = self.known(instance, now);
        known.tags.extend(tags.iter().map(|tag| (tag.key.clone(), tag.value.clone())));
    }

    pub(super) fn retired(&mut self, instance: &Instance, now: Instant) {
        self.known(instance, now).retired = true;
    }

    fn known(&mut self, instance: &Instance, now: Instant) -> &mut Known {
        let known = self.0.entry(instance.id.clone()).or_insert_with(|| Known {
            instance: instance.clone(),
            tags: BTreeMap::new(),
            retired: false,
            at: now,
        });
        known.at = now;
        known
    }

    /// What a read showed, with what it does not show yet.
    pub(super) fn correct(
        &mut self,
        read: Vec<Instance>,
        now: Instant,
        grace: Duration,
    ) -> BTreeMap<String, Instance> {
        self.0.retain(|_, known| now.duration_since(known.at) < grace);
        let mut shown: BTreeMap<String, Instance> =
            read.into_iter().map(|instance| (instance.id.clone(), instance)).collect();
        for (id, known) in &self.0 {
            let instance = match shown.entry(id.clone()) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(known.instance.clone()),
            };
            known.correct(instance);
        }
        shown
    }

    /// One instance as it was shown, with what we know better.
    pub(super) fn correct_one(&self, id: &str, shown: Option<&Instance>) -> Option<Instance> {
        let known = self.0.get(id);
        let mut instance = shown.or(known.map(|known| &known.instance))?.clone();
        if let Some(known) = known {
            known.correct(&mut instance);
        }
        Some(instance)
    }
}

impl Known {
    fn correct(&self, instance: &mut Instance) {
        for (key, value) in &self.instance.tags {
            instance.tags.entry(key.clone()).or_insert_with(|| value.clone());
        }
        for (key, value) in &self.tags {
            instance.tags.insert(key.clone(), value.clone());
        }
        let going =
            matches!(instance.state, InstanceState::ShuttingDown | InstanceState::Terminated);
        if self.retired && !going {
            instance.state = InstanceState::ShuttingDown;
        }
    }
}
