//! A file that remembers what went wrong with it first.
//!
//! redb reports an I/O error once, not which call it was, and from then on only that there was
//! one. What to do next depends on the call.

use std::{fmt, io, sync::Arc};

use parking_lot::Mutex;
use redb::StorageBackend;

/// The first error of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble(Arc<Mutex<Option<(Operation, io::Error)>>>);

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A read, a write or a change of length.
    Access,
    /// Waiting for what was written to be durable.
    Sync,
}

impl Trouble {
    fn note<T>(&self, operation: Operation, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|error| {
            let copy = match error.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None => io::Error::new(error.kind(), error.to_string()),
            };
            self.0.lock().get_or_insert((operation, copy));
        })
    }

    /// What failed first, if anything did.
    pub(crate) fn operation(&self) -> Option<Operation> {
        self.0.lock().as_ref().map(|(operation, _)| *operation)
    }

    /// The first error, if there was one.
    pub(crate) fn take(&self) -> Option<io::Error> {
        self.0.lock().take().map(|(_, error)| error)
    }
}

/// A backend with its [`Trouble`]. It passes no locks on: the directory is locked as a whole.
pub(crate) struct Watched {
    pub(crate) backend: Box<dyn StorageBackend>,
    pub(crate) trouble: Trouble,
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.backend.fmt(f)
    }
}

impl StorageBackend for Watched {
    fn len(&self) -> io::Result<u64> {
        self.trouble.note(Operation::Access, self.backend.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.trouble.note(Operation::Access, self.backend.read(offset, out))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.trouble.note(Operation::Access, self.backend.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.trouble.note(Operation::Sync, self.backend.sync_data())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.trouble.note(Operation::Access, self.backend.write(offset, data))
    }

    fn close(&self) -> io::Result<()> {
        self.trouble.note(Operation::Access, self.backend.close())
    }
}
