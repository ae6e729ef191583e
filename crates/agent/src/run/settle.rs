//! The calls of a turn: announced, held to the limits, ended, and told to the model in their order.

use std::sync::Arc;
use std::time::Duration;

use helve_core::json::JsonLimits;
use helve_core::printable;
use helve_core::{
    ApprovalRequest, CallId, Denial, EndOfRun, EndReason, EventData, Feature, Message, MessageBody, ModelError, Outcome, SaidCall, Status,
    ToolCall, ToolChoice, ToolError,
};
use helve_dialect::{Call, FaultKind, Language, Malformed, Repair, Repairs, answer_text};
use serde_json::Value;

use super::turn::{Broken, Slot, State};
use super::{Effect, Phase, Run, ToolFacts};
use crate::error::AgentError;
use crate::strategy::Strategy;

/// An answer has at most so many calls.
const MAX_CALLS: usize = 1024;
/// Arguments that every tool would refuse are not even kept.
const MAX_ARGUMENTS: usize = JsonLimits::ARGUMENTS.bytes;
/// So many broken calls of an answer are told to the model, and so much of each.
const MAX_BROKEN: usize = 16;
const MAX_RAW: usize = 4096;
/// How often a conversation that does not fit is shortened to its half.
const MAX_REFUSED: u32 = 3;
/// Names that a model made up are shortened to what every wire allows.
const MAX_NAME: usize = 64;

impl Run {
    pub(super) fn called(&mut self, call: Call, mut facts: ToolFacts, in_text: bool, effects: &mut Vec<Effect>) {
        let rescued = in_text && self.strategy == Strategy::Native;
        self.calls_natively |= !in_text;
        if self.turn.slots.len() >= MAX_CALLS {
            let error = format!("an answer may have at most {MAX_CALLS} calls; the others were not run");
            return self.malformed(FaultKind::Syntax, error, String::new());
        }
        if call.written.as_ref().is_some_and(|written| written.len() > MAX_ARGUMENTS) {
            let error = format!("arguments may have at most {MAX_ARGUMENTS} bytes");
            return self.malformed(FaultKind::Syntax, error, call.name);
        }
        // Found in text, it may still be refused as a whole when the answer is over.
        facts.early &= !rescued;
        let problem = ambiguity(call.repairs).map(str::to_owned);
        let model_id: Arc<str> = call.id.into();
        // An id that was used before would make two results look like one.
        let model_id = self.model_ids.insert(model_id.clone()).then_some(model_id);
        let arguments = call.written.unwrap_or_else(|| Value::Object(call.arguments.clone()).to_string());
        let native_model = (!in_text).then(|| self.settings.model.clone());
        let said = SaidCall { id: CallId::mint(), model_id, tool: wire_name(&call.name), arguments, native_model };
        let wanted =
            ToolCall { id: said.id, tool: call.name.into(), arguments: Value::Object(call.arguments), model_id: said.model_id.clone() };
        self.turn.rescued |= rescued;
        self.turn.slots.push(Slot { said, facts, problem, state: State::Held(wanted) });
        if facts.early {
            self.start_calls(true, effects);
        }
    }

    /// Takes note of something that was meant as a call. Only so many are worth an answer.
    pub(super) fn malformed(&mut self, kind: FaultKind, error: String, raw: String) {
        if self.turn.malformed.len() < MAX_BROKEN {
            let raw = if raw.len() > MAX_RAW { printable::shorten_bytes(&raw, MAX_RAW) } else { raw };
            self.turn.malformed.push(Broken { error, raw, kind: Some(kind) });
        }
    }

    /// Starts the calls that may begin now.
    fn start_calls(&mut self, early: bool, effects: &mut Vec<Effect>) {
        while let Some(place) = self.turn.next_to_start() {
            if early && !self.turn.slots[place].facts.early {
                return;
            }
            self.start(place, effects);
        }
    }

    fn start(&mut self, place: usize, effects: &mut Vec<Effect>) {
        let choice = self.choice();
        let slot = &mut self.turn.slots[place];
        let State::Held(call) = std::mem::replace(&mut slot.state, State::Running) else { return };
        let problem = slot.problem.take().map(ToolError::invalid_parameters);
        self.calls += 1;
        if self.watched {
            let (call_id, tool, arguments) = (call.id, call.tool.clone(), call.arguments.clone());
            effects.push(Effect::Emit(EventData::ToolRequested { call_id, tool, arguments }));
        }
        let refusal = match &choice {
            ToolChoice::None => Some("tools must not be called now; answer without them".to_owned()),
            ToolChoice::Specific(only) if **only != *call.tool => Some(format!("only `{only}` may be called now")),
            _ if self.calls > self.settings.limits.max_calls => Some("the run has made as many calls as it may".to_owned()),
            _ => None,
        };
        match refusal.map(|reason| ToolError::denied(Denial::Policy, reason)).or(problem) {
            None => {
                self.turn.called = true;
                effects.push(Effect::StartCall(call));
            }
            Some(error) => {
                let outcome = failed(&call.tool, call.id, error);
                self.settle(outcome, effects);
            }
        }
    }

    /// The model ended its answer.
    pub(super) fn answered(&mut self, end: EndReason, effects: &mut Vec<Effect>) {
        self.turn.complete = true;
        self.usage += self.turn.usage;
        if self.strategy == Strategy::Structured
            && let Some(answer) = answer_text(&self.turn.text)
        {
            self.turn.text = answer;
        }
        if self.watched {
            let calls = self.turn.slots.iter().map(|slot| slot.said.clone()).collect();
            let text = self.turn.text.as_str().into();
            effects.push(Effect::Emit(EventData::ModelResponded { turn: self.turns, text, calls, end, usage: self.turn.usage }));
        }
        if self.turn.rescued && self.strategy == Strategy::Native && !self.fall_back("the model wrote its call as text", effects) {
            let message = "the model wrote its call as text instead of calling the function".to_owned();
            self.abandon(&ToolError::cancelled(), effects);
            self.close_turn();
            return self.fail(ModelError::Unsupported { feature: Feature::Tools, message }.into(), effects);
        }
        if !self.turn.slots.is_empty() {
            self.phase = Phase::Calling;
            self.start_calls(false, effects);
            return self.go_on(effects);
        }
        if !self.turn.malformed.is_empty() {
            return self.correct(effects);
        }
        if end == EndReason::Filter && self.turn.text.is_empty() {
            return self.fail(ModelError::Filter("the answer was cut off".into()).into(), effects);
        }
        if self.must_explain_quotes() {
            return self.explain_quotes(effects);
        }
        let must_call = matches!(self.choice(), ToolChoice::Required | ToolChoice::Specific(_));
        if must_call {
            return self.insist(effects);
        }
        if self.turn.text.trim().is_empty() && self.turn.reasoning.is_empty() && self.corrections == 0 {
            let ask = self.in_words("You said nothing. Answer, or call a tool.", "你没有给出任何内容。请回答，或者调用工具。");
            return self.ask_again(ask, effects);
        }
        self.close_turn();
        self.end(EndOfRun::Answered, effects);
    }

    /// Nothing but calls that could not be read: the model is told once, then another way is tried.
    fn correct(&mut self, effects: &mut Vec<Effect>) {
        let broken = self.turn.malformed[0].clone();
        self.corrections += 1;
        // A model that is new to its form gets one more chance in it, and so does one that was cut off; one that should know its
        // own wire does not.
        let (again, cut) = (self.corrections > 1, broken.kind == Some(FaultKind::Incomplete));
        let gives_up = again || (self.strategy == Strategy::Native && !cut);
        let tries_another = gives_up && self.fall_back("the model's call could not be read", effects);
        if again && !tries_another {
            let error = format!("the model's calls could not be read, also after it was told: {}", broken.error);
            self.close_turn();
            return self.fail(AgentError::Unreadable(error), effects);
        }
        let told = self.corrections_for_model();
        self.tell(told, effects);
    }

    /// The model must call a tool and did not.
    fn insist(&mut self, effects: &mut Vec<Effect>) {
        if self.corrections > 0 && !self.fall_back("the model did not call a tool although it must", effects) {
            self.close_turn();
            return self.fail(AgentError::NoCall, effects);
        }
        let ask = match self.choice() {
            ToolChoice::Specific(name) => self.in_words(&format!("You must call `{name}` now."), &format!("你现在必须调用 `{name}`。")),
            _ => self.in_words("You must call a tool now.", "你现在必须调用一个工具。"),
        };
        self.ask_again(ask, effects);
    }

    fn ask_again(&mut self, words: String, effects: &mut Vec<Effect>) {
        self.corrections += 1;
        self.tell(words, effects);
    }

    /// Tells the model something about what it said, and asks it again.
    pub(super) fn tell(&mut self, words: String, effects: &mut Vec<Effect>) {
        self.close_turn();
        self.messages.push(Arc::new(Message::user(words)));
        effects.push(Effect::Persist);
        self.ask(effects);
    }

    pub(super) fn in_words(&self, english: &str, chinese: &str) -> String {
        if self.settings.language == Language::Chinese { chinese.to_owned() } else { english.to_owned() }
    }

    /// What the model is told about what it wrote.
    fn corrections_for_model(&self) -> String {
        let quotes = (self.turn.quotes > 0).then(|| self.words_on_quotes());
        let told = self.turn.malformed.iter().enumerate().map(|(index, broken)| {
            let kind = broken.kind.unwrap_or(FaultKind::Syntax);
            let malformed = Malformed { index, kind, error: broken.error.clone(), raw: broken.raw.clone() };
            self.strategy.correction(&malformed, self.settings.language)
        });
        told.chain(quotes).collect::<Vec<_>>().join("\n")
    }

    /// The model did not answer, or its answer broke off.
    pub(super) fn broke_off(&mut self, error: ModelError, begun: bool, effects: &mut Vec<Effect>) {
        self.usage += self.turn.usage;
        // After any start the answer is recorded as it broke off; nothing runs twice.
        let untouched = self.turn.slots.iter().all(|slot| matches!(slot.state, State::Held(_)));
        if untouched && self.repeats(&error, begun, effects) {
            // It never came to an answer, so this was no turn.
            self.turns = self.turns.saturating_sub(1);
            return self.ask(effects);
        }
        self.abandon(&ToolError::cancelled(), effects);
        self.close_turn();
        self.fail(error.into(), effects);
    }

    /// Whether asking again, perhaps in another way, may help.
    fn repeats(&mut self, error: &ModelError, begun: bool, effects: &mut Vec<Effect>) -> bool {
        let told = |message: String| Effect::Emit(EventData::Notification { message });
        match error {
            ModelError::Unsupported { .. } => self.fall_back(&error.to_string(), effects),
            ModelError::ContextLength(_) if self.refused < MAX_REFUSED && self.can_shorten() => {
                self.refused += 1;
                effects.push(told(format!("{error}; asking again with old results shortened")));
                true
            }
            error if error.is_retryable() && begun && !std::mem::replace(&mut self.asked_again, true) => {
                effects.push(told(format!("{error}; asking again")));
                true
            }
            _ => false,
        }
    }

    /// Whether there are results that could be shortened.
    fn can_shorten(&self) -> bool {
        self.messages.iter().any(|message| matches!(message.body(), MessageBody::Tool { .. }))
    }

    pub(super) fn finished(&mut self, outcome: Outcome, effects: &mut Vec<Effect>) {
        self.settle(outcome, effects);
        if self.phase == Phase::Calling {
            self.start_calls(false, effects);
            self.go_on(effects);
        }
    }

    /// Records the outcome of a call; only the first counts.
    fn settle(&mut self, outcome: Outcome, effects: &mut Vec<Effect>) {
        let most = self.settings.limits.result_bytes;
        // A call that was accepted, or waits, has not failed.
        let (call_id, success, watched) = (outcome.call_id, outcome.error().is_none(), self.watched);
        let Some(slot) = self.slot(call_id).filter(|slot| !slot.is_done()) else { return };
        if watched {
            slot.settle(outcome.text().into_owned(), success, most);
            effects.push(Effect::Emit(EventData::ToolComplete { call_id, outcome }));
        } else {
            slot.settle(outcome.into_text(), success, most);
        }
    }

    pub(super) fn waits(&mut self, request: Box<ApprovalRequest>, effects: &mut Vec<Effect>) {
        let Some(slot) = self.slot(request.call.id).filter(|slot| !slot.is_done()) else { return };
        slot.state = State::Waiting(request.id);
        effects.push(Effect::Emit(EventData::PermissionRequest {
            approval_id: request.id,
            call_id: request.call.id,
            tool: request.tool.clone(),
            arguments: request.call.arguments.clone(),
            digest: request.digest,
            reason: request.reason.clone(),
        }));
        effects.push(Effect::AskPerson(request));
        if self.phase == Phase::Calling {
            self.go_on(effects);
        }
    }

    /// Ends the turn once every call has its outcome.
    fn go_on(&mut self, effects: &mut Vec<Effect>) {
        if !self.turn.complete || self.turn.is_running() {
            return;
        }
        let approvals = self.turn.open_requests();
        if !approvals.is_empty() {
            if !std::mem::replace(&mut self.waiting_told, true) {
                effects.push(Effect::Emit(EventData::RunWaiting { approvals }));
                effects.push(Effect::Pause);
            }
            return;
        }
        let ended = self.turn.slots.iter().find_map(|slot| match &slot.state {
            State::Done { text, success: true } if slot.facts.ends_run => Some(text.clone()),
            _ => None,
        });
        let times = self.notice_repetition();
        let corrections = self.corrections_for_model();
        self.corrections = 0;
        self.told_of_quotes = self.turn.quotes > 0;
        self.close_turn();
        if !corrections.is_empty() {
            self.messages.push(Arc::new(Message::user(corrections)));
        }
        effects.push(Effect::Persist);
        if let Some(text) = ended {
            // Without last words, what was said so far is the answer.
            self.turn.text = text;
            return self.end(EndOfRun::Stopped, effects);
        }
        let most = self.settings.limits.same_calls;
        if times >= most || self.guard.must_answer {
            return self.end(EndOfRun::RepeatedCalls, effects);
        }
        // The last chance: an answer without tools.
        self.guard.must_answer = times + 1 >= most;
        if self.calls > self.settings.limits.max_calls {
            return self.end(EndOfRun::MaxCalls, effects);
        }
        self.ask(effects);
    }

    /// Tells the model where it repeats itself; says how often it did at most.
    fn notice_repetition(&mut self) -> u32 {
        let note = self.in_words(
            "(You made this call before, and it gave the same. Do not repeat it: answer with what you know.)",
            "（你之前已经做过这个调用，结果相同。不要重复：请用已知的内容回答。）",
        );
        let mut most = 0;
        for slot in &mut self.turn.slots {
            let times = self.guard.note(slot);
            if let (2.., State::Done { text, .. }) = (times, &mut slot.state) {
                *text = format!("{text}\n{note}");
            }
            most = most.max(times);
        }
        most
    }

    /// Writes the turn into the history: what the model said, then what came of each call, in order.
    fn close_turn(&mut self) {
        let turn = std::mem::take(&mut self.turn);
        self.has_called |= turn.called;
        let mut text = turn.text;
        for broken in &turn.malformed {
            text.push_str(&broken.raw);
        }
        let reasoning = Some(turn.reasoning).filter(|thoughts| !thoughts.is_empty()).map(Into::into);
        let mut calls = Vec::with_capacity(turn.slots.len());
        let mut results = Vec::with_capacity(turn.slots.len());
        for slot in turn.slots {
            let State::Done { text, success } = slot.state else { continue };
            let (call_id, model_id, tool) = (slot.said.id, slot.said.model_id.clone(), slot.said.tool.clone());
            results.push(Arc::new(Message::new(MessageBody::Tool { call_id, model_id, tool, text, success })));
            calls.push(slot.said);
        }
        if text.is_empty() && calls.is_empty() {
            return;
        }
        // Parts that the provider counts by its calls fit only if all its calls are there.
        let kept = turn.kept.filter(|_| turn.malformed.is_empty());
        self.messages.reserve(results.len() + 1);
        self.messages.push(Arc::new(Message::new(MessageBody::Assistant { text: text.into(), reasoning, calls, kept })));
        self.messages.append(&mut results);
    }

    /// Stops everything: calls that were announced get their outcome, and what was said stays said.
    pub(super) fn stop(&mut self, reason: EndOfRun, effects: &mut Vec<Effect>) {
        if self.phase == Phase::Asking {
            self.usage += self.turn.usage;
        }
        let error = match reason {
            EndOfRun::TimeBudget => ToolError::new(helve_core::ErrorKind::Cancelled, "the run's time was up before the call ended"),
            _ => ToolError::cancelled(),
        };
        self.abandon(&error, effects);
        let said = self.turn.text.clone();
        self.close_turn();
        self.turn.text = said;
        self.end(reason, effects);
    }

    /// Gives every call that was announced and is not over an outcome; calls that were not are forgotten.
    fn abandon(&mut self, error: &ToolError, effects: &mut Vec<Effect>) {
        let most = self.settings.limits.result_bytes;
        effects.push(Effect::CancelCalls);
        for slot in &mut self.turn.slots {
            if matches!(slot.state, State::Held(_) | State::Done { .. }) {
                continue;
            }
            let call_id = slot.said.id;
            let outcome = failed(&slot.said.tool, call_id, error.clone());
            slot.settle(outcome.text().into_owned(), false, most);
            effects.push(Effect::Emit(EventData::ToolComplete { call_id, outcome }));
        }
    }
}

fn failed(tool: &Arc<str>, call_id: CallId, error: ToolError) -> Outcome {
    Outcome { call_id, tool: tool.clone(), status: Status::Done(Err(error)), duration: Duration::ZERO }
}

/// A name that every wire allows. A model may make up any.
fn wire_name(name: &str) -> Arc<str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(allowed) {
        return name.into();
    }
    let cleaned: String = name.chars().map(|c| if allowed(c) { c } else { '_' }).take(MAX_NAME).collect();
    if cleaned.is_empty() { "unnamed".into() } else { cleaned.into() }
}

/// Why a call that was mended must not run: others who read it, to approve it or to keep a record, may read something else. The same is
/// refused at every other door, by `json::parse`.
fn ambiguity(repairs: Repairs) -> Option<&'static str> {
    if repairs.contains(Repair::DuplicateKey) {
        return Some("the arguments were not accepted: a key appears twice; give it once");
    }
    repairs.contains(Repair::WideInteger).then_some("the arguments were not accepted: an integer does not fit 64 bits; send it as a string")
}
