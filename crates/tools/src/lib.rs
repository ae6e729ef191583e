//! The catalogue of all tools, and the one path that every call takes.
//!
//! What is offered is shaped by sources, tool sets and toolkits; how a call runs is shaped by layers, whose order
//! stands in one place, [`Executor`].

mod batch;
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

pub use batch::Settled;
pub use catalogue::{Catalogue, Entry, Lookalike, Reference, Snapshot, SourceKey, SourceReport, View};
pub use executor::{Admission, Attempted, Executor, ExecutorOptions, Prepared};
pub use layers::cache::CacheKey;
pub use names::{MAX_MODEL_NAME, model_name};
pub use record::{Hold, Record, RecordConflict};
pub use set::ToolSet;
pub use toolkit::{ModelList, Selection, Toolkit, ToolkitError};
pub use waited::{Approved, HeldTask, Made};
pub use worker::Worker;
