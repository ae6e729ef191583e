//! The calls of a turn: announces calls, checks limits, starts calls, and ends the turn when all calls have outcomes.

use std::sync::Arc;

use helve_core::json::JsonLimits;
use helve_core::printable;
use helve_core::{ApprovalRequest, CallId, Denial, EndOfRun, EventData, Message, Outcome, SaidCall, ToolCall, ToolChoice, ToolError};
use helve_dialect::{Call, FaultKind, Repair, Repairs};
use serde_json::Value;

use super::turn::{CallProgress, MalformedCall, Slot};
use super::{Effect, Phase, Run, ToolFacts};
use crate::strategy::Strategy;

/// Maximum number of calls in one response.
const MAX_CALLS: usize = 1024;
/// Maximum size of the arguments of one call, in bytes. Every tool would reject more.
const MAX_ARGUMENTS: usize = JsonLimits::ARGUMENTS.bytes;
/// Maximum number of malformed calls of one response that the correction mentions.
const MAX_MALFORMED: usize = 16;
/// Maximum size of the text of one malformed call, in bytes.
const MAX_RAW: usize = 4096;
/// Maximum length of a tool name that every wire format accepts, in bytes. Models may invent longer names.
const MAX_NAME: usize = 64;

impl Run {
    pub(super) fn add_call(&mut self, call: Call, mut facts: ToolFacts, in_text: bool, effects: &mut Vec<Effect>) {
        let rescued = in_text && self.strategy == Strategy::Native;
        self.calls_natively |= !in_text;
        if self.turn.slots.len() >= MAX_CALLS {
            let error = format!("a response may have at most {MAX_CALLS} calls; the others were not run");
            return self.add_malformed(FaultKind::Syntax, error, String::new());
        }
        if call.written.as_ref().is_some_and(|written| written.len() > MAX_ARGUMENTS) {
            let error = format!("arguments may have at most {MAX_ARGUMENTS} bytes");
            return self.add_malformed(FaultKind::Syntax, error, call.name);
        }
        // A call in the message text may still be rejected when the response is complete.
        facts.early &= !rescued;
        let problem = ambiguity(call.repairs).map(str::to_owned);
        let model_id: Arc<str> = call.id.into();
        // A repeated id would make two results ambiguous.
        let model_id = self.model_ids.insert(model_id.clone()).then_some(model_id);
        let arguments = call.written.unwrap_or_else(|| Value::Object(call.arguments.clone()).to_string());
        let native_model = (!in_text).then(|| self.settings.model.clone());
        let said = SaidCall { id: CallId::mint(), model_id, tool: wire_name(&call.name), arguments, native_model };
        let pending =
            ToolCall { id: said.id, tool: call.name.into(), arguments: Value::Object(call.arguments), model_id: said.model_id.clone() };
        self.turn.rescued |= rescued;
        self.turn.slots.push(Slot { call: said, facts, problem, state: CallProgress::Pending(pending) });
        if facts.early {
            self.start_calls(true, effects);
        }
    }

    pub(super) fn add_malformed(&mut self, kind: FaultKind, error: String, raw: String) {
        if self.turn.malformed.len() < MAX_MALFORMED {
            let raw = if raw.len() > MAX_RAW { printable::shorten_bytes(&raw, MAX_RAW) } else { raw };
            self.turn.malformed.push(MalformedCall { error, raw, kind: Some(kind) });
        }
    }

    /// Starts all calls that may start now. If `early` is set, stops at the first call that must wait for the complete response.
    pub(super) fn start_calls(&mut self, early: bool, effects: &mut Vec<Effect>) {
        while let Some(index) = self.turn.next_to_start() {
            if early && !self.turn.slots[index].facts.early {
                return;
            }
            self.start_call(index, effects);
        }
    }

    fn start_call(&mut self, index: usize, effects: &mut Vec<Effect>) {
        let choice = self.tool_choice();
        let slot = &mut self.turn.slots[index];
        let CallProgress::Pending(call) = std::mem::replace(&mut slot.state, CallProgress::Running) else { return };
        let problem = slot.problem.take().map(ToolError::invalid_parameters);
        self.calls += 1;
        if self.watched {
            let (call_id, tool, arguments) = (call.id, call.tool.clone(), call.arguments.clone());
            effects.push(Effect::Emit(EventData::ToolRequested { call_id, tool, arguments }));
        }
        let refusal = match &choice {
            ToolChoice::None => Some("tools must not be called now; answer without them".to_owned()),
            ToolChoice::Specific(only) if **only != *call.tool => Some(format!("only `{only}` may be called now")),
            _ if self.calls > self.settings.limits.max_calls => Some("the run reached its call limit".to_owned()),
            _ => None,
        };
        match refusal.map(|reason| ToolError::denied(Denial::Policy, reason)).or(problem) {
            None => {
                self.turn.called = true;
                effects.push(Effect::StartCall(call));
            }
            Some(error) => self.finish_call(Outcome::failed(call.id, call.tool, error), effects),
        }
    }

    pub(super) fn call_finished(&mut self, outcome: Outcome, effects: &mut Vec<Effect>) {
        self.finish_call(outcome, effects);
        if self.phase == Phase::Calling {
            self.start_calls(false, effects);
            self.try_end_turn(effects);
        }
    }

    /// Sets the outcome of a call. Does nothing if the call already has one.
    fn finish_call(&mut self, outcome: Outcome, effects: &mut Vec<Effect>) {
        let max = self.settings.limits.result_bytes;
        // `error()` rather than `is_success()`: a call that was accepted into the queue has not failed.
        let (call_id, success, watched) = (outcome.call_id, outcome.error().is_none(), self.watched);
        let Some(slot) = self.slot(call_id).filter(|slot| !slot.is_done()) else { return };
        if watched {
            slot.finish(outcome.text().into_owned(), success, max);
            effects.push(Effect::Emit(EventData::ToolComplete { call_id, outcome }));
        } else {
            slot.finish(outcome.into_text(), success, max);
        }
    }

    pub(super) fn approval_requested(&mut self, request: Box<ApprovalRequest>, effects: &mut Vec<Effect>) {
        let Some(slot) = self.slot(request.call.id).filter(|slot| !slot.is_done()) else { return };
        slot.state = CallProgress::Waiting(request.id);
        effects.push(Effect::Emit(EventData::PermissionRequest {
            approval_id: request.id,
            call_id: request.call.id,
            tool: request.tool.clone(),
            arguments: request.call.arguments.clone(),
            digest: request.digest,
            reason: request.reason.clone(),
        }));
        effects.push(Effect::RequestApproval(request));
        if self.phase == Phase::Calling {
            self.try_end_turn(effects);
        }
    }

    /// Ends the turn if every call has an outcome. If calls wait for decisions, pauses the run instead.
    pub(super) fn try_end_turn(&mut self, effects: &mut Vec<Effect>) {
        if !self.turn.complete || self.turn.is_running() {
            return;
        }
        let approvals = self.turn.open_requests();
        if !approvals.is_empty() {
            if !std::mem::replace(&mut self.waiting_announced, true) {
                effects.push(Effect::Emit(EventData::RunWaiting { approvals }));
                effects.push(Effect::Pause);
            }
            return;
        }
        let final_text = self.turn.slots.iter().find_map(|slot| match &slot.state {
            CallProgress::Done { text, success: true } if slot.facts.ends_run => Some(text.clone()),
            _ => None,
        });
        let repetitions = self.mark_repetitions();
        let corrections = self.corrections_for_model();
        self.corrections = 0;
        self.quotes_explained = self.turn.quotes > 0;
        self.close_turn();
        if !corrections.is_empty() {
            self.messages.push(Arc::new(Message::user(corrections)));
        }
        effects.push(Effect::Persist);
        if let Some(text) = final_text {
            // If the tool returned no text, the last text of the model is the answer.
            self.turn.text = text;
            return self.end(EndOfRun::Stopped, effects);
        }
        let max = self.settings.limits.same_calls;
        if repetitions >= max || self.guard.must_answer {
            return self.end(EndOfRun::RepeatedCalls, effects);
        }
        // One repetition before the limit, the model must answer without tools.
        self.guard.must_answer = repetitions + 1 >= max;
        if self.calls > self.settings.limits.max_calls {
            return self.end(EndOfRun::MaxCalls, effects);
        }
        self.ask_model(effects);
    }

    /// Adds a note to the results of repeated calls. Returns how often the most frequent pair of call and result has occurred.
    fn mark_repetitions(&mut self) -> u32 {
        let note = self.in_language(
            "(You made this call before, and it gave the same. Do not repeat it: answer with what you know.)",
            "（你之前已经做过这个调用，结果相同。不要重复：请用已知的内容回答。）",
        );
        let mut highest = 0;
        for slot in &mut self.turn.slots {
            let times = self.guard.count(slot);
            if let (2.., CallProgress::Done { text, .. }) = (times, &mut slot.state) {
                *text = format!("{text}\n{note}");
            }
            highest = highest.max(times);
        }
        highest
    }
}

/// Returns the tool name in a form that every wire format accepts, because a model may invent any name.
fn wire_name(name: &str) -> Arc<str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(allowed) {
        return name.into();
    }
    let cleaned: String = name.chars().map(|c| if allowed(c) { c } else { '_' }).take(MAX_NAME).collect();
    if cleaned.is_empty() { "unnamed".into() } else { cleaned.into() }
}

/// Returns why a repaired call must not run, if its arguments are ambiguous: an approver might read them differently. Elsewhere
/// `json::parse` rejects such arguments.
fn ambiguity(repairs: Repairs) -> Option<&'static str> {
    if repairs.contains(Repair::DuplicateKey) {
        return Some("the arguments were not accepted: a key appears twice; give it once");
    }
    repairs.contains(Repair::WideInteger).then_some("the arguments were not accepted: an integer exceeds 64 bits; send it as a string")
}
