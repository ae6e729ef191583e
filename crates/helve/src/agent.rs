//! Agents: a model and its tools.
//!
//! [`Agent::run`] sends the conversation to the model, runs the calls in the response, and repeats this until the model answers.
//! [`Agent::run_stream`] does the same and yields an [`Event`](crate::event::Event) for everything that happens.
//! [`RunLimits`] limit calls, tokens, cost and time; a [`Context`] adds a section to the prompt of each turn.
//!
//! ```
//! use helve::prelude::*;
//! use helve::test::ScriptedModel;
//!
//! /// Multiplies two numbers.
//! #[tool]
//! fn multiply(a: i64, b: i64) -> i64 {
//!     a * b
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = ScriptedModel::new().calls([("multiply", json!({"a": 6, "b": 7}))]).says("It is 42.");
//! let mut agent = Agent::new(model).tool(multiply::tool())?;
//! assert_eq!(agent.run("What is 6 times 7?").await?.text, "It is 42.");
//! # Ok(()) }
//! ```

#[cfg(all(feature = "project", feature = "models", feature = "store"))]
pub use crate::compose::{AgentChoice, OpenAgent, OpenAgentError, ProjectWorker, WorkSummary};
pub use helve_agent::{
    Agent, AgentError, AgentOptions, Answer, Context, ContextError, Conversation, OwnedRunStream, PausedRun, ProbeResult, RunLimits,
    RunStream, Strategy, ToolCallContext, ToolCallRecord, UserInput, cancel_run, probe,
};
pub use helve_core::OutputStrategy;
