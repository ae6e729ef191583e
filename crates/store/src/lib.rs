//! Helve's durable record. One trait, [`Store`](helve_core::Store), with an engine for one machine and one for many.
//!
//! SQLite keeps it in one file, with full durability and no server: one thread writes, and commits for all who wait at once.
//! PostgreSQL keeps it for processes on several machines, which take tasks from one queue.

mod crash;
mod postgres;
mod sqlite;

pub use postgres::PostgresStore;
pub use sqlite::{Durability, SqliteStore};
