//! Why a file or folder is not used.

use std::io;
use std::path::Path;

/// Why a file or folder is not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system refuses.
    #[error("{path}: {error}")]
    Io {
        /// The file or folder.
        path: String,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// Somebody else may have prepared or changed it.
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

    /// What kind of trouble the system has, where it is the system's.
    #[must_use]
    pub fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { error, .. } => Some(error.kind()),
            Self::Refused { .. } => None,
        }
    }
}
