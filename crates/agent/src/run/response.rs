//! Decides what follows a response of the model: calls, a correction, another request, or the end of the run.

use std::sync::Arc;

use helve_core::{EndOfRun, EndReason, EventData, Feature, Message, MessageBody, ModelError, ToolChoice, ToolError};
use helve_dialect::{FaultKind, Malformed, answer_text};

use super::turn::CallProgress;
use super::{Effect, Phase, Run};
use crate::error::AgentError;
use crate::strategy::{Strategy, in_language};

/// Maximum number of times that a conversation which is too long is halved.
const MAX_TOO_LONG: u32 = 3;

impl Run {
    /// Handles a complete response.
    pub(super) fn model_responded(&mut self, end: EndReason, effects: &mut Vec<Effect>) {
        self.turn.complete = true;
        self.usage += self.turn.usage;
        if self.strategy == Strategy::Structured
            && let Some(answer) = answer_text(&self.turn.text)
        {
            self.turn.text = answer;
        }
        if self.watched {
            let calls = self.turn.slots.iter().map(|slot| slot.call.clone()).collect();
            let text = self.turn.text.as_str().into();
            effects.push(Effect::Emit(EventData::ModelResponded { turn: self.turns, text, calls, end, usage: self.turn.usage }));
        }
        if self.turn.rescued && self.strategy == Strategy::Native && !self.fall_back("the model wrote its call as text", effects) {
            let message = "the model wrote its call as text instead of calling the function".to_owned();
            self.cancel_calls(&ToolError::cancelled(), effects);
            self.close_turn();
            return self.fail(ModelError::Unsupported { feature: Feature::Tools, message }.into(), effects);
        }
        if !self.turn.slots.is_empty() {
            self.phase = Phase::Calling;
            self.start_calls(false, effects);
            return self.try_end_turn(effects);
        }
        if !self.turn.malformed.is_empty() {
            return self.correct_malformed(effects);
        }
        if end == EndReason::Filter && self.turn.text.is_empty() {
            return self.fail(ModelError::Filter("the response was cut off".into()).into(), effects);
        }
        if self.must_explain_quotes() {
            return self.explain_quotes(effects);
        }
        if matches!(self.tool_choice(), ToolChoice::Required | ToolChoice::Specific(_)) {
            return self.insist_on_call(effects);
        }
        if self.turn.text.trim().is_empty() && self.turn.reasoning.is_empty() && self.corrections == 0 {
            self.corrections += 1;
            let message = self.in_language("You said nothing. Answer, or call a tool.", "你没有给出任何内容。请回答，或者调用工具。");
            return self.correct(message, effects);
        }
        self.close_turn();
        self.end(EndOfRun::Answered, effects);
    }

    /// Handles a response with only malformed calls: sends a correction once, then changes the strategy.
    fn correct_malformed(&mut self, effects: &mut Vec<Effect>) {
        let first = self.turn.malformed[0].clone();
        self.corrections += 1;
        // A model that writes calls as text gets a second chance, and so does one whose response was cut off. A model that calls natively
        // should know its own format.
        let (again, cut) = (self.corrections > 1, first.kind == Some(FaultKind::Incomplete));
        let gives_up = again || (self.strategy == Strategy::Native && !cut);
        let tries_another = gives_up && self.fall_back("the model's call could not be read", effects);
        if again && !tries_another {
            let error = format!("the model's calls could not be read, even after a correction: {}", first.error);
            self.close_turn();
            return self.fail(AgentError::Unreadable(error), effects);
        }
        let message = self.corrections_for_model();
        self.correct(message, effects);
    }

    /// Handles a response without a call although the tool choice requires one: sends a correction, then changes the strategy.
    fn insist_on_call(&mut self, effects: &mut Vec<Effect>) {
        if self.corrections > 0 && !self.fall_back("the model did not call a tool although it must", effects) {
            self.close_turn();
            return self.fail(AgentError::NoCall, effects);
        }
        self.corrections += 1;
        let message = match self.tool_choice() {
            ToolChoice::Specific(name) => self.in_language(&format!("You must call `{name}` now."), &format!("你现在必须调用 `{name}`。")),
            _ => self.in_language("You must call a tool now.", "你现在必须调用一个工具。"),
        };
        self.correct(message, effects);
    }

    /// Adds a message about the response to the history, and sends another request.
    pub(super) fn correct(&mut self, message: String, effects: &mut Vec<Effect>) {
        self.close_turn();
        self.messages.push(Arc::new(Message::user(message)));
        effects.push(Effect::Persist);
        self.ask_model(effects);
    }

    pub(super) fn in_language(&self, english: &str, chinese: &str) -> String {
        in_language(self.settings.language, english, chinese).to_owned()
    }

    /// Returns the message that tells the model about its malformed and quoted calls.
    pub(super) fn corrections_for_model(&self) -> String {
        let quotes = (self.turn.quotes > 0).then(|| self.quotes_message());
        let malformed = self.turn.malformed.iter().enumerate().map(|(index, call)| {
            let kind = call.kind.unwrap_or(FaultKind::Syntax);
            let malformed = Malformed { index, kind, error: call.error.clone(), raw: call.raw.clone() };
            self.strategy.correction(&malformed, self.settings.language)
        });
        malformed.chain(quotes).collect::<Vec<_>>().join("\n")
    }

    /// Handles a request that failed, or a response that was incomplete.
    pub(super) fn model_failed(&mut self, error: ModelError, begun: bool, effects: &mut Vec<Effect>) {
        self.usage += self.turn.usage;
        // If a call has started, do not repeat the request: the call might run twice.
        let untouched = self.turn.slots.iter().all(|slot| matches!(slot.state, CallProgress::Pending(_)));
        if untouched && self.may_repeat(&error, begun, effects) {
            // A request without a response is not a turn.
            self.turns = self.turns.saturating_sub(1);
            return self.ask_model(effects);
        }
        self.cancel_calls(&ToolError::cancelled(), effects);
        self.close_turn();
        self.fail(error.into(), effects);
    }

    /// Returns whether another request may help. If the error requires it, changes the strategy or halves the target size of the
    /// conversation.
    fn may_repeat(&mut self, error: &ModelError, begun: bool, effects: &mut Vec<Effect>) -> bool {
        let notification = |message: String| Effect::Emit(EventData::Notification { message });
        match error {
            ModelError::Unsupported { .. } => self.fall_back(&error.to_string(), effects),
            ModelError::ContextLength(_) if self.too_long < MAX_TOO_LONG && self.has_results() => {
                self.too_long += 1;
                effects.push(notification(format!("{error}; retrying with old results shortened")));
                true
            }
            error if error.is_retryable() && begun && !std::mem::replace(&mut self.repeated_request, true) => {
                effects.push(notification(format!("{error}; retrying")));
                true
            }
            _ => false,
        }
    }

    /// Returns whether the history contains tool results, which could be shortened.
    fn has_results(&self) -> bool {
        self.messages.iter().any(|message| matches!(message.body(), MessageBody::Tool { .. }))
    }
}
