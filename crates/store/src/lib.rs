//! Helve's durable store: the trait [`Store`](helve_core::Store), with an engine for one machine and one for many.
//!
//! SQLite keeps the store in one file, with full durability and without a server: one thread writes, and commits all waiting changes at
//! once (group commit). PostgreSQL serves processes on several machines, which take tasks from one queue.

mod crash;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod row;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
#[cfg(feature = "sqlite")]
pub use sqlite::{Durability, SqliteStore};
