//! The catalogue of all tools, and the one path that every call takes.
//!
//! What is offered is shaped by sources, tool sets and toolkits; how a call runs is shaped by layers, whose order
//! stands in one place, [`Executor`].

mod call;
mod catalogue;
mod debug;
mod executor;
mod layers;
mod names;
mod record;
mod set;
mod toolkit;
mod waited;
mod worker;

pub use call::CallState;
pub use catalogue::{Catalogue, Entry, Lookalike, Reference, Snapshot, SourceKey, SourceReport, View};
pub use executor::{Executor, ExecutorOptions};
pub use layers::cache::CacheKey;
pub use names::{MAX_MODEL_NAME, model_name};
pub use record::{Hold, Record, RecordConflict};
pub use set::ToolSet;
pub use toolkit::{ModelList, Selection, Toolkit, ToolkitError};
pub use waited::{ApprovedCall, HeldTask};
pub use worker::Worker;
