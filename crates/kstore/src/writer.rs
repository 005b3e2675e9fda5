//! The one logical writer.
//!
//! It decides writes in order, makes them durable together, publishes them together, and only
//! then answers.

use std::sync::Arc;

use crate::{
    batch::Batch,
    disk::Disk,
    file::Floors,
    object::{Index, Stored},
    watch::Shared,
    write::{Options, Write, WriteError},
};

/// What comes of a write.
pub(crate) type Outcome<M> = Result<Arc<Stored<M>>, WriteError<M>>;

pub(crate) struct Writer<I: Index> {
    pub(crate) shared: Arc<Shared<I::Meta>>,
    pub(crate) index: I,
    pub(crate) options: Options,
    /// Where writes are made durable, unless the store is in memory only.
    pub(crate) disk: Option<Disk>,
}

impl<I: Index> Writer<I> {
    /// Carries out some writes that were asked for at about the same time `at`.
    pub(crate) fn write(
        &mut self,
        writes: impl IntoIterator<Item = Write>,
        at: i64,
    ) -> Vec<Outcome<I::Meta>> {
        let mut batch = Batch::new(at);
        let outcomes: Vec<Outcome<I::Meta>> = {
            let state = self.shared.state.read();
            writes.into_iter().map(|write| batch.evaluate(&state, &self.index, write)).collect()
        };
        match self.settle(batch) {
            Ok(()) => outcomes,
            // Also those that were refused: it may have been for a write that is undone now.
            Err(reason) => {
                outcomes.iter().map(|_| Err(WriteError::Unavailable(reason.clone()))).collect()
            }
        }
    }

    /// Forgets the events up to and with a revision.
    pub(crate) fn forget(&mut self, revision: u64, at: i64) -> Result<(), String> {
        let mut batch = Batch::new(at);
        batch.forget_to = revision;
        self.settle(batch)
    }

    /// Makes a batch durable and then visible.
    fn settle(&mut self, batch: Batch<I::Meta>) -> Result<(), String> {
        let floors = {
            let state = self.shared.state.read();
            Floors { before: state.compacted, after: state.floor_with(&batch, &self.options) }
        };
        if batch.events.is_empty() && floors.before == floors.after {
            return Ok(());
        }
        if let Some(disk) = &mut self.disk {
            disk.commit(&batch, floors, || self.shared.state.read().snapshot())?;
        }
        let touched = self.shared.state.write().publish(batch, floors.after);
        for changed in touched {
            changed.notify_waiters();
        }
        self.shared.advanced.notify_waiters();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fake_disk::{FakeDisk, Faults},
        key::Key,
        object::Body,
        write::{Change, Expect},
    };

    struct Nothing;

    impl Index for Nothing {
        type Meta = ();

        fn index(&self, _: &Key, _: &[u8]) {}
    }

    fn write(name: &str, expect: Expect) -> Write {
        let body = Body::from_json(&serde_json::json!({})).unwrap();
        Write { key: Key::new("/pods", "a", name), expect, change: Change::Put(body) }
    }

    /// In one batch: a creation, its repetition, a change on top of it, and one that is refused.
    fn batch() -> Vec<Write> {
        vec![
            write("x", Expect::Absent),
            write("x", Expect::Absent),
            write("x", Expect::Revision(2)),
            write("y", Expect::Any),
        ]
    }

    #[test]
    fn a_batch_is_one_commit_or_nothing() {
        let volume = FakeDisk::new();
        let (disk, state) = Disk::open(Box::new(volume.clone()), &Nothing).unwrap();
        let shared = Shared::new(state);
        let mut writer = Writer {
            shared: Arc::clone(&shared),
            index: Nothing,
            options: Options::default(),
            disk: Some(disk),
        };
        volume.set_faults(Faults { fail_syncs: true, ..Faults::default() });
        let outcomes = writer.write(batch(), 0);
        assert_eq!(outcomes.len(), 4);
        let unavailable = |outcome: &Outcome<()>| matches!(outcome, Err(WriteError::Unavailable(reason)) if reason.contains("fake disk"));
        assert!(outcomes.iter().all(unavailable), "{outcomes:?}");
        assert_eq!(shared.state.read().revision, 1);

        volume.set_faults(Faults::default());
        match &writer.write(batch(), 0)[..] {
            [Ok(first), Err(WriteError::AlreadyExists), Ok(second), Err(WriteError::NotFound)] => {
                assert_eq!((first.revision, second.revision), (2, 3));
            }
            other => panic!("{other:?}"),
        }
    }
}
