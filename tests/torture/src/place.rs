//! Where a record is: in a file, or in a schema of a server.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use helve_core::Store;
use helve_store::{PostgresStore, SqliteStore};

/// Where a record is. A parent gives it to its children as text.
#[derive(Debug, Clone)]
pub enum Place {
    /// A file of SQLite.
    File(PathBuf),
    /// The address of a server.
    Server(String),
}

impl Place {
    /// As it was written.
    #[must_use]
    pub fn named(text: &str) -> Self {
        if text.starts_with("postgres://") { Self::Server(text.to_owned()) } else { Self::File(text.into()) }
    }

    /// The record that is there, or a new one.
    pub async fn open(&self) -> Arc<dyn Store> {
        match self {
            Self::File(file) => Arc::new(SqliteStore::open(file).expect("a record")),
            Self::Server(address) => Arc::new(PostgresStore::open(address).await.expect("a record")),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Server(address) => f.write_str(address),
        }
    }
}
