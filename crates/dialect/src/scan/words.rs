//! Finds the markers of a dialect in ordinary text, and emits the rest as text.

use std::sync::Arc;

use super::code::Fence;
use super::frame::Frame;
use super::{Match, Scanner, State, any, blank_end, literal};
use crate::dialect::{Compiled, Entry, MAX_NAME, Marker, Meaning, Row, first_chars};
use crate::event::Event;
use crate::format::Shape;
use crate::repair::{Repair, Repairs};
use crate::work::{self, seen};

/// Maximum white space after a call, in bytes, that is held back to see whether another call follows.
const MAX_GAP: usize = 64;
/// Maximum number of bytes in which the closing backtick of inline code is searched for.
const MAX_INLINE: usize = 1024;
/// Number of backticks from which on a run does not open code.
const MAX_TICKS: usize = 64;
/// Maximum length of markup between two tokens, in bytes.
const MAX_THROUGH: usize = 1024;

/// What a position in ordinary text contains.
enum Here {
    Nothing,
    /// More text is needed to decide.
    Undecided,
    /// The start of a section or a call.
    Frame(Box<Frame>),
    /// A marker of this length that opens reasoning, and the marker that closes it.
    Thinks(usize, &'static str),
    /// Control tokens of this length.
    Markup(usize),
}

impl Scanner {
    /// Scans ordinary text. Returns whether more text is needed.
    pub(super) fn words(&mut self, text: &str, end: bool, sink: &mut dyn FnMut(Event<'_>)) -> bool {
        let compiled = Arc::clone(self.dialect.compiled());
        if self.after_call
            && let Some(more) = self.gap(text, &compiled, end, sink)
        {
            return more;
        }
        if self.at_start && !compiled.bare.is_empty() {
            let first = blank_end(text, 0);
            if first > 0 {
                self.say_text(&text[..first], sink);
                return first == text.len();
            }
            match self.bare(text, &compiled, end) {
                Here::Frame(frame) => {
                    self.state = State::Frame(frame);
                    return false;
                }
                Here::Undecided => return true,
                _ => {}
            }
        }
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(found) = seen(&bytes[at..], compiled.anchors.find(&bytes[at..])) {
            at += found;
            let (from, here) = self.look(text, at, &compiled, end);
            match here {
                Here::Nothing if bytes[at] == b'`' => match self.backtick(text, at, end, sink) {
                    Tick::More => return true,
                    Tick::Fence => return false,
                    Tick::Passed(next) => at = next,
                },
                Here::Nothing => at += 1,
                Here::Undecided => {
                    self.pass(&text[..from], sink);
                    return true;
                }
                found => {
                    if let Some(hidden) = self.in_code(text, from, end) {
                        match hidden {
                            Match::Partly => {
                                self.pass(&text[..from], sink);
                                return true;
                            }
                            Match::Yes => {
                                at += 1;
                                continue;
                            }
                            Match::No => self.inline = None,
                        }
                    }
                    self.pass(&text[..from], sink);
                    self.enter(&text[from..], found, sink);
                    return false;
                }
            }
        }
        let keep = if end { 0 } else { Self::leading(text, &compiled) };
        self.pass(&text[..text.len() - keep], sink);
        true
    }

    /// Emits ordinary text.
    fn pass(&mut self, text: &str, sink: &mut dyn FnMut(Event<'_>)) {
        if text.is_empty() {
            return;
        }
        if self.inline.is_some() {
            self.open_ticks(text, text.len());
        }
        if self.at_start && blank_end(text, 0) < text.len() {
            self.at_start = false;
        }
        self.after_call = false;
        self.say_text(text, sink);
    }

    /// Changes the state of the scanner to what a marker opens.
    fn enter(&mut self, text: &str, here: Here, sink: &mut dyn FnMut(Event<'_>)) {
        match here {
            Here::Frame(frame) => self.state = State::Frame(frame),
            Here::Markup(length) => self.say_markup(&text[..length], sink),
            Here::Thinks(length, close) => {
                self.say_markup(&text[..length], sink);
                self.state = State::Thoughts(closing(close));
            }
            Here::Nothing | Here::Undecided => {}
        }
    }

    /// Handles white space after a call, which belongs to the next call if one follows. Returns `None` to continue as ordinary text, else
    /// whether more text is needed.
    fn gap(&mut self, text: &str, compiled: &Compiled, end: bool, sink: &mut dyn FnMut(Event<'_>)) -> Option<bool> {
        let next = blank_end(text, 0);
        if next == text.len() && !end && next < MAX_GAP {
            return Some(true);
        }
        let rest = &text[next..];
        if next < MAX_GAP && !rest.is_empty() {
            match any(rest, &compiled.closes, end) {
                (Match::Partly, _) => return Some(true),
                (Match::Yes, length) if !Self::opens(rest, compiled) => {
                    self.say_markup(&text[..next + length], sink);
                    return Some(false);
                }
                _ => {}
            }
            let anchors = rest.bytes().next().is_some_and(|byte| !compiled.anchored[usize::from(byte)].is_empty());
            if next > 0 && anchors {
                match self.look(text, next, compiled, end) {
                    (_, Here::Undecided) => return Some(true),
                    (from, Here::Frame(_)) if from == next => {
                        // The frame includes the white space, so that it does not become a text event.
                        if let Some(frame) = self.framed(text, next, compiled, end) {
                            self.after_call = false;
                            self.state = State::Frame(frame);
                            return Some(false);
                        }
                    }
                    _ => {}
                }
            }
        }
        self.after_call = false;
        None
    }

    fn opens(rest: &str, compiled: &Compiled) -> bool {
        compiled.markers.iter().any(|marker| matches!(marker.meaning, Meaning::Calls(_)) && rest.starts_with(&marker.text))
    }

    /// Returns the frame that starts after `lead` bytes of white space.
    fn framed(&self, text: &str, lead: usize, compiled: &Compiled, end: bool) -> Option<Box<Frame>> {
        let byte = usize::from(*text.as_bytes().get(lead)?);
        compiled.anchored[byte]
            .with(None)
            .iter()
            .map(|place| &compiled.markers[usize::from(*place)])
            .filter(|marker| marker.anchor == 0)
            .find_map(|marker| match self.meaning(marker, text, lead, lead, end) {
                Here::Frame(frame) => Some(frame),
                _ => None,
            })
    }

    /// Returns what the markers at an anchor byte mean, and the position where the marker starts.
    fn look(&self, text: &str, at: usize, compiled: &Compiled, end: bool) -> (usize, Here) {
        let byte = usize::from(text.as_bytes()[at]);
        let mut undecided = None;
        let behind = text.as_bytes().get(at + 1).copied();
        for place in compiled.anchored[byte].with(behind) {
            let marker = &compiled.markers[usize::from(*place)];
            let Some(from) = at.checked_sub(marker.anchor) else { continue };
            if marker.anchor > 0 && (text.as_bytes()[from] != marker.text.as_bytes()[0] || !text.is_char_boundary(from)) {
                continue;
            }
            match self.meaning(marker, text, from, 0, end) {
                Here::Nothing => {}
                Here::Undecided => undecided = Some(undecided.map_or(from, |before: usize| before.min(from))),
                found if undecided.is_none() => return (from, found),
                // The same bytes may still become a longer marker.
                _ => return (undecided.unwrap_or(from), Here::Undecided),
            }
        }
        undecided.map_or((at, Here::Nothing), |from| (from, Here::Undecided))
    }

    /// Returns what a marker means at a position. The `lead` bytes of white space before the marker belong to it.
    fn meaning(&self, marker: &Marker, text: &str, from: usize, lead: usize, end: bool) -> Here {
        let (found, length) = standing(marker, &text[from..], end);
        match found {
            Match::No => return Here::Nothing,
            Match::Partly => return Here::Undecided,
            Match::Yes => {}
        }
        match &marker.meaning {
            Meaning::Token => Here::Markup(length),
            Meaning::Thinks(close) => Here::Thinks(length, close),
            Meaning::Through(close, with) => {
                let rest = &text.as_bytes()[from..];
                let window = &rest[..rest.len().min(MAX_THROUGH)];
                match seen(window, memchr::memmem::find(window, close.as_bytes())) {
                    Some(at) => Here::Markup(at + with),
                    None if rest.len() < MAX_THROUGH && !end => Here::Undecided,
                    _ => Here::Nothing,
                }
            }
            Meaning::Calls(rows) => self.choose(rows, marker, text, from, length, lead, end),
        }
    }

    /// Chooses the format of the text after a marker.
    #[expect(clippy::too_many_arguments, reason = "one look, seen from one place")]
    fn choose(&self, rows: &[(Arc<Row>, Entry)], marker: &Marker, text: &str, from: usize, length: usize, lead: usize, end: bool) -> Here {
        let own = rows.iter().filter(|(row, _)| !row.foreign).count();
        let body = &text[from + length..];
        let mut first = None;
        for (row, entry) in rows {
            if row.foreign && !self.mode.is_lenient() {
                continue;
            }
            let weak = row.format.weak;
            // Markers that are words count only at the start of a line, or only before text that can be a call.
            let word = marker.anchor > 0;
            if weak && word && !self.starts_line(text, from) {
                continue;
            }
            // With only one format there is no choice: text that does not match it is a malformed call.
            let mut fits = if own == 1 && rows.len() == 1 && (!word || weak) { Match::Yes } else { row.fits(*entry, body, end) };
            let stray = *entry == Entry::Element && !matches!(row.format.section.open, []);
            if fits == Match::Yes && stray {
                if !self.mode.is_lenient() {
                    continue;
                }
                fits = self.stray(row, &text[from..], end);
            }
            match fits {
                Match::Partly => return Here::Undecided,
                Match::No => {
                    if first.is_none() && !row.foreign && !weak && !stray && !word {
                        first = Some((row, *entry, false));
                    }
                }
                Match::Yes => {
                    let mut repairs = Repairs::default();
                    if row.foreign {
                        repairs.add(Repair::OtherFormat);
                    }
                    if stray {
                        repairs.add(Repair::MissingOpen);
                    }
                    let at = if *entry == Entry::Element { 0 } else { length };
                    return Here::Frame(Box::new(Frame::new(Arc::clone(row), *entry, &marker.text, lead + at, repairs)));
                }
            }
        }
        match first {
            // If none of several formats matches, the marker is text. With only one format, it is a malformed call. The same holds for a
            // control token, which does not occur in ordinary text.
            Some((row, entry, _)) if own == 1 || marker.text.starts_with("<|") => {
                Here::Frame(Box::new(Frame::new(Arc::clone(row), entry, &marker.text, lead + length, Repairs::default())))
            }
            _ if marker.token => Here::Markup(length),
            _ => Here::Nothing,
        }
    }

    /// Returns whether the text is a call to a known tool outside of a section.
    fn stray(&self, row: &Row, rest: &str, end: bool) -> Match {
        let Some(tags) = &row.tags else { return Match::No };
        let window = first_chars(rest, MAX_NAME);
        match seen(window, window.find(tags.tags.end)) {
            Some(close) if window[close + tags.tags.end.len()..].trim_start().starts_with('{') => Match::No,
            Some(close) if window[close + tags.tags.end.len()..].trim_start().is_empty() && !end && window.len() == rest.len() => {
                Match::Partly
            }
            Some(close) => Match::of(
                window[..close]
                    .split(['=', '"', ' ', '\''])
                    .any(|word| self.tools.knows(word) && !word.is_empty() && !word.starts_with('<') && word != "name"),
            ),
            None if window.len() < rest.len() || end => Match::No,
            None => Match::Partly,
        }
    }

    /// Returns the frame of a call at the start of the message without any marker.
    fn bare(&self, text: &str, compiled: &Compiled, end: bool) -> Here {
        if text.is_empty() {
            return Here::Undecided;
        }
        // A marker takes precedence over a call without one.
        if !compiled.anchored[usize::from(text.as_bytes()[0])].is_empty() {
            match self.look(text, 0, compiled, end) {
                (_, Here::Nothing) => {}
                (_, Here::Undecided) => return Here::Undecided,
                _ => return Here::Nothing,
            }
        }
        for row in &compiled.bare {
            match self.bare_fits(row, text, end) {
                Match::Yes => return Here::Frame(Box::new(Frame::new(Arc::clone(row), Entry::Bare, "", 0, Repairs::default()))),
                Match::Partly => return Here::Undecided,
                Match::No => {}
            }
        }
        Here::Nothing
    }

    fn bare_fits(&self, row: &Row, text: &str, end: bool) -> Match {
        if row.format.weak {
            // The first line must contain only a tool name.
            let Some((line, rest)) = seen(text, text.find('\n')).map(|at| (&text[..at], &text[at + 1..])) else {
                let may = text.len() < 256 && self.tools.has_prefix(text.trim_end()) && !end;
                return if may { Match::Partly } else { Match::No };
            };
            let blank = blank_end(rest, 0);
            let rest = &rest[blank..];
            if blank > MAX_NAME {
                return Match::No;
            }
            return match (self.tools.lists(line.trim()), rest.is_empty() && !end) {
                (true, true) => Match::Partly,
                (true, false) => Match::of(rest.starts_with('{')),
                _ => Match::No,
            };
        }
        if (row.format.list && !text.starts_with('[')) || text.starts_with('`') {
            return Match::No;
        }
        if matches!(row.format.shape, Shape::Channel) {
            return literal(text, "to=", end);
        }
        row.fits(Entry::Section, text, end)
    }

    /// Returns whether only white space precedes this position on its line.
    pub(super) fn starts_line(&self, text: &str, at: usize) -> bool {
        let before = text[..at].trim_end_matches([' ', '\t']);
        work::count(at - before.len() + 1);
        if before.is_empty() { self.line_blank } else { before.ends_with('\n') }
    }

    /// Returns how many bytes at the end of the text may be the start of a marker whose anchor has not arrived yet.
    fn leading(text: &str, compiled: &Compiled) -> usize {
        let bytes = text.as_bytes();
        let mut keep = 0;
        let tail = &bytes[bytes.len().saturating_sub(compiled.longest_lead)..];
        if !tail.iter().any(|byte| compiled.lead_bytes.contains(byte)) {
            return 0;
        }
        work::count(compiled.leading.len() * compiled.longest_lead);
        for place in &compiled.leading {
            let marker = &compiled.markers[usize::from(*place)];
            let lead = &marker.text.as_bytes()[..marker.anchor];
            let from = bytes.len().saturating_sub(lead.len());
            if let Some(at) = (from..bytes.len()).find(|at| lead.starts_with(&bytes[*at..])) {
                keep = keep.max(bytes.len() - at);
            }
        }
        keep
    }

    /// Returns whether a marker is inside inline code. Returns `None` if no inline code was opened.
    fn in_code(&mut self, text: &str, at: usize, end: bool) -> Option<Match> {
        let ticks = self.open_ticks(text, at)?;
        let rest = &text.as_bytes()[at..];
        let window = &rest[..rest.len().min(MAX_INLINE)];
        let mut from = 0;
        loop {
            match seen(&window[from..], memchr::memchr2(b'`', b'\n', &window[from..])) {
                Some(found) if window[from + found] == b'`' => {
                    let run = window[from + found..].iter().take_while(|b| **b == b'`').count();
                    if from + found + run == rest.len() && !end {
                        return Some(Match::Partly);
                    }
                    if run == ticks {
                        return Some(Match::Yes);
                    }
                    from += found + run;
                }
                Some(_) => return Some(Match::No),
                None if end || rest.len() >= MAX_INLINE => return Some(Match::No),
                None => return Some(Match::Partly),
            }
        }
    }

    /// Returns the number of backticks that opened inline code before this position on the same line.
    fn open_ticks(&mut self, text: &str, at: usize) -> Option<usize> {
        let (ticks, opened) = self.inline?;
        // Each byte is searched for line breaks only once, however many markers there are.
        let from = self.lines_seen.saturating_sub(self.decided).min(at);
        let unseen = &text.as_bytes()[from..at];
        if let Some(line) = work::seen_back(unseen, memchr::memrchr(b'\n', unseen)) {
            self.line = self.decided + from + line;
        }
        self.lines_seen = self.lines_seen.max(self.decided + at);
        if self.line > opened {
            self.inline = None;
        }
        self.inline.map(|_| ticks)
    }

    /// Handles a run of backticks: a code fence, or inline code.
    fn backtick(&mut self, text: &str, at: usize, end: bool, sink: &mut dyn FnMut(Event<'_>)) -> Tick {
        let run = text.as_bytes()[at..].iter().take(MAX_TICKS).take_while(|b| **b == b'`').count();
        work::count(run);
        if run >= MAX_TICKS {
            return Tick::Passed(at + run);
        }
        if at + run == text.len() && !end {
            self.pass(&text[..at], sink);
            return Tick::More;
        }
        if run >= 3 && !self.nested && self.starts_line(text, at) {
            self.pass(&text[..at], sink);
            self.inline = None;
            self.state = State::Fence(Fence::new(run));
            return Tick::Fence;
        }
        match self.open_ticks(text, at) {
            Some(open) if open == run => self.inline = None,
            Some(_) => {}
            None => self.inline = Some((run, self.decided + at)),
        }
        Tick::Passed(at + run)
    }
}

/// The result of a run of backticks.
enum Tick {
    More,
    Fence,
    Passed(usize),
}

/// Returns whether the text starts with a marker, and the length of the marker in this text.
fn standing(marker: &Marker, text: &str, end: bool) -> (Match, usize) {
    if !marker.text.starts_with("{\"tool_calls\"") {
        return (literal(text, &marker.text, end), marker.text.len());
    }
    // The tokens may be separated by white space, and the quotes may be single or missing.
    let mut at = 0;
    for tokens in [&["{"][..], &["\"tool_calls\"", "'tool_calls'", "tool_calls"], &[":"], &["["]] {
        let blank = blank_end(text, at);
        if blank - at > MAX_GAP {
            return (Match::No, 0);
        }
        at = blank;
        match any(&text[at..], tokens, end) {
            (Match::Yes, length) => at += length,
            (other, _) => return (other, 0),
        }
    }
    (Match::Yes, at)
}

/// Returns the list with the marker that closes reasoning.
fn closing(close: &'static str) -> &'static [&'static str] {
    static CLOSES: std::sync::LazyLock<Vec<[&'static str; 1]>> = std::sync::LazyLock::new(|| {
        crate::formats::all().flat_map(|format| format.thinks).map(|(_, close)| [*close]).chain([["</think>"], ["</thinking>"]]).collect()
    });
    CLOSES.iter().find(|known| known[0] == close).map_or(&["</think>"], |known| known.as_slice())
}

/// Returns the markers that close reasoning in any format.
pub(super) fn all_closings() -> &'static [&'static str] {
    static ALL: std::sync::LazyLock<Vec<&'static str>> = std::sync::LazyLock::new(|| {
        let mut closings = vec!["</think>", "</thinking>"];
        closings.extend(crate::formats::all().flat_map(|format| format.thinks).map(|(_, close)| *close));
        closings
    });
    &ALL
}
