//! Errors of agents.

use helve_core::{ApprovalRequest, EndOfRun, ModelError, RunError, SpecError, StoreError};
use helve_tools::ToolkitError;
use serde::{Deserialize, Serialize};

use crate::run::Run;

/// Why an agent gave no answer. A failed call is never the reason: the model gets the error and continues.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The request to the model failed.
    #[error(transparent)]
    Provider(#[from] ModelError),
    /// The agent names an unknown tool or set.
    #[error(transparent)]
    Tools(#[from] ToolkitError),
    /// A tool is invalid or already registered.
    #[error(transparent)]
    InvalidTool(#[from] SpecError),
    /// The model's calls could not be read, even after a correction.
    #[error("{0}")]
    Unreadable(String),
    /// The model did not call a tool although the tool choice requires it, even after a correction.
    #[error("the model did not call a tool although one is required, even after a correction")]
    NoCall,
    /// The answer does not fit the requested type, even after a correction.
    #[error("the model's answer does not fit the type, even after a correction: {0}")]
    WrongType(String),
    /// Native calls and structured output are both turned off.
    #[error("both output strategies are off, so the agent cannot call any tool")]
    NoStrategy,
    /// The run belongs to another conversation, or this one has continued without it.
    #[error("the run belongs to another conversation, or this one has continued without it")]
    OtherConversation,
    /// The run has already ended without an answer.
    #[error("the run has already ended")]
    Over,
    /// The agent has no store for its runs.
    #[error("this agent has no store; set one with `Agent::with_store`, or create the agent from a `Helve` that has one")]
    NoStore,
    /// The executor of the agent already has another store.
    #[error("the agent's executor already uses another store; runs and their background calls must share one")]
    OtherStore,
    /// A stored run cannot be read or written.
    #[error("{0}")]
    Snapshot(String),
    /// The run stopped without an answer.
    #[error("{}", stopped(*reason))]
    Stopped {
        /// The reason.
        reason: EndOfRun,
        /// The text of the model so far.
        text: String,
    },
    /// The store cannot be written or read. The run can be resumed from its last stored step.
    #[error(transparent)]
    Storage(#[from] StoreError),
    /// The run waits for people. Resume it with `Agent::resume`.
    #[error("run paused: {} approval(s) pending", .0.requests.len())]
    Waiting(Box<PausedRun>),
}

/// A run that waits for people. It can be stored and resumed by another process.
#[derive(Clone, Serialize, Deserialize)]
pub struct PausedRun {
    /// The run.
    pub run: Run,
    /// The pending requests.
    pub requests: Vec<ApprovalRequest>,
}

/// Omits arguments, which may contain secrets.
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
    /// The kind, for programs.
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

    /// What a person can do about it; `None` if there is nothing.
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
