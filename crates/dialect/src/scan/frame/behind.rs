//! Parses what follows a call: its closing marker, separators, the next call, or the end of the section.

use super::{Flow, Frame, List, Phase};
use crate::json::{Extent, Syntax};
use crate::repair::Repair;
use crate::scan::{Cx, Match, any, blank_end, literal};

impl Frame {
    /// Parses what follows a call. Returns `None` to continue in the current phase.
    pub(super) fn behind(&mut self, text: &str, cx: &mut Cx<'_>, end: bool) -> Option<Flow> {
        let format = self.row.format;
        let next = blank_end(text, self.at.max(self.blank));
        self.blank = next;
        let rest = &text[next..];
        let Some(&first) = rest.as_bytes().first() else {
            return if end { Some(self.flush(self.at, false, cx)) } else { Some(Flow::More) };
        };
        if self.fenced {
            match literal(rest, "```", end) {
                Match::Partly => return Some(Flow::More),
                Match::Yes => {
                    self.fenced = false;
                    self.at = next + 3;
                    return None;
                }
                Match::No => {}
            }
        }
        if !self.call_closed {
            match any(rest, format.call.close, end) {
                (Match::Partly, _) => return Some(Flow::More),
                (Match::Yes, length) => {
                    self.at = next + length;
                    self.call_closed = true;
                    return if self.in_section() { None } else { Some(self.flush(self.at, false, cx)) };
                }
                _ => {}
            }
        }
        if self.in_section()
            && let Some(flow) = self.behind_in_section(text, next, first, cx, end)
        {
            return flow;
        }
        if matches!(first, b'}' | b']') && cx.mode.is_lenient() && (next == self.at || self.list == List::Open) && !self.is_tagged() {
            self.repairs.add(Repair::ExtraBracket);
            self.at = next + 1;
            return None;
        }
        if cx.mode.is_lenient()
            && let Some(marks) = &self.row.tags
        {
            // A second closing tag is ignored.
            match any(rest, &marks.closing, end) {
                (Match::Partly, _) => return Some(Flow::More),
                (Match::Yes, length) => {
                    self.repairs.add(Repair::ExtraBracket);
                    self.at = next + length;
                    return None;
                }
                _ => {}
            }
        }
        if matches!(self.ready, Some(Err(_))) {
            self.phase = Phase::Junk;
            return None;
        }
        Some(self.flush(self.at, false, cx))
    }

    fn is_tagged(&self) -> bool {
        self.row.tags.is_some()
    }

    /// Parses a separator, the end of a list, the next call, or the end of the section. Returns `None` if none of them follows.
    #[expect(clippy::option_option, reason = "nothing found, go on, or a result")]
    fn behind_in_section(&mut self, text: &str, next: usize, first: u8, cx: &mut Cx<'_>, end: bool) -> Option<Option<Flow>> {
        let format = self.row.format;
        let rest = &text[next..];
        match (first, self.list) {
            (b']', List::Open) => {
                self.list = List::Closed;
                self.at = next + 1;
                return Some(None);
            }
            (b',', List::Open) => return Some(Some(self.flush(self.at, true, cx))),
            (b'}', List::Closed) if self.object => {
                self.section_closed = true;
                return Some(Some(self.flush(next + 1, false, cx)));
            }
            (b',', List::Closed) if self.object => {
                self.tail = Some(Extent::inside(Syntax::Json, next + 1));
                self.phase = Phase::Tail;
                return Some(None);
            }
            _ => {}
        }
        if !self.object {
            match any(rest, format.section.close, end) {
                (Match::Partly, _) => return Some(Some(Flow::More)),
                (Match::Yes, length) => {
                    self.section_closed = true;
                    return Some(Some(self.flush(next + length, false, cx)));
                }
                _ => {}
            }
        }
        match any(rest, format.noise, end) {
            (Match::Partly, _) => return Some(Some(Flow::More)),
            (Match::Yes, length) => {
                self.at = next + length;
                return Some(None);
            }
            _ => {}
        }
        if self.list == List::Closed {
            return None;
        }
        let separated = matches!(first, b';' | b',') && self.list == List::None;
        let from = if separated { blank_end(text, self.separated.max(next + 1)) } else { next };
        self.separated = from;
        let follows = if format.call.open.is_empty() {
            if text[from..].is_empty() && !end { Match::Partly } else { self.row.can_start(&text[from..], end) }
        } else {
            any(&text[from..], format.call.open, end).0
        };
        match follows {
            Match::Partly => Some(Some(Flow::More)),
            Match::Yes => Some(Some(self.flush(self.at, true, cx))),
            Match::No => None,
        }
    }
}
