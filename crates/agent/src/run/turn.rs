//! One turn: the response of the model, and the progress of its calls.

use helve_core::{ApprovalId, ProviderParts, SaidCall, ToolCall, Usage};
use helve_dialect::FaultKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ToolFacts;

/// Maximum number of provider parts that are kept of one response.
const MAX_PROVIDER_PARTS: usize = 4096;

/// The current turn.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Turn {
    pub(super) text: String,
    pub(super) reasoning: String,
    #[serde(rename = "kept")]
    pub(super) provider_parts: Option<ProviderParts>,
    pub(super) slots: Vec<Slot>,
    pub(super) malformed: Vec<MalformedCall>,
    pub(super) usage: Usage,
    /// Whether a call was found in the message text although the strategy is native.
    pub(super) rescued: bool,
    /// The number of quoted calls in the response.
    #[serde(default)]
    pub(super) quotes: usize,
    /// Whether a call was started.
    #[serde(default)]
    pub(super) called: bool,
    /// Whether the response is complete.
    pub(super) complete: bool,
}

/// One call of the turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Slot {
    #[serde(rename = "said")]
    pub(super) call: SaidCall,
    pub(super) facts: ToolFacts,
    /// Why the call must not run, although it could be parsed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
    pub(super) state: CallProgress,
}

/// The progress of a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum CallProgress {
    /// The run has not announced the call yet.
    #[serde(rename = "Held")]
    Pending(ToolCall),
    Running,
    /// A person must decide this approval request.
    Waiting(ApprovalId),
    Done {
        text: String,
        success: bool,
    },
}

/// A call that could not be parsed or was not accepted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct MalformedCall {
    pub(super) error: String,
    pub(super) raw: String,
    #[serde(skip)]
    pub(super) kind: Option<FaultKind>,
}

impl Turn {
    pub(super) fn add_provider_part(&mut self, format: &str, part: &Value) {
        let provider = self.provider_parts.get_or_insert_with(|| ProviderParts { format: format.into(), parts: Vec::new() });
        if provider.parts.len() < MAX_PROVIDER_PARTS {
            provider.parts.push(part.clone());
        }
    }

    /// Marks the call of a decided request as running again.
    pub(super) fn resume(&mut self, approval: ApprovalId) {
        for slot in &mut self.slots {
            if matches!(slot.state, CallProgress::Waiting(waiting) if waiting == approval) {
                slot.state = CallProgress::Running;
            }
        }
    }

    /// Returns the approval requests without a decision.
    pub(super) fn open_requests(&self) -> Vec<ApprovalId> {
        self.slots.iter().filter_map(|slot| if let CallProgress::Waiting(approval) = slot.state { Some(approval) } else { None }).collect()
    }

    pub(super) fn is_running(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot.state, CallProgress::Running))
    }

    /// Returns the index of the next call that may start. An exclusive call waits for all calls before it, and all later calls wait for
    /// the exclusive one.
    pub(super) fn next_to_start(&self) -> Option<usize> {
        let mut all_done = true;
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.facts.exclusive && !all_done {
                return None;
            }
            if matches!(slot.state, CallProgress::Pending(_)) {
                return Some(index);
            }
            if slot.facts.exclusive && !slot.is_done() {
                return None;
            }
            all_done &= slot.is_done();
        }
        None
    }
}

impl Slot {
    pub(super) fn is_done(&self) -> bool {
        matches!(self.state, CallProgress::Done { .. })
    }

    /// Sets the result of the call, shortened to at most `max` bytes.
    pub(super) fn finish(&mut self, text: String, success: bool, max: usize) {
        let text = if text.len() > max { helve_core::printable::shorten_bytes(&text, max) } else { text };
        self.state = CallProgress::Done { text, success };
    }
}
