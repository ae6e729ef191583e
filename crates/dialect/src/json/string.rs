//! Parses strings: those of JSON, of Python, and between two delimiters.

use super::{Reader, Syntax};
use crate::fault::Fault;
use crate::repair::Repair;
use crate::work::{self, seen};

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Returns the index of the first quote, backslash or control character from `at` on. Checks eight bytes at a time.
pub(super) fn plain_end(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    let (quotes, slashes) = (LOW * u64::from(quote), LOW * u64::from(b'\\'));
    while let Some(eight) = bytes.get(at..at + 8) {
        let word = u64::from_le_bytes([eight[0], eight[1], eight[2], eight[3], eight[4], eight[5], eight[6], eight[7]]);
        let zero = |x: u64| x.wrapping_sub(LOW) & !x & HIGH;
        let found = zero(word ^ quotes) | zero(word ^ slashes) | (word.wrapping_sub(LOW * 0x20) & !word & HIGH);
        work::count(8);
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while at < bytes.len() && bytes[at] != quote && bytes[at] != b'\\' && bytes[at] >= 0x20 {
        work::count(1);
        at += 1;
    }
    at
}

/// Returns the index of the first quote or backslash from `at` on. Checks eight bytes at a time.
pub(super) fn quote_or_slash(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    let (quotes, slashes) = (LOW * u64::from(quote), LOW * u64::from(b'\\'));
    while let Some(eight) = bytes.get(at..at + 8) {
        let word = u64::from_le_bytes([eight[0], eight[1], eight[2], eight[3], eight[4], eight[5], eight[6], eight[7]]);
        let zero = |x: u64| x.wrapping_sub(LOW) & !x & HIGH;
        let found = zero(word ^ quotes) | zero(word ^ slashes);
        work::count(8);
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while at < bytes.len() && bytes[at] != quote && bytes[at] != b'\\' {
        work::count(1);
        at += 1;
    }
    at
}

impl Reader<'_> {
    /// Parses a string, starting at its opening quote.
    pub(super) fn string(&mut self, quote: u8) -> Result<String, Fault> {
        if self.syntax == Syntax::Python {
            return self.python_string(quote);
        }
        if quote == b'\'' {
            self.mend(Repair::SingleQuotes, "double quotes")?;
        }
        self.quoted(quote)
    }

    fn quoted(&mut self, quote: u8) -> Result<String, Fault> {
        let start = self.at + 1;
        let mut end = plain_end(self.bytes, start, quote);
        if self.bytes.get(end) == Some(&quote) {
            self.at = end + 1;
            return Ok(self.text[start..end].to_owned());
        }
        let mut out = std::mem::take(&mut self.scratch);
        out.clear();
        let mut from = start;
        loop {
            out.push_str(&self.text[from..end]);
            match self.bytes.get(end) {
                None => {
                    self.at = end;
                    return Err(Fault::cut());
                }
                Some(&byte) if byte == quote => {
                    self.at = end + 1;
                    let whole = out.as_str().to_owned();
                    self.scratch = out;
                    return Ok(whole);
                }
                Some(b'\\') => {
                    // Most escapes are common to all syntaxes.
                    let simple = match self.bytes.get(end + 1) {
                        Some(b'n') => "\n",
                        Some(b'"') => "\"",
                        Some(b'\\') => "\\",
                        Some(b't') => "\t",
                        _ => "",
                    };
                    if !simple.is_empty() {
                        out.push_str(simple);
                        from = end + 2;
                        end = plain_end(self.bytes, from, quote);
                        continue;
                    }
                    self.at = end;
                    self.escape(&mut out)?;
                    from = self.at;
                }
                Some(_) => {
                    self.at = end;
                    if self.syntax != Syntax::Python {
                        self.mend(Repair::RawControl, "`\\n` instead of a line break inside a string")?;
                    }
                    from = end;
                    end += 1;
                    end = plain_end(self.bytes, end, quote);
                    continue;
                }
            }
            end = plain_end(self.bytes, from, quote);
        }
    }

    fn python_string(&mut self, quote: u8) -> Result<String, Fault> {
        let mut whole = String::new();
        loop {
            let triple = self.bytes[self.at..].starts_with(&[quote; 3]);
            let part = if triple { self.triple(quote)? } else { self.quoted(quote)? };
            if whole.is_empty() {
                whole = part;
            } else {
                whole.push_str(&part);
            }
            // Adjacent strings are concatenated.
            let end = self.at;
            self.blank();
            if !matches!(self.peek(), Some(b'"' | b'\'')) || self.peek() != Some(quote) {
                self.at = end;
                return Ok(whole);
            }
        }
    }

    fn triple(&mut self, quote: u8) -> Result<String, Fault> {
        self.at += 3;
        let mut out = String::new();
        loop {
            let end = plain_end(self.bytes, self.at, quote);
            out.push_str(&self.text[self.at..end]);
            self.at = end;
            match self.peek() {
                None => return Err(Fault::cut()),
                Some(b'\\') => self.escape(&mut out)?,
                Some(byte) if byte == quote && self.bytes[end..].starts_with(&[quote; 3]) => {
                    self.at += 3;
                    return Ok(out);
                }
                Some(byte) => {
                    out.push(byte as char);
                    self.at += 1;
                }
            }
        }
    }

    pub(super) fn raw_string(&mut self, quote: u8) -> Result<String, Fault> {
        let start = self.at + 1;
        let rest = &self.bytes[start..];
        let end = seen(rest, memchr::memchr(quote, rest)).ok_or_else(Fault::cut)? + start;
        self.at = end + 1;
        Ok(self.text[start..end].to_owned())
    }

    pub(super) fn at_delimiter(&self) -> bool {
        matches!(self.syntax, Syntax::Braces(mark) if self.bytes[self.at..].starts_with(mark.as_bytes()))
    }

    /// Parses a string between two delimiters, verbatim.
    pub(super) fn delimited(&mut self) -> Result<String, Fault> {
        let Syntax::Braces(mark) = self.syntax else { return Err(self.broken("a string")) };
        let start = self.at + mark.len();
        let rest = &self.bytes[start..];
        let end = seen(rest, memchr::memmem::find(rest, mark.as_bytes())).ok_or_else(Fault::cut)? + start;
        self.at = end + mark.len();
        Ok(self.text[start..end].to_owned())
    }

    /// Parses one escape, starting at its backslash.
    fn escape(&mut self, out: &mut String) -> Result<(), Fault> {
        let python = self.syntax == Syntax::Python;
        let Some(&kind) = self.bytes.get(self.at + 1) else { return Err(Fault::cut()) };
        let simple = match kind {
            b'"' => '"',
            b'\\' => '\\',
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'/' if !python => '/',
            b'u' => return self.unicode(out),
            b'\'' => {
                if !python {
                    self.mend(Repair::BadEscape, "a single quote without a backslash before it")?;
                }
                '\''
            }
            b'x' if python => return self.code_point(2, out),
            b'U' if python => return self.code_point(8, out),
            b'0'..=b'7' if python => {
                self.octal(out);
                return Ok(());
            }
            b'a' if python => '\u{7}',
            b'v' if python => '\u{b}',
            b'\n' if python => {
                self.at += 2;
                return Ok(());
            }
            _ => {
                // The backslash is literal, for example in a regular expression. Python does the same.
                if !python {
                    self.mend(Repair::BadEscape, "two backslashes")?;
                }
                out.push('\\');
                self.at += 1;
                return Ok(());
            }
        };
        out.push(simple);
        self.at += 2;
        Ok(())
    }

    /// Parses an escape of up to three octal digits.
    fn octal(&mut self, out: &mut String) {
        let digits = self.bytes[self.at + 1..].iter().take(3).take_while(|b| matches!(b, b'0'..=b'7')).count();
        let code = u32::from_str_radix(&self.text[self.at + 1..self.at + 1 + digits], 8).ok().and_then(char::from_u32);
        out.push(code.unwrap_or(char::REPLACEMENT_CHARACTER));
        self.at += 1 + digits;
    }

    fn hex(&self, at: usize, digits: usize) -> Option<u32> {
        let text = self.text.get(at..at + digits)?;
        if text.bytes().all(|b| b.is_ascii_hexdigit()) { u32::from_str_radix(text, 16).ok() } else { None }
    }

    /// Parses `\u` and four digits, and the second half of a surrogate pair if there is one.
    fn unicode(&mut self, out: &mut String) -> Result<(), Fault> {
        let Some(unit) = self.hex(self.at + 2, 4) else { return self.keep_backslash(out) };
        self.at += 6;
        let mut code = unit;
        if (0xd800..0xdc00).contains(&unit)
            && self.bytes[self.at..].starts_with(b"\\u")
            && let Some(low @ 0xdc00..0xe000) = self.hex(self.at + 2, 4)
        {
            code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
            self.at += 6;
        }
        if let Some(character) = char::from_u32(code) {
            out.push(character);
        } else {
            self.mend(Repair::LoneSurrogate, "a complete surrogate pair")?;
            out.push(char::REPLACEMENT_CHARACTER);
        }
        Ok(())
    }

    fn code_point(&mut self, digits: usize, out: &mut String) -> Result<(), Fault> {
        match self.hex(self.at + 2, digits).and_then(char::from_u32) {
            Some(character) => {
                out.push(character);
                self.at += 2 + digits;
                Ok(())
            }
            None => self.keep_backslash(out),
        }
    }

    fn keep_backslash(&mut self, out: &mut String) -> Result<(), Fault> {
        self.mend(Repair::BadEscape, "four hexadecimal digits after `\\u`")?;
        out.push('\\');
        self.at += 1;
        Ok(())
    }
}
