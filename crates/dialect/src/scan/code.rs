//! Parses code fences. A fence at the end of the message that contains only calls to known tools is parsed as calls. Every other fence is
//! text.

use super::{Match, Scanner, State, any, blank_end};
use crate::dialect::{Compiled, Meaning};
use crate::event::{Content, Event, Items};
use crate::format::Shape;
use crate::repair::Repair;
use crate::work::{self, seen};

/// Maximum length of the line that opens or closes a fence, in bytes.
const MAX_INFO: usize = 256;

/// The state of a fence that may contain calls. It is not emitted before it is decided.
#[derive(Debug)]
pub(super) struct Fence {
    ticks: usize,
    body: Option<usize>,
    plausible: bool,
    searched: usize,
    closed: Option<(usize, usize)>,
}

impl Fence {
    pub fn new(ticks: usize) -> Self {
        Self { ticks, body: None, plausible: false, searched: 0, closed: None }
    }
}

impl Scanner {
    /// Decides whether a fence contains calls. Returns whether more text is needed.
    pub(super) fn fence(&mut self, text: &str, mut fence: Fence, end: bool, sink: &mut dyn FnMut(Event<'_>)) -> bool {
        let body = match fence.body {
            Some(body) => body,
            None => match seen(
                &text.as_bytes()[..text.len().min(MAX_INFO)],
                memchr::memchr(b'\n', &text.as_bytes()[..text.len().min(MAX_INFO)]),
            ) {
                Some(line) => line + 1,
                None if text.len() < MAX_INFO && !end => return self.hold(fence),
                None => return self.code(text, fence.ticks, end, sink),
            },
        };
        fence.body = Some(body);
        fence.searched = fence.searched.max(body.saturating_sub(1));
        if !fence.plausible {
            match self.may_hold_calls(&text[body..], end) {
                Match::Yes => fence.plausible = true,
                Match::Partly => return self.hold(fence),
                Match::No => return self.code(text, fence.ticks, end, sink),
            }
        }
        if fence.closed.is_none() {
            match closing_line(text, &mut fence.searched, fence.ticks, end) {
                Some(closed) => fence.closed = Some(closed),
                None if !end => return self.hold(fence),
                None => {}
            }
        }
        let (inside, after) = match fence.closed {
            Some((inside, after)) => {
                let (tails, upto) = self.only_tails(text, fence.searched.max(after), end);
                fence.searched = upto;
                match tails {
                    Match::Partly if !end => return self.hold(fence),
                    Match::No => return self.as_words(text, after, sink),
                    _ => {}
                }
                if !end {
                    return self.hold(fence);
                }
                (inside, after)
            }
            None if self.mode.is_lenient() => (text.len(), text.len()),
            None => return self.as_words(text, text.len(), sink),
        };
        self.fenced_calls(text, body, inside.max(body), after, sink)
    }

    fn hold(&mut self, fence: Fence) -> bool {
        self.state = State::Fence(fence);
        true
    }

    fn as_words(&mut self, text: &str, length: usize, sink: &mut dyn FnMut(Event<'_>)) -> bool {
        self.at_start = false;
        self.after_call = false;
        self.say_text(&text[..length], sink);
        false
    }

    /// Returns whether the content of a fence can start with a call.
    fn may_hold_calls(&self, body: &str, end: bool) -> Match {
        let rest = &body[blank_end(body, 0)..];
        if body.len() - rest.len() > MAX_INFO {
            return Match::No;
        }
        if rest.is_empty() {
            return if end { Match::No } else { Match::Partly };
        }
        if rest.starts_with(['{', '[']) {
            return Match::Yes;
        }
        let compiled = self.dialect.compiled();
        let opens: Vec<&str> = calls_of(compiled).collect();
        match any(rest, &opens, end).0 {
            Match::No => {}
            found => return found,
        }
        let python = compiled.rows.iter().find(|row| matches!(row.format.shape, Shape::Python) && !row.foreign);
        python.map_or(Match::No, |row| row.can_start(rest, end))
    }

    /// Returns whether only control tokens and white space follow, and the position up to which this was checked.
    fn only_tails(&self, text: &str, from: usize, end: bool) -> (Match, usize) {
        let tokens = &self.dialect.compiled().tokens;
        let mut at = blank_end(text, from);
        while at < text.len() {
            match any(&text[at..], tokens, end) {
                (Match::Yes, length) => at = blank_end(text, at + length),
                (other, _) => return (other, at),
            }
        }
        (Match::Yes, at)
    }

    /// Parses the content of a fence at the end of the message, and emits its calls. Emits the fence as text if it contains anything else.
    fn fenced_calls(&mut self, text: &str, body: usize, inside: usize, after: usize, sink: &mut dyn FnMut(Event<'_>)) -> bool {
        let mut nested = self.nested();
        let mut items = Items::default();
        nested.push_str(&text[body..inside], &mut |event| items.push(event));
        nested.finish(&mut |event| items.push(event));
        let items = items.into_vec();
        let fits = |content: &Content| match content {
            Content::Call(call) => self.tools.knows(&call.name),
            Content::Text(text) => text.trim().is_empty(),
            Content::Markup => true,
            Content::Malformed(_) | Content::Reasoning(_) => false,
        };
        let calls = items.iter().filter(|item| matches!(item.content, Content::Call(_))).count();
        if calls == 0 || !items.iter().all(|item| fits(&item.content)) {
            return self.as_words(text, after, sink);
        }
        let mut given = 0;
        for item in items {
            if let Content::Call(call) = item.content
                && !self.room.is_full()
            {
                let upto = body + item.span.end;
                let parts = crate::call::Parts {
                    name: call.name,
                    id: Some(call.id),
                    arguments: call.arguments,
                    repairs: if self.mode.is_lenient() { call.repairs.with(Repair::Fenced) } else { call.repairs },
                    extra: false,
                };
                self.say_call(&text[given..upto], parts, None, sink);
                given = upto;
            }
        }
        if after > given && !self.room.is_full() {
            self.say_markup(&text[given..after], sink);
        }
        false
    }

    /// Emits a code block as text, up to its closing line. Returns whether more text is needed.
    pub(super) fn code(&mut self, text: &str, ticks: usize, end: bool, sink: &mut dyn FnMut(Event<'_>)) -> bool {
        self.at_start = false;
        self.after_call = false;
        let mut searched = 0;
        if let Some((_, after)) = closing_line(text, &mut searched, ticks, end) {
            self.say_text(&text[..after], sink);
            return false;
        }
        let length = if end { text.len() } else { searched };
        self.say_text(&text[..length], sink);
        if !end {
            self.state = State::Code(ticks);
        }
        !end
    }
}

/// Returns the markers that start calls.
fn calls_of(compiled: &Compiled) -> impl Iterator<Item = &str> {
    compiled.markers.iter().filter(|marker| matches!(marker.meaning, Meaning::Calls(_))).map(|marker| marker.text.as_str())
}

/// Finds the line that closes a fence. Returns the end of the content and the end of the line. `searched` is the position from which the
/// next search starts.
fn closing_line(text: &str, searched: &mut usize, ticks: usize, end: bool) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    loop {
        let unseen = &bytes[*searched..];
        let Some(line) = seen(unseen, memchr::memchr(b'\n', unseen)).map(|line| line + *searched) else {
            *searched = bytes.len();
            return None;
        };
        let mut at = line + 1;
        while let Some(b' ' | b'\t') = bytes.get(at) {
            at += 1;
        }
        let run = bytes[at..].iter().take_while(|b| **b == b'`').count();
        let mut tail = at + run;
        while let Some(b' ' | b'\t' | b'\r') = bytes.get(tail) {
            tail += 1;
        }
        work::count(tail - line);
        // Closing lines are never that long. A line that grows must not be scanned again with every chunk.
        if tail - line > MAX_INFO {
            *searched = line + 1;
            continue;
        }
        if run >= ticks && (bytes.get(tail) == Some(&b'\n') || (tail == bytes.len() && end)) {
            return Some((line + 1, tail));
        }
        if tail == bytes.len() && !end {
            *searched = line;
            return None;
        }
        *searched = line + 1;
    }
}
