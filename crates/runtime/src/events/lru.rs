//! A map that forgets what has not been used for longest.

use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct Lru<V> {
    capacity: usize,
    uses: u64,
    entries: BTreeMap<String, (u64, V)>,
    by_use: BTreeMap<u64, String>,
}

impl<V> Lru<V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, uses: 0, entries: BTreeMap::new(), by_use: BTreeMap::new() }
    }

    /// The value of `key`, made by `make` if there is none.
    pub(super) fn get_or_insert(&mut self, key: &str, make: impl FnOnce() -> V) -> &mut V {
        self.uses += 1;
        if let Some((last_use, _)) = self.entries.get(key) {
            self.by_use.remove(last_use);
        } else if self.entries.len() >= self.capacity
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.entries.remove(&oldest);
        }
        self.by_use.insert(self.uses, key.to_owned());
        let entry = self.entries.entry(key.to_owned()).or_insert_with(|| (0, make()));
        entry.0 = self.uses;
        &mut entry.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_used_goes_first() {
        let mut lru = Lru::new(2);
        *lru.get_or_insert("a", || 1) += 10;
        lru.get_or_insert("b", || 2);
        assert_eq!(*lru.get_or_insert("a", || 0), 11);
        lru.get_or_insert("c", || 3);
        assert_eq!(*lru.get_or_insert("a", || 0), 11, "used after b");
        assert_eq!(*lru.get_or_insert("b", || 7), 7, "was forgotten");
    }
}
