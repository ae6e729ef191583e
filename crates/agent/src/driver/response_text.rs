//! Buffers the text of a response that may be part of a call. If a call turns out to be a quotation, the run adds its text unchanged.

use std::ops::Range;
use std::sync::Arc;

use helve_core::Message;
use helve_dialect::Reader;

use crate::run::result_in;

/// The buffered text of one response.
#[derive(Default)]
pub(super) struct ResponseText {
    /// Whether there are tool results that the response could quote.
    pub(super) quotable: bool,
    /// Whether the last call of the response was a quotation.
    pub(super) quoting: bool,
    text: String,
    from: usize,
}

impl ResponseText {
    /// Resets the buffer for the response to `messages`.
    pub(super) fn start(&mut self, messages: &[Arc<Message>]) {
        self.quotable = messages.iter().any(|message| result_in(message).is_some());
        self.quoting = false;
        self.text.clear();
        self.from = 0;
    }

    /// Adds a piece of text. Must be called before the reader gets the same text.
    pub(super) fn add(&mut self, text: &str, reader: &Reader) {
        let Some(held_from) = reader.held_from().filter(|_| self.quotable) else { return };
        if held_from >= self.from + self.text.len() {
            self.text.clear();
            self.from = held_from;
        }
        self.text.push_str(text);
    }

    /// Returns the text at `span`, byte offsets in the response that the reader has just reported.
    pub(super) fn at(&self, span: Range<usize>) -> String {
        let span = span.start.saturating_sub(self.from)..span.end.saturating_sub(self.from);
        self.text.get(span).unwrap_or_default().to_owned()
    }
}
