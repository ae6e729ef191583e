//! What the model says in one turn, and how far its calls are.

use helve_core::{ApprovalId, ProviderParts, SaidCall, ToolCall, Usage};
use helve_dialect::FaultKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ToolFacts;

/// So many parts of an answer are kept for its provider.
const MAX_KEPT: usize = 4096;

/// One turn under way.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Turn {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) kept: Option<ProviderParts>,
    pub(super) slots: Vec<Slot>,
    pub(super) malformed: Vec<Broken>,
    pub(super) usage: Usage,
    /// A call was found in text although the model can call natively.
    pub(super) rescued: bool,
    /// Calls that the model quoted.
    #[serde(default)]
    pub(super) quotes: usize,
    /// A call was really made.
    #[serde(default)]
    pub(super) called: bool,
    /// The answer is complete.
    pub(super) complete: bool,
}

/// One call of the turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Slot {
    pub(super) said: SaidCall,
    pub(super) facts: ToolFacts,
    /// Why it must not run, although it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
    pub(super) state: State,
}

/// How far a call is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum State {
    /// Not announced yet.
    Held(ToolCall),
    Running,
    /// A person must answer.
    Waiting(ApprovalId),
    Done {
        text: String,
        success: bool,
    },
}

/// Something that was meant as a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Broken {
    pub(super) error: String,
    pub(super) raw: String,
    #[serde(skip)]
    pub(super) kind: Option<FaultKind>,
}

impl Turn {
    pub(super) fn keep(&mut self, format: &str, part: &Value) {
        let kept = self.kept.get_or_insert_with(|| ProviderParts { format: format.into(), parts: Vec::new() });
        if kept.parts.len() < MAX_KEPT {
            kept.parts.push(part.clone());
        }
    }

    /// A request was answered, so that its call is on its way again.
    pub(super) fn resume(&mut self, approval: ApprovalId) {
        for slot in &mut self.slots {
            if matches!(slot.state, State::Waiting(waiting) if waiting == approval) {
                slot.state = State::Running;
            }
        }
    }

    /// The requests that are open.
    pub(super) fn open_requests(&self) -> Vec<ApprovalId> {
        self.slots.iter().filter_map(|slot| if let State::Waiting(approval) = slot.state { Some(approval) } else { None }).collect()
    }

    pub(super) fn is_running(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot.state, State::Running))
    }

    /// The next call that may begin: one that must be alone waits for those before it, and those after it wait for it.
    pub(super) fn next_to_start(&self) -> Option<usize> {
        let mut all_done = true;
        for (place, slot) in self.slots.iter().enumerate() {
            if slot.facts.exclusive && !all_done {
                return None;
            }
            if matches!(slot.state, State::Held(_)) {
                return Some(place);
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
        matches!(self.state, State::Done { .. })
    }

    /// Takes note of what came of the call; what the model reads is bounded.
    pub(super) fn settle(&mut self, text: String, success: bool, most: usize) {
        let text = if text.len() > most { helve_core::printable::shorten_bytes(&text, most) } else { text };
        self.state = State::Done { text, success };
    }
}
