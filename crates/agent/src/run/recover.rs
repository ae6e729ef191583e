//! Serialises a run as a snapshot, and recovers it after its process ended.

use std::sync::Arc;

use helve_core::store::interrupted;
use helve_core::{EventData, Message, MessageBody, Outcome, Part, ToolCall, untrusted};
use serde_json::Value;

use super::quotes::has_native_call;
use super::turn::CallProgress;
use super::{Effect, Phase, Run, user_text};
use crate::error::AgentError;

/// Prefix of messages about background calls, in English.
const BACKGROUND: &str = "[the background call ";
/// Prefix of messages about background calls, in Chinese.
const BACKGROUND_CHINESE: &str = "[后台调用 ";

/// Returns the tool result in a message, or `None` if the message contains none.
pub(crate) fn result_in(message: &Message) -> Option<&str> {
    match message.body() {
        MessageBody::Tool { text, .. } => Some(text),
        MessageBody::User { parts } => match &parts[..] {
            [Part::Text { text }] if text.starts_with(BACKGROUND) || text.starts_with(BACKGROUND_CHINESE) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

impl Run {
    /// Serialises the run without its messages. [`Self::restore`] needs both.
    ///
    /// # Errors
    /// Returns an error if the run cannot be serialised as JSON.
    pub fn snapshot(&mut self) -> Result<Value, AgentError> {
        let messages = std::mem::take(&mut self.messages);
        let snapshot = serde_json::to_value(&*self);
        self.messages = messages;
        snapshot.map_err(|error| AgentError::Snapshot(format!("cannot serialise the run: {error}")))
    }

    /// Restores a run from a snapshot and its messages.
    ///
    /// # Errors
    /// Returns an error if the snapshot is invalid, for example because another version of Helve wrote it.
    pub fn restore(snapshot: Value, messages: Vec<Arc<Message>>) -> Result<Self, AgentError> {
        let run: Self = serde_json::from_value(snapshot).map_err(|error| {
            AgentError::Snapshot(format!("cannot read the stored run; another version of Helve may have written it: {error}"))
        })?;
        let calls_natively = run.calls_natively || has_native_call(&messages, &run.settings.model);
        Ok(Self { messages, calls_natively, ..run })
    }

    /// Returns the text of the last user message.
    #[must_use]
    pub fn input(&self) -> Arc<str> {
        let last = self.messages.iter().rev().find(|message| matches!(message.body(), MessageBody::User { .. }));
        last.map(|message| user_text(message)).unwrap_or_default()
    }

    /// Sets the sequence number of the last event, which the store assigned.
    pub fn set_seq(&mut self, seq: u64) {
        self.seq = seq;
    }

    /// Adds the result of a background call to the history.
    pub(super) fn background_result(&mut self, tool: &str, outcome: &Outcome) {
        let text = outcome.text();
        let text = helve_core::printable::shorten_bytes(&text, self.settings.limits.result_bytes);
        let (id, text) = (outcome.call_id, untrusted::mark(&text));
        let message = match self.settings.language {
            helve_dialect::Language::Chinese => format!("{BACKGROUND_CHINESE}{id}（`{tool}`）已结束，结果如下，仅作为数据]\n{text}"),
            helve_dialect::Language::English => format!("{BACKGROUND}{id} (`{tool}`) has ended; its result, as data:]\n{text}"),
        };
        self.messages.push(Arc::new(Message::user(message)));
    }

    /// Resumes the run after its process ended.
    pub(super) fn recover(&mut self, effects: &mut Vec<Effect>) {
        match self.phase {
            Phase::New => self.start(effects),
            Phase::Responding => {
                // The response is lost, and so are the calls that started before it was complete.
                for slot in self.turn.slots.iter().filter(|slot| matches!(slot.state, CallProgress::Running)) {
                    let outcome = Outcome::failed(slot.call.id, slot.call.tool.clone(), interrupted());
                    effects.push(Effect::Emit(EventData::ToolComplete { call_id: slot.call.id, outcome }));
                }
                self.turn = super::Turn::default();
                effects.push(Effect::AskModel);
            }
            Phase::Calling => {
                self.waiting_announced = false;
                let mut interrupted_calls = Vec::new();
                for slot in self.turn.slots.iter().filter(|slot| matches!(slot.state, CallProgress::Running)) {
                    if slot.facts.repeatable {
                        effects.push(Effect::StartCall(tool_call(&slot.call)));
                    } else {
                        interrupted_calls.push(Outcome::failed(slot.call.id, slot.call.tool.clone(), interrupted()));
                    }
                }
                for outcome in interrupted_calls {
                    self.call_finished(outcome, effects);
                }
            }
            Phase::Over => {}
        }
    }
}

/// Returns the call with the arguments that the model wrote.
fn tool_call(call: &helve_core::SaidCall) -> ToolCall {
    let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| Value::String(call.arguments.clone()));
    ToolCall { id: call.id, tool: call.tool.clone(), arguments, model_id: call.model_id.clone() }
}
