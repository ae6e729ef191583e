//! Holds back calls in the text until it is certain that the response has no native call.

use std::ops::Range;

use crate::event::{Call, Event, EventKind, Malformed};
use crate::scan::Scanner;

/// Maximum amount of text that is held back, in bytes. If more is held, all of it is emitted as text.
const MAX_HELD: usize = 8 << 20;

/// The events that are held back from the first call on, and their text.
#[derive(Debug, Default)]
pub(super) struct Rescue {
    /// The text from offset `given` on.
    text: String,
    /// Number of bytes of text that were emitted.
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
    /// Parses more text. Emits the text before the first call.
    pub(super) fn push(&mut self, text: &str, scanner: &mut Scanner, sink: &mut dyn FnMut(Event<'_>)) {
        let before = self.given;
        scanner.push_str(text, &mut |event| self.take(event, sink));
        // Usually no text is held back, so only little is copied.
        if let Some(of_new) = (self.given - before).checked_sub(self.text.len()) {
            self.text.clear();
            self.text.push_str(&text[of_new..]);
        } else {
            self.text.drain(..self.given - before);
            self.text.push_str(text);
        }
    }

    /// Returns the number of bytes of text that were emitted.
    pub(super) fn given(&self) -> usize {
        self.given
    }

    pub(super) fn is_full(&self) -> bool {
        self.text.len() > MAX_HELD
    }

    /// Ends a response without a native call: emits the events that were held back, including the calls.
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

    /// Emits the text that was held back as plain text.
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
            // A call that may become plain text is not announced.
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
