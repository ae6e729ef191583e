//! Helve's durable record. One trait, [`Store`](helve_core::Store), with an engine for one machine.
//!
//! SQLite keeps it in one file, with full durability and no server: one thread writes, and commits for all who wait at once.

mod sqlite;

pub use sqlite::{Durability, SqliteStore};
