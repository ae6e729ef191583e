//! Helve's agents: a run that asks a model and answers its calls, without input or output of its own.

mod agent;
mod context;
mod conversation;
mod driver;
mod error;
mod fit;
mod options;
mod owned;
mod probe;
mod quotes;
mod run;
mod scripted;
mod stored;
mod strategy;
mod stream;
mod typed;
mod user_input;

pub use agent::Agent;
pub use context::{Context, ContextError, ToolCallContext, ToolCallRecord};
pub use conversation::Conversation;
pub use error::{AgentError, Paused};
pub use options::{AgentOptions, RunLimits};
pub use probe::{Probed, probe};
pub use run::{Answer, Effect, Input, Run, RunSettings, ToolFacts};
pub use scripted::ScriptedModel;
pub use stored::cancel_run;
pub use strategy::Strategy;
pub use stream::{OwnedRunStream, RunStream};
pub use user_input::UserInput;
