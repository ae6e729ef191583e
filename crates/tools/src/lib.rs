//! The catalogue of all tools, and the one path that every call takes.
//!
//! Sources, tool sets and toolkits decide which tools are offered. Layers decide how a call runs; their order is defined in one
//! place, [`Executor`].

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
pub use catalogue::{Catalogue, DisplacedTool, DuplicateTool, Entry, Lookalike, Snapshot, SourceKey, SourceReport, View};
pub use durable::{ApprovedCall, LeaseGuard, StoreConflict, StoreHandle, Worker};
pub use executor::{Executor, ExecutorOptions};
pub use layers::cache::CacheKey;
pub use names::{MAX_MODEL_NAME, model_name};
pub use set::ToolSet;
pub use toolkit::{ModelList, Selection, Toolkit, ToolkitError};
