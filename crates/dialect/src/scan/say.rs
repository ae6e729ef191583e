//! Emits events, and applies the limits of a message.

use super::Scanner;
use super::room::MAX_CALLS;
use crate::call::Parts;
use crate::event::{Call, Event, EventKind, Malformed};
use crate::fault::{Fault, FaultKind};
use crate::json;
use crate::work;

impl Scanner {
    /// Emits an event for the next `length` bytes.
    pub(super) fn say(&mut self, length: usize, kind: EventKind<'_>, sink: &mut dyn FnMut(Event<'_>)) {
        work::count(length);
        let start = self.given;
        self.decided += length;
        self.given = (self.given + length).saturating_sub(self.skews.pass(self.decided));
        sink(Event { span: start..self.given, kind });
    }

    /// Emits control tokens.
    pub(super) fn say_markup(&mut self, text: &str, sink: &mut dyn FnMut(Event<'_>)) {
        self.room.take_markup();
        self.say(text.len(), EventKind::Markup(text), sink);
    }

    pub(super) fn say_text(&mut self, text: &str, sink: &mut dyn FnMut(Event<'_>)) {
        if text.is_empty() {
            return;
        }
        self.note_line(text);
        self.say(text.len(), EventKind::Text(text), sink);
    }

    /// Updates whether the current line so far is blank.
    pub(super) fn note_line(&mut self, text: &str) {
        let tail = text.trim_end_matches([' ', '\t']);
        work::count(text.len() - tail.len() + 1);
        if tail.ends_with('\n') {
            self.line_blank = true;
        } else if !tail.is_empty() {
            self.line_blank = false;
        }
    }

    /// Emits a call, or a malformed call if a limit is exceeded.
    pub(super) fn say_call(&mut self, raw: &str, parts: Parts, announced: Option<usize>, sink: &mut dyn FnMut(Event<'_>)) {
        if !self.room.take_values(raw.len(), &parts.arguments) {
            return self.say_malformed(raw, json::too_large(), announced, sink);
        }
        if !self.room.take_call() {
            return self.say_fault(raw, too_many(), announced, sink);
        }
        let index = announced.unwrap_or_else(|| self.next_index());
        let id = parts.id.filter(|id| !id.is_empty()).unwrap_or_else(|| made_id(index + 1));
        let call = Call { index, id, name: parts.name, arguments: parts.arguments, repairs: parts.repairs, written: None };
        self.say(raw.len(), EventKind::Call(call), sink);
        self.at_start = false;
        self.after_call = true;
    }

    pub(super) fn next_index(&mut self) -> usize {
        self.calls += 1;
        self.calls - 1
    }

    pub(super) fn say_malformed(&mut self, raw: &str, fault: Fault, announced: Option<usize>, sink: &mut dyn FnMut(Event<'_>)) {
        let fault = if self.room.take_call() { fault } else { too_many() };
        self.say_fault(raw, fault, announced, sink);
    }

    fn say_fault(&mut self, raw: &str, fault: Fault, announced: Option<usize>, sink: &mut dyn FnMut(Event<'_>)) {
        let index = announced.unwrap_or_else(|| self.next_index());
        let malformed = Malformed { kind: fault.kind, error: fault.error, raw: raw.to_owned(), index };
        self.say(raw.len(), EventKind::Malformed(malformed), sink);
        self.at_start = false;
        self.after_call = true;
    }
}

fn too_many() -> Fault {
    Fault::new(FaultKind::TooMany, format!("a message may have at most {MAX_CALLS} calls; this call and the text after it were not parsed"))
}

/// Returns the generated id of a call without an id, such as `call_1`.
pub(crate) fn made_id(number: usize) -> String {
    let mut id = String::with_capacity(8);
    id.push_str("call_");
    match u8::try_from(number) {
        Ok(digit @ 0..10) => id.push(char::from(b'0' + digit)),
        _ => id.push_str(&number.to_string()),
    }
    id
}
