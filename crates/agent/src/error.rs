//! What ends a run without an answer.

use helve_core::{ApprovalRequest, EndOfRun, ModelError, RunError, SpecError, StoreError};
use helve_tools::ToolkitError;
use serde::{Deserialize, Serialize};

use crate::run::Run;

/// Why an agent gave no answer. A failed call is never the reason: the model is told, and goes on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The model did not answer.
    #[error(transparent)]
    Provider(#[from] ModelError),
    /// The agent names a tool or set that is not there.
    #[error(transparent)]
    Tools(#[from] ToolkitError),
    /// A tool cannot be registered.
    #[error(transparent)]
    InvalidTool(#[from] SpecError),
    /// What the model wrote could not be read as a call or an answer, also after it was told.
    #[error("{0}")]
    Unreadable(String),
    /// The model did not call a tool although the tool choice says that it must, also after it was told.
    #[error("the model did not call a tool although it must, also after it was told")]
    NoCall,
    /// The answer does not fit the type that was asked for, also after the model was told.
    #[error("the model's answer does not fit the type, also after it was told: {0}")]
    WrongType(String),
    /// Both ways in which a model could make calls are turned off.
    #[error("an agent with both output strategies off could not call any tool")]
    NoStrategy,
    /// The run belongs to another conversation, or this one has gone on without it.
    #[error("the run belongs to another conversation, or this one has gone on without it")]
    OtherConversation,
    /// The run ended before, and has no answer to give.
    #[error("the run was over before")]
    Over,
    /// The agent has no store for its runs.
    #[error("this agent has no store: give it one with `Agent::with_store`, or take it from a `Helve` that has one")]
    NoStore,
    /// The tools that the agent shares have another store: background calls would go there, and its runs elsewhere.
    #[error("the agent's tools have another store already: its runs and their background calls must be in one")]
    OtherStore,
    /// A stored run cannot be read or written.
    #[error("{0}")]
    Snapshot(String),
    /// The run stopped before the model answered.
    #[error("{}", stopped(*reason))]
    Stopped {
        /// Why.
        reason: EndOfRun,
        /// What the model had said.
        text: String,
    },
    /// The record cannot be written or read. What was recorded stays, and the run can be resumed.
    #[error("{0}")]
    Storage(StoreError),
    /// The run waits for people. It goes on with `Agent::resume`.
    #[error("the run waits for a person to approve {} call(s)", .0.requests.len())]
    Waiting(Box<Paused>),
}

/// A run that waits for people. It can be stored, and resumed by another process.
#[derive(Clone, Serialize, Deserialize)]
pub struct Paused {
    /// The run.
    pub run: Run,
    /// What must be answered.
    pub requests: Vec<ApprovalRequest>,
}

/// Leaves out the arguments of the calls that wait: they may be secret.
impl std::fmt::Debug for Paused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let requests: Vec<_> = self.requests.iter().map(|request| (request.id, &request.tool)).collect();
        f.debug_struct("Paused").field("run", &self.run).field("requests", &requests).finish()
    }
}

fn stopped(reason: EndOfRun) -> &'static str {
    match reason {
        EndOfRun::Answered | EndOfRun::Stopped => "the run is over",
        EndOfRun::Cancelled => "the run was cancelled",
        EndOfRun::MaxIterations => "the run stopped: the model was asked as often as it may be without giving an answer (max_iterations)",
        EndOfRun::MaxCalls => "the run stopped: the model made as many calls as it may (max_calls)",
        EndOfRun::TokenBudget => "the run stopped: its tokens are used up (max_tokens)",
        EndOfRun::CostBudget => "the run stopped: its money is used up (max_cost)",
        EndOfRun::TimeBudget => "the run stopped: its time is up (timeout)",
        EndOfRun::RepeatedCalls => "the run stopped: the model made the same call again and again and learned nothing new",
        _ => "the run stopped",
    }
}

impl AgentError {
    /// The kind as programs see it.
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

    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Provider(error) => Some(error.hint()),
            Self::Unreadable(_) | Self::NoCall => {
                Some("try a larger model, or let the agent fall back: `output_strategy: {fallback_to_structured_output: true}`")
            }
            Self::Stopped { reason: EndOfRun::Cancelled, .. } => None,
            Self::Storage(_) => Some("see that there is room and that the record can be reached; `helve runs resume` goes on with the run"),
            Self::Stopped { .. } => Some("raise the limit in the agent's `limits`, or make the task smaller"),
            _ => None,
        }
    }

    pub(crate) fn for_event(&self) -> RunError {
        RunError { kind: self.kind().into(), message: self.to_string(), hint: self.hint().map(Into::into) }
    }
}
