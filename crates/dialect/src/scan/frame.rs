//! Parses the structure around calls: sections, lists, code fences and separators. A frame contains one call after another.

mod behind;

use std::sync::Arc;

use super::element::{Bracketed, Speech, Step};
use super::tagged::Tagged;
use super::{Cx, Match, any, blank_end, literal, partial_mark};
use crate::call::{self, Parts};
use crate::dialect::{Entry, MAX_NAME, Row, first_chars};
use crate::fault::{Fault, FaultKind};
use crate::find::first_mark;
use crate::format::Shape;
use crate::json::{Extent, Reach};
use crate::repair::{Repair, Repairs};
use crate::tools::ToolTable;
use crate::work::seen;

/// Maximum number of objects with other members after their list of calls that are not closed. After that, members that follow a list
/// are text.
const MAX_OPEN_TAILS: usize = 4;

/// The result of parsing in a frame, from the first byte of the text on.
#[derive(Debug)]
pub(crate) enum Flow {
    /// More text is needed.
    More,
    /// The first `length` bytes form a complete item. If `stays`, the parser remains in the frame, else it leaves the frame.
    Item { length: usize, content: Closed, stays: bool },
    /// There are no more calls. No bytes were consumed.
    Left,
    /// The text is not a call.
    Words,
    /// The first bytes, up to this length, are a header that announces text or reasoning.
    Announces(usize, Speech),
}

/// The content of a complete item.
#[derive(Debug)]
pub(crate) enum Closed {
    Call(Parts),
    Malformed(Fault),
    Markup,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// In a section, before a call or its opening marker.
    Before,
    /// After the opening marker of a call.
    Open,
    /// Inside a call.
    Inside,
    /// After a call.
    Behind,
    /// After the list of calls, in an object that has other members.
    Tail,
    /// In text that is not a call, up to the next marker.
    Junk,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    None,
    Open,
    Closed,
}

#[derive(Debug)]
enum Reading {
    None,
    Bracketed(Bracketed),
    Tagged(Tagged),
}

/// The state of parsing a frame. Positions are relative to the first byte that was not emitted yet.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that was seen")]
pub(crate) struct Frame {
    row: Arc<Row>,
    entry: Entry,
    phase: Phase,
    at: usize,
    list: List,
    /// Whether the list is a member of an object, which must also close.
    object: bool,
    /// Whether the marker may also precede program code.
    code: bool,
    fenced: bool,
    reading: Reading,
    start: usize,
    ready: Option<Result<Parts, Fault>>,
    call_closed: bool,
    section_closed: bool,
    given: usize,
    first_key: bool,
    repairs: Repairs,
    tail: Option<Extent>,
    /// Position up to which white space after the call was skipped.
    blank: usize,
    /// Position up to which white space after a separator was skipped.
    separated: usize,
    junk: Option<Fault>,
    /// Index of the call that was announced.
    pub announced: Option<usize>,
    /// Number of bytes of the announced call that were emitted as deltas.
    pub shown: usize,
}

impl Frame {
    /// Creates a frame. `at` is the position after the opening marker, or of the call itself.
    pub fn new(row: Arc<Row>, entry: Entry, mark: &str, at: usize, repairs: Repairs) -> Self {
        // Without a marker, the call itself comes first.
        let in_section = entry == Entry::Section || (entry == Entry::Bare && row.format.call.open.is_empty());
        Self {
            row,
            entry,
            phase: if in_section { Phase::Before } else { Phase::Open },
            at,
            list: if mark.len() > 1 && mark.ends_with('[') { List::Open } else { List::None },
            object: mark.starts_with('{'),
            code: mark == "<|python_tag|>",
            fenced: false,
            reading: Reading::None,
            start: 0,
            ready: None,
            call_closed: false,
            section_closed: false,
            given: 0,
            first_key: false,
            repairs,
            tail: None,
            blank: 0,
            separated: 0,
            junk: None,
            announced: None,
            shown: 0,
        }
    }

    fn in_section(&self) -> bool {
        matches!(self.entry, Entry::Section | Entry::Bare)
    }

    /// Returns whether no unambiguous marker opened the frame, so that only calls to known tools count.
    fn doubtful(&self) -> bool {
        self.given == 0 && (self.entry == Entry::Bare || self.row.format.weak)
    }

    /// Returns the tool name of the current call, once it is certain that it is a call.
    pub fn opened(&self) -> Option<&str> {
        if self.doubtful() || self.phase != Phase::Inside {
            return None;
        }
        match &self.reading {
            Reading::Bracketed(call) => call.name(),
            Reading::Tagged(call) => call.name(),
            Reading::None => None,
        }
    }

    /// Returns whether the text ends inside the brackets of a call, so that no other decision is possible. This is the most common case.
    pub fn goes_on(&mut self, text: &str) -> bool {
        let doubtful = self.doubtful();
        match &mut self.reading {
            Reading::Bracketed(call) if self.phase == Phase::Inside && !doubtful => call.goes_on(text, &self.row.stops),
            _ => false,
        }
    }

    /// Continues parsing. `text` starts at the first byte that was not emitted yet.
    pub fn advance(&mut self, text: &str, cx: &mut Cx<'_>, end: bool) -> Flow {
        loop {
            let flow = match self.phase {
                Phase::Before => self.before(text, cx, end),
                Phase::Open => self.open(text, end),
                Phase::Inside => self.inside(text, cx, end),
                Phase::Behind => self.behind(text, cx, end),
                Phase::Tail => Some(self.tail(text, cx, end)),
                Phase::Junk => Some(self.junk(text, end)),
            };
            let Some(flow) = flow else { continue };
            if let Flow::Item { .. } = flow {
                self.at = 0;
                (self.blank, self.separated) = (0, 0);
                self.given += 1;
                self.announced = None;
                self.shown = 0;
            }
            return flow;
        }
    }

    /// Finds the next call in a section.
    fn before(&mut self, text: &str, cx: &Cx<'_>, end: bool) -> Option<Flow> {
        let format = self.row.format;
        self.at = blank_end(text, self.at);
        let rest = &text[self.at..];
        let Some(&first) = rest.as_bytes().first() else { return Some(if end { self.nothing_came(text) } else { Flow::More }) };
        if self.given > 0 && matches!(first, b',' | b';') {
            self.at += 1;
            return None;
        }
        match any(rest, format.noise, end) {
            (Match::Yes, length) => {
                self.at += length;
                return None;
            }
            (Match::Partly, _) => return Some(Flow::More),
            _ => {}
        }
        if !self.object {
            match any(rest, format.section.close, end) {
                (Match::Yes, length) => return Some(Self::leave(self.at + length, Closed::Markup)),
                (Match::Partly, _) => return Some(Flow::More),
                _ => {}
            }
        }
        match (first, self.list) {
            (b'[', List::None) if self.given == 0 && (format.list || (cx.mode.is_lenient() && self.is_object())) => {
                self.list = List::Open;
                self.at += 1;
                return None;
            }
            (b']', List::Open) => {
                self.list = List::Closed;
                self.at += 1;
                self.phase = Phase::Behind;
                return None;
            }
            (b'`', _) if cx.mode.is_lenient() && !self.fenced => match fence_line(rest, end) {
                (Match::Yes, length) => {
                    self.at += length;
                    self.fenced = true;
                    self.repairs.add(Repair::Fenced);
                    return None;
                }
                (Match::Partly, _) => return Some(Flow::More),
                _ => {}
            },
            _ => {}
        }
        if !format.call.open.is_empty() {
            match any(rest, format.call.open, end) {
                (Match::Yes, length) => self.at += length,
                (Match::Partly, _) => return Some(Flow::More),
                _ => return self.not_a_call(),
            }
        }
        self.phase = Phase::Open;
        None
    }

    fn is_object(&self) -> bool {
        matches!(self.row.format.shape, Shape::Object(_))
    }

    /// Starts to parse a call, if one can start at the current position.
    fn open(&mut self, text: &str, end: bool) -> Option<Flow> {
        self.at = blank_end(text, self.at);
        let rest = &text[self.at..];
        if rest.is_empty() {
            return Some(if end { self.nothing_came(text) } else { Flow::More });
        }
        match self.row.can_start(rest, end) {
            Match::Partly => return Some(Flow::More),
            Match::No => return self.not_a_call(),
            Match::Yes => {}
        }
        self.start = self.at;
        self.call_closed = false;
        self.reading = match &self.row.tags {
            Some(_) => Reading::Tagged(Tagged::new(self.at)),
            None => Reading::Bracketed(Bracketed::new(self.at)),
        };
        self.phase = Phase::Inside;
        None
    }

    /// Decides what to do if the text at the current position is not a call.
    fn not_a_call(&mut self) -> Option<Flow> {
        if self.given > 0 && self.list != List::Open {
            return Some(Flow::Left);
        }
        if self.doubtful() {
            return Some(Flow::Words);
        }
        let form = self.row.format.grammar();
        self.junk = Some(if self.code {
            Fault::new(FaultKind::Code, format!("program code does not run; call a tool instead: {form}"))
        } else {
            Fault::syntax(format!("expected a call after the opening marker: {form}"))
        });
        self.phase = Phase::Junk;
        None
    }

    /// Decides what to do if the text ends where a call could start.
    fn nothing_came(&mut self, text: &str) -> Flow {
        match (self.given, self.doubtful()) {
            (_, true) => Flow::Words,
            (0, false) => Self::leave(text.len(), Closed::Malformed(Fault::cut())),
            _ if self.at == 0 => Flow::Left,
            _ => Self::leave(text.len(), Closed::Markup),
        }
    }

    fn leave(length: usize, content: Closed) -> Flow {
        Flow::Item { length, content, stays: false }
    }

    fn inside(&mut self, text: &str, cx: &mut Cx<'_>, end: bool) -> Option<Flow> {
        if self.doubtful() && self.is_object() && !self.first_key {
            match first_key(&text[self.start..]) {
                Some(key) if !call::may_begin(key, cx.tools) => return Some(Flow::Words),
                Some(_) => self.first_key = true,
                None => {}
            }
        }
        let row = &*self.row;
        let step = match (&mut self.reading, &row.tags) {
            (Reading::Bracketed(call), _) => call.advance(text, row.format, &row.keys, &row.stops, cx, end),
            (Reading::Tagged(call), Some(marks)) => call.advance(text, marks, cx, end),
            _ => Step::Words,
        };
        match step {
            Step::More => Some(Flow::More),
            Step::Words => Some(Flow::Words),
            Step::Announces(length, speech) => Some(Flow::Announces(length, speech)),
            Step::Done(at, result) => {
                if self.doubtful() && !self.is_meant(&text[self.start..at], &result, cx) {
                    return Some(Flow::Words);
                }
                if let Reading::Bracketed(call) = &self.reading {
                    self.fenced |= call.fenced();
                }
                self.settle(text, at, result);
                None
            }
        }
    }

    /// Returns whether a text without a marker is meant as a call: whether it names a known tool.
    fn is_meant(&self, written: &str, result: &Result<Parts, Fault>, cx: &Cx<'_>) -> bool {
        match result {
            Ok(parts) => cx.tools.knows(&parts.name) && !parts.repairs.contains(Repair::MissingArguments) && !parts.extra,
            // A weak format names a known tool before its arguments can be invalid.
            Err(fault) if self.row.format.weak && fault.kind == FaultKind::NotAnObject => true,
            Err(_) => match &self.reading {
                Reading::Bracketed(call) if call.name().is_some() => call.name().is_some_and(|name| cx.tools.knows(name)),
                _ => names_tool(written, cx.tools),
            },
        }
    }

    /// Stores the result of a call, to be emitted once it is known what follows.
    fn settle(&mut self, text: &str, at: usize, result: Result<Parts, Fault>) {
        if at <= self.start && result.is_err() {
            // The call is invalid from its first byte on: skips the text up to the next marker.
            self.at = self.start + text[self.start..].chars().next().map_or(0, char::len_utf8);
            self.ready = Some(result);
            self.phase = Phase::Junk;
            return;
        }
        self.at = at;
        self.phase = Phase::Behind;
        self.ready = Some(result);
    }

    /// Skips other members after the list of calls.
    fn tail(&mut self, text: &str, cx: &mut Cx<'_>, end: bool) -> Flow {
        // If the object does not close, its members are scanned again as text. To keep the work linear, this is allowed only a few times.
        let tail = self.tail.as_mut().filter(|_| cx.ahead.open_tails < MAX_OPEN_TAILS);
        let reach = tail.map_or(Reach::Stopped(self.at), |tail| tail.advance(text, &[], end));
        match reach {
            Reach::Whole(at) => {
                self.section_closed = true;
                self.flush(at, false, cx)
            }
            Reach::More if !end => Flow::More,
            Reach::More | Reach::Stopped(_) => {
                cx.ahead.open_tails += 1;
                self.flush(self.at, false, cx)
            }
        }
    }

    /// Returns the call that was parsed before, as an item of `length` bytes.
    fn flush(&mut self, length: usize, stays: bool, cx: &Cx<'_>) -> Flow {
        self.phase = Phase::Before;
        let format = self.row.format;
        let content = match self.ready.take() {
            None if length == 0 => return Flow::Left,
            None => Closed::Markup,
            Some(Err(fault)) => Closed::Malformed(fault),
            Some(Ok(mut parts)) => {
                let missing = if format.call.close.is_empty() {
                    format.section.must_close && !self.section_closed && !stays && self.in_section()
                } else {
                    format.call.must_close && !self.call_closed
                };
                parts.repairs.join(std::mem::take(&mut self.repairs));
                match (missing, cx.mode.is_lenient()) {
                    (true, false) if self.list == List::None => Closed::Malformed(Fault::syntax("the call's closing marker is missing")),
                    (true, true) => {
                        parts.repairs.add(Repair::MissingClose);
                        Closed::Call(parts)
                    }
                    _ => Closed::Call(parts),
                }
            }
        };
        Flow::Item { length, content, stays }
    }

    /// Skips text that is not a call, up to the next marker.
    fn junk(&mut self, text: &str, end: bool) -> Flow {
        let rest = &text[self.at..];
        let fault = |this: &mut Self| match this.ready.take() {
            Some(Err(fault)) => fault,
            _ => this.junk.take().unwrap_or_else(Fault::cut),
        };
        let stops = self.row.stops.len();
        let marks = &self.row.marks;
        // An opening marker may contain a closing one, and may be incomplete at the end of the text.
        let growing = if end { usize::MAX } else { rest.len() - partial_mark(rest, &self.row.opens) };
        let length = match first_mark(rest.as_bytes(), marks) {
            Some((at, _)) if growing <= at => return Flow::More,
            Some((at, place)) if place < stops && !self.row.opens.iter().any(|open| rest[at..].starts_with(open.as_str())) => {
                self.at + at + marks[place].len()
            }
            Some((at, _)) => self.at + at,
            None if end => text.len(),
            None => {
                let longest = marks.iter().map(String::len).max().unwrap_or(1);
                let mut keep = (text.len() + 1).saturating_sub(longest).max(self.at);
                while !text.is_char_boundary(keep) {
                    keep -= 1;
                }
                self.at = keep.max(self.at);
                return Flow::More;
            }
        };
        let fault = fault(self);
        Self::leave(length, Closed::Malformed(fault))
    }
}

/// Returns whether the text starts with the opening line of a code fence, and its length.
fn fence_line(text: &str, end: bool) -> (Match, usize) {
    match literal(text, "```", end) {
        Match::Yes => {}
        other => return (other, 0),
    }
    let word = text.as_bytes()[3..].iter().take(16).take_while(|b| b.is_ascii_alphanumeric()).count();
    let length = 3 + word;
    if length == text.len() && !end && word < 16 { (Match::Partly, 0) } else { (Match::Yes, length) }
}

/// Returns the first key of an object, or `None` if it is not complete yet. Returns an empty string if it cannot be a key of a call.
fn first_key(text: &str) -> Option<&str> {
    let text = first_chars(text, MAX_NAME * 2);
    let inner = text.strip_prefix('{')?.trim_start();
    if inner.is_empty() && text.len() > MAX_NAME {
        return Some("");
    }
    let quote = inner.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let key = first_chars(&inner[1..], MAX_NAME);
    match seen(key, key.find(quote)) {
        Some(end) => Some(&key[..end]),
        // Keys of calls are never that long.
        None if key.len() < inner.len() - 1 => Some(""),
        None => None,
    }
}

/// Returns whether an invalid call names a known tool, or was cut off inside such a name.
fn names_tool(written: &str, tools: &ToolTable) -> bool {
    for key in ["\"name\"", "\"tool_name\"", "'name'"] {
        let Some(found) = seen(written, written.find(key)) else { continue };
        let Some(value) = written[found + key.len()..].trim_start().strip_prefix(':') else { continue };
        let value = value.trim_start();
        let Some(quote) = value.chars().next().filter(|c| matches!(c, '"' | '\'')) else { continue };
        let name = &value[1..];
        return match name.find(quote) {
            Some(end) => tools.knows(&name[..end]),
            None => !name.is_empty() && tools.has_prefix(name),
        };
    }
    false
}
