//! Errors of private files and folders.

use std::io;
use std::path::Path;

/// Why a file or folder is not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system reports an error.
    #[error("{path}: {error}")]
    Io {
        /// The file or folder.
        path: String,
        /// The system error.
        #[source]
        error: io::Error,
    },
    /// Another user may have created or changed it.
    #[error("{path} {reason}")]
    Refused {
        /// The file or folder.
        path: String,
        /// What is wrong with it, and what to do.
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

    /// The kind of system error; `None` for other reasons.
    #[must_use]
    pub fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { error, .. } => Some(error.kind()),
            Self::Refused { .. } => None,
        }
    }
}
