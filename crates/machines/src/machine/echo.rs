//! Versions of Machines that this process itself has replaced.
//!
//! Between a write and its echo in the informer, another event (its Node changed, say) starts a pass
//! over the old version. That pass would decide the same again, and the API would refuse its write:
//! a third of all writes, while Nodes register.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright_runtime::ObjectKey;
use parking_lot::Mutex;

/// What was replaced and may still be in the informer.
#[derive(Debug, Default)]
pub(crate) struct Replaced(Mutex<BTreeMap<ObjectKey, BTreeSet<String>>>);

impl Replaced {
    /// These versions of a Machine are no more.
    pub(crate) fn add(&self, key: &ObjectKey, versions: Vec<String>) {
        if !versions.is_empty() {
            self.0.lock().entry(key.clone()).or_default().extend(versions);
        }
    }

    /// Whether the informer still shows a version that is no more. Its echo is on its way.
    pub(crate) fn is_old(&self, key: &ObjectKey, version: Option<&str>) -> bool {
        let mut all = self.0.lock();
        let old = all
            .get(key)
            .is_some_and(|versions| version.is_some_and(|version| versions.contains(version)));
        if !old {
            all.remove(key);
        }
        old
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_until_another_version_shows() {
        let (replaced, key) = (Replaced::default(), ObjectKey::new("ns", "m"));
        assert!(!replaced.is_old(&key, Some("1")));
        replaced.add(&key, vec!["1".to_owned(), "2".to_owned()]);
        assert!(replaced.is_old(&key, Some("1")) && replaced.is_old(&key, Some("2")));
        assert!(!replaced.is_old(&ObjectKey::new("ns", "other"), Some("1")));
        assert!(!replaced.is_old(&key, Some("3")));
        assert!(replaced.0.lock().is_empty(), "nothing is kept for ever");
        replaced.add(&key, Vec::new());
        assert!(replaced.0.lock().is_empty());
    }
}
