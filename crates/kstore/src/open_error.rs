//! Why a durable store cannot be opened, and what to do about it.

use std::io;

/// Why a durable store cannot be opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process (or store of this process) has it open.
    #[error("{path} is in use by another process: stop that one, or choose another data directory")]
    Locked {
        /// The directory.
        path: String,
    },
    /// The file is damaged.
    #[error(
        "{path} is damaged ({detail}): restore it from a backup, or move it away to start with an empty store"
    )]
    Corrupt {
        /// The file.
        path: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The directory or the file cannot be written.
    #[error(
        "{path} cannot be written: make it writable for this user, or choose another data directory"
    )]
    ReadOnly {
        /// The directory or file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The disk is full.
    #[error("there is no space left for {path}: free some, or choose another data directory")]
    NoSpace {
        /// The directory or file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file was written by another version of Fleetwright.
    #[error(
        "{path} has format {found}, this version knows format {known}: use the version that wrote it, or a newer one"
    )]
    Format {
        /// The file.
        path: String,
        /// The format it has.
        found: u64,
        /// The format that would be understood.
        known: u64,
    },
    /// Anything else that the system reports.
    #[error("{path} cannot be opened")]
    Other {
        /// The directory or file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

impl OpenError {
    pub(crate) fn from_io(path: &str, source: io::Error) -> Self {
        use io::ErrorKind::{
            InvalidData, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
            UnexpectedEof,
        };
        let path = path.to_owned();
        match source.kind() {
            PermissionDenied | ReadOnlyFilesystem => Self::ReadOnly { path, source },
            StorageFull | QuotaExceeded => Self::NoSpace { path, source },
            InvalidData | UnexpectedEof => Self::Corrupt { path, detail: source.to_string() },
            _ => Self::Other { path, source },
        }
    }

    pub(crate) fn corrupt(path: &str, detail: impl Into<String>) -> Self {
        Self::Corrupt { path: path.to_owned(), detail: detail.into() }
    }

    pub(crate) fn from_redb<E: Into<redb::Error>>(path: &str, error: E) -> Self {
        match error.into() {
            redb::Error::Io(error) => Self::from_io(path, error),
            redb::Error::DatabaseAlreadyOpen => Self::Locked { path: path.to_owned() },
            redb::Error::Corrupted(detail) => Self::corrupt(path, detail),
            error => Self::corrupt(path, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use io::ErrorKind;

    use super::*;

    #[test]
    fn each_message_names_the_path_and_the_fix() {
        for (kind, fix) in [
            (ErrorKind::PermissionDenied, "make it writable"),
            (ErrorKind::ReadOnlyFilesystem, "make it writable"),
            (ErrorKind::StorageFull, "free some"),
            (ErrorKind::QuotaExceeded, "free some"),
            (ErrorKind::UnexpectedEof, "restore it from a backup"),
            (ErrorKind::NotADirectory, "cannot be opened"),
        ] {
            let message = OpenError::from_io("/data", kind.into()).to_string();
            assert!(message.contains("/data") && message.contains(fix), "{message}");
        }
    }
}
