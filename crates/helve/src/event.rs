//! Events of a run: text deltas, tool calls and their results, approvals, and the end.
//!
//! Events are numbered within a run, and stored if the agent has a store. [`Event`] serializes to the JSON of `helve run --json`.
//!
//! ```
//! use futures_util::TryStreamExt;
//! use helve::event::Event;
//! use helve::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), AgentError> {
//! let mut agent = Agent::new(ScriptedModel::new().says("Hello!"));
//! let events: Vec<Event> = agent.run_stream("Hi").await?.try_collect().await?;
//! assert_eq!(events.first().map(|event| event.data.name()), Some("run_started"));
//! assert_eq!(events.last().map(|event| event.data.name()), Some("run_finished"));
//! # Ok(()) }
//! ```

pub use helve_core::{EndOfRun, Event, EventData, Observer, RunError};
