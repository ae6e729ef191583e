//! Durable stores: the trait [`Store`](helve_core::Store), implemented with SQLite and with PostgreSQL.
//!
//! SQLite keeps the store in one file, without a server. One thread writes, and commits all waiting changes at once (group commit).
//! PostgreSQL is for processes on several machines that take tasks from one queue.

#[cfg(any(feature = "postgres", feature = "sqlite"))]
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
