//! The catalogue of all tools, and the one path that every call takes.
//!
//! What is offered is shaped by sources, tool sets and toolkits; how a call runs is shaped by layers, whose order
//! stands in one place, [`Executor`].

mod call;
mod catalogue;
mod debug;
mod durable;
mod executor;
mod layers;
mod names;
mod set;
mod toolkit;

pub use call::CallState;
pub use catalogue::{Catalogue, Entry, Lookalike, Reference, Snapshot, SourceKey, SourceReport, View};
pub use durable::{ApprovedCall, HeldTask, Hold, StoreConflict, StoreHandle, Worker};
pub use executor::{Executor, ExecutorOptions};
pub use layers::cache::CacheKey;
pub use names::{MAX_MODEL_NAME, model_name};
pub use set::ToolSet;
pub use toolkit::{ModelList, Selection, Toolkit, ToolkitError};
