//! Anything that happened, in the envelope that everyone reads. The JSON is a contract.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::{Decision, Digest};
use crate::ids::{ApprovalId, CallId, ConversationId, RunId};
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
    /// 1, 2, 3 … within the run, without gaps.
    pub seq: u64,
    /// When, as RFC 3339 in UTC.
    pub time: String,
    /// What.
    #[serde(flatten)]
    pub data: EventData,
}

/// What happened in a call. The kinds of runs and models join when those exist.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventData {
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
        /// The question.
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
        /// The question.
        approval_id: ApprovalId,
        /// The answer.
        decision: Decision,
        /// Who answered.
        by: String,
    },
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
            time: "2026-01-01T00:00:00Z".into(),
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
}
