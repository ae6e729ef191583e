//! [`Scanner`]: separates text, reasoning and calls in one pass over a stream of text, in chunks of any size.
//!
//! The scanner holds text back until its kind is certain, and emits everything else at once.

mod code;
mod element;
mod frame;
mod head;
mod marks;
mod room;
mod say;
mod skew;
mod tag;
mod tagged;
mod value;
mod words;

use std::sync::Arc;

pub(crate) use marks::TagMarks;
pub(crate) use say::made_id;

use crate::dialect::Dialect;
use crate::event::{Event, EventKind, Item, Items, Mode};
use crate::find::first_mark;
use crate::format::Format;
use crate::tools::ToolTable;
use crate::work;
use code::Fence;
use element::Speech;
use frame::{Flow, Frame};
use room::Room;
use skew::Skews;

/// Whether a text matches what was searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    Yes,
    No,
    /// The text matches so far, but ends too early.
    Partly,
}

impl Match {
    pub const fn of(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }

    /// Turns `No` into `Partly`, because more text may follow.
    pub const fn or_partly(self) -> Self {
        if matches!(self, Self::No) { Self::Partly } else { self }
    }
}

/// Returns whether the text starts with a literal. `end` says that no more text follows.
pub(crate) fn literal(text: &str, wanted: &str, end: bool) -> Match {
    work::count(1);
    if text.len() >= wanted.len() {
        return Match::of(text.as_bytes().starts_with(wanted.as_bytes()));
    }
    if !end && wanted.as_bytes().starts_with(text.as_bytes()) { Match::Partly } else { Match::No }
}

/// Returns whether the text starts with one of several literals, and the length of that literal.
pub(crate) fn any<S: AsRef<str>>(text: &str, wanted: &[S], end: bool) -> (Match, usize) {
    let mut partly = false;
    for wanted in wanted {
        match literal(text, wanted.as_ref(), end) {
            Match::Yes => return (Match::Yes, wanted.as_ref().len()),
            Match::Partly => partly = true,
            Match::No => {}
        }
    }
    (if partly { Match::Partly } else { Match::No }, 0)
}

/// Returns the end of the white space that starts at `from`.
pub(crate) fn blank_end(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = from;
    while let Some(b' ' | b'\n' | b'\t' | b'\r') = bytes.get(at) {
        at += 1;
    }
    work::count(at - from + 1);
    at
}

/// The context for parsing a call.
pub(crate) struct Cx<'a> {
    pub mode: Mode,
    pub tools: &'a ToolTable,
    /// Offset of the text in the whole input.
    pub offset: usize,
    pub ahead: &'a mut Ahead,
}

/// Results of searches ahead in the text, cached so that calls do not repeat the searches. Offsets refer to the whole input.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// Offset of the next end of CDATA.
    pub cdata_end: Option<usize>,
    /// Offset up to which the end of CDATA was searched for.
    pub cdata_searched: usize,
    /// For each format that was checked: the offset of the last closing marker of a call, if the text ends after it.
    pub ends: Vec<(&'static Format, Option<usize>)>,
    /// Number of objects with other members after their list of calls that were not closed.
    pub open_tails: usize,
}

/// The state of the scanner.
#[derive(Debug)]
enum State {
    /// In ordinary text.
    Words,
    /// In reasoning, up to one of these closing markers.
    Thoughts(&'static [&'static str]),
    /// In a code block that is text. The number is that of its backticks.
    Code(usize),
    /// In a code fence that may contain calls.
    Fence(Fence),
    /// In a section or a call.
    Frame(Box<Frame>),
}

/// A streaming parser that finds calls in text.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that was seen")]
pub struct Scanner {
    dialect: Dialect,
    mode: Mode,
    tools: Arc<ToolTable>,
    state: State,
    /// The buffer. The text from `start` on is undecided.
    held: String,
    start: usize,
    /// Number of bytes that were decided, after invalid UTF-8 was replaced.
    decided: usize,
    /// Number of bytes of input that were emitted.
    pub(crate) given: usize,
    /// The positions of invalid UTF-8 in the input.
    skews: Skews,
    /// The bytes of an incomplete character at the end of the input.
    partial: Vec<u8>,
    pub(crate) calls: usize,
    /// Whether the message so far consists of white space and reasoning.
    at_start: bool,
    /// Whether the current line so far consists of white space.
    line_blank: bool,
    /// The number of backticks that opened inline code, and their position.
    inline: Option<(usize, usize)>,
    /// Position of the last line break that was found.
    line: usize,
    /// Position up to which line breaks were searched for.
    lines_seen: usize,
    /// Whether only white space has followed the last call.
    after_call: bool,
    /// Whether this scanner parses the content of a code fence.
    nested: bool,
    ahead: Ahead,
    room: Room,
}

impl Scanner {
    /// Creates a scanner for one message. If a format has no markers, the names of the tools decide what is a call; their schemas
    /// determine the types of values.
    #[must_use]
    pub fn new(dialect: Dialect, mode: Mode, tools: Arc<ToolTable>) -> Self {
        Self {
            dialect,
            mode,
            tools,
            state: State::Words,
            held: String::new(),
            start: 0,
            decided: 0,
            given: 0,
            skews: Skews::default(),
            partial: Vec::new(),
            calls: 0,
            at_start: true,
            line_blank: true,
            inline: None,
            line: 0,
            lines_seen: 0,
            after_call: false,
            nested: false,
            ahead: Ahead::default(),
            room: Room::default(),
        }
    }

    /// Makes the message start inside reasoning, because the prompt ended with an opening reasoning tag.
    #[must_use]
    pub fn thinking(mut self) -> Self {
        self.state = State::Thoughts(words::all_closings());
        self
    }

    /// Removes the limits of a message, so that tests can measure the work.
    #[cfg(test)]
    pub(crate) fn endless(mut self) -> Self {
        self.room = Room::endless();
        self
    }

    /// Processes bytes, which may end inside a character, and passes events to the sink. Invalid UTF-8 becomes U+FFFD.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Event<'_>)) {
        if !self.partial.is_empty() {
            let mut joined = std::mem::take(&mut self.partial);
            joined.extend_from_slice(bytes);
            work::count(joined.len());
            self.push_bytes(&joined, sink);
            return;
        }
        if let Ok(text) = std::str::from_utf8(bytes) {
            self.push_str(text, sink);
            return;
        }
        self.push_bytes(bytes, sink);
    }

    fn push_bytes(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Event<'_>)) {
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.push_str(chunk.valid(), sink);
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            // Only the bytes at the end of the input can be an incomplete character.
            if chunks.peek().is_none() && may_continue(invalid) {
                self.partial = invalid.to_vec();
                return;
            }
            self.push_invalid(invalid.len(), sink);
        }
    }

    fn push_invalid(&mut self, length: usize, sink: &mut dyn FnMut(Event<'_>)) {
        let at = self.decided + self.held.len() - self.start;
        self.skews.push(at + char::REPLACEMENT_CHARACTER.len_utf8(), length);
        self.push_str("\u{fffd}", sink);
    }

    /// Processes text and passes events to the sink.
    pub fn push_str(&mut self, text: &str, sink: &mut dyn FnMut(Event<'_>)) {
        if text.is_empty() {
            return;
        }
        work::count(text.len());
        if self.start == self.held.len() {
            self.held.clear();
            self.start = 0;
            let taken = self.run(text, false, sink);
            self.held.push_str(&text[taken..]);
            return;
        }
        self.held.push_str(text);
        if self.passes(sink) {
            return;
        }
        let held = std::mem::take(&mut self.held);
        self.start += self.run(&held[self.start..], false, sink);
        self.held = held;
        // Emitted text is removed once it is most of the buffer, so that removing costs no more than adding.
        if self.start > self.held.len() / 2 {
            work::count(self.held.len() - self.start);
            self.held.drain(..self.start);
            self.start = 0;
        }
    }

    /// Handles the common case that all held text is inside the brackets of a call: emits the new text as a delta and returns true.
    fn passes(&mut self, sink: &mut dyn FnMut(Event<'_>)) -> bool {
        let State::Frame(frame) = &mut self.state else { return false };
        let text = &self.held[self.start..];
        if (frame.announced.is_none() && frame.opened().is_some()) || !frame.goes_on(text) {
            return false;
        }
        if let Some(index) = frame.announced {
            sink(Event { span: self.given..self.given, kind: EventKind::ArgsDelta { index, text: &text[frame.shown..] } });
            frame.shown = text.len();
        }
        true
    }

    /// Ends the message, and passes the remaining events to the sink.
    pub fn finish(mut self, sink: &mut dyn FnMut(Event<'_>)) {
        if !self.partial.is_empty() {
            let length = std::mem::take(&mut self.partial).len();
            self.push_invalid(length, sink);
        }
        let held = std::mem::take(&mut self.held);
        let rest = &held[self.start..];
        let taken = self.run(rest, true, sink);
        debug_assert_eq!(taken, rest.len(), "at the end everything is decided");
    }

    /// Processes as much text as can be decided, and returns its length.
    fn run(&mut self, text: &str, end: bool, sink: &mut dyn FnMut(Event<'_>)) -> usize {
        let mut at = 0;
        loop {
            let rest = &text[at..];
            if self.room.is_full() {
                self.state = State::Words;
                self.say_text(rest, sink);
                return text.len();
            }
            let before = self.decided;
            let more = match std::mem::replace(&mut self.state, State::Words) {
                State::Words => self.words(rest, end, sink),
                State::Thoughts(closes) => self.thoughts(rest, closes, end, sink),
                State::Code(ticks) => self.code(rest, ticks, end, sink),
                State::Fence(fence) => self.fence(rest, fence, end, sink),
                State::Frame(frame) => self.frame(rest, frame, end, sink),
            };
            at += self.decided - before;
            if more && end && at < text.len() {
                debug_assert!(false, "undecided at the end: {:?} {:?}", self.state, &text[at..]);
                self.state = State::Words;
                self.say_text(&text[at..], sink);
                return text.len();
            }
            if more || (at == text.len() && (!end || self.is_settled())) {
                return at;
            }
        }
    }

    fn is_settled(&self) -> bool {
        !matches!(self.state, State::Frame(_) | State::Fence(_))
    }

    /// Parses a section or a call. Returns whether more text is needed.
    fn frame(&mut self, text: &str, mut frame: Box<Frame>, end: bool, sink: &mut dyn FnMut(Event<'_>)) -> bool {
        let mut cx = Cx { mode: self.mode, tools: &self.tools, offset: self.decided, ahead: &mut self.ahead };
        let announced = frame.announced;
        match frame.advance(text, &mut cx, end) {
            Flow::More => {
                self.show(text, &mut frame, sink);
                self.state = State::Frame(frame);
                return true;
            }
            Flow::Left => {}
            Flow::Words => {
                // The marker is ordinary text. The scanner continues after its first character.
                let first = text.chars().next().map_or(0, char::len_utf8);
                self.at_start = false;
                self.say_text(&text[..first], sink);
            }
            Flow::Announces(length, speech) => {
                self.say_markup(&text[..length], sink);
                self.after_call = false;
                if speech == Speech::Thoughts {
                    self.state = State::Thoughts(&["<|end|>", "<|start|>", "<|channel|>", "<|return|>", "<|call|>"]);
                } else {
                    self.at_start = false;
                }
            }
            Flow::Item { length, content, stays } => {
                match content {
                    frame::Closed::Call(parts) => self.say_call(&text[..length], parts, announced, sink),
                    frame::Closed::Malformed(fault) => self.say_malformed(&text[..length], fault, announced, sink),
                    frame::Closed::Markup => self.say_markup(&text[..length], sink),
                }
                // After a call, the scanner treats the line as new.
                self.line_blank = true;
                debug_assert!(length > 0 || !stays, "a frame must not stand still");
                if stays && length > 0 {
                    self.state = State::Frame(frame);
                }
            }
        }
        false
    }

    /// Announces a call that is not complete yet, and emits its new text as a delta.
    fn show(&mut self, text: &str, frame: &mut Frame, sink: &mut dyn FnMut(Event<'_>)) {
        let here = self.given;
        let index = match frame.announced {
            Some(index) => index,
            None if frame.opened().is_none() => return,
            None => self.next_index(),
        };
        if frame.announced.is_none() {
            let name = frame.opened().unwrap_or_default();
            sink(Event { span: here..here, kind: EventKind::CallOpened { index, name } });
            frame.announced = Some(index);
        }
        if frame.shown < text.len() {
            sink(Event { span: here..here, kind: EventKind::ArgsDelta { index, text: &text[frame.shown..] } });
            frame.shown = text.len();
        }
    }

    /// Emits reasoning up to its closing marker. Returns whether more text is needed.
    fn thoughts(&mut self, text: &str, closes: &'static [&'static str], end: bool, sink: &mut dyn FnMut(Event<'_>)) -> bool {
        let (length, more) = match first_mark(text.as_bytes(), closes) {
            Some((at, _)) => (at, false),
            None if end => (text.len(), false),
            None => (text.len() - partial_mark(text, closes), true),
        };
        if length > 0 {
            self.note_line(&text[..length]);
            self.say(length, EventKind::Reasoning(&text[..length]), sink);
        }
        if more {
            self.state = State::Thoughts(closes);
        }
        more
    }

    /// Creates a scanner for the content of a code fence.
    fn nested(&self) -> Self {
        let mut nested = Self::new(self.dialect.in_fence(), self.mode, Arc::clone(&self.tools));
        nested.nested = true;
        nested
    }
}

/// Returns how many bytes at the end of the text may be the start of a marker.
fn partial_mark<S: AsRef<str>>(text: &str, marks: &[S]) -> usize {
    let bytes = text.as_bytes();
    let longest = marks.iter().map(|mark| mark.as_ref().len()).max().unwrap_or(1) - 1;
    let from = bytes.len().saturating_sub(longest);
    work::count((bytes.len() - from) * marks.len());
    (from..bytes.len())
        .find(|at| marks.iter().any(|mark| mark.as_ref().as_bytes().starts_with(&bytes[*at..])))
        .map_or(0, |at| bytes.len() - at)
}

/// Returns whether the bytes may be the start of a character.
fn may_continue(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// Parses a complete message.
#[must_use]
pub fn parse(text: &str, dialect: &Dialect, mode: Mode, tools: &Arc<ToolTable>) -> Vec<Item> {
    let mut scanner = Scanner::new(dialect.clone(), mode, Arc::clone(tools));
    let mut items = Items::default();
    scanner.push_str(text, &mut |event| items.push(event));
    scanner.finish(&mut |event| items.push(event));
    items.into_vec()
}
