//! Where the file of a durable store lives.
//!
//! The file is only ever created whole: it is written beside the current one and then put in its
//! place. So a crash at any instant leaves either no file, or a complete old or new one, and an
//! empty or headless file is known to be damage.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use redb::{DatabaseError, StorageBackend, StorageError, backends::FileBackend};

use crate::open_error::OpenError;

/// The file's name in the directory of the store.
const FILE: &str = "objects.redb";
/// A file that is being made.
const FRESH: &str = "objects.redb.new";
/// Held for as long as the store is open. Not the file itself, which can be replaced.
const LOCK: &str = "objects.lock";

/// A place for one file, that can be replaced at once. [`Store::open`](crate::Store::open) uses a
/// directory; simulations and tests use a disk that fails.
pub trait Volume: fmt::Debug + Send + 'static {
    /// The current file, if there is one.
    fn current(&self) -> io::Result<Option<Box<dyn StorageBackend>>>;

    /// A new, empty file beside the current one.
    fn fresh(&self) -> io::Result<Box<dyn StorageBackend>>;

    /// Puts the fresh file, which nobody has open any more, in the place of the current one. A
    /// crash leaves either; when this returns it is the fresh one.
    fn replace(&self) -> io::Result<()>;

    /// What to call it in messages.
    fn path(&self) -> String;
}

/// A directory that this process alone uses.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// Its lock ends when it is closed, also by a crash.
    _lock: fs::File,
}

impl Directory {
    /// Claims a directory, which is made if it does not exist.
    pub(crate) fn claim(path: &Path) -> Result<Self, OpenError> {
        let failed = |error| OpenError::from_io(&path.display().to_string(), error);
        fs::create_dir_all(path).map_err(failed)?;
        let lock = fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join(LOCK))
            .map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {
                // Left by a crash, and never complete. A failure shows again when it matters.
                let _ = fs::remove_file(path.join(FRESH));
                Ok(Self { path: path.to_owned(), _lock: lock })
            }
            Err(fs::TryLockError::WouldBlock) => {
                Err(OpenError::Locked { path: path.display().to_string() })
            }
            Err(fs::TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    fn backend(file: fs::File) -> io::Result<Box<dyn StorageBackend>> {
        match FileBackend::new(file) {
            Ok(backend) => Ok(Box::new(backend)),
            Err(DatabaseError::Storage(StorageError::Io(error))) => Err(error),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

impl Volume for Directory {
    fn current(&self) -> io::Result<Option<Box<dyn StorageBackend>>> {
        match fs::OpenOptions::new().read(true).write(true).open(self.path.join(FILE)) {
            Ok(file) => Self::backend(file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn fresh(&self) -> io::Result<Box<dyn StorageBackend>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        // Objects include Secrets.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Self::backend(options.open(self.path.join(FRESH))?)
    }

    fn replace(&self) -> io::Result<()> {
        fs::rename(self.path.join(FRESH), self.path.join(FILE))?;
        // The new name itself must survive a power failure.
        #[cfg(unix)]
        fs::File::open(&self.path)?.sync_all()?;
        Ok(())
    }

    fn path(&self) -> String {
        self.path.join(FILE).display().to_string()
    }
}
