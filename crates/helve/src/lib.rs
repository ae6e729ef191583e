//! Helve is a tool runtime for LLM agents: one catalogue for tools from Rust functions, HTTP APIs, commands and MCP servers, and
//! one pipeline for calls, with validation, permissions, approvals, caching, retries, limits and timeouts.
//!
//! # Call a tool
//!
//! A function with `#[tool]` becomes a tool. Its doc comments describe it to the model, and its argument types give the schema.
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
//! # Run an agent
//!
//! An agent calls tools until its model answers. This example uses a scripted model (feature `test`) instead of an `HttpModel`.
//!
//! ```
//! # #[cfg(feature = "test")]
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use helve::prelude::*;
//!
//! let add = tool_fn("add", "Adds two numbers.", |args: serde_json::Value, _cx| async move {
//!     Ok((args["a"].as_i64().unwrap_or(0) + args["b"].as_i64().unwrap_or(0)).to_string())
//! });
//! let helve = Helve::builder().tool(add).build().await?;
//! let model = ScriptedModel::new().calls([("add", json!({"a": 2, "b": 3}))]).says("2 + 3 = 5");
//! let answer = helve.agent(model).run("What is 2 + 3?").await?;
//! assert_eq!(answer.text, "2 + 3 = 5");
//! # Ok(()) }
//! # #[cfg(not(feature = "test"))] fn main() {}
//! ```
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`agent`] | agents, runs, conversations and limits |
//! | [`mod@tool`] | tools, calls, outcomes and errors |
//! | [`catalogue`] | sources of tools, tool sets and toolkits |
//! | [`executor`] | the pipeline of every call, and your own layers |
//! | [`permission`] | rules, approval requests and approvers |
//! | [`model`] | the trait of language models, and models over HTTP |
//! | [`store`] | durable runs, background calls and approvals |
//! | [`event`], [`id`], [`secret`] | events of a run; identifiers; redaction of secrets |
//! | `mcp` | MCP clients and servers (feature `mcp`) |
//! | `project` | project folders (feature `project`) |
//! | `test` | a scripted model for tests (feature `test`) |
//! | [`dialect`] | parsing tool calls that a model writes as text, and prompting models to write them |
//!
//! # Features
//!
//! | feature | adds | default |
//! |---|---|---|
//! | `models` | models over HTTP: hosted providers and local servers | yes |
//! | `builtins` | Helve's own tools, such as `get_time` and `calculate`; added on request | |
//! | `mcp` | tools of MCP servers, and your tools as an MCP server | |
//! | `sqlite` | a store in an SQLite file | |
//! | `postgres` | a store in a PostgreSQL database | |
//! | `project` | tools, tool sets, agents and rules from the files of a project folder; enables `mcp` | |
//! | `test` | a scripted model | |

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
/// Parses tool calls that a model writes as text, and prompts models to write them.
pub use helve_dialect as dialect;
pub use tool::{AnyError, CallContext, Outcome, Output, Result, Tool, ToolCall, ToolError, TypedTool, tool, tool_fn, tools};

/// The items that most programs need.
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
