//! Ends turns and runs: completes the history, and gives every announced call an outcome.

use std::sync::Arc;

use helve_core::{EndOfRun, ErrorKind, EventData, Message, MessageBody, Outcome, ToolError};

use super::turn::CallProgress;
use super::{Answer, Effect, Phase, Run};
use crate::error::AgentError;

impl Run {
    /// Ends the run with a reason. Only some reasons lead to an answer.
    pub(super) fn end(&mut self, reason: EndOfRun, effects: &mut Vec<Effect>) {
        self.phase = Phase::Over;
        let text = std::mem::take(&mut self.turn.text);
        let text = if text.is_empty() { self.last_text() } else { text };
        effects.push(Effect::Persist);
        effects.push(Effect::Emit(EventData::RunFinished { text: text.as_str().into(), reason, usage: self.usage }));
        effects.push(Effect::Done(match reason {
            EndOfRun::Answered | EndOfRun::Stopped => Ok(Answer { text, reason, usage: self.usage, turns: self.turns, calls: self.calls }),
            _ => Err(AgentError::Stopped { reason, text }),
        }));
    }

    /// Ends the run with an error.
    pub(super) fn fail(&mut self, error: AgentError, effects: &mut Vec<Effect>) {
        self.phase = Phase::Over;
        effects.push(Effect::Persist);
        effects.push(Effect::Emit(EventData::RunFailed { error: error.for_event() }));
        effects.push(Effect::Done(Err(error)));
    }

    /// Returns the last text of the model since the last user message.
    fn last_text(&self) -> String {
        let last = self.messages.iter().rev().take_while(|message| !matches!(message.body(), MessageBody::User { .. }));
        let mut texts = last.filter_map(|message| match message.body() {
            MessageBody::Assistant { text, .. } if !text.is_empty() => Some(text.to_string()),
            _ => None,
        });
        texts.next().unwrap_or_default()
    }

    /// Stops the run. Announced calls get an outcome, and the text so far stays in the history.
    pub(super) fn stop(&mut self, reason: EndOfRun, effects: &mut Vec<Effect>) {
        if self.phase == Phase::Responding {
            self.usage += self.turn.usage;
        }
        let error = match reason {
            EndOfRun::TimeBudget => ToolError::new(ErrorKind::Cancelled, "the run reached its time limit before the call ended"),
            _ => ToolError::cancelled(),
        };
        self.cancel_calls(&error, effects);
        let text = self.turn.text.clone();
        self.close_turn();
        self.turn.text = text;
        self.end(reason, effects);
    }

    /// Gives every unfinished call that was announced an outcome. Calls that were not announced are dropped.
    pub(super) fn cancel_calls(&mut self, error: &ToolError, effects: &mut Vec<Effect>) {
        let max = self.settings.limits.result_bytes;
        effects.push(Effect::CancelCalls);
        for slot in &mut self.turn.slots {
            if matches!(slot.state, CallProgress::Pending(_) | CallProgress::Done { .. }) {
                continue;
            }
            let call_id = slot.call.id;
            let outcome = Outcome::failed(call_id, slot.call.tool.clone(), error.clone());
            slot.finish(outcome.text().into_owned(), false, max);
            effects.push(Effect::Emit(EventData::ToolComplete { call_id, outcome }));
        }
    }

    /// Adds the turn to the history: the response, then the result of each call, in order.
    pub(super) fn close_turn(&mut self) {
        let turn = std::mem::take(&mut self.turn);
        self.has_called |= turn.called;
        let mut text = turn.text;
        for malformed in &turn.malformed {
            text.push_str(&malformed.raw);
        }
        let reasoning = Some(turn.reasoning).filter(|reasoning| !reasoning.is_empty()).map(Into::into);
        let mut calls = Vec::with_capacity(turn.slots.len());
        let mut results = Vec::with_capacity(turn.slots.len());
        for slot in turn.slots {
            let CallProgress::Done { text, success } = slot.state else { continue };
            let (call_id, model_id, tool) = (slot.call.id, slot.call.model_id.clone(), slot.call.tool.clone());
            results.push(Arc::new(Message::new(MessageBody::Tool { call_id, model_id, tool, text, success })));
            calls.push(slot.call);
        }
        if text.is_empty() && calls.is_empty() {
            return;
        }
        // Provider parts refer to all calls of the response, so they are only valid if no call was malformed.
        let kept = turn.provider_parts.filter(|_| turn.malformed.is_empty());
        self.messages.reserve(results.len() + 1);
        self.messages.push(Arc::new(Message::new(MessageBody::Assistant { text: text.into(), reasoning, calls, kept })));
        self.messages.append(&mut results);
    }
}
