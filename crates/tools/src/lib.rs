//! The catalogue of all tools, and the executor, through which every call runs.
//!
//! Sources, tool sets and toolkits decide which tools an agent gets. Layers decide how a call runs; [`Executor`] alone defines their order.

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
