//! Durable state: runs, background calls, approvals and conversations.
//!
//! A [`Store`] is an SQLite file (feature `sqlite`), a PostgreSQL database (feature `postgres`), memory, or your own
//! implementation. With a store, a run survives a crash and resumes in another process, an approval may take days, and calls to
//! tools with `mode: background` are queued for a [`Worker`].
//!
//! ```
//! # #[cfg(feature = "sqlite")]
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # std::env::set_current_dir(folder.path())?;
//! use helve::prelude::*;
//! use helve::store::TaskFilter;
//!
//! let nap = tool_fn("nap", "Takes a nap.", |_: serde_json::Value, _| async { Ok("rested") }).background();
//! let helve = Helve::builder().tool(nap).store("sqlite:helve.db").build().await?;
//! let outcome = helve.call("nap", json!({})).await;
//! let store = helve.executor().store().expect("a store");
//! assert_eq!(store.tasks(TaskFilter::default()).await?[0].id, outcome.call_id);
//! # Ok(()) }
//! # #[cfg(not(feature = "sqlite"))] fn main() {}
//! ```

#[cfg(feature = "store")]
pub use crate::compose::OpenStoreError;
#[cfg(feature = "postgres")]
pub use crate::compose::PostgresStore;
#[cfg(feature = "sqlite")]
pub use crate::compose::{Durability, SqliteStore};
pub use helve_core::store::*;
pub use helve_core::{Store, StoreError};
pub use helve_tools::{LeaseGuard, StoreConflict, StoreHandle, Worker};
