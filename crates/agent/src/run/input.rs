//! The inputs of a run: everything that can happen to it.

use std::sync::Arc;

use helve_core::{ApprovalId, ApprovalRequest, EndReason, ModelError, Outcome, Usage, Verdict};
use helve_dialect::{Call, Malformed};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::AgentError;

/// Something that happened, which the driver passes to the run.
#[derive(Debug)]
pub enum Input<'a> {
    /// The run starts.
    Start,
    /// A piece of the response's text.
    Text(&'a str),
    /// A piece of the model's reasoning.
    Reasoning(&'a str),
    /// A part of the response that the provider requires back with the next request, with the name of its wire format.
    ProviderPart(&'a str, &'a Value),
    /// The model called a tool.
    Call {
        /// The call as the reader parsed it.
        call: Call,
        /// The facts about the tool that the model called.
        tool: ToolFacts,
        /// Whether the call was found in the message text.
        in_text: bool,
    },
    /// The model quoted a call from a tool result. The quotation stays text, and does not run.
    QuotedCall {
        /// The text of the call.
        text: &'a str,
        /// The name of the tool in the quoted call.
        tool: &'a str,
        /// Whether a tool result certainly contains the call. If not, the results contain too many calls to compare.
        certain: bool,
    },
    /// The model wrote a call that cannot be parsed.
    MalformedCall(Malformed),
    /// The usage of the response so far.
    Usage(Usage),
    /// The response is complete.
    ModelResponded(EndReason),
    /// The request to the model failed, or the response was incomplete.
    ModelFailed {
        /// The error of the model.
        error: ModelError,
        /// Whether the response had begun. The run repeats the request only if so: models retry earlier failures themselves.
        begun: bool,
    },
    /// A call ended.
    CallFinished(Outcome),
    /// A call needs approval or input from a person.
    ApprovalRequested(Box<ApprovalRequest>),
    /// A person decided about an approval request. The call continues.
    Decided {
        /// The id of the approval request.
        approval: ApprovalId,
        /// Whether the person approved or denied the call.
        verdict: Verdict,
        /// The name of the person.
        by: String,
    },
    /// A background call ended; its result goes into the history.
    BackgroundResult {
        /// The tool's name.
        tool: Arc<str>,
        /// The outcome of the call.
        outcome: Outcome,
    },
    /// Another process resumes the run from its last snapshot.
    Recover,
    /// The run cannot continue.
    Failed(AgentError),
    /// The run was cancelled.
    Cancel,
    /// The run reached its time limit.
    Timeout,
}

/// The properties of a tool that a run must know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct ToolFacts {
    /// Whether a call may start before the response is complete.
    pub early: bool,
    /// Whether no other call of the turn may run at the same time.
    pub exclusive: bool,
    /// Whether a successful call ends the run.
    pub ends_run: bool,
    /// Whether an interrupted call may be repeated, because the tool is idempotent or the call only goes into the queue.
    #[serde(default)]
    pub repeatable: bool,
}
