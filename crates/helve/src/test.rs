//! Testing agents: [`ScriptedModel`] returns scripted responses and records the requests that it receives.
//!
//! ```
//! use helve::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), AgentError> {
//! let model = ScriptedModel::new().says("Good morning!");
//! let answer = Agent::new(model.clone()).run("Hello").await?;
//! assert_eq!((answer.text.as_str(), model.requests().len(), model.answers_left()), ("Good morning!", 1, 0));
//! # Ok(()) }
//! ```

pub use helve_agent::ScriptedModel;
