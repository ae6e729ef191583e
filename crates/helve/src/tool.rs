//! Tools, their calls, and what comes of them.
//!
//! A tool is a function with `#[tool]`, the methods of a value with `#[tools]`, a closure ([`tool_fn`]), or a type ([`TypedTool`]).
//!
//! ```
//! use helve::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let word = "Hello".to_owned();
//! let greet = tool_fn("greet", "Greets someone.", move |args: serde_json::Value, _cx| {
//!     let greeting = format!("{word}, {}!", args["name"].as_str().unwrap_or("you"));
//!     async move { Ok(greeting) }
//! });
//! let helve = Helve::builder().tool(greet).build().await?;
//! assert_eq!(helve.call("greet", json!({"name": "Ada"})).await.text(), "Hello, Ada!");
//! # Ok(()) }
//! ```

/// What `#[tool]` announced at link time, and the parts it is made of.
pub use helve_core::function;
pub use helve_core::{
    AnyError, CacheRule, CallContext, Caller, Denial, DynTool, ErrorKind, InputNeeded, InputRequest, InputResponse, IntoTool, IntoTools,
    KINDS, KindFacts, Mode, Origin, Outcome, Output, Problem, Result, Rules, Schema, SchemaError, SpecError, Status, Tool, ToolCall,
    ToolError, ToolFn, ToolKind, ToolMethods, ToolResult, ToolSpec, TypedTool, tool, tool_fn, tools,
};
