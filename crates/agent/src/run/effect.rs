//! The outputs of a run: effects for the driver, and the answer.

use helve_core::{ApprovalRequest, EndOfRun, EventData, ToolCall, Usage};

use crate::error::AgentError;

/// An action that the driver must perform for a run.
#[derive(Debug)]
pub enum Effect {
    /// Send a request to the model.
    AskModel,
    /// Admit and attempt a call.
    StartCall(ToolCall),
    /// Cancel the running calls. The run has already set their outcomes.
    CancelCalls,
    /// Ask a person to decide about a call.
    RequestApproval(Box<ApprovalRequest>),
    /// Send an event to the listener and to the store.
    Emit(EventData),
    /// Copy new messages into the conversation. All calls in them have results.
    Persist,
    /// Pause until a person decides.
    Pause,
    /// End the run with this result.
    Done(Result<Answer, AgentError>),
}

/// The result of a run that ended with an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The text of the answer.
    pub text: String,
    /// Why the run ended.
    pub reason: EndOfRun,
    /// Tokens and cost of the run.
    pub usage: Usage,
    /// The number of requests to the model.
    pub turns: u32,
    /// The number of calls that the run announced.
    pub calls: u32,
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}
