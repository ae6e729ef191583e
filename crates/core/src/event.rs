//! Events of runs and calls. Their JSON is a contract.

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
    /// Its run.
    pub run_id: RunId,
    /// The conversation of the run.
    pub conversation_id: Option<ConversationId>,
    /// For sub-agents: the run that started this one.
    pub parent_run_id: Option<RunId>,
    /// 1, 2, 3 … within the run, without gaps. Deltas are not stored, so they have no number of their own: they carry that of the event
    /// before them.
    pub seq: u64,
    /// When it happened; RFC 3339 in UTC as JSON.
    pub time: Timestamp,
    /// What happened.
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
        /// The agent, if it has a name.
        agent: Option<Arc<str>>,
        /// The model.
        model: Arc<str>,
        /// The input of the run.
        input: Arc<str>,
    },
    /// A request was sent to the model.
    ModelRequested {
        /// 1, 2, 3 … within the run.
        turn: u32,
        /// Number of messages in the request.
        messages: usize,
        /// Number of tools in the request.
        tools: usize,
        /// How the model makes calls: `native`, `structured`, `json` or `xml`.
        strategy: Arc<str>,
    },
    /// The model streams text. Not stored.
    TextDelta {
        /// The next part of the text.
        text: String,
    },
    /// The model streams reasoning. Not stored.
    ReasoningDelta {
        /// The next part of the reasoning.
        text: String,
    },
    /// The model streams a call. Not stored, and not part of the JSON contract.
    CallDelta {
        /// Index of the call in the response.
        index: usize,
        /// The tool's name, in the first delta.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// The next part of the arguments, as the model writes them.
        arguments: String,
    },
    /// The model responded.
    ModelResponded {
        /// 1, 2, 3 … within the run.
        turn: u32,
        /// Its text.
        text: Arc<str>,
        /// Its calls, as it wrote them.
        calls: Vec<SaidCall>,
        /// Why the response ended.
        end: EndReason,
        /// Usage of the response.
        usage: Usage,
    },
    /// The agent's tools changed between two turns.
    ToolsChanged {
        /// New tools.
        added: Vec<Arc<str>>,
        /// Removed tools.
        removed: Vec<Arc<str>>,
    },
    /// The model makes calls in another way from now on.
    StrategyChanged {
        /// The previous strategy.
        from: Arc<str>,
        /// The new strategy.
        to: Arc<str>,
        /// Why.
        reason: String,
    },
    /// A call was put in the queue.
    TaskAccepted {
        /// The task has the call's id.
        call_id: CallId,
        /// The tool's name.
        tool: Arc<str>,
    },
    /// A task ended, perhaps after the run that made the call.
    TaskFinished {
        /// The task.
        call_id: CallId,
        /// The tool's name.
        tool: Arc<str>,
        /// Its outcome.
        outcome: Outcome,
    },
    /// A message for people, such as a failed hook or a retry at the provider.
    Notification {
        /// The message.
        message: String,
    },
    /// The run waits for decisions.
    RunWaiting {
        /// The pending requests.
        approvals: Vec<ApprovalId>,
    },
    /// The run ended.
    RunFinished {
        /// The answer.
        text: Arc<str>,
        /// Why it ended: `answered`, `stopped`, `cancelled`, or the limit that it reached.
        reason: EndOfRun,
        /// Usage of the run.
        usage: Usage,
    },
    /// The run failed.
    RunFailed {
        /// Why.
        error: RunError,
    },
    /// The model made a call. Exactly one `tool_complete` follows.
    ToolRequested {
        /// The call.
        call_id: CallId,
        /// The tool's name.
        tool: Arc<str>,
        /// The arguments as the model wrote them.
        arguments: Value,
    },
    /// The tool started.
    ToolStart {
        /// The call.
        call_id: CallId,
        /// The tool's name.
        tool: Arc<str>,
    },
    /// The tool reports progress.
    ToolProgress {
        /// The call.
        call_id: CallId,
        /// From 0 to 1, if known.
        fraction: Option<f64>,
        /// A short message.
        message: String,
    },
    /// The call ended.
    ToolComplete {
        /// The call.
        call_id: CallId,
        /// Its outcome.
        outcome: Outcome,
    },
    /// A call needs approval.
    PermissionRequest {
        /// The request.
        approval_id: ApprovalId,
        /// The call.
        call_id: CallId,
        /// The tool's name.
        tool: Arc<str>,
        /// The exact arguments that will run.
        arguments: Value,
        /// Binds the decision to exactly this call.
        digest: Digest,
        /// Why the call needs approval.
        reason: String,
    },
    /// A person decided, or the request expired.
    PermissionResult {
        /// The request.
        approval_id: ApprovalId,
        /// The verdict.
        decision: Verdict,
        /// Who decided.
        by: String,
    },
}

impl EventData {
    /// Whether it is a delta of a response, which is not stored.
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
    /// Limit of model requests reached.
    MaxIterations,
    /// Limit of calls reached.
    MaxCalls,
    /// Token limit reached.
    TokenBudget,
    /// Cost limit reached.
    CostBudget,
    /// Time limit reached.
    TimeBudget,
    /// The model repeated the same call.
    RepeatedCalls,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunError {
    /// The kind, such as `auth` or `overloaded`.
    pub kind: Arc<str>,
    /// What happened.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Arc<str>>,
}

/// Receives the events of a call. It must not block.
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
