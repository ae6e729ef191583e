//! What a run wants done: its effects, and its answer.

use helve_core::{ApprovalRequest, EndOfRun, EventData, ToolCall, Usage};

use crate::error::AgentError;

/// Something to do.
#[derive(Debug)]
pub enum Effect {
    /// Send a request to the model.
    AskModel,
    /// Admit and attempt a call.
    StartCall(ToolCall),
    /// Cancel the running calls; they already have their outcomes.
    CancelCalls,
    /// Ask a person to decide about a call.
    RequestApproval(Box<ApprovalRequest>),
    /// Send an event to the listener.
    Emit(EventData),
    /// Store the messages: all calls in them have results.
    Persist,
    /// Pause until a person decides.
    Pause,
    /// The run is over.
    Done(Result<Answer, AgentError>),
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// Why the run ended.
    pub reason: EndOfRun,
    /// Tokens and cost.
    pub usage: Usage,
    /// The number of model requests.
    pub turns: u32,
    /// The number of calls.
    pub calls: u32,
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}
