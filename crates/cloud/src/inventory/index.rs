//! Instances by identifier, and by what controllers look for.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::Change;
use crate::{Instance, tags::NAME_TAG};

type Ids = BTreeMap<String, BTreeSet<String>>;

#[derive(Debug, Default)]
pub(super) struct Index {
    instances: BTreeMap<String, Arc<Instance>>,
    machine_uids: Ids,
    names: Ids,
    gangs: Ids,
    groups: Ids,
}

impl Index {
    pub(super) fn get(&self, id: &str) -> Option<Arc<Instance>> {
        self.instances.get(id).cloned()
    }

    pub(super) fn by_machine_uid(&self, uid: &str) -> Vec<Arc<Instance>> {
        self.named(&self.machine_uids, uid)
    }

    pub(super) fn by_name(&self, name: &str) -> Vec<Arc<Instance>> {
        self.named(&self.names, name)
    }

    pub(super) fn by_gang(&self, token: &str) -> Vec<Arc<Instance>> {
        let mut gang = self.named(&self.gangs, token);
        gang.sort_by_key(|instance| (instance.launch_index, instance.id.clone()));
        gang
    }

    pub(super) fn by_group(&self, group: &str) -> Vec<Arc<Instance>> {
        self.named(&self.groups, group)
    }

    pub(super) fn all(&self) -> Vec<Arc<Instance>> {
        self.instances.values().cloned().collect()
    }

    /// Takes what is there now, and tells the difference. Costs as much as what changed, beside
    /// one comparison of each instance.
    pub(super) fn replace(&mut self, now: BTreeMap<String, Instance>) -> Vec<Change> {
        let gone: Vec<String> =
            self.instances.keys().filter(|id| !now.contains_key(*id)).cloned().collect();
        let mut changes: Vec<Change> = gone
            .into_iter()
            .map(|id| Change { before: self.put(&id, None), after: None, id })
            .collect();
        changes.extend(now.into_values().filter_map(|instance| self.replace_one(instance)));
        changes
    }

    /// Takes one instance as it is now.
    pub(super) fn replace_one(&mut self, instance: Instance) -> Option<Change> {
        if self.instances.get(&instance.id).is_some_and(|known| **known == instance) {
            return None;
        }
        let id = instance.id.clone();
        let after = Arc::new(instance);
        let before = self.put(&id, Some(&after));
        Some(Change { id, before, after: Some(after) })
    }

    fn named(&self, ids: &Ids, name: &str) -> Vec<Arc<Instance>> {
        let ids = ids.get(name).into_iter().flatten();
        ids.filter_map(|id| self.get(id)).collect()
    }

    fn put(&mut self, id: &str, after: Option<&Arc<Instance>>) -> Option<Arc<Instance>> {
        let before = match after {
            Some(instance) => self.instances.insert(id.to_owned(), Arc::clone(instance)),
            None => self.instances.remove(id),
        };
        let name = |instance: &Instance| instance.tags.get(NAME_TAG).cloned();
        let uid = |instance: &Instance| instance.machine_uid().map(str::to_owned);
        let gang = |instance: &Instance| instance.gang().map(str::to_owned);
        let group = |instance: &Instance| instance.group.clone();
        let (was, is) = (before.as_deref(), after.map(Arc::as_ref));
        move_id(&mut self.names, id, was.and_then(name), is.and_then(name));
        move_id(&mut self.machine_uids, id, was.and_then(uid), is.and_then(uid));
        move_id(&mut self.gangs, id, was.and_then(gang), is.and_then(gang));
        move_id(&mut self.groups, id, was.and_then(group), is.and_then(group));
        before
    }
}

fn move_id(ids: &mut Ids, id: &str, from: Option<String>, to: Option<String>) {
    if from == to {
        return;
    }
    if let Some(from) = from
        && let Some(set) = ids.get_mut(&from)
    {
        set.remove(id);
        if set.is_empty() {
            ids.remove(&from);
        }
    }
    if let Some(to) = to {
        ids.entry(to).or_default().insert(id.to_owned());
    }
}
