//! What happens to a run: its inputs.

use std::sync::Arc;

use helve_core::{ApprovalId, ApprovalRequest, EndReason, ModelError, Outcome, Usage, Verdict};
use helve_dialect::{Call, Malformed};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::AgentError;

/// Something that happened.
#[derive(Debug)]
pub enum Input<'a> {
    /// The run starts.
    Start,
    /// A piece of the response's text.
    Text(&'a str),
    /// A piece of the model's reasoning.
    Reasoning(&'a str),
    /// A part of the response that its provider, of this wire format, wants back with the next request.
    ProviderPart(&'a str, &'a Value),
    /// The model made a call.
    Call {
        /// The call.
        call: Call,
        /// The facts about its tool.
        tool: ToolFacts,
        /// Whether it was found in text.
        in_text: bool,
    },
    /// The model quoted a call from a tool result: it is text, and does not run.
    QuotedCall {
        /// The text of the call.
        text: &'a str,
        /// The tool.
        tool: &'a str,
        /// Whether it is certainly a quotation. If not, the results contain too many calls to compare.
        certain: bool,
    },
    /// The model tried to make a call, which cannot be read.
    MalformedCall(Malformed),
    /// The usage of the response so far.
    Usage(Usage),
    /// The response is complete.
    ModelResponded(EndReason),
    /// The request failed, or the response broke off.
    ModelFailed {
        /// The error.
        error: ModelError,
        /// Whether the response had begun. Earlier failures were already retried, if that may help.
        begun: bool,
    },
    /// A call ended.
    CallFinished(Outcome),
    /// A call waits for a person.
    ApprovalRequested(Box<ApprovalRequest>),
    /// A person decided about a request; its call continues.
    Decided {
        /// The request.
        approval: ApprovalId,
        /// The decision.
        verdict: Verdict,
        /// The person.
        by: String,
    },
    /// A background call ended.
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
    /// The run is cancelled.
    Cancel,
    /// The time limit is reached.
    Timeout,
}

/// What a run must know about a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct ToolFacts {
    /// A call may start before the response is complete.
    pub early: bool,
    /// No other call of the turn may run at the same time.
    pub exclusive: bool,
    /// A successful call ends the run.
    pub ends_run: bool,
    /// An interrupted call may be repeated: it is idempotent, or only goes into the queue.
    #[serde(default)]
    pub repeatable: bool,
}
