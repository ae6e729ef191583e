//! A run in pieces of paper: written down, read again, and gone on with after its process ended.

use std::sync::Arc;

use helve_core::store::interrupted;
use helve_core::{EventData, Message, Outcome, ToolCall};
use serde_json::Value;

use super::turn::State;
use super::{Effect, Phase, Run, asked};
use crate::error::AgentError;

impl Run {
    /// What must be written down to go on later, without what was said.
    ///
    /// # Errors
    /// Where it cannot be written as JSON.
    pub fn snapshot(&mut self) -> Result<Value, AgentError> {
        let messages = std::mem::take(&mut self.messages);
        let written = serde_json::to_value(&*self);
        self.messages = messages;
        written.map_err(|error| AgentError::ParseError(format!("the run cannot be written down: {error}")))
    }

    /// A run from what was written down, and what was said so far.
    ///
    /// # Errors
    /// Where it cannot be understood.
    pub fn restore(snapshot: Value, messages: Vec<Arc<Message>>) -> Result<Self, AgentError> {
        let run: Self = serde_json::from_value(snapshot)
            .map_err(|error| AgentError::ParseError(format!("the run was written down by another version of Helve: {error}")))?;
        Ok(Self { messages, ..run })
    }

    /// What it was asked.
    #[must_use]
    pub fn input(&self) -> Arc<str> {
        let last = self.messages.iter().rev().find(|message| matches!(message.body(), helve_core::MessageBody::User { .. }));
        last.map(|message| asked(message)).unwrap_or_default()
    }

    /// The place of the last event, where the record counts.
    pub fn number(&mut self, seq: u64) {
        self.seq = seq;
    }

    /// Tells the model of a background call that ended.
    pub(super) fn heard(&mut self, tool: &str, outcome: &Outcome) {
        let text = outcome.text();
        let text = helve_core::printable::shorten_bytes(&text, self.settings.limits.result_bytes);
        let id = outcome.call_id;
        let told = match self.settings.language {
            helve_dialect::Language::Chinese => format!("[后台调用 {id}（`{tool}`）已结束，结果如下]\n{text}"),
            helve_dialect::Language::English => format!("[the background call {id} (`{tool}`) has ended; its result:]\n{text}"),
        };
        self.messages.push(Arc::new(Message::user(told)));
    }

    /// Goes on after its process ended in the middle of something.
    pub(super) fn recover(&mut self, effects: &mut Vec<Effect>) {
        match self.phase {
            Phase::New => self.begin(effects),
            Phase::Asking => {
                // The answer is lost, and calls that began while it came are of no use without it.
                for slot in self.turn.slots.iter().filter(|slot| matches!(slot.state, State::Running)) {
                    let outcome = Outcome::failed(slot.said.id, slot.said.tool.clone(), interrupted());
                    effects.push(Effect::Emit(EventData::ToolComplete { call_id: slot.said.id, outcome }));
                }
                self.turn = super::Turn::default();
                effects.push(Effect::AskModel);
            }
            Phase::Calling => {
                self.waiting_told = false;
                let mut broken = Vec::new();
                for slot in self.turn.slots.iter().filter(|slot| matches!(slot.state, State::Running)) {
                    if slot.facts.repeatable {
                        effects.push(Effect::StartCall(call(&slot.said)));
                    } else {
                        broken.push(Outcome::failed(slot.said.id, slot.said.tool.clone(), interrupted()));
                    }
                }
                for outcome in broken {
                    self.finished(outcome, effects);
                }
            }
            Phase::Over => {}
        }
    }
}

/// A call as the model made it.
fn call(said: &helve_core::SaidCall) -> ToolCall {
    let arguments = serde_json::from_str(&said.arguments).unwrap_or_else(|_| Value::String(said.arguments.clone()));
    ToolCall { id: said.id, tool: said.tool.clone(), arguments, model_id: said.model_id.clone() }
}
