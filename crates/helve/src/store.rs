//! What is kept: runs, background calls, questions and conversations.
//!
//! Name a store when you put a Helve together (`Helve::builder().store("sqlite:helve.db")`), with the feature `sqlite` or `postgres`.

#[cfg(feature = "store")]
pub use crate::compose::NoRecord;
pub use helve_core::store::*;
pub use helve_core::{Store, StoreError};
#[cfg(feature = "postgres")]
pub use helve_store::PostgresStore;
#[cfg(feature = "sqlite")]
pub use helve_store::{Durability, SqliteStore};
pub use helve_tools::{Hold, Record, RecordConflict, Worker};
