//! A bound on how many updaters an object remembers.

use std::collections::BTreeMap;

use super::entries::{Identity, Managed};

/// Beyond this many, the oldest updaters of a version are put together.
const MAX_UPDATERS: usize = 10;

/// The manager that stands for those put together.
const ANCIENT_CHANGES: &str = "ancient-changes";

pub(super) fn cap_updaters(book: &mut Managed) {
    let mut updaters: Vec<String> = book
        .managers
        .iter()
        .filter(|(_, entry)| !entry.applied)
        .map(|(key, _)| key.clone())
        .collect();
    let mut count = updaters.len();
    if count <= MAX_UPDATERS {
        return;
    }
    updaters
        .sort_by(|left, right| (book.times.get(left), left).cmp(&(book.times.get(right), right)));
    let mut first_of: BTreeMap<String, String> = BTreeMap::new();
    for updater in updaters {
        if count <= MAX_UPDATERS {
            return;
        }
        let Some(version) = book.managers.get(&updater).map(|entry| entry.api_version.clone())
        else {
            continue;
        };
        let Some(first) = first_of.get(&version) else {
            first_of.insert(version, updater);
            continue;
        };
        let bucket = book.introduce(Identity {
            manager: ANCIENT_CHANGES.to_owned(),
            operation: "Update".to_owned(),
            api_version: version,
            subresource: String::new(),
        });
        if !book.managers.contains_key(&bucket)
            && let Some(entry) = book.managers.remove(first)
        {
            book.managers.insert(bucket.clone(), entry);
        }
        if let Some(merged) = book.managers.remove(&updater)
            && let Some(entry) = book.managers.get_mut(&bucket)
        {
            entry.set.unite(merged.set);
        }
        count -= 1;
        // The later time of the two, since updaters come oldest first.
        match book.times.get(&updater).cloned() {
            Some(time) => book.times.insert(bucket, time),
            None => book.times.remove(&bucket),
        };
    }
}
