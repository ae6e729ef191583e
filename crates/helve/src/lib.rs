//! Helve gives an LLM agent its tools through one catalogue and one governed call path.
//!
//! ```
//! use helve::prelude::*;
//!
//! /// Adds two numbers.
//! #[tool(idempotent)]
//! async fn add(
//!     /// The first number.
//!     a: i64,
//!     /// The second number.
//!     b: i64,
//! ) -> i64 {
//!     a + b
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let helve = Helve::new();
//! helve.catalogue().register(add::tool())?;
//! let outcome = helve.call("add", serde_json::json!({"a": 2, "b": "3"})).await;
//! assert_eq!(outcome.text(), "5");
//! # Ok(()) }
//! ```

mod compose;

pub use compose::Helve;
#[cfg(feature = "store")]
pub use compose::NoRecord;
#[cfg(feature = "models")]
pub use compose::models;
#[cfg(feature = "project")]
pub use compose::{
    Capability, Change, Diagnostic, FieldChange, McpServing, OnResult, ProjectAgent, ProjectReport, Severity, StateError, StateFolder,
    Trust, TrustChanges, file_schemas, read_yaml,
};
#[cfg(all(feature = "project", feature = "models"))]
pub use compose::{ChosenModel, ModelChoice, NoModel};
#[cfg(feature = "project")]
pub use compose::{end_programs, mcp};
pub use helve_agent::*;
pub use helve_core::*;
/// How models speak of calls: finding them in text, and teaching models to write them.
pub use helve_dialect as dialect;
#[cfg(feature = "models")]
pub use helve_fetch::Fetch;
pub use helve_tools::*;

/// What most programs need.
pub mod prelude {
    pub use helve_agent::{Agent, AgentError, AgentOptions, Answer, OwnedRunStream, RunStream, ScriptedModel};
    pub use helve_core::{
        CallContext, ErrorKind, Mode, Outcome, Output, Permission, PermissionRule, Policy, Rules, Tool, ToolCall, ToolChoice, ToolError,
        ToolResult, tool,
    };
    pub use helve_tools::{Catalogue, Executor, ExecutorOptions, Selection, ToolSet, Toolkit, View};

    pub use crate::Helve;
    #[cfg(feature = "models")]
    pub use crate::models::HttpModel;
}
