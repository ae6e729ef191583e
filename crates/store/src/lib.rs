//! Helve's durable record. One trait, [`Store`](helve_core::Store), with an engine for one machine and one for many.
//!
//! SQLite keeps it in one file, with full durability and no server: one thread writes, and commits for all who wait at once.
//! PostgreSQL keeps it for processes on several machines, which take tasks from one queue.

mod crash;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
#[cfg(feature = "sqlite")]
pub use sqlite::{Durability, SqliteStore};
