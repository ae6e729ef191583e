//! Events of runs and calls. Their JSON form is part of the stable interface.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::{Digest, Verdict};
use crate::ids::{ApprovalId, CallId, ConversationId, RunId};
use crate::message::SaidCall;
use crate::model::{EndReason, Usage};
use crate::outcome::Outcome;

/// One event of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Event {
    /// The id of the run.
    pub run_id: RunId,
    /// The conversation of the run.
    pub conversation_id: Option<ConversationId>,
    /// The id of the run that started this one; only for sub-agents.
    pub parent_run_id: Option<RunId>,
    /// Number of the event within the run: 1, 2, 3 …, without gaps. Deltas are not stored and not counted; they have the number of the
    /// previous event.
    pub seq: u64,
    /// When the event happened; in JSON, RFC 3339 in UTC.
    pub time: Timestamp,
    /// The type and the data of the event.
    #[serde(flatten)]
    pub data: EventData,
}

/// The data of an event.
#[derive(Debug, Clone, Serialize, Deserialize, crate::Name)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventData {
    /// A run started.
    RunStarted {
        /// The name of the agent, if it has one.
        agent: Option<Arc<str>>,
        /// The name of the model.
        model: Arc<str>,
        /// The input of the run.
        input: Arc<str>,
    },
    /// Helve sent a request to the model.
    ModelRequested {
        /// The number of the turn within the run: 1, 2, 3 …
        turn: u32,
        /// Number of messages in the request.
        messages: usize,
        /// Number of tools in the request.
        tools: usize,
        /// How the model calls tools: `native`, `structured`, `json` or `xml`.
        strategy: Arc<str>,
    },
    /// The model streamed text. Not stored.
    TextDelta {
        /// The next part of the text.
        text: String,
    },
    /// The model streamed reasoning. Not stored.
    ReasoningDelta {
        /// The next part of the reasoning.
        text: String,
    },
    /// The model streamed a part of a call. Not stored, and not part of the stable JSON.
    CallDelta {
        /// Index of the call in the response.
        index: usize,
        /// The tool's name, in the first delta.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// The next part of the arguments, as the model wrote them.
        arguments: String,
    },
    /// The model's response is complete.
    ModelResponded {
        /// The number of the turn within the run: 1, 2, 3 …
        turn: u32,
        /// The text of the response.
        text: Arc<str>,
        /// The calls in the response, as the model wrote them.
        calls: Vec<SaidCall>,
        /// Why the response ended.
        end: EndReason,
        /// Tokens and cost of the response.
        usage: Usage,
    },
    /// The agent's tools changed between two turns.
    ToolsChanged {
        /// The names of new tools.
        added: Vec<Arc<str>>,
        /// The names of removed tools.
        removed: Vec<Arc<str>>,
    },
    /// The model calls tools with another strategy from now on.
    StrategyChanged {
        /// The previous strategy.
        from: Arc<str>,
        /// The new strategy.
        to: Arc<str>,
        /// Why the strategy changed.
        reason: String,
    },
    /// A background call was put into the queue.
    TaskAccepted {
        /// The id of the call, which is also the id of the task.
        call_id: CallId,
        /// The tool's name.
        tool: Arc<str>,
    },
    /// A task ended, possibly after the run that made the call.
    TaskFinished {
        /// The id of the call, which is also the id of the task.
        call_id: CallId,
        /// The tool's name.
        tool: Arc<str>,
        /// The outcome of the call.
        outcome: Outcome,
    },
    /// A message for people, for example about a failed hook or a retry.
    Notification {
        /// The text of the message.
        message: String,
    },
    /// The run waits for decisions on approval requests.
    RunWaiting {
        /// The ids of the pending requests.
        approvals: Vec<ApprovalId>,
    },
    /// The run ended.
    RunFinished {
        /// The answer of the run.
        text: Arc<str>,
        /// Why the run ended: `answered`, `stopped`, `cancelled`, or the limit that was reached.
        reason: EndOfRun,
        /// Tokens and cost of the run.
        usage: Usage,
    },
    /// The run failed.
    RunFailed {
        /// Why the run failed.
        error: RunError,
    },
    /// The model made a call. Exactly one `tool_complete` follows.
    ToolRequested {
        /// The id of the call.
        call_id: CallId,
        /// The tool's name.
        tool: Arc<str>,
        /// The arguments as the model wrote them.
        arguments: Value,
    },
    /// A tool started to run.
    ToolStart {
        /// The id of the call.
        call_id: CallId,
        /// The tool's name.
        tool: Arc<str>,
    },
    /// A tool reported progress.
    ToolProgress {
        /// The id of the call.
        call_id: CallId,
        /// Progress from 0 to 1, if known.
        fraction: Option<f64>,
        /// A short message about the progress.
        message: String,
    },
    /// A call ended.
    ToolComplete {
        /// The id of the call.
        call_id: CallId,
        /// The outcome of the call.
        outcome: Outcome,
    },
    /// A call needs approval.
    PermissionRequest {
        /// The id of the approval request.
        approval_id: ApprovalId,
        /// The id of the call.
        call_id: CallId,
        /// The tool's name.
        tool: Arc<str>,
        /// The arguments that the call will run with.
        arguments: Value,
        /// The digest that binds the decision to this call.
        digest: Digest,
        /// Why the call needs approval.
        reason: String,
    },
    /// A person decided an approval request, or the request expired.
    PermissionResult {
        /// The id of the approval request.
        approval_id: ApprovalId,
        /// The verdict on the request.
        decision: Verdict,
        /// The name of the person or program that decided.
        by: String,
    },
}

impl EventData {
    /// Returns whether the event is a delta of a response. Deltas are not stored.
    #[must_use]
    pub fn is_piece(&self) -> bool {
        matches!(self, Self::TextDelta { .. } | Self::ReasoningDelta { .. } | Self::CallDelta { .. })
    }
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, crate::Name)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndOfRun {
    /// The model answered.
    Answered,
    /// A tool ended the run.
    Stopped,
    /// The run was cancelled.
    Cancelled,
    /// The run reached its limit of model requests.
    MaxIterations,
    /// The run reached its limit of calls.
    MaxCalls,
    /// The run reached its token limit.
    TokenBudget,
    /// The run reached its cost limit.
    CostBudget,
    /// The run reached its time limit.
    TimeBudget,
    /// The model repeated the same call.
    RepeatedCalls,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunError {
    /// The kind of error, such as `auth` or `overloaded`.
    pub kind: Arc<str>,
    /// The error message.
    pub message: String,
    /// What a person can do about the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Arc<str>>,
}

/// Receives the events of a call. An observer must not block.
pub trait Observer: Send + Sync {
    /// Receives one event.
    fn observe(&self, event: EventData);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_envelope_has_the_shape_of_the_contract() {
        let (run_id, call_id) = (RunId::mint(), CallId::mint());
        let event = Event {
            run_id,
            conversation_id: None,
            parent_run_id: None,
            seq: 1,
            time: "2026-01-01T00:00:00Z".parse().expect("a time"),
            data: EventData::ToolRequested { call_id, tool: "add".into(), arguments: json!({"a": 1}) },
        };
        let wire = json!(event);
        assert_eq!(
            wire,
            json!({"run_id": run_id, "conversation_id": null, "parent_run_id": null, "seq": 1, "time": "2026-01-01T00:00:00Z",
                   "type": "tool_requested", "data": {"call_id": call_id, "tool": "add", "arguments": {"a": 1}}})
        );
        assert_eq!(json!(serde_json::from_value::<Event>(wire.clone()).expect("readable")), wire);
    }

    #[test]
    fn names_are_those_of_the_wire() {
        let call_id = CallId::mint();
        for data in [
            EventData::TextDelta { text: "x".into() },
            EventData::Notification { message: "x".into() },
            EventData::ToolStart { call_id, tool: "add".into() },
            EventData::TaskAccepted { call_id, tool: "add".into() },
            EventData::PermissionResult { approval_id: ApprovalId::mint(), decision: Verdict::Deny, by: "ada".into() },
        ] {
            assert_eq!(json!(data)["type"], data.name());
        }
    }
}
