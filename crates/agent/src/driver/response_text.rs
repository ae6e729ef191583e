//! The original text of a response where it may contain a call: a call that turns out to be a quotation becomes that text again.

use std::ops::Range;
use std::sync::Arc;

use helve_core::Message;
use helve_dialect::Reader;

use crate::run::result_in;

/// The text of one response.
#[derive(Default)]
pub(super) struct ResponseText {
    /// Whether there are results that the response could quote.
    pub(super) quotable: bool,
    /// Whether its last call was a quotation.
    pub(super) quoting: bool,
    text: String,
    from: usize,
}

impl ResponseText {
    /// Starts the response to these messages.
    pub(super) fn start(&mut self, messages: &[Arc<Message>]) {
        self.quotable = messages.iter().any(|message| result_in(message).is_some());
        self.quoting = false;
        self.text.clear();
        self.from = 0;
    }

    /// Adds a piece of text before the reader gets it.
    pub(super) fn add(&mut self, text: &str, reader: &Reader) {
        let Some(held_from) = reader.held_from().filter(|_| self.quotable) else { return };
        if held_from >= self.from + self.text.len() {
            self.text.clear();
            self.from = held_from;
        }
        self.text.push_str(text);
    }

    /// The text of a span that the reader has just decided on.
    pub(super) fn at(&self, span: Range<usize>) -> String {
        let span = span.start.saturating_sub(self.from)..span.end.saturating_sub(self.from);
        self.text.get(span).unwrap_or_default().to_owned()
    }
}
