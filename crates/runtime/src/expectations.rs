//! What a controller has written and not yet seen.
//!
//! Between a write and its echo in the informer, counting what the informer holds gives a wrong
//! number: a replica that was just created is missing, one that was just deleted is still there.
//! A controller therefore writes down what it is about to do, and acts again only when it has
//! seen all of it, or after a time in which any echo must have come.
//!
//! Upstream counts creates. Here each create and delete is known by an identifier, so that an
//! event that comes twice does not stand for another: a create by the name that the controller
//! chose for it, a delete by the UID.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

/// How long to wait for an echo, as upstream: longer than any list or watch takes.
const TIMEOUT: Duration = Duration::from_mins(5);

/// The expectations of all objects of one controller. Clones share them.
#[derive(Clone, Debug)]
pub struct Expectations<Key>(Arc<Mutex<BTreeMap<Key, Expected>>>);

#[derive(Debug)]
struct Expected {
    creates: BTreeSet<String>,
    deletes: BTreeSet<String>,
    since: Instant,
}

impl<Key: Ord + Clone> Expectations<Key> {
    /// Nothing expected.
    pub fn new() -> Self {
        Self(Arc::default())
    }

    /// To be called before objects of these names are created.
    pub fn expect_creates<I: Into<String>>(&self, key: &Key, names: impl IntoIterator<Item = I>) {
        self.expect(key, |expected| expected.creates.extend(names.into_iter().map(Into::into)));
    }

    /// To be called before objects with these UIDs are deleted.
    pub fn expect_deletes<I: Into<String>>(&self, key: &Key, uids: impl IntoIterator<Item = I>) {
        self.expect(key, |expected| expected.deletes.extend(uids.into_iter().map(Into::into)));
    }

    /// The create was seen, or certainly did not happen.
    pub fn create_settled(&self, key: &Key, name: &str) {
        self.settle(key, |expected| expected.creates.remove(name));
    }

    /// The delete was seen (a deletion timestamp is enough), or certainly did not happen.
    pub fn delete_settled(&self, key: &Key, uid: &str) {
        self.settle(key, |expected| expected.deletes.remove(uid));
    }

    /// Whether everything expected has been seen, or should have been by now.
    pub fn satisfied(&self, key: &Key) -> bool {
        self.time_left(key).is_none()
    }

    /// How long the controller may still have to wait: when it is over, nothing else wakes it,
    /// so it should ask to be called again then. `None` when it need not wait.
    pub fn time_left(&self, key: &Key) -> Option<Duration> {
        let all = self.0.lock();
        let left = TIMEOUT.saturating_sub(all.get(key)?.since.elapsed());
        (!left.is_zero()).then_some(left)
    }

    /// The owner is gone: forget what it expected.
    pub fn forget(&self, key: &Key) {
        self.0.lock().remove(key);
    }

    fn expect(&self, key: &Key, add: impl FnOnce(&mut Expected)) {
        let mut all = self.0.lock();
        let expected = all.entry(key.clone()).or_insert_with(Expected::none);
        if expected.since.elapsed() >= TIMEOUT {
            // What was waited for in vain is not waited for again.
            *expected = Expected::none();
        }
        expected.since = Instant::now();
        add(expected);
        if expected.is_empty() {
            all.remove(key);
        }
    }

    fn settle(&self, key: &Key, remove: impl FnOnce(&mut Expected) -> bool) {
        let mut all = self.0.lock();
        if let Some(expected) = all.get_mut(key) {
            remove(expected);
            if expected.is_empty() {
                all.remove(key);
            }
        }
    }
}

impl<Key: Ord + Clone> Default for Expectations<Key> {
    fn default() -> Self {
        Self::new()
    }
}

impl Expected {
    fn none() -> Self {
        Self { creates: BTreeSet::new(), deletes: BTreeSet::new(), since: Instant::now() }
    }

    fn is_empty(&self) -> bool {
        self.creates.is_empty() && self.deletes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn all_writes_must_be_seen_and_an_echo_counts_once() {
        let expectations = Expectations::new();
        assert!(expectations.satisfied(&"set"));
        expectations.expect_creates(&"set", ["a", "b"]);
        expectations.expect_deletes(&"set", ["uid-1"]);
        assert!(!expectations.satisfied(&"set") && expectations.satisfied(&"other"));
        for _ in 0..3 {
            expectations.create_settled(&"set", "a");
            expectations.create_settled(&"set", "somebody else's");
        }
        expectations.delete_settled(&"set", "uid-1");
        assert!(!expectations.satisfied(&"set"), "b has not been seen");
        expectations.create_settled(&"set", "b");
        assert!(expectations.satisfied(&"set"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_echo_that_never_comes_is_not_waited_for_for_ever() {
        let expectations = Expectations::new();
        expectations.expect_creates(&"set", ["lost"]);
        advance(Duration::from_mins(4)).await;
        assert_eq!(expectations.time_left(&"set"), Some(Duration::from_mins(1)));
        advance(Duration::from_mins(1)).await;
        assert!(expectations.satisfied(&"set"));
        expectations.expect_creates(&"set", ["next"]);
        expectations.create_settled(&"set", "next");
        assert!(expectations.satisfied(&"set"), "the lost one is forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_expected_is_nothing_to_wait_for() {
        let expectations = Expectations::new();
        expectations.expect_creates(&"set", Vec::<String>::new());
        assert!(expectations.satisfied(&"set"));
        expectations.expect_deletes(&"set", ["uid"]);
        expectations.forget(&"set");
        assert!(expectations.satisfied(&"set"));
    }
}
