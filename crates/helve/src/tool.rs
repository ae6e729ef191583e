//! Tools, calls and outcomes.
//!
//! There are four ways to write a tool: a function with [`#[tool]`](macro@tool), the methods of a value with
//! [`#[tools]`](macro@tools), a closure ([`tool_fn`]), or a type that implements [`TypedTool`]. The doc comments become the
//! descriptions that the model reads, and the argument types become the JSON Schema that every call is validated against.
//!
//! A call ends with an [`Outcome`]: text for the model, data for programs, or a [`ToolError`] of one of the [`ErrorKind`]s.
//!
//! ```
//! use helve::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let word = "Hello".to_owned();
//! let greet = tool_fn("greet", "Greets a person by name.", move |args: serde_json::Value, _cx| {
//!     let greeting = format!("{word}, {}!", args["name"].as_str().unwrap_or("you"));
//!     async move { Ok(greeting) }
//! });
//! let helve = Helve::builder().tool(greet).build().await?;
//! assert_eq!(helve.call("greet", json!({"name": "Ada"})).await.text(), "Hello, Ada!");
//! # Ok(()) }
//! ```

/// Tools that `#[tool]` registered at link time, and the traits behind the macro.
pub use helve_core::function;
pub use helve_core::{
    AnyError, CacheRule, CallContext, Caller, Denial, DynTool, ErrorKind, InputNeeded, InputRequest, InputResponse, IntoTool, IntoTools,
    KINDS, KindFacts, Mode, Origin, Outcome, Output, Problem, Result, Rules, Schema, SchemaError, SpecError, Status, Tool, ToolCall,
    ToolError, ToolFn, ToolKind, ToolMethods, ToolResult, ToolSpec, TypedTool, tool, tool_fn, tools,
};
