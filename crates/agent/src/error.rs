//! Errors of agents, and paused runs.

use helve_core::{ApprovalRequest, EndOfRun, ModelError, RunError, SpecError, StoreError};
use helve_tools::ToolkitError;
use serde::{Deserialize, Serialize};

use crate::run::Run;

/// Why a run ended or paused without an answer. A failed call is never the reason: the model gets the error and continues.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The request to the model failed.
    #[error(transparent)]
    Provider(#[from] ModelError),
    /// The agent's selection names an unknown tool or tool set.
    #[error(transparent)]
    Tools(#[from] ToolkitError),
    /// A tool is invalid or already registered.
    #[error(transparent)]
    InvalidTool(#[from] SpecError),
    /// The model's calls could not be parsed, even after a correction.
    #[error("{0}")]
    Unreadable(String),
    /// The model did not call a tool although the tool choice requires a call, even after a correction.
    #[error("the model did not call a tool although one is required, even after a correction")]
    NoCall,
    /// The answer does not match the requested type, even after a correction.
    #[error("the model's answer does not match the requested type, even after a correction: {0}")]
    WrongType(String),
    /// Native calls and structured output are both turned off.
    #[error("the agent cannot call tools: set `function_calling` or `fallback_to_structured_output` to true in its `output_strategy`")]
    NoStrategy,
    /// The run belongs to another conversation, or the conversation has continued without the run.
    #[error("the run belongs to another conversation, or the conversation has continued without the run")]
    OtherConversation,
    /// The run has already ended without an answer.
    #[error("the run has already ended")]
    Over,
    /// The agent has no store for its runs.
    #[error("this agent has no store; set one with `Agent::with_store`, or create the agent from a `Helve` that has one")]
    NoStore,
    /// The agent's executor already has another store.
    #[error("the agent's executor already uses another store; runs and their background calls must share one")]
    OtherStore,
    /// The snapshot of a run cannot be serialised or deserialised.
    #[error("{0}")]
    Snapshot(String),
    /// The run stopped without an answer.
    #[error("{}", stopped(*reason))]
    Stopped {
        /// Why the run stopped.
        reason: EndOfRun,
        /// The text of the model so far.
        text: String,
    },
    /// The store failed. The run can be resumed from its last commit.
    #[error(transparent)]
    Storage(#[from] StoreError),
    /// The run is paused until people decide its approval requests. Resume the run with [`Agent::resume`](crate::Agent::resume).
    #[error("run paused: {} approval(s) pending", .0.requests.len())]
    Waiting(Box<PausedRun>),
}

/// A run that waits for decisions. A program can serialise a paused run, and resume it in another process.
#[derive(Clone, Serialize, Deserialize)]
pub struct PausedRun {
    /// The state of the run.
    pub run: Run,
    /// The pending approval requests.
    pub requests: Vec<ApprovalRequest>,
}

/// Formats the run without arguments, which may contain secrets.
impl std::fmt::Debug for PausedRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let requests: Vec<_> = self.requests.iter().map(|request| (request.id, &request.tool)).collect();
        f.debug_struct("PausedRun").field("run", &self.run).field("requests", &requests).finish()
    }
}

fn stopped(reason: EndOfRun) -> &'static str {
    match reason {
        EndOfRun::Answered | EndOfRun::Stopped => "run finished",
        EndOfRun::Cancelled => "run cancelled",
        EndOfRun::MaxIterations => "run stopped: iteration limit reached without an answer (max_iterations)",
        EndOfRun::MaxCalls => "run stopped: call limit reached (max_calls)",
        EndOfRun::TokenBudget => "run stopped: token limit reached (max_tokens)",
        EndOfRun::CostBudget => "run stopped: cost limit reached (max_cost)",
        EndOfRun::TimeBudget => "run stopped: time limit reached (timeout)",
        EndOfRun::RepeatedCalls => "run stopped: the model repeated the same call with the same result (same_calls)",
        _ => "run stopped",
    }
}

impl AgentError {
    /// Returns the kind of the error, a stable name for programs.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Provider(error) => error.kind(),
            Self::Tools(_) => "unknown_tool",
            Self::InvalidTool(_) | Self::NoStrategy | Self::OtherConversation | Self::Over | Self::NoStore | Self::OtherStore => {
                "bad_request"
            }
            Self::Unreadable(_) | Self::NoCall | Self::Snapshot(_) => "parse_error",
            Self::WrongType(_) => "invalid_parameters",
            Self::Stopped { reason, .. } => reason.name(),
            Self::Waiting(_) => "waiting",
            Self::Storage(_) => "storage",
        }
    }

    /// Returns what a person can do about the error, or `None` if Helve has no advice.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Provider(error) => Some(error.hint()),
            Self::Unreadable(_) | Self::NoCall => {
                Some("try a larger model, or let the agent fall back: `output_strategy: {fallback_to_structured_output: true}`")
            }
            Self::Stopped { reason: EndOfRun::Cancelled, .. } => None,
            Self::Storage(_) => Some("check that the store is reachable and has free space; `helve runs resume` resumes the run"),
            Self::Stopped { .. } => Some("raise the limit in the agent's `limits`, or make the task smaller"),
            _ => None,
        }
    }

    pub(crate) fn for_event(&self) -> RunError {
        RunError { kind: self.kind().into(), message: self.to_string(), hint: self.hint().map(Into::into) }
    }
}
