//! The scanner: one pass over a stream of text, in pieces of any size, that tells words, thoughts and calls apart.
//!
//! Text that is undecided is held until it is decided; everything else is given away at once. Whole text is one piece.

mod code;
mod element;
mod frame;
mod head;
mod marks;
mod tag;
mod tagged;
mod value;
mod words;

use std::collections::VecDeque;
use std::sync::Arc;

pub(crate) use marks::TagMarks;

use crate::call::Parts;
use crate::dialect::Dialect;
use crate::fault::Fault;
use crate::said::{Call, Event, Item, Items, Malformed, Mode, Said};
use crate::tools::ToolTable;
use code::Fence;
use element::Speech;
use frame::{Flow, Frame};

/// Whether a literal stands somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    Yes,
    No,
    /// The text ends in the middle of it.
    Partly,
}

impl Match {
    pub const fn of(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }

    /// Where the answer is no only because the text has not come yet.
    pub const fn or_partly(self) -> Self {
        if matches!(self, Self::No) { Self::Partly } else { self }
    }
}

/// Whether the text begins with a literal.
pub(crate) fn literal(text: &str, wanted: &str, end: bool) -> Match {
    if text.len() >= wanted.len() {
        return Match::of(text.as_bytes().starts_with(wanted.as_bytes()));
    }
    if !end && wanted.as_bytes().starts_with(text.as_bytes()) { Match::Partly } else { Match::No }
}

/// Whether the text begins with one of several literals, and how long that one is.
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

/// Where white space ends.
pub(crate) fn blank_end(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = from;
    while let Some(b' ' | b'\n' | b'\t' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// What reading a call needs to know.
pub(crate) struct Cx<'a> {
    pub mode: Mode,
    pub tools: &'a ToolTable,
    /// Where the text begins in the whole input.
    pub offset: usize,
    /// The next end of CDATA, and how far it was looked for.
    pub cdata_end: &'a mut Option<usize>,
    pub cdata_searched: &'a mut usize,
}

/// What the scanner is in the middle of.
#[derive(Debug)]
enum State {
    Words,
    Thoughts(&'static [&'static str]),
    Code(usize),
    Fence(Fence),
    Frame(Box<Frame>),
}

/// Finds the calls in a stream of text.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that was seen")]
pub struct Scanner {
    dialect: Dialect,
    mode: Mode,
    tools: Arc<ToolTable>,
    state: State,
    /// Text that is not decided yet, from `start` on.
    held: String,
    start: usize,
    /// How much was decided, in bytes of valid text and in bytes of input.
    decided: usize,
    pub(crate) given: usize,
    /// Where bytes that are no text stood, and how many more or less they are than what they read as.
    skews: VecDeque<(usize, isize)>,
    /// Bytes of a character that has not come whole.
    partial: Vec<u8>,
    pub(crate) calls: usize,
    /// Nothing but white space and thoughts so far.
    at_start: bool,
    /// The line so far is white space.
    line_blank: bool,
    /// The backticks that opened code on a line: how many, and where.
    inline: Option<(usize, usize)>,
    /// The last line break that was looked for, and how far.
    line: usize,
    lines_seen: usize,
    after_call: bool,
    nested: bool,
    cdata_end: Option<usize>,
    cdata_searched: usize,
}

impl Scanner {
    /// Starts a message in a dialect. The tools decide what is a call where a format has no mark, and which type a value has.
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
            skews: VecDeque::new(),
            partial: Vec::new(),
            calls: 0,
            at_start: true,
            line_blank: true,
            inline: None,
            line: 0,
            lines_seen: 0,
            after_call: false,
            nested: false,
            cdata_end: None,
            cdata_searched: 0,
        }
    }

    /// The message begins inside thoughts, because the prompt opened them.
    #[must_use]
    pub fn thinking(mut self) -> Self {
        self.state = State::Thoughts(words::all_closings());
        self
    }

    /// Takes bytes, which may end in the middle of a character. What is not UTF-8 reads as U+FFFD.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Event<'_>)) {
        if !self.partial.is_empty() {
            let mut joined = std::mem::take(&mut self.partial);
            joined.extend_from_slice(bytes);
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
            // Only at the very end may more bytes make it a character.
            if chunks.peek().is_none() && may_continue(invalid) {
                self.partial = invalid.to_vec();
                return;
            }
            self.push_invalid(invalid.len(), sink);
        }
    }

    fn push_invalid(&mut self, length: usize, sink: &mut dyn FnMut(Event<'_>)) {
        let at = self.decided + self.held.len() - self.start;
        let written = char::REPLACEMENT_CHARACTER.len_utf8();
        self.skews.push_back((at + written, isize::try_from(length).unwrap_or(0) - isize::try_from(written).unwrap_or(0)));
        self.push_str("\u{fffd}", sink);
    }

    /// Takes text.
    pub fn push_str(&mut self, text: &str, sink: &mut dyn FnMut(Event<'_>)) {
        if text.is_empty() {
            return;
        }
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
        // Given away text is dropped once it is most of what is held, so that dropping costs no more than adding.
        if self.start > self.held.len() / 2 {
            self.held.drain(..self.start);
            self.start = 0;
        }
    }

    /// Whether all that is held is the inside of a call, which is shown and nothing more.
    fn passes(&mut self, sink: &mut dyn FnMut(Event<'_>)) -> bool {
        let State::Frame(frame) = &mut self.state else { return false };
        let text = &self.held[self.start..];
        if (frame.announced.is_none() && frame.opened().is_some()) || !frame.goes_on(text) {
            return false;
        }
        if let Some(index) = frame.announced {
            sink(Event { span: self.given..self.given, said: Said::ArgsDelta { index, text: &text[frame.shown..] } });
            frame.shown = text.len();
        }
        true
    }

    /// The message is over. What was held is decided now.
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

    /// Reads as much as can be decided, and says how much that was.
    fn run(&mut self, text: &str, end: bool, sink: &mut dyn FnMut(Event<'_>)) -> usize {
        let mut at = 0;
        loop {
            let rest = &text[at..];
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

    /// Gives an item away that covers the next bytes.
    fn say(&mut self, length: usize, said: Said<'_>, sink: &mut dyn FnMut(Event<'_>)) {
        let start = self.given;
        self.decided += length;
        self.given += length;
        while let Some((_, skew)) = self.skews.pop_front_if(|(from, _)| *from <= self.decided) {
            self.given = self.given.saturating_add_signed(skew);
        }
        sink(Event { span: start..self.given, said });
    }

    fn say_text(&mut self, text: &str, sink: &mut dyn FnMut(Event<'_>)) {
        if text.is_empty() {
            return;
        }
        self.note_line(text);
        self.say(text.len(), Said::Text(text), sink);
    }

    /// Remembers whether the line is blank so far.
    fn note_line(&mut self, text: &str) {
        let tail = text.trim_end_matches([' ', '\t']);
        if tail.ends_with('\n') {
            self.line_blank = true;
        } else if !tail.is_empty() {
            self.line_blank = false;
        }
    }

    fn say_call(&mut self, length: usize, parts: Parts, announced: Option<usize>, sink: &mut dyn FnMut(Event<'_>)) {
        let index = announced.unwrap_or_else(|| self.next_index());
        let id = parts.id.filter(|id| !id.is_empty()).unwrap_or_else(|| made_id(index + 1));
        let call = Call { index, id, name: parts.name, arguments: parts.arguments, repairs: parts.repairs, written: None };
        self.say(length, Said::Call(call), sink);
        self.at_start = false;
        self.after_call = true;
    }

    fn next_index(&mut self) -> usize {
        self.calls += 1;
        self.calls - 1
    }

    fn say_malformed(&mut self, raw: &str, fault: Fault, announced: Option<usize>, sink: &mut dyn FnMut(Event<'_>)) {
        let index = announced.unwrap_or_else(|| self.next_index());
        let malformed = Malformed { kind: fault.kind, error: fault.error, raw: raw.to_owned(), index };
        self.say(raw.len(), Said::Malformed(malformed), sink);
        self.at_start = false;
        self.after_call = true;
    }

    fn frame(&mut self, text: &str, mut frame: Box<Frame>, end: bool, sink: &mut dyn FnMut(Event<'_>)) -> bool {
        let mut cx = Cx {
            mode: self.mode,
            tools: &self.tools,
            offset: self.decided,
            cdata_end: &mut self.cdata_end,
            cdata_searched: &mut self.cdata_searched,
        };
        let announced = frame.announced;
        match frame.advance(text, &mut cx, end) {
            Flow::More => {
                self.show(text, &mut frame, sink);
                self.state = State::Frame(frame);
                return true;
            }
            Flow::Left => {}
            Flow::Words => {
                // What looked like a mark is words; what follows it is looked at anew.
                let first = text.chars().next().map_or(0, char::len_utf8);
                self.at_start = false;
                self.say_text(&text[..first], sink);
            }
            Flow::Announces(length, speech) => {
                self.say(length, Said::Markup(&text[..length]), sink);
                self.after_call = false;
                if speech == Speech::Thoughts {
                    self.state = State::Thoughts(&["<|end|>", "<|start|>", "<|channel|>", "<|return|>", "<|call|>"]);
                } else {
                    self.at_start = false;
                }
            }
            Flow::Item { length, content, stays } => {
                match content {
                    frame::Said::Call(parts) => self.say_call(length, parts, announced, sink),
                    frame::Said::Malformed(fault) => self.say_malformed(&text[..length], fault, announced, sink),
                    frame::Said::Markup => self.say(length, Said::Markup(&text[..length]), sink),
                }
                // Behind a call the line is as good as new.
                self.line_blank = true;
                debug_assert!(length > 0 || !stays, "a frame must not stand still");
                if stays && length > 0 {
                    self.state = State::Frame(frame);
                }
            }
        }
        false
    }

    /// Announces a call that is not whole yet, and shows what came of it.
    fn show(&mut self, text: &str, frame: &mut Frame, sink: &mut dyn FnMut(Event<'_>)) {
        let here = self.given;
        let index = match frame.announced {
            Some(index) => index,
            None if frame.opened().is_none() => return,
            None => self.next_index(),
        };
        if frame.announced.is_none() {
            let name = frame.opened().unwrap_or_default();
            sink(Event { span: here..here, said: Said::CallOpened { index, name } });
            frame.announced = Some(index);
        }
        if frame.shown < text.len() {
            sink(Event { span: here..here, said: Said::ArgsDelta { index, text: &text[frame.shown..] } });
            frame.shown = text.len();
        }
    }

    fn thoughts(&mut self, text: &str, closes: &'static [&'static str], end: bool, sink: &mut dyn FnMut(Event<'_>)) -> bool {
        let (length, more) = match first_mark(text, closes) {
            Some((at, _)) => (at, false),
            None if end => (text.len(), false),
            None => (text.len() - partial_mark(text, closes), true),
        };
        if length > 0 {
            self.note_line(&text[..length]);
            self.say(length, Said::Reasoning(&text[..length]), sink);
        }
        if more {
            self.state = State::Thoughts(closes);
        }
        more
    }

    /// A scanner for the inside of a code fence.
    fn nested(&self) -> Self {
        let mut nested = Self::new(self.dialect.in_fence(), self.mode, Arc::clone(&self.tools));
        nested.nested = true;
        nested
    }
}

/// An id for a call that has none.
pub(crate) fn made_id(number: usize) -> String {
    let mut id = String::with_capacity(8);
    id.push_str("call_");
    match u8::try_from(number) {
        Ok(digit @ 0..10) => id.push(char::from(b'0' + digit)),
        _ => id.push_str(&number.to_string()),
    }
    id
}

/// The first of several literals in a text: where, and which. One pass, whatever is absent.
fn first_mark<S: AsRef<str>>(text: &str, marks: &[S]) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut firsts = [marks.first()?.as_ref().as_bytes()[0]; 3];
    let mut count = 1;
    for mark in marks {
        let first = mark.as_ref().as_bytes()[0];
        if !firsts[..count].contains(&first) {
            if count == firsts.len() {
                let found = |place: usize, mark: &S| Some((memchr::memmem::find(bytes, mark.as_ref().as_bytes())?, place));
                return marks.iter().enumerate().filter_map(|(place, mark)| found(place, mark)).min();
            }
            firsts[count] = first;
            count += 1;
        }
    }
    let mut at = 0;
    loop {
        at += memchr::memchr3(firsts[0], firsts[1], firsts[2], &bytes[at..])?;
        if let Some(place) = marks.iter().position(|mark| bytes[at..].starts_with(mark.as_ref().as_bytes())) {
            return Some((at, place));
        }
        at += 1;
    }
}

/// How many bytes at the end of the text may be the start of a mark.
fn partial_mark<S: AsRef<str>>(text: &str, marks: &[S]) -> usize {
    let bytes = text.as_bytes();
    let longest = marks.iter().map(|mark| mark.as_ref().len()).max().unwrap_or(1) - 1;
    let from = bytes.len().saturating_sub(longest);
    (from..bytes.len())
        .find(|at| marks.iter().any(|mark| mark.as_ref().as_bytes().starts_with(&bytes[*at..])))
        .map_or(0, |at| bytes.len() - at)
}

fn may_continue(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// Reads a whole message.
#[must_use]
pub fn parse(text: &str, dialect: &Dialect, mode: Mode, tools: &Arc<ToolTable>) -> Vec<Item> {
    let mut scanner = Scanner::new(dialect.clone(), mode, Arc::clone(tools));
    let mut items = Items::default();
    scanner.push_str(text, &mut |event| items.push(event));
    scanner.finish(&mut |event| items.push(event));
    items.into_vec()
}
