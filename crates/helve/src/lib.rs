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
//! let helve = Helve::builder().tool(add::tool()).build().await?;
//! let outcome = helve.call("add", json!({"a": 2, "b": "3"})).await;
//! assert_eq!(outcome.text(), "5");
//! # Ok(()) }
//! ```
//!
//! | module | what is in it |
//! |---|---|
//! | [`agent`] | agents, their runs, what they remember |
//! | [`mod@tool`] | tools, their calls, outcomes and errors |
//! | [`catalogue`] | sources of tools, tool sets, and what an agent may use |
//! | [`executor`] | the path of a call, and layers of your own |
//! | [`permission`] | rules, requests to people, approvers |
//! | [`model`] | language models: the trait, and models over HTTP |
//! | [`store`] | what is kept: runs, background calls, requests |
//! | [`event`], [`id`], [`secret`] | what happens in a run; names of things; what must never show |
//! | `mcp`, `project`, `test` | with the features of these names |
//! | [`dialect`] | calls in a model's text |
//!
//! | feature | what it brings | default |
//! |---|---|---|
//! | `models` | models over HTTP: providers, and servers on this machine | yes |
//! | `builtins` | `get_time`, `get_date`, `calculate`: offered only where someone asks for them | |
//! | `mcp` | tools of MCP servers, and your tools as an MCP server | |
//! | `sqlite` | a store in a file | |
//! | `postgres` | a store on a server | |
//! | `project` | tools, sets, agents and rules from the files of a folder; brings `mcp` | |
//! | `test` | a model that follows a script | |

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod agent;
pub mod catalogue;
mod compose;
#[cfg(all(doctest, feature = "builtins", feature = "models", feature = "project", feature = "sqlite", feature = "test"))]
mod documents;
pub mod event;
pub mod executor;
pub mod id;
#[doc(hidden)]
pub mod internal;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod model;
pub mod permission;
#[cfg(feature = "project")]
pub mod project;
pub mod secret;
pub mod store;
#[cfg(feature = "test")]
pub mod test;
pub mod tool;

pub use agent::{Agent, AgentError};
pub use compose::{BuildError, Helve, HelveBuilder};
#[doc(hidden)]
pub use helve_core::__private;
pub use helve_core::{BoxFuture, CancellationToken};
/// How models speak of calls: finding them in text, and teaching models to write them.
pub use helve_dialect as dialect;
pub use tool::{AnyError, CallContext, Outcome, Output, Result, Tool, ToolCall, ToolError, TypedTool, tool, tool_fn, tools};

/// What most programs need.
pub mod prelude {
    pub use serde_json::json;

    pub use crate::Helve;
    pub use crate::agent::{Agent, AgentError, AgentOptions, Answer, OwnedRunStream, RunStream};
    pub use crate::catalogue::{Catalogue, Selection, ToolSet, Toolkit, View};
    pub use crate::executor::{CallState, Executor, ExecutorOptions};
    #[cfg(feature = "models")]
    pub use crate::model::HttpModel;
    pub use crate::model::ToolChoice;
    pub use crate::permission::{ApprovalRequest, Approver, Decision, Permission, PermissionRule, Policy};
    #[cfg(feature = "test")]
    pub use crate::test::ScriptedModel;
    pub use crate::tool::{
        AnyError, CallContext, ErrorKind, Mode, Outcome, Output, Rules, Tool, ToolCall, ToolError, ToolResult, ToolSpec, TypedTool, tool,
        tool_fn, tools,
    };
}
