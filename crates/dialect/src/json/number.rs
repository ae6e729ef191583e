//! Parses numbers: those of JSON and Python, and others that models write.

use serde_json::{Number, Value};

use super::{Reader, Syntax};
use crate::fault::Fault;
use crate::repair::Repair;
use crate::work::seen;

impl Reader<'_> {
    pub(super) fn number(&mut self) -> Result<Value, Fault> {
        let start = self.at;
        let negative = self.peek() == Some(b'-');
        self.at += usize::from(negative);
        // Most numbers are short integers.
        let mut whole: u64 = 0;
        let first = self.at;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            if self.at - first >= 18 {
                break;
            }
            whole = whole * 10 + u64::from(digit - b'0');
            self.at += 1;
        }
        let digits = self.at - first;
        let ends = !matches!(self.peek(), Some(b'0'..=b'9' | b'.' | b'e' | b'E' | b'_' | b'x' | b'X' | b'+'));
        if ends && (digits == 1 || (digits > 1 && self.bytes[first] != b'0')) {
            let whole = i64::try_from(whole).unwrap_or(i64::MAX);
            return Ok(Value::from(if negative { -whole } else { whole }));
        }
        self.at = start;
        self.long_number()
    }

    fn long_number(&mut self) -> Result<Value, Fault> {
        let start = self.at;
        let rest = &self.bytes[start..];
        let end = rest.iter().position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.' | b'_')));
        let written = &self.text[start..start + seen(rest, end).unwrap_or(rest.len())];
        if let Some(number) = json_number(written) {
            self.at += written.len();
            return Ok(Value::Number(number));
        }
        if is_wide(written) {
            if !self.mode.is_lenient() {
                return Err(Fault::wide(written));
            }
            self.repairs.add(Repair::WideInteger);
            self.at += written.len();
            return Ok(Value::from(written));
        }
        if self.syntax == Syntax::Python
            && let Some(number) = python_number(written)
        {
            self.at += written.len();
            return Ok(Value::Number(number));
        }
        let Some(value) = odd_number(written) else { return Err(self.broken("a number")) };
        self.mend(Repair::OddNumber, "a JSON number")?;
        self.at += written.len();
        Ok(value)
    }
}

/// Returns whether the text is an integer that does not fit into 64 bits, in JSON or Python. As a number it would lose digits.
fn is_wide(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits: String = unsigned.chars().filter(|character| *character != '_').collect();
    // A number with a leading zero is an identifier, such as a postal code, and stays text.
    if digits.len() < 19 || digits.starts_with('0') || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    if text.starts_with('-') { format!("-{digits}").parse::<i64>().is_err() } else { digits.parse::<u64>().is_err() }
}

/// Parses a number by the grammar of JSON. Returns `None` for other text, and for an integer that does not fit into 64 bits.
pub(crate) fn json_number(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let digits = |bytes: &[u8]| bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    let whole = digits(unsigned);
    if whole == 0 || (whole > 1 && unsigned[0] == b'0') {
        return None;
    }
    let mut rest = &unsigned[whole..];
    if rest.is_empty() {
        return text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from)).ok();
    }
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = digits(fraction);
        if count == 0 {
            return None;
        }
        rest = &fraction[count..];
    }
    if let Some(exponent) = rest.strip_prefix(b"e").or_else(|| rest.strip_prefix(b"E")) {
        let exponent = exponent.strip_prefix(b"+").or_else(|| exponent.strip_prefix(b"-")).unwrap_or(exponent);
        let count = digits(exponent);
        if count == 0 {
            return None;
        }
        rest = &exponent[count..];
    }
    if !rest.is_empty() {
        return None;
    }
    Number::from_f64(text.parse().ok()?)
}

/// Parses a number that is valid in Python but not in JSON: `1_000`, `0x10`, `.5`, `1.`, `+1`.
fn python_number(text: &str) -> Option<Number> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    for (prefix, radix) in [("0x", 16), ("0X", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = unsigned.strip_prefix(prefix) {
            let number = i64::from_str_radix(digits, radix).ok()?;
            return Some(if negative { -number } else { number }.into());
        }
    }
    if unsigned.starts_with('_') || unsigned.ends_with('_') || unsigned.contains("__") {
        return None;
    }
    let plain: String = unsigned.chars().filter(|c| *c != '_').collect();
    if plain.len() > 1 && plain.starts_with('0') && plain.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    decimal(&plain, negative)
}

/// Parses a number that is not valid JSON but unambiguous. A number with leading zeros is an identifier, and stays text.
fn odd_number(text: &str) -> Option<Value> {
    if text.len() > 1 && text.bytes().all(|b| b.is_ascii_digit()) {
        return Some(Value::String(text.to_owned()));
    }
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    decimal(unsigned, negative).map(Value::Number)
}

fn decimal(unsigned: &str, negative: bool) -> Option<Number> {
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') || !unsigned.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let text = if negative { format!("-{unsigned}") } else { unsigned.to_owned() };
    if let Some(number) = json_number(&text) {
        return Some(number);
    }
    Number::from_f64(text.parse().ok()?)
}
