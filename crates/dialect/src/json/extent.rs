//! Finds the end of a bracketed value in a stream. Reads each byte once, and skips strings and comments without parsing values.

use super::string::{plain_end, quote_or_slash};
use super::{MAX_DEPTH, Syntax};
use crate::find::first_mark;
use crate::work::{self, seen};

/// For each byte, whether it is significant between strings.
static SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let special = b"{}[]()\"'/<`";
    let mut place = 0;
    while place < special.len() {
        table[special[place] as usize] = true;
        place += 1;
    }
    table
};

/// The result of a search for the end of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// More text is needed.
    More,
    /// The value ends before this byte.
    Whole(usize),
    /// The value stops before this byte with brackets open, because the next marker or bracket cannot belong to it.
    Stopped(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Between,
    String(u8),
    Triple(u8),
    Delimited,
    LineComment,
    BlockComment,
}

/// The state of a search for the end of a value. Positions refer to the text passed to [`Extent::advance`], which must only grow.
#[derive(Debug, Clone)]
pub(crate) struct Extent {
    syntax: Syntax,
    at: usize,
    place: Place,
    depth: usize,
    kinds: [u8; MAX_DEPTH + 1],
}

impl Extent {
    /// Creates a search that starts at an opening bracket.
    pub fn new(syntax: Syntax, at: usize) -> Self {
        Self { syntax, at, place: Place::Between, depth: 0, kinds: [0; MAX_DEPTH + 1] }
    }

    /// Creates a search that starts inside an object.
    pub fn inside(syntax: Syntax, at: usize) -> Self {
        let mut extent = Self::new(syntax, at);
        extent.kinds[0] = b'{';
        extent.depth = 1;
        extent
    }

    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Continues the search, up to the end of the value or of the text. `stops` are markers that end the value even if brackets are open.
    /// After the end was found, further calls return the same result.
    pub fn advance(&mut self, text: &str, stops: &[String], end: bool) -> Reach {
        let bytes = text.as_bytes();
        loop {
            let reach = match self.place {
                Place::Between => self.between(bytes, stops, end),
                Place::String(quote) => self.string(bytes, quote, end),
                Place::Triple(quote) => self.until(bytes, &[quote; 3], end),
                Place::Delimited => match self.syntax {
                    Syntax::Braces(mark) => self.until(bytes, mark.as_bytes(), end),
                    _ => None,
                },
                Place::LineComment => self.comment(bytes, b"\n", stops),
                Place::BlockComment => self.comment(bytes, b"*/", stops),
            };
            match reach {
                Some(reach) => return reach,
                None if self.at >= bytes.len() => return Reach::More,
                None => {}
            }
        }
    }

    fn between(&mut self, bytes: &[u8], stops: &[String], end: bool) -> Option<Reach> {
        while let Some(&byte) = bytes.get(self.at) {
            work::count(1);
            if !SPECIAL[usize::from(byte)] {
                self.at += 1;
                continue;
            }
            match byte {
                b'{' | b'[' | b'(' if byte != b'(' || self.syntax == Syntax::Python => {
                    if let Some(reach) = self.stop(bytes, stops, end) {
                        return Some(reach);
                    }
                    if self.depth < self.kinds.len() {
                        self.kinds[self.depth] = byte;
                    }
                    self.depth += 1;
                }
                b'}' | b']' | b')' if byte != b')' || self.syntax == Syntax::Python => match self.shut(byte) {
                    None => return Some(Reach::Stopped(self.at)),
                    Some(0) => return Some(Reach::Whole(self.at + 1)),
                    Some(depth) => self.depth = depth,
                },
                b'"' | b'\'' if !matches!(self.syntax, Syntax::Braces(_)) => {
                    if self.syntax == Syntax::Python {
                        let next = &bytes[self.at..bytes.len().min(self.at + 3)];
                        if next == [byte; 3] {
                            self.at += 3;
                            self.place = Place::Triple(byte);
                            return None;
                        }
                        // Two quotes are an empty string or the start of a triple quote.
                        if next.len() < 3 && next.iter().all(|b| *b == byte) && !end {
                            return Some(Reach::More);
                        }
                    }
                    self.at += 1;
                    self.place = Place::String(byte);
                    return None;
                }
                b'/' => match bytes.get(self.at + 1) {
                    None if !end => return Some(Reach::More),
                    Some(b'/') => {
                        self.at += 2;
                        self.place = Place::LineComment;
                        return None;
                    }
                    Some(b'*') => {
                        self.at += 2;
                        self.place = Place::BlockComment;
                        return None;
                    }
                    _ => {}
                },
                b'<' | b'`' => {
                    if let Syntax::Braces(mark) = self.syntax {
                        let rest = &bytes[self.at..];
                        if rest.starts_with(mark.as_bytes()) {
                            self.at += mark.len();
                            self.place = Place::Delimited;
                            return None;
                        }
                        if mark.as_bytes().starts_with(rest) && !end {
                            return Some(Reach::More);
                        }
                    }
                    if let Some(reach) = self.stop(bytes, stops, end) {
                        return Some(reach);
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
        None
    }

    fn stop(&self, bytes: &[u8], stops: &[String], end: bool) -> Option<Reach> {
        let rest = &bytes[self.at..];
        work::count(stops.len());
        if stops.iter().any(|stop| rest.starts_with(stop.as_bytes())) {
            return Some(Reach::Stopped(self.at));
        }
        (!end && stops.iter().any(|stop| stop.as_bytes().starts_with(rest))).then_some(Reach::More)
    }

    /// Returns the depth after a closing bracket, or `None` if no open bracket matches. Brackets above the matching one count as closed;
    /// the parser will reject such a value.
    fn shut(&self, close: u8) -> Option<usize> {
        let open = match close {
            b'}' => b'{',
            b']' => b'[',
            _ => b'(',
        };
        if self.depth > self.kinds.len() {
            return Some(self.depth - 1);
        }
        self.kinds[..self.depth].iter().rposition(|kind| *kind == open)
    }

    fn string(&mut self, bytes: &[u8], quote: u8, end: bool) -> Option<Reach> {
        let mut at = self.at;
        loop {
            at = quote_or_slash(bytes, at, quote);
            match bytes.get(at) {
                None => {
                    self.at = at;
                    return Some(Reach::More);
                }
                Some(&byte) if byte == quote => {
                    self.at = at + 1;
                    self.place = Place::Between;
                    return None;
                }
                Some(_) if at + 1 >= bytes.len() => {
                    self.at = at + usize::from(end);
                    return Some(Reach::More);
                }
                Some(_) => at += 2,
            }
        }
    }

    /// Skips text up to and including a token. Only Python strings have escapes.
    fn until(&mut self, bytes: &[u8], token: &[u8], end: bool) -> Option<Reach> {
        if self.syntax == Syntax::Python {
            let quote = token[0];
            loop {
                self.at = plain_end(bytes, self.at, quote);
                match bytes.get(self.at) {
                    None => return Some(Reach::More),
                    Some(b'\\') if self.at + 1 < bytes.len() => self.at += 2,
                    Some(b'\\') => {
                        self.at += usize::from(end);
                        return Some(Reach::More);
                    }
                    Some(_) if bytes[self.at..].starts_with(token) => break,
                    Some(_) if token.starts_with(&bytes[self.at..]) && !end => return Some(Reach::More),
                    Some(_) => self.at += 1,
                }
            }
        } else if let Some(found) = seen(&bytes[self.at..], memchr::memmem::find(&bytes[self.at..], token)) {
            self.at += found;
        } else {
            self.at = bytes.len().saturating_sub(token.len() - 1).max(self.at);
            return Some(Reach::More);
        }
        self.at += token.len();
        self.place = Place::Between;
        None
    }

    /// Skips a comment. A marker also ends the comment, so that an unclosed comment does not swallow the rest of the text.
    fn comment(&mut self, bytes: &[u8], token: &[u8], stops: &[String]) -> Option<Reach> {
        // One search for both tokens, so that an unclosed comment does not scan the whole text.
        let marks: Vec<&[u8]> = stops.iter().map(String::as_bytes).chain([token]).collect();
        match first_mark(&bytes[self.at..], &marks) {
            Some((found, place)) if place < stops.len() => {
                self.at += found;
                Some(Reach::Stopped(self.at))
            }
            Some((found, _)) => {
                self.at += found + token.len();
                self.place = Place::Between;
                None
            }
            None => {
                let longest = marks.iter().map(|mark| mark.len()).max().unwrap_or(1);
                self.at = (bytes.len() + 1).saturating_sub(longest).max(self.at);
                Some(Reach::More)
            }
        }
    }
}
