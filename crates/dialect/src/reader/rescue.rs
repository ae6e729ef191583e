//! Holds back calls that were found in text until it is known that the answer has no native ones.

use std::ops::Range;

use crate::event::{Call, Event, EventKind, Malformed};
use crate::scan::Scanner;

/// So much text may be held. An answer that goes on for longer does not end with a call.
const MAX_HELD: usize = 8 << 20;

/// What is held back from the first call on, and the text that it was read from.
#[derive(Debug, Default)]
pub(super) struct Rescue {
    /// The text from `given` on.
    text: String,
    /// How much of the text was given away before.
    given: usize,
    held: Vec<(Range<usize>, Held)>,
    found: bool,
}

#[derive(Debug)]
enum Held {
    Text(String),
    Reasoning(String),
    Markup(String),
    Call(Call),
    Malformed(Malformed),
}

impl Rescue {
    /// Reads more text. Words before the first call are given away.
    pub(super) fn push(&mut self, text: &str, scanner: &mut Scanner, sink: &mut dyn FnMut(Event<'_>)) {
        let before = self.given;
        scanner.push_str(text, &mut |event| self.take(event, sink));
        // Mostly nothing is held, and nothing need be copied.
        if let Some(of_new) = (self.given - before).checked_sub(self.text.len()) {
            self.text.clear();
            self.text.push_str(&text[of_new..]);
        } else {
            self.text.drain(..self.given - before);
            self.text.push_str(text);
        }
    }

    /// How much of the text was given away.
    pub(super) fn given(&self) -> usize {
        self.given
    }

    pub(super) fn is_full(&self) -> bool {
        self.text.len() > MAX_HELD
    }

    /// The answer is over without a native call: what was held is what it seemed.
    pub(super) fn finish(mut self, scanner: Scanner, sink: &mut dyn FnMut(Event<'_>)) {
        scanner.finish(&mut |event| self.take(event, sink));
        for (span, held) in self.held {
            let said = match &held {
                Held::Text(text) => EventKind::Text(text),
                Held::Reasoning(text) => EventKind::Reasoning(text),
                Held::Markup(text) => EventKind::Markup(text),
                Held::Call(call) => EventKind::Call(call.clone()),
                Held::Malformed(malformed) => EventKind::Malformed(malformed.clone()),
            };
            sink(Event { span, kind: said });
        }
    }

    /// What was held is text.
    pub(super) fn give_back(self, sink: &mut dyn FnMut(Event<'_>)) {
        if !self.text.is_empty() {
            sink(Event { span: self.given..self.given + self.text.len(), kind: EventKind::Text(&self.text) });
        }
    }

    fn take(&mut self, event: Event<'_>, sink: &mut dyn FnMut(Event<'_>)) {
        self.found |=
            matches!(event.kind, EventKind::CallOpened { .. } | EventKind::ArgsDelta { .. } | EventKind::Call(_) | EventKind::Malformed(_));
        if !self.found {
            self.given = event.span.end;
            return sink(event);
        }
        let held = match event.kind {
            // Nobody is shown a call that may be none.
            EventKind::CallOpened { .. } | EventKind::ArgsDelta { .. } => return,
            EventKind::Text(text) => Held::Text(text.to_owned()),
            EventKind::Reasoning(text) => Held::Reasoning(text.to_owned()),
            EventKind::Markup(text) => Held::Markup(text.to_owned()),
            EventKind::Call(call) => Held::Call(call),
            EventKind::Malformed(malformed) => Held::Malformed(malformed),
        };
        self.held.push((event.span, held));
    }
}
