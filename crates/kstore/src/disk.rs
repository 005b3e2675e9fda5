//! The file of a durable store.
//!
//! After an I/O error redb wants to be closed and opened again. That is enough when a write
//! failed, since the last commit is untouched. When a *sync* failed it is not: the system may
//! have dropped what it could not write and still show it from its cache, so nothing written
//! since the last good sync can be trusted, and the file is made anew from memory, where all of
//! it is.

use std::io;

use crate::{
    batch::Batch,
    file::{File, Floors},
    object::Index,
    open_error::OpenError,
    state::{Snapshot, State},
    volume::Volume,
    watched::{Operation, Trouble},
};

/// The file of a store, open or waiting to be opened again after an error.
pub(crate) struct Disk {
    volume: Box<dyn Volume>,
    status: Status,
}

enum Status {
    Open(File, Trouble),
    /// A write failed: the last commit is intact and can be opened again.
    Interrupted,
    /// A sync failed, or the file is not what was committed: it must be made anew.
    Doubtful,
}

impl Status {
    fn after(trouble: &Trouble) -> Self {
        match trouble.operation() {
            Some(Operation::Access) => Self::Interrupted,
            // Without an I/O error something else is wrong with the file.
            Some(Operation::Sync) | None => Self::Doubtful,
        }
    }
}

impl Disk {
    /// Opens the file, or makes an empty one, and reads it.
    pub(crate) fn open<I: Index>(
        volume: Box<dyn Volume>,
        index: &I,
    ) -> Result<(Self, State<I::Meta>), OpenError> {
        let path = volume.path();
        let mut disk = Self { volume, status: Status::Doubtful };
        let trouble = Trouble::default();
        let current = disk.volume.current().map_err(|error| OpenError::from_io(&path, error))?;
        let file = match current {
            Some(backend) => File::open(&path, backend, &trouble)?,
            None => disk.make(&State::<I::Meta>::empty().snapshot(), &trouble)?,
        };
        let state = file.read(&path, index)?;
        disk.status = Status::Open(file, trouble);
        Ok((disk, state))
    }

    /// Makes a batch durable. On an error nothing has happened, and the next call tries to open
    /// the file again first. `published` gives what has been committed so far.
    pub(crate) fn commit<M>(
        &mut self,
        batch: &Batch<M>,
        floors: Floors,
        published: impl FnOnce() -> Snapshot<M>,
    ) -> Result<(), String> {
        let path = self.volume.path();
        if !matches!(self.status, Status::Open(..)) {
            self.reopen(&published()).map_err(|error| describe_open(&error))?;
            tracing::info!(path, "the store can write again");
        }
        let Status::Open(file, trouble) = &self.status else {
            return Err(format!("{path} is closed"));
        };
        let Err(error) = file.commit(batch, floors) else { return Ok(()) };
        let status = Status::after(trouble);
        let message = describe(&path, trouble.take(), &error);
        // Closing may fail as well, which changes nothing any more.
        self.status = status;
        tracing::error!(error = message, "a commit failed: the next write tries again");
        Err(message)
    }

    fn reopen<M>(&mut self, published: &Snapshot<M>) -> Result<(), OpenError> {
        let path = self.volume.path();
        if matches!(self.status, Status::Interrupted) {
            let trouble = Trouble::default();
            match self.reopen_current(&path, (published.revision, published.compacted), &trouble) {
                Ok(Some(file)) => {
                    self.status = Status::Open(file, trouble);
                    return Ok(());
                }
                Ok(None) | Err(OpenError::Corrupt { .. }) => self.status = Status::Doubtful,
                Err(error) => {
                    if trouble.operation() == Some(Operation::Sync) {
                        self.status = Status::Doubtful;
                    }
                    return Err(error);
                }
            }
        }
        let trouble = Trouble::default();
        self.status = Status::Open(self.make(published, &trouble)?, trouble);
        Ok(())
    }

    /// The current file, if it holds what was committed.
    fn reopen_current(
        &self,
        path: &str,
        committed: (u64, u64),
        trouble: &Trouble,
    ) -> Result<Option<File>, OpenError> {
        let current = self.volume.current().map_err(|error| OpenError::from_io(path, error))?;
        let Some(backend) = current else { return Ok(None) };
        let file = File::open(path, backend, trouble)?;
        let found = file.position().map_err(|error| OpenError::from_redb(path, error))?;
        Ok((found == committed).then_some(file))
    }

    /// Makes the file anew, whole, and puts it in place.
    fn make<M>(&self, content: &Snapshot<M>, trouble: &Trouble) -> Result<File, OpenError> {
        let path = self.volume.path();
        let failed = |error| OpenError::from_io(&path, error);
        let fresh = File::create(&path, self.volume.fresh().map_err(failed)?, trouble)?;
        fresh.fill(content).map_err(|error| OpenError::from_redb(&path, error))?;
        fresh.close().map_err(failed)?;
        self.volume.replace().map_err(failed)?;
        match self.volume.current().map_err(failed)? {
            Some(backend) => File::open(&path, backend, trouble),
            None => Err(OpenError::corrupt(&path, "it vanished")),
        }
    }
}

/// What a failed commit is answered with.
fn describe(path: &str, cause: Option<io::Error>, error: &redb::Error) -> String {
    match cause {
        Some(error) => describe_open(&OpenError::from_io(path, error)),
        None => format!("cannot write {path}: {error}"),
    }
}

fn describe_open(error: &OpenError) -> String {
    match error {
        OpenError::NoSpace { path, .. } => {
            format!("there is no space left for {path}: writes resume when some is freed")
        }
        OpenError::Other { path, source } | OpenError::ReadOnly { path, source } => {
            format!("cannot write {path}: {source}")
        }
        error => error.to_string(),
    }
}
