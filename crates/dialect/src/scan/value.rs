//! Finds the end of a parameter's text. A closing tag counts only if the structure of the call continues after it, so that the text
//! may contain closing tags. Skips CDATA, and complete calls inside the text.

use std::ops::Range;

use super::marks::TagMarks;
use super::tagged::Declared;
use super::{Cx, Match, any, blank_end, literal};
use crate::event::Mode;
use crate::format::{ParameterTag, Tags};
use crate::repair::{Repair, Repairs};
use crate::tools::ToolTable;
use crate::types::Types;
use crate::work::{self, seen};
use crate::xml::{self, CDATA, CDATA_END};

/// Maximum white space after a closing tag, in bytes.
const MAX_BLANK: usize = 512;

/// Maximum number of parameters for which a missing closing tag is repaired.
const MAX_PARAMETERS: usize = 256;
/// Maximum length of a parameter name in its tag, in bytes.
const MAX_KEY: usize = 256;

/// The result of a search for the end of a value.
#[derive(Debug)]
pub(super) enum Look {
    /// More text is needed.
    More,
    /// The text ended inside the value.
    Cut,
    /// The range of the value, and the position where the structure of the call continues.
    Ends { value: Range<usize>, next: usize },
}

/// The state of a search for the end of a value.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that was seen")]
pub(super) struct ValueScan {
    start: usize,
    at: usize,
    close: String,
    /// The opening tag of the parameter, which may also be nested inside the value. Only elements can be nested.
    again: Option<String>,
    nested: usize,
    calls: usize,
    honours_cdata: bool,
    seen_close: bool,
    /// Whether a nested element or a call inside the value was skipped.
    passed: bool,
    /// Whether CDATA started in the value, and the text does not contain its end.
    unended: bool,
}

impl ValueScan {
    pub fn new(start: usize, tag: &str, tags: &Tags) -> Self {
        let again = matches!(tags.parameter, ParameterTag::Child(_)).then(|| [tags.open, tag, tags.end].concat());
        Self {
            start,
            at: start,
            close: [tags.close, tag, tags.end].concat(),
            again,
            nested: 0,
            calls: 0,
            honours_cdata: tags.cdata,
            seen_close: false,
            passed: false,
            unended: false,
        }
    }

    pub fn advance(
        &mut self,
        text: &str,
        marks: &TagMarks,
        tool: &Declared<'_>,
        repairs: &mut Repairs,
        cx: &mut Cx<'_>,
        end: bool,
    ) -> Look {
        let first = marks.tags.open.as_bytes()[0];
        loop {
            let unseen = &text.as_bytes()[self.at..];
            let Some(found) = seen(unseen, memchr::memchr(first, unseen)) else {
                self.at = text.len();
                if !end {
                    return Look::More;
                }
                return self.without_nesting(text, marks).unwrap_or(Look::Cut);
            };
            self.at += found;
            let rest = &text[self.at..];
            if self.honours_cdata {
                match literal(rest, CDATA, end) {
                    Match::Partly => return Look::More,
                    Match::Yes => {
                        if !self.pass_cdata(text, cx, end) {
                            return Look::More;
                        }
                        continue;
                    }
                    Match::No => {}
                }
            }
            match literal(rest, &self.close, end) {
                Match::Partly => return Look::More,
                Match::Yes if self.calls > 0 => {}
                Match::Yes if self.nested > 0 => self.nested -= 1,
                Match::Yes if self.unended && !cx.closes_behind(text, self.at + self.close.len(), marks) => self.seen_close = true,
                Match::Yes => match after_value(text, self.at + self.close.len(), marks, cx, end) {
                    Match::Partly => return Look::More,
                    Match::Yes => return self.ends(self.at, self.at + self.close.len()),
                    Match::No => self.seen_close = true,
                },
                Match::No => {
                    if let Some(look) = self.without_close(text, marks, tool, repairs, cx, end) {
                        return look;
                    }
                }
            }
            self.at += 1;
        }
    }

    fn ends(&self, value_end: usize, next: usize) -> Look {
        Look::Ends { value: self.start..value_end, next }
    }

    /// Ends the value at the last closing tag, if the text ended after a nested element or call was skipped, which may have been ordinary
    /// text. Only markers that close the call may follow the tag. Otherwise the value may have been cut off, with a complete call
    /// inside it.
    fn without_nesting(&self, text: &str, marks: &TagMarks) -> Option<Look> {
        let inside = &text[self.start..];
        let close = work::seen_back(inside, inside.rfind(&self.close)).filter(|_| self.passed)? + self.start;
        let mut at = blank_end(text, close + self.close.len());
        while at < text.len() {
            let (Match::Yes, length) = any(&text[at..], &marks.structure, true) else { return None };
            if marks.structure.iter().any(|mark| *mark == marks.parameter_open && text[at..].starts_with(mark.as_str())) {
                return None;
            }
            at = blank_end(text, at + length);
        }
        Some(self.ends(close, close + self.close.len()))
    }

    /// Skips CDATA. If its end is missing or belongs to another value, treats it as text. Returns false if more text is needed.
    fn pass_cdata(&mut self, text: &str, cx: &mut Cx<'_>, end: bool) -> bool {
        let from = self.at + CDATA.len();
        let known = cx.ahead.cdata_end.filter(|known| *known >= cx.offset + from).map(|known| known - cx.offset);
        let found = known.or_else(|| {
            let from = from.max(cx.ahead.cdata_searched.saturating_sub(cx.offset)).min(text.len());
            let unseen = &text.as_bytes()[from..];
            seen(unseen, memchr::memmem::find(unseen, CDATA_END.as_bytes())).map(|at| at + from)
        });
        let Some(found) = found else {
            cx.ahead.cdata_searched = cx.offset + text.len().saturating_sub(CDATA_END.len() - 1);
            if end && cx.mode.is_lenient() {
                (self.honours_cdata, self.unended) = (false, true);
            } else if end {
                (self.at, self.passed) = (text.len(), false);
            }
            return end;
        };
        cx.ahead.cdata_end = Some(cx.offset + found);
        let after = found + CDATA_END.len();
        let next = blank_end(text, after);
        let rest = &text[next..];
        if next - after > MAX_BLANK {
            self.at = after;
            return true;
        }
        let goes_on = match (literal(rest, &self.close, end), literal(rest, CDATA, end)) {
            (Match::Yes, _) | (_, Match::Yes) => true,
            (Match::Partly, _) | (_, Match::Partly) => return false,
            _ => !rest.starts_with('<') || !cx.mode.is_lenient(),
        };
        if goes_on {
            self.at = after;
        } else {
            self.honours_cdata = false;
        }
        true
    }

    /// Handles other markers inside a value: calls inside it, and markers that show that its closing tag is missing.
    fn without_close(
        &mut self,
        text: &str,
        marks: &TagMarks,
        tool: &Declared<'_>,
        repairs: &mut Repairs,
        cx: &Cx<'_>,
        end: bool,
    ) -> Option<Look> {
        let rest = &text[self.at..];
        match self.again.as_deref().map_or(Match::No, |again| literal(rest, again, end)) {
            Match::Partly => return Some(Look::More),
            Match::Yes => {
                self.nested += 1;
                self.passed = true;
            }
            Match::No => {}
        }
        match any(rest, &marks.call_open, end) {
            (Match::Partly, _) => return Some(Look::More),
            (Match::Yes, _) => {
                self.calls += 1;
                self.passed = true;
                return None;
            }
            _ => {}
        }
        match any(rest, &marks.call_close, end) {
            (Match::Partly, _) => return Some(Look::More),
            (Match::Yes, _) if self.calls > 0 => {
                self.calls -= 1;
                return None;
            }
            (Match::Yes, length) if cx.mode.is_lenient() && !self.seen_close => {
                return match after_call(text, self.at + length, marks, end) {
                    Match::Partly => Some(Look::More),
                    Match::No => None,
                    Match::Yes => {
                        repairs.add(Repair::MissingParameterClose);
                        Some(self.unclosed(text, marks))
                    }
                };
            }
            _ => {}
        }
        if !cx.mode.is_lenient() || self.calls > 0 {
            return None;
        }
        self.next_parameter(text, marks, tool, repairs, cx.tools, end)
    }

    /// Ends the value at the opening tag of another parameter, if the closing tag of the value is missing.
    fn next_parameter(
        &self,
        text: &str,
        marks: &TagMarks,
        tool: &Declared<'_>,
        repairs: &mut Repairs,
        tools: &ToolTable,
        end: bool,
    ) -> Option<Look> {
        if marks.children {
            return None;
        }
        let (rest, open, tags) = (&text[self.at..], &marks.parameter_open, marks.tags);
        match literal(rest, open, end) {
            Match::Partly => return Some(Look::More),
            Match::No => return None,
            Match::Yes => {}
        }
        let attribute = match tags.parameter {
            ParameterTag::Attribute(_, attribute) => Some(attribute),
            _ => None,
        };
        let inner = &rest[open.len()..];
        let stop = if matches!(tags.parameter, ParameterTag::Pair(..)) { "<" } else { tags.end };
        let window = &inner.as_bytes()[..inner.len().min(MAX_KEY)];
        let Some(close) = seen(window, memchr::memmem::find(window, stop.as_bytes())) else {
            return if window.len() < MAX_KEY && !end { Some(Look::More) } else { None };
        };
        let key = match attribute {
            Some(attribute) => xml::attribute(&inner[..close], attribute, &mut Repairs::default())?,
            None => inner[..close].trim().to_owned(),
        };
        let at_line_start = text[..self.at].ends_with('\n');
        if tool.count() > MAX_PARAMETERS || (tags.lines && !at_line_start) {
            return None;
        }
        let schema = tools.schema(tool.name);
        let known = schema.is_some();
        let fresh = !tool.has(&key) && Types::new(schema, Mode::Lenient).may_have(&key);
        if !fresh || !(known || at_line_start) || self.seen_close {
            return None;
        }
        repairs.add(Repair::MissingParameterClose);
        Some(self.unclosed(text, marks))
    }

    /// Ends a value without a closing tag at the current position. The line break before the next tag is not part of the value.
    fn unclosed(&self, text: &str, marks: &TagMarks) -> Look {
        let value = &text[self.start..self.at];
        let value = if marks.tags.lines {
            value
        } else {
            value.strip_suffix('\n').map_or(value, |value| value.strip_suffix('\r').unwrap_or(value))
        };
        self.ends(self.start + value.len(), self.at)
    }
}

impl Cx<'_> {
    /// Returns whether a call closes after this position and the text ends there. Otherwise a value without an end may have been cut off.
    fn closes_behind(&mut self, text: &str, at: usize, marks: &TagMarks) -> bool {
        // The end of the text is the same for every value, so it is searched only once for each format.
        let known = self.ahead.ends.iter().find(|(format, _)| std::ptr::eq(*format, marks.format)).map(|(_, last)| *last);
        let last = known.unwrap_or_else(|| {
            let last = last_close(text, marks).map(|last| self.offset + last);
            self.ahead.ends.push((marks.format, last));
            last
        });
        last.is_some_and(|last| last >= self.offset + at)
    }
}

/// Returns the position of the last closing marker of a call, if the text ends after it.
fn last_close(text: &str, marks: &TagMarks) -> Option<usize> {
    let places = marks.call_close.iter().filter_map(|close| Some((work::seen_back(text, text.rfind(close.as_str()))?, close.len())));
    let (last, length) = places.max()?;
    let mut next = blank_end(text, last + length);
    while let (Match::Yes, length) = any(&text[next..], &marks.outer, true) {
        next = blank_end(text, next + length);
    }
    (next == text.len()).then_some(last)
}

/// Returns whether the structure of the call continues at this position, after the closing tag of a value.
fn after_value(text: &str, at: usize, marks: &TagMarks, cx: &Cx<'_>, end: bool) -> Match {
    let next = blank_end(text, at);
    let rest = &text[next..];
    if next - at > MAX_BLANK {
        return Match::No;
    }
    if rest.is_empty() {
        return match (end, cx.mode.is_lenient()) {
            (true, lenient) => Match::of(lenient),
            (false, _) => Match::Partly,
        };
    }
    match any(rest, &marks.structure, end).0 {
        Match::No => {}
        found => return found,
    }
    if marks.children {
        let open = marks.tags.open;
        match literal(rest, open, end) {
            Match::Yes if xml::starts_name(&rest[open.len()..]) => return Match::Yes,
            Match::Yes if rest.len() == open.len() && !end => return Match::Partly,
            Match::Partly => return Match::Partly,
            _ => {}
        }
    }
    // If the text was cut off inside a marker, the value before it is complete.
    if end && cx.mode.is_lenient() && marks.structure.iter().any(|mark| mark.starts_with(rest)) { Match::Yes } else { Match::No }
}

/// Returns whether the call has ended at this position, after its closing tag.
fn after_call(text: &str, at: usize, marks: &TagMarks, end: bool) -> Match {
    let next = blank_end(text, at);
    let rest = &text[next..];
    if next - at > MAX_BLANK {
        return Match::No;
    }
    if rest.is_empty() {
        // If the section must also close, the end of the text does not prove that the call has ended.
        return if end { Match::of(marks.outer.is_empty()) } else { Match::Partly };
    }
    match any(rest, &marks.outer, end) {
        (Match::Yes, length) => {
            // After a section, only another one may follow. Anything else shows that the marker was part of the value.
            let after = next + length;
            let next = blank_end(text, after);
            match (text[next..].is_empty(), next - after > MAX_BLANK) {
                (_, true) => Match::No,
                (true, _) => Match::of(end).or_partly(),
                (false, _) => any(&text[next..], &marks.section_open, end).0,
            }
        }
        (Match::Partly, _) => Match::Partly,
        (Match::No, _) => any(rest, &marks.call_open, end).0,
    }
}
