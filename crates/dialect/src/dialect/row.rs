//! [`Row`]: a format in a dialect, with its markers and the check whether the text after a marker matches the format.

use crate::format::{CallTag, Format, Keys, Shape};
use crate::scan::{Match, TagMarks, any, blank_end, literal};

/// Maximum length of a name that is searched for, in characters, and of the white space before it, in bytes.
pub(crate) const MAX_NAME: usize = 256;

/// The position at which parsing enters the structure around calls (the frame).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// After the opening marker of a section.
    Section,
    /// After the opening marker of a call.
    Call,
    /// At the opening marker of a call, which is part of the call.
    Element,
    /// At a call without an opening marker.
    Bare,
}

/// A format in a dialect, with prepared markers.
#[derive(Debug)]
pub(crate) struct Row {
    pub format: &'static Format,
    pub tags: Option<TagMarks>,
    pub keys: Vec<&'static Keys>,
    /// Closing markers. They end a call even if its brackets are still open.
    pub stops: Vec<String>,
    /// Opening markers of sections and calls.
    pub opens: Vec<String>,
    /// The `stops`, then the `opens`.
    pub marks: Vec<String>,
    /// Whether the format is not part of the dialect and was added only because it shares a marker with a format that is. It is used
    /// only if that format does not match.
    pub foreign: bool,
}

impl Row {
    pub fn new(format: &'static Format, foreign: bool) -> Self {
        let tags = match &format.shape {
            Shape::Tagged(tags) => Some(TagMarks::new(format, tags)),
            _ => None,
        };
        let keys = match &format.shape {
            Shape::Object(keys) => vec![keys],
            _ => Vec::new(),
        };
        let owned = |marks: &[&str]| -> Vec<String> {
            marks.iter().filter(|mark| !mark.starts_with(['{', '}'])).map(|mark| (*mark).to_owned()).collect()
        };
        let own = tags.as_ref().map(|tags| tags.closing.clone()).unwrap_or_default();
        let stops = [own, owned(format.call.close), owned(format.section.close)].concat();
        let opens = [owned(format.call.open), owned(format.section.open)].concat();
        let marks = [stops.clone(), opens.clone()].concat();
        Self { format, tags, keys, stops, opens, marks, foreign }
    }

    /// Returns whether a call in this format can start at the beginning of `rest`.
    pub fn can_start(&self, rest: &str, end: bool) -> Match {
        let first = rest.as_bytes().first().copied().unwrap_or(0);
        match &self.format.shape {
            Shape::Object(_) => Match::of(first == b'{'),
            Shape::Channel => match any(rest, self.format.call.open, end).0 {
                Match::No => literal(rest, "to=", end),
                found => found,
            },
            Shape::Braces(_) => literal(rest, "call:", end),
            // Prompted models may write quotes, backticks or asterisks around a name.
            Shape::Headed { .. } if self.format.weak => match rest.trim_start_matches(['`', '*', '"']) {
                name if rest.len() - name.len() > 16 => Match::No,
                "" if !end => Match::Partly,
                name => Match::of(starts_word(name)),
            },
            Shape::Headed { .. } => Match::of(starts_word(rest)),
            Shape::Python => {
                if !starts_word(rest) {
                    return Match::No;
                }
                let window = first_chars(rest, MAX_NAME);
                match window.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))) {
                    Some(at) => Match::of(rest[at..].starts_with('(')),
                    None if end || window.len() < rest.len() => Match::No,
                    None => Match::Partly,
                }
            }
            Shape::Tagged(tags) => match tags.call {
                CallTag::Text(_) => Match::of(starts_word(rest)),
                CallTag::Child(_) => {
                    self.tags.as_ref().and_then(|tags| tags.name.as_ref()).map_or(Match::No, |(open, _)| literal(rest, open, end))
                }
                _ => self.tags.as_ref().map_or(Match::No, |tags| any(rest, &tags.call_open, end).0),
            },
        }
    }

    /// Returns whether the text after the marker matches this format, judging by its first bytes.
    pub fn fits(&self, entry: Entry, body: &str, end: bool) -> Match {
        let rest = &body[blank_end(body, 0)..];
        if body.len() - rest.len() > MAX_NAME {
            return Match::No;
        }
        if rest.is_empty() {
            return if end { Match::No } else { Match::Partly };
        }
        if entry == Entry::Element {
            return Match::Yes;
        }
        if entry == Entry::Section {
            match any(rest, self.format.noise, end).0 {
                Match::No => {}
                found => return found,
            }
            if self.format.list
                && let Some(inner) = rest.strip_prefix('[')
            {
                let blank = blank_end(inner, 0);
                let inner = &inner[blank..];
                return match inner.is_empty() {
                    _ if blank > MAX_NAME => Match::No,
                    true if end => Match::No,
                    true => Match::Partly,
                    false if inner.starts_with(']') => Match::Yes,
                    false => self.can_start(inner, end),
                };
            }
            if rest.starts_with('`') {
                return Match::of(matches!(self.format.shape, Shape::Object(_)));
            }
            if !self.format.call.open.is_empty() {
                return any(rest, self.format.call.open, end).0;
            }
        }
        match &self.format.shape {
            Shape::Headed { .. } => Self::fits_head(rest, end),
            Shape::Tagged(tags) if matches!(tags.call, CallTag::Text(_)) => self.fits_text(body, rest, end),
            _ => self.can_start(rest, end),
        }
    }

    /// Returns whether the text is a name that is followed by the first key or the end of the call, and not ordinary text.
    fn fits_text(&self, body: &str, rest: &str, end: bool) -> Match {
        // A space after the marker means that the text only mentions the marker.
        if !starts_word(rest) || body.starts_with(' ') {
            return Match::No;
        }
        let Some(tags) = &self.tags else { return Match::No };
        let window = first_chars(rest, MAX_NAME);
        let Some(at) = window.find(['<', '{']) else {
            return if end || window.len() < rest.len() { Match::No } else { Match::Partly };
        };
        let separator = match tags.tags.call {
            CallTag::Text(Some(separator)) => separator.to_owned(),
            _ => tags.parameter_open.clone(),
        };
        let key_close = tags.pair.as_ref().map_or("", |(close, _)| close.as_str());
        let marks: Vec<&str> =
            [separator.as_str(), &tags.parameter_open, key_close].into_iter().chain(self.format.call.close.iter().copied()).collect();
        any(&rest[at..], &marks, end).0
    }

    /// Returns whether the text starts with a name and a separator.
    fn fits_head(rest: &str, end: bool) -> Match {
        if !starts_word(rest) {
            return Match::No;
        }
        let window = first_chars(rest, MAX_NAME);
        match window.find(['{', '\n', ' ', '<', '[']) {
            Some(_) => Match::Yes,
            None if window.len() < rest.len() => Match::No,
            None if end => Match::Yes,
            None => Match::Partly,
        }
    }
}

/// Returns the first `count` characters of a text, or the whole text if it is shorter.
pub(crate) fn first_chars(text: &str, count: usize) -> &str {
    &text[..text.char_indices().nth(count).map_or(text.len(), |(at, _)| at)]
}

fn starts_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Makes formats with the same section marker accept each other's keys, and also formats without a marker.
pub(super) fn share_keys(rows: &mut [Row]) {
    let opens = |row: &Row| row.format.section.open.to_vec();
    let all: Vec<(Vec<&str>, bool, Vec<&'static Keys>)> =
        rows.iter().filter(|row| !row.foreign).map(|row| (opens(row), row.format.bare, row.keys.clone())).collect();
    for row in rows.iter_mut().filter(|row| !row.keys.is_empty() && !row.foreign) {
        for (others, bare, keys) in &all {
            let shared = (row.format.bare && *bare) || others.iter().any(|open| row.format.section.open.contains(open));
            for key in keys.iter().filter(|_| shared) {
                if !row.keys.iter().any(|own| std::ptr::eq(*own, *key)) && !key.python {
                    row.keys.push(key);
                }
            }
        }
    }
}
