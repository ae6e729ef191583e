//! The error of operations on private files and folders.

use std::io;
use std::path::Path;

/// Why a private file or folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// A file system operation failed.
    #[error("{path}: {error}")]
    Io {
        /// The path of the file or folder.
        path: String,
        /// The error of the operating system.
        #[source]
        error: io::Error,
    },
    /// The file or folder is not safe to use: another user may have created or changed it, or it is not what was expected.
    #[error("{path} {reason}")]
    Refused {
        /// The path of the file or folder.
        path: String,
        /// What is wrong with the file or folder and what to do, as the rest of a sentence that starts with `path`.
        reason: String,
    },
}

impl FileError {
    pub(crate) fn io(path: &Path, error: io::Error) -> Self {
        Self::Io { path: path.display().to_string(), error }
    }

    pub(crate) fn refused(path: &Path, reason: impl Into<String>) -> Self {
        Self::Refused { path: path.display().to_string(), reason: reason.into() }
    }

    /// Returns the kind of the system error, or `None` if the file or folder was refused.
    #[must_use]
    pub fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { error, .. } => Some(error.kind()),
            Self::Refused { .. } => None,
        }
    }
}
