//! What the model says in one turn, and how far its calls are.

use std::sync::Arc;

use helve_core::{ApprovalId, Kept, Outcome, SaidCall, ToolCall, Usage};
use helve_dialect::{Kind, Malformed};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ToolFacts;

/// One turn under way.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Turn {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) kept: Option<Kept>,
    pub(super) slots: Vec<Slot>,
    pub(super) malformed: Vec<Broken>,
    pub(super) usage: Usage,
    /// A call was found in text although the model can call natively.
    pub(super) rescued: bool,
    /// The answer is complete.
    pub(super) complete: bool,
}

/// One call of the turn.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Slot {
    pub(super) said: SaidCall,
    pub(super) facts: ToolFacts,
    pub(super) state: State,
}

/// How far a call is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum State {
    /// Not announced yet.
    Held(ToolCall),
    Running,
    /// A person must answer.
    Waiting(ApprovalId),
    Done {
        text: Arc<str>,
        success: bool,
    },
}

/// Something that was meant as a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Broken {
    pub(super) error: String,
    pub(super) raw: String,
    #[serde(skip)]
    pub(super) kind: Option<Kind>,
}

impl From<Malformed> for Broken {
    fn from(malformed: Malformed) -> Self {
        Self { error: malformed.error, raw: malformed.raw, kind: Some(malformed.kind) }
    }
}

impl Turn {
    pub(super) fn keep(&mut self, format: &str, part: &Value) {
        let kept = self.kept.get_or_insert_with(|| Kept { format: format.into(), parts: Vec::new() });
        kept.parts.push(part.clone());
    }

    /// A question was answered, so that its call is on its way again.
    pub(super) fn resume(&mut self, approval: ApprovalId) {
        for slot in &mut self.slots {
            if matches!(slot.state, State::Waiting(waiting) if waiting == approval) {
                slot.state = State::Running;
            }
        }
    }

    /// The questions that are open.
    pub(super) fn open_questions(&self) -> Vec<ApprovalId> {
        self.slots.iter().filter_map(|slot| if let State::Waiting(approval) = slot.state { Some(approval) } else { None }).collect()
    }

    pub(super) fn is_running(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot.state, State::Running))
    }

    /// The next call that may begin: one that must be alone waits for those before it, and those after it wait for it.
    pub(super) fn next_to_start(&self) -> Option<usize> {
        for (place, slot) in self.slots.iter().enumerate() {
            let before = &self.slots[..place];
            let is_done = |slot: &Slot| matches!(slot.state, State::Done { .. });
            let free = if slot.facts.exclusive {
                before.iter().all(is_done)
            } else {
                before.iter().all(|slot| !slot.facts.exclusive || is_done(slot))
            };
            if !free {
                return None;
            }
            if matches!(slot.state, State::Held(_)) {
                return Some(place);
            }
        }
        None
    }
}

impl Slot {
    pub(super) fn is_done(&self) -> bool {
        matches!(self.state, State::Done { .. })
    }

    /// Takes note of what came of the call; what the model reads is bounded.
    pub(super) fn settle(&mut self, outcome: &Outcome, most: usize) {
        let text = outcome.text();
        let text = if text.len() > most { helve_core::printable::shorten(&text, most).into() } else { text };
        self.state = State::Done { text: text.as_ref().into(), success: outcome.success() };
    }
}
