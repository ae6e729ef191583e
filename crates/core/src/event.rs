//! Anything that happened, in the envelope that everyone reads. The JSON is a contract.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::{Digest, Verdict};
use crate::ids::{ApprovalId, CallId, ConversationId, RunId};
use crate::message::SaidCall;
use crate::model::{EndReason, Usage};
use crate::outcome::Outcome;

/// One thing that happened, in its place in a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Event {
    /// The run it happened in.
    pub run_id: RunId,
    /// The conversation of that run.
    pub conversation_id: Option<ConversationId>,
    /// The run that started this one, for sub-agents.
    pub parent_run_id: Option<RunId>,
    /// 1, 2, 3 … within the run, without gaps. A piece of an answer has no number of its own: it carries that of the
    /// event before it, because pieces are not recorded and a record without them has no gaps either.
    pub seq: u64,
    /// When; RFC 3339 in UTC on the wire.
    pub time: Timestamp,
    /// What.
    #[serde(flatten)]
    pub data: EventData,
}

/// What happened.
#[derive(Debug, Clone, Serialize, Deserialize, crate::Name)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventData {
    /// An agent began to answer.
    RunStarted {
        /// The agent, where it has a name.
        agent: Option<Arc<str>>,
        /// The model.
        model: Arc<str>,
        /// What it was asked.
        input: Arc<str>,
    },
    /// The model is asked.
    ModelRequested {
        /// 1, 2, 3 … within the run.
        turn: u32,
        /// How many messages it reads.
        messages: usize,
        /// How many tools it is told of.
        tools: usize,
        /// How calls are carried: `native`, `structured`, `json` or `xml`.
        strategy: Arc<str>,
    },
    /// The model says something. Not recorded.
    TextDelta {
        /// A piece of its words.
        text: String,
    },
    /// The model thinks aloud. Not recorded.
    ReasoningDelta {
        /// A piece of its thoughts.
        text: String,
    },
    /// The model writes a call. Not recorded, and no part of the JSON contract.
    CallDelta {
        /// Which call of the answer.
        index: usize,
        /// The tool's name, with the first piece.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// A piece of the arguments as the model writes them.
        arguments: String,
    },
    /// The model answered.
    ModelResponded {
        /// 1, 2, 3 … within the run.
        turn: u32,
        /// Its words.
        text: Arc<str>,
        /// The calls it made, as it wrote them.
        calls: Vec<SaidCall>,
        /// Why it ended.
        end: EndReason,
        /// What it cost.
        usage: Usage,
    },
    /// The tools an agent may use changed between two turns.
    ToolsChanged {
        /// Tools that are there now.
        added: Vec<Arc<str>>,
        /// Tools that are gone.
        removed: Vec<Arc<str>>,
    },
    /// Calls are carried in another way from now on.
    StrategyChanged {
        /// The way so far.
        from: Arc<str>,
        /// The way from now on.
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
    /// A task ended. It may come after the end of the run that made the call.
    TaskFinished {
        /// The task.
        call_id: CallId,
        /// The tool's name.
        tool: Arc<str>,
        /// What came of it.
        outcome: Outcome,
    },
    /// Something a person may want to know, such as a failing hook or a wait for the provider.
    Notification {
        /// The sentence.
        message: String,
    },
    /// The run waits for people.
    RunWaiting {
        /// The requests that are open.
        approvals: Vec<ApprovalId>,
    },
    /// The run is over.
    RunFinished {
        /// The answer.
        text: Arc<str>,
        /// Why it is over: `answered`, `stopped`, `cancelled`, or the limit that it reached.
        reason: EndOfRun,
        /// What it cost.
        usage: Usage,
    },
    /// The run broke off.
    RunFailed {
        /// Why.
        error: RunError,
    },
    /// A call was announced; exactly one `tool_complete` follows.
    ToolRequested {
        /// The call.
        call_id: CallId,
        /// The tool's name.
        tool: Arc<str>,
        /// The arguments as announced.
        arguments: Value,
    },
    /// The tool began to work.
    ToolStart {
        /// The call.
        call_id: CallId,
        /// The tool's name.
        tool: Arc<str>,
    },
    /// The tool says how far it is.
    ToolProgress {
        /// The call.
        call_id: CallId,
        /// From 0 to 1, where known.
        fraction: Option<f64>,
        /// A few words.
        message: String,
    },
    /// The call ended.
    ToolComplete {
        /// The call.
        call_id: CallId,
        /// How.
        outcome: Outcome,
    },
    /// A person is asked.
    PermissionRequest {
        /// The request.
        approval_id: ApprovalId,
        /// The call it is about.
        call_id: CallId,
        /// The tool's name.
        tool: Arc<str>,
        /// The exact arguments that will run.
        arguments: Value,
        /// Binds the answer to exactly this call.
        digest: Digest,
        /// Why a person is asked.
        reason: String,
    },
    /// A person answered.
    PermissionResult {
        /// The request.
        approval_id: ApprovalId,
        /// The answer.
        decision: Verdict,
        /// Who answered.
        by: String,
    },
}

impl EventData {
    /// Whether it is a piece of an answer, which nobody records.
    #[must_use]
    pub fn is_piece(&self) -> bool {
        matches!(self, Self::TextDelta { .. } | Self::ReasoningDelta { .. } | Self::CallDelta { .. })
    }
}

/// Why a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, crate::Name)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndOfRun {
    /// The model answered.
    Answered,
    /// A tool ended it.
    Stopped,
    /// A person ended it.
    Cancelled,
    /// The model was asked as often as it may be.
    MaxIterations,
    /// It made as many calls as it may.
    MaxCalls,
    /// Its tokens are used up.
    TokenBudget,
    /// Its money is used up.
    CostBudget,
    /// Its time is up.
    TimeBudget,
    /// It made the same call again and again.
    RepeatedCalls,
}

/// Why a run broke off, for programs and people.
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

/// Whoever wants to know what happens during a call. It must not block.
pub trait Observer: Send + Sync {
    /// Takes note of one thing that happened.
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
