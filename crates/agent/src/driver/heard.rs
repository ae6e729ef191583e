//! The text of an answer as it came, as far as it may hold a call: one that turns out to be a quotation stays that text.

use std::ops::Range;
use std::sync::Arc;

use helve_core::Message;
use helve_dialect::Reader;

use crate::run::result_in;

/// What was heard of one answer.
#[derive(Default)]
pub(super) struct Heard {
    /// Whether there are results that the answer could quote.
    pub(super) quotable: bool,
    /// Whether its last call was a quotation.
    pub(super) quoting: bool,
    text: String,
    from: usize,
}

impl Heard {
    /// Another answer begins, to these messages.
    pub(super) fn begin(&mut self, said: &[Arc<Message>]) {
        self.quotable = said.iter().any(|message| result_in(message).is_some());
        self.quoting = false;
        self.text.clear();
        self.from = 0;
    }

    /// Keeps a piece of text that goes to a reader next.
    pub(super) fn keep(&mut self, text: &str, reader: &Reader) {
        let Some(held_from) = reader.held_from().filter(|_| self.quotable) else { return };
        if held_from >= self.from + self.text.len() {
            self.text.clear();
            self.from = held_from;
        }
        self.text.push_str(text);
    }

    /// The text at a place of the answer that the reader has just decided on.
    pub(super) fn at(&self, place: Range<usize>) -> String {
        let place = place.start.saturating_sub(self.from)..place.end.saturating_sub(self.from);
        self.text.get(place).unwrap_or_default().to_owned()
    }
}
