//! An open file and its transactions.

use std::{
    collections::BTreeMap,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use redb::{
    Database, ReadOnlyTable, ReadTransaction, ReadableDatabase, StorageBackend, Table,
    WriteTransaction,
};

use crate::{
    batch::Batch,
    key::Key,
    object::{Index, Stored},
    open_error::OpenError,
    rows::{
        self, FORMAT, KeyRow, LOG, LogRow, META, META_COMPACTED, META_FORMAT, META_REVISION,
        OBJECTS, ObjectRow,
    },
    state::{Snapshot, State},
    watched::{Trouble, Watched},
    write::EventKind,
};

/// redb's cache. Small, because every object is in memory anyway: it only has to hold the inner
/// pages of the trees and the pages of one transaction.
const CACHE_BYTES: usize = 16 << 20;

/// What can be said of a file that redb panicked on.
const BROKEN: &str = "its structure is broken";

/// A file, open.
pub(crate) struct File {
    database: Database,
    trouble: Trouble,
}

/// Up to where the log is forgotten, before and after a batch.
#[derive(Clone, Copy)]
pub(crate) struct Floors {
    pub(crate) before: u64,
    pub(crate) after: u64,
}

struct Tables<'t> {
    meta: Table<'t, &'static str, u64>,
    objects: Table<'t, KeyRow<'static>, ObjectRow<'static>>,
    log: Table<'t, u64, LogRow<'static>>,
}

impl<'t> Tables<'t> {
    fn of(transaction: &'t WriteTransaction) -> Result<Self, redb::Error> {
        Ok(Self {
            meta: transaction.open_table(META)?,
            objects: transaction.open_table(OBJECTS)?,
            log: transaction.open_table(LOG)?,
        })
    }
}

impl File {
    /// Opens what the backend holds; an empty one becomes an empty file.
    pub(crate) fn create(
        path: &str,
        backend: Box<dyn StorageBackend>,
        trouble: &Trouble,
    ) -> Result<Self, OpenError> {
        let backend = Watched { backend, trouble: trouble.clone() };
        // redb checks what it reads, but does not promise not to panic on damage.
        let database = catch_unwind(AssertUnwindSafe(|| {
            Database::builder().set_cache_size(CACHE_BYTES).create_with_backend(backend)
        }))
        .map_err(|_| OpenError::corrupt(path, BROKEN))?
        .map_err(|error| OpenError::from_redb(path, error))?;
        Ok(Self { database, trouble: trouble.clone() })
    }

    /// Opens a file that was made before.
    pub(crate) fn open(
        path: &str,
        backend: Box<dyn StorageBackend>,
        trouble: &Trouble,
    ) -> Result<Self, OpenError> {
        // redb would take an empty file for a new one; we never leave one behind.
        match backend.len() {
            Ok(0) => Err(OpenError::corrupt(path, "it is empty")),
            Ok(_) => Self::create(path, backend, trouble),
            Err(error) => Err(OpenError::from_io(path, error)),
        }
    }

    /// Closes the file, and tells whether that worked.
    pub(crate) fn close(self) -> io::Result<()> {
        let Self { database, trouble } = self;
        drop(database);
        trouble.take().map_or(Ok(()), Err)
    }

    /// Writes everything into an empty file.
    pub(crate) fn fill<M>(&self, content: &Snapshot<M>) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        let mut tables = Tables::of(&transaction)?;
        tables.meta.insert(META_FORMAT, FORMAT)?;
        tables.meta.insert(META_REVISION, content.revision)?;
        tables.meta.insert(META_COMPACTED, content.compacted)?;
        for object in &content.objects {
            tables.objects.insert(rows::key_row(&object.key), rows::object_row(object))?;
        }
        for (event, at) in &content.events {
            tables.log.insert(event.revision, rows::log_row(event, *at))?;
        }
        drop(tables);
        transaction.commit()?;
        Ok(())
    }

    /// Writes a batch in one durable transaction.
    pub(crate) fn commit<M>(&self, batch: &Batch<M>, floors: Floors) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        let mut tables = Tables::of(&transaction)?;
        for event in &batch.events {
            let key = rows::key_row(&event.object.key);
            match event.kind {
                EventKind::Deleted => drop(tables.objects.remove(key)?),
                EventKind::Added | EventKind::Modified => {
                    tables.objects.insert(key, rows::object_row(&event.object))?;
                }
            }
            if event.revision > floors.after {
                tables.log.insert(event.revision, rows::log_row(event, batch.at))?;
            }
        }
        for forgotten in floors.before + 1..=floors.after {
            tables.log.remove(forgotten)?;
        }
        if let Some(last) = batch.events.last() {
            tables.meta.insert(META_REVISION, last.revision)?;
        }
        tables.meta.insert(META_COMPACTED, floors.after)?;
        drop(tables);
        transaction.commit()?;
        Ok(())
    }

    /// The revision of the last commit, and up to which revision events are forgotten.
    pub(crate) fn position(&self) -> Result<(u64, u64), redb::Error> {
        let meta = self.database.begin_read()?.open_table(META)?;
        Ok((number(&meta, META_REVISION)?, number(&meta, META_COMPACTED)?))
    }

    /// Reads everything.
    pub(crate) fn read<I: Index>(
        &self,
        path: &str,
        index: &I,
    ) -> Result<State<I::Meta>, OpenError> {
        let read = catch_unwind(AssertUnwindSafe(|| {
            let transaction = self.database.begin_read()?;
            let found = number(&transaction.open_table(META)?, META_FORMAT)?;
            if found != FORMAT {
                return Ok(Err(OpenError::Format { path: path.to_owned(), found, known: FORMAT }));
            }
            read_tables(&transaction, index).map(Ok)
        }));
        match read {
            Ok(Ok(state)) => state,
            Ok(Err(error)) => Err(OpenError::from_redb::<redb::Error>(path, error)),
            Err(_) => Err(OpenError::corrupt(path, BROKEN)),
        }
    }
}

fn number(meta: &ReadOnlyTable<&'static str, u64>, name: &'static str) -> Result<u64, redb::Error> {
    let value = meta.get(name)?.map(|value| value.value());
    value.ok_or_else(|| redb::Error::Corrupted(format!("it has no {name}")))
}

fn read_tables<I: Index>(
    transaction: &ReadTransaction,
    index: &I,
) -> Result<State<I::Meta>, redb::Error> {
    let corrupt = redb::Error::Corrupted;
    let meta = transaction.open_table(META)?;
    let revision = number(&meta, META_REVISION)?;
    let compacted = number(&meta, META_COMPACTED)?;
    let mut state = State::at(revision, compacted);

    for row in transaction.open_table(OBJECTS)?.range::<KeyRow<'_>>(..)? {
        let (key, value) = row?;
        let (resource, namespace, name) = key.value();
        let key = state.share(Key::new(resource, namespace, name));
        state.load(&Arc::new(rows::object(key, value.value(), index).map_err(corrupt)?));
    }

    // From the newest event back, undoing each gives the object after the one before it.
    let mut undone: BTreeMap<Key, Option<Arc<Stored<I::Meta>>>> = BTreeMap::new();
    let mut events = Vec::new();
    let mut expected = revision;
    for row in transaction.open_table(LOG)?.range::<u64>(..)?.rev() {
        let (found, value) = row?;
        if found.value() != expected {
            return Err(corrupt(format!("event {expected} is missing")));
        }
        let row = value.value();
        let (_, at, (resource, namespace, name), ..) = row;
        let key = state.share(Key::new(resource, namespace, name));
        let after = match undone.get(&key) {
            Some(after) => after.clone(),
            None => state.get(&key).cloned(),
        };
        let event = rows::event(expected, row, after, index).map_err(corrupt)?;
        undone.insert(key, event.previous.clone());
        events.push((event, at));
        expected = expected.saturating_sub(1);
    }
    if expected != compacted {
        return Err(corrupt(format!("event {expected} is missing")));
    }
    for (event, at) in events.into_iter().rev() {
        state.recall(event, at);
    }
    Ok(state)
}
