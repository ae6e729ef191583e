//! Where a store is: in a file, or in a schema of a server.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use helve_core::Store;
use helve_store::{PostgresStore, SqliteStore};

/// The location of a store. A parent passes it to its children as text.
#[derive(Debug, Clone)]
pub enum StoreLocation {
    /// A file of SQLite.
    File(PathBuf),
    /// The address of a server.
    Server(String),
}

impl StoreLocation {
    /// As it was written.
    #[must_use]
    pub fn named(text: &str) -> Self {
        if text.starts_with("postgres://") { Self::Server(text.to_owned()) } else { Self::File(text.into()) }
    }

    /// The store that is there, or a new one.
    pub async fn open(&self) -> Arc<dyn Store> {
        match self {
            Self::File(file) => Arc::new(SqliteStore::open(file).expect("a store")),
            Self::Server(address) => Arc::new(PostgresStore::open(address).await.expect("a store")),
        }
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Server(address) => f.write_str(address),
        }
    }
}
