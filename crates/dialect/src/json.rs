//! A lenient parser for JSON, Python literals and Gemma's braces. It parses a value of known extent in one pass, without recursion, and
//! records every repair.

mod blank;
mod extent;
mod number;
mod string;
#[cfg(test)]
mod tests;

pub(crate) use extent::{Extent, Reach};
pub(crate) use number::json_number;

use serde_json::map::Entry;
use serde_json::{Map, Value};

use crate::event::Mode;
use crate::fault::{Fault, FaultKind};
use crate::repair::{Repair, Repairs};
use crate::work::{self, seen};

/// Maximum nesting of brackets.
pub(crate) const MAX_DEPTH: usize = 128;
/// Maximum number of values in one call, and in all calls of one text. A value can take many times the memory of its text.
pub(crate) const MAX_VALUES: usize = 100_000;

/// Returns the fault for arguments with too many values.
pub(crate) fn too_large() -> Fault {
    Fault::new(FaultKind::TooLarge, format!("the arguments contain more than {MAX_VALUES} values; write fewer, or use several messages"))
}

/// The syntax of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    Json,
    Python,
    /// Gemma's syntax: unquoted keys, and strings between two of these delimiters.
    Braces(&'static str),
}

/// A parsed value and the repairs that it needed.
#[derive(Debug)]
pub(crate) struct Reading<T> {
    pub value: T,
    pub repairs: Repairs,
    /// The argument without a name, if there is one. Only Python calls have it.
    pub positional: Option<Value>,
}

/// Parses a text that consists of one value. `missing` is the number of closing brackets that may be missing at the end.
pub(crate) fn read(text: &str, syntax: Syntax, mode: Mode, missing: usize) -> Result<Reading<Value>, Fault> {
    let mut reader = Reader::new(text, syntax, mode, missing);
    let value = reader.value()?;
    reader.finish(value)
}

/// Parses a plain JSON value at the start of the text, and returns it with its end. Returns `None` if the value is incomplete or needs
/// repairs. Then the caller must find its extent first.
pub(crate) fn read_plain(text: &str) -> Option<(Value, usize)> {
    let mut reader = Reader::new(text, Syntax::Json, Mode::Strict, 0);
    let value = reader.value().ok()?;
    Some((value, reader.at))
}

/// Parses a plain JSON object at the start of the text, and returns its members and its end. Returns `None` if the object is incomplete
/// or needs repairs. Builds no map, because most calls need none.
pub(crate) fn read_members(text: &str) -> Option<(Members, usize)> {
    let mut reader = Reader::new(text, Syntax::Json, Mode::Strict, 0);
    reader.at = 1;
    if reader.opened_empty(b'}') {
        return Some((Vec::new(), reader.at));
    }
    reader.stack.push(Frame::Members { list: Vec::with_capacity(3), key: String::new() });
    reader.key().ok()?;
    reader.value().ok()?;
    Some((reader.members, reader.at))
}

/// The members of an object, in the order of the text.
pub(crate) type Members = Vec<(String, Value)>;

/// Parses the arguments of a Python call: `(key=value, …)`.
pub(crate) fn read_arguments(text: &str, mode: Mode) -> Result<Reading<Map<String, Value>>, Fault> {
    let mut reader = Reader::new(text, Syntax::Python, mode, 0);
    reader.at = 1;
    reader.stack.push(Frame::Object { map: Map::new(), key: String::new(), close: b')' });
    let value = if reader.opened_empty(b')') {
        reader.stack.clear();
        Value::Object(Map::new())
    } else {
        reader.key()?;
        reader.value()?
    };
    let Reading { value, repairs, positional } = reader.finish(value)?;
    match value {
        Value::Object(map) => Ok(Reading { value: map, repairs, positional }),
        _ => Err(Fault::new(FaultKind::NotAnObject, "the arguments have no names; write tool(name=value)")),
    }
}

/// A bracket that is still open, and its content so far.
enum Frame {
    Object {
        map: Map<String, Value>,
        key: String,
        close: u8,
    },
    Array {
        items: Vec<Value>,
        close: u8,
    },
    /// The outermost object of a call, without a map.
    Members {
        list: Members,
        key: String,
    },
}

impl Frame {
    fn close(&self) -> u8 {
        match self {
            Self::Object { close, .. } | Self::Array { close, .. } => *close,
            Self::Members { .. } => b'}',
        }
    }
}

/// Maximum number of members for which space is reserved in advance.
const MAX_ROOM: usize = 16;

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    syntax: Syntax,
    mode: Mode,
    missing: usize,
    repairs: Repairs,
    stack: Vec<Frame>,
    positional: Option<Value>,
    members: Members,
    /// Reusable buffer for strings with escapes.
    scratch: String,
    /// Whether the next value is an argument without a name.
    unnamed: bool,
    values: usize,
    /// Number of members of the last object, used as the capacity of the next one. Lists often contain similar objects.
    usual: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, syntax: Syntax, mode: Mode, missing: usize) -> Self {
        let (bytes, repairs, stack) = (text.as_bytes(), Repairs::default(), Vec::new());
        Self {
            text,
            bytes,
            at: 0,
            syntax,
            mode,
            missing,
            repairs,
            stack,
            positional: None,
            members: Vec::new(),
            scratch: String::new(),
            unnamed: false,
            values: 0,
            usual: 0,
        }
    }

    fn finish<T>(mut self, value: T) -> Result<Reading<T>, Fault> {
        self.blank();
        if self.at < self.bytes.len() {
            return Err(self.broken("the end"));
        }
        Ok(Reading { value, repairs: self.repairs, positional: self.positional })
    }

    /// Parses values until the outermost one is complete.
    fn value(&mut self) -> Result<Value, Fault> {
        loop {
            work::count(1);
            self.values += 1;
            if self.values > MAX_VALUES {
                return Err(too_large());
            }
            self.blank();
            let value = match self.peek() {
                Some(b'{') => {
                    self.open(Frame::Object { map: Map::with_capacity(self.usual), key: String::new(), close: b'}' })?;
                    if !self.opened_empty(b'}') {
                        self.key()?;
                        continue;
                    }
                    self.shut()
                }
                Some(open @ (b'[' | b'(')) if open == b'[' || self.syntax == Syntax::Python => {
                    let close = if open == b'[' { b']' } else { b')' };
                    self.open(Frame::Array { items: Vec::new(), close })?;
                    if !self.opened_empty(close) {
                        continue;
                    }
                    self.shut()
                }
                _ => self.scalar()?,
            };
            if let Some(whole) = self.hand_up(value)? {
                return Ok(whole);
            }
        }
    }

    fn open(&mut self, frame: Frame) -> Result<(), Fault> {
        if self.stack.len() >= MAX_DEPTH {
            return Err(Fault::new(
                FaultKind::TooDeep,
                format!("brackets are nested more than {MAX_DEPTH} levels deep; write the arguments with less nesting"),
            ));
        }
        self.at += 1;
        self.stack.push(frame);
        Ok(())
    }

    /// Consumes a closing bracket directly after the opening one. Returns whether there was one.
    fn opened_empty(&mut self, close: u8) -> bool {
        self.blank();
        let empty = self.peek() == Some(close);
        self.at += usize::from(empty);
        empty
    }

    fn shut(&mut self) -> Value {
        match self.stack.pop() {
            Some(Frame::Object { map, .. }) => {
                self.usual = map.len().min(MAX_ROOM);
                Value::Object(map)
            }
            Some(Frame::Array { items, .. }) => Value::Array(items),
            Some(Frame::Members { list, .. }) => {
                self.members = list;
                Value::Null
            }
            None => Value::Null,
        }
    }

    /// Adds a complete value to its parent, and closes all brackets that end at the current position. Returns the outermost value once it
    /// is complete.
    fn hand_up(&mut self, mut value: Value) -> Result<Option<Value>, Fault> {
        loop {
            let Some(top) = self.stack.last_mut() else { return Ok(Some(value)) };
            let close = top.close();
            match top {
                Frame::Array { items, .. } => items.push(value),
                Frame::Members { list, key } => {
                    // Calls have few members. An object with more is parsed again into a map.
                    if list.len() > 16 || list.iter().any(|(other, _)| other == key) {
                        return Err(Fault::twice(key));
                    }
                    list.push((std::mem::take(key), value));
                }
                Frame::Object { .. } if self.unnamed => {
                    self.unnamed = false;
                    self.positional = Some(value);
                }
                Frame::Object { map, key, .. } => match map.entry(std::mem::take(key)) {
                    Entry::Vacant(place) => {
                        place.insert(value);
                    }
                    Entry::Occupied(place) if !self.mode.is_lenient() => return Err(Fault::twice(place.key())),
                    Entry::Occupied(mut place) => {
                        place.insert(value);
                        self.repairs.add(Repair::DuplicateKey);
                    }
                },
            }
            self.blank();
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    self.blank();
                    if self.peek() != Some(close) {
                        self.next_member()?;
                        return Ok(None);
                    }
                    // Python allows a trailing comma.
                    if self.syntax != Syntax::Python {
                        self.mend(Repair::TrailingComma, "the closing bracket without a comma before it")?;
                    }
                    self.at += 1;
                    value = self.shut();
                }
                Some(byte) if byte == close => {
                    self.at += 1;
                    value = self.shut();
                }
                None => return self.run_out().map(Some),
                Some(b'"') if close == b'}' && self.mode.is_lenient() => {
                    self.repairs.add(Repair::MissingComma);
                    self.key()?;
                    return Ok(None);
                }
                Some(_) => return Err(self.broken(&format!("`,` or `{}`", close as char))),
            }
        }
    }

    fn next_member(&mut self) -> Result<(), Fault> {
        match self.stack.last() {
            Some(Frame::Object { .. } | Frame::Members { .. }) => self.key(),
            _ => Ok(()),
        }
    }

    /// Closes the open brackets at the end of the text, or fails if too many are open.
    fn run_out(&mut self) -> Result<Value, Fault> {
        if self.stack.len() > self.missing || !self.mode.is_lenient() {
            return Err(Fault::cut());
        }
        self.repairs.add(Repair::MissingBracket);
        while self.stack.len() > 1 {
            let inner = self.shut();
            match self.stack.last_mut() {
                Some(Frame::Array { items, .. }) => items.push(inner),
                Some(Frame::Object { map, key, .. }) => {
                    if map.insert(std::mem::take(key), inner).is_some() {
                        self.repairs.add(Repair::DuplicateKey);
                    }
                }
                Some(Frame::Members { .. }) | None => {}
            }
        }
        Ok(self.shut())
    }

    /// Parses a key and its separator, or marks the next value as an argument without a name.
    fn key(&mut self) -> Result<(), Fault> {
        let call = matches!(self.stack.last(), Some(Frame::Object { close: b')', .. }));
        let start = self.at;
        let key = match self.peek() {
            None => return Err(Fault::cut()),
            Some(b'"') => self.string(b'"')?,
            Some(b'\'') => self.string(b'\'')?,
            Some(_) if self.at_delimiter() => {
                self.mend(Repair::OtherKey, "a key without delimiters")?;
                self.delimited()?
            }
            Some(_) => {
                let word = if matches!(self.syntax, Syntax::Braces(_)) { self.spaced_word() } else { self.word() };
                if word.is_empty() && !call {
                    return Err(self.broken("a key in double quotes"));
                }
                if self.syntax == Syntax::Json || (self.syntax == Syntax::Python && !call) {
                    self.mend(Repair::Unquoted, "a key in double quotes")?;
                }
                word.to_owned()
            }
        };
        self.blank();
        let equals = call && self.peek() == Some(b'=') && self.bytes.get(self.at + 1) != Some(&b'=');
        if call && !equals {
            if self.positional.is_some() || !self.mode.is_lenient() {
                self.at = start;
                return Err(Fault::syntax("every argument needs its name: tool(name=value)"));
            }
            self.at = start;
            self.unnamed = true;
            return Ok(());
        }
        if !call && self.peek() != Some(b':') {
            return Err(if self.peek().is_none() { Fault::cut() } else { self.broken("`:` after the key") });
        }
        self.at += 1;
        if let Some(Frame::Object { key: slot, .. } | Frame::Members { key: slot, .. }) = self.stack.last_mut() {
            *slot = key;
        }
        Ok(())
    }

    fn scalar(&mut self) -> Result<Value, Fault> {
        match self.peek() {
            None => Err(Fault::cut()),
            Some(quote @ (b'"' | b'\'')) => self.string(quote).map(Value::String),
            Some(_) if self.at_delimiter() => self.delimited().map(Value::String),
            Some(b'-' | b'+' | b'.' | b'0'..=b'9') => self.number(),
            Some(_) => self.literal(),
        }
    }

    fn literal(&mut self) -> Result<Value, Fault> {
        let start = self.at;
        let word = self.word();
        let (value, python) = match word {
            "true" => (Value::Bool(true), false),
            "false" => (Value::Bool(false), false),
            "null" => (Value::Null, false),
            "True" => (Value::Bool(true), true),
            "False" => (Value::Bool(false), true),
            "None" => (Value::Null, true),
            "r" | "R" if self.syntax == Syntax::Python && matches!(self.peek(), Some(b'"' | b'\'')) => {
                let quote = self.peek().unwrap_or(b'"');
                return self.raw_string(quote).map(Value::String);
            }
            _ => {
                self.at = start;
                if matches!(self.syntax, Syntax::Braces(_)) && self.mode.is_lenient() && !word.is_empty() {
                    return Ok(Value::String(self.bare_text().to_owned()));
                }
                let wanted = if self.syntax == Syntax::Python { "a literal (expressions are not evaluated)" } else { "a JSON value" };
                return Err(self.broken(wanted));
            }
        };
        if python != (self.syntax == Syntax::Python) {
            let wanted = if python { "true, false or null" } else { "True, False or None" };
            self.mend(Repair::ForeignLiteral, wanted)?;
        }
        Ok(value)
    }

    /// Parses unquoted text, up to the next comma or bracket.
    fn bare_text(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let end = seen(rest, rest.find([',', '}', ']', '{', '['])).unwrap_or(rest.len());
        self.at += end;
        self.repairs.add(Repair::Unquoted);
        rest[..end].trim()
    }

    /// Parses an unquoted key, which may contain spaces.
    fn spaced_word(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let end = seen(rest, rest.find([':', ',', '{', '}', '[', ']'])).unwrap_or(rest.len());
        self.at += end;
        rest[..end].trim_end()
    }

    fn word(&mut self) -> &'a str {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'-') || *b >= 0x80));
        let start = self.at;
        self.at += seen(rest, end).unwrap_or(rest.len());
        &self.text[start..self.at]
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Records a repair, or fails in strict mode.
    fn mend(&mut self, repair: Repair, wanted: &str) -> Result<(), Fault> {
        if self.mode.is_lenient() {
            self.repairs.add(repair);
            return Ok(());
        }
        Err(self.broken(wanted))
    }

    /// Returns the fault for the current position, at which `wanted` was expected.
    fn broken(&self, wanted: &str) -> Fault {
        let language = if self.syntax == Syntax::Python { "call" } else { "JSON" };
        let rest = &self.text[self.at.min(self.text.len())..];
        if rest.is_empty() {
            return Fault::syntax(format!("the {language} ends too early: expected {wanted}"));
        }
        let near: String = rest.chars().take(24).collect();
        work::count(self.at);
        let place = self.text[..self.at].chars().count() + 1;
        Fault::syntax(format!("invalid {language} at character {place}: expected {wanted}, near {near:?}"))
    }
}
