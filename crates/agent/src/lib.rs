//! Agents: a run sends requests to a model and runs the tool calls in its responses until the model answers.

mod agent;
mod context;
mod conversation;
mod driver;
mod error;
mod fit;
mod options;
mod probe;
mod quotes;
mod run;
mod scripted;
mod strategy;
mod stream;
mod typed;
mod user_input;

pub use agent::{Agent, cancel_run};
pub use context::{Context, ContextError, ToolCallContext, ToolCallRecord};
pub use conversation::Conversation;
pub use error::{AgentError, PausedRun};
pub use options::{AgentOptions, RunLimits};
pub use probe::{ProbeResult, probe};
pub use run::{Answer, Effect, Input, Run, RunSettings, ToolFacts};
pub use scripted::ScriptedModel;
pub use strategy::Strategy;
pub use stream::{OwnedRunStream, RunStream};
pub use user_input::UserInput;
