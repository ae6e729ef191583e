//! The catalogue: all known tools, their sources, and selections of them.
//!
//! A [`ToolSource`] offers tools that may change at any time. The [`Catalogue`] merges all sources into a [`Snapshot`]; if two
//! sources offer the same name, the earlier source wins. A [`Selection`] of tool sets and names becomes the [`Toolkit`] of an
//! agent.
//!
//! ```
//! use std::sync::Arc;
//!
//! use helve::catalogue::ListSource;
//! use helve::prelude::*;
//!
//! /// Returns the day of the week.
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
