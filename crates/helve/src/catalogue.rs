//! All tools that are known, where they come from, and which of them someone may use.
//!
//! ```
//! use std::sync::Arc;
//!
//! use helve::catalogue::ListSource;
//! use helve::prelude::*;
//!
//! /// Says what day it is.
//! #[tool]
//! fn today() -> String {
//!     "Monday".to_owned()
//! }
//!
//! let helve = Helve::new();
//! let calendar = Arc::new(ListSource::new("calendar", [today::tool()]));
//! helve.catalogue().add_source(calendar.clone());
//! assert!(helve.catalogue().get("today").is_some());
//! ```

pub use helve_core::{ListSource, Pattern, Scope, SourceId, SourceState, ToolList, ToolSource};
pub use helve_tools::{
    Catalogue, DisplacedTool, DuplicateTool, Entry, Lookalike, MAX_MODEL_NAME, ModelList, Selection, Snapshot, SourceKey, SourceReport,
    ToolSet, Toolkit, ToolkitError, View, model_name,
};
