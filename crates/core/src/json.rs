//! Untrusted JSON: parsing and measuring within limits, and a canonical form.
//!
//! JSON from servers and devices first passes through [`parse`] or [`measure`]. JSON that models write has its own parser in
//! `helve-dialect`, which repairs mistakes and has the same limits.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

/// Maximum number of characters of a key in an error message.
const MAX_KEY: usize = 40;

/// Limits for a JSON document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonLimits {
    /// Maximum size of the JSON text in bytes. [`measure`] counts only the bytes of keys and strings.
    pub bytes: usize,
    /// Maximum nesting depth of arrays and objects.
    pub depth: usize,
    /// Maximum number of values, including arrays and objects.
    pub nodes: usize,
}

impl JsonLimits {
    /// Limits for the arguments of a call.
    pub const ARGUMENTS: Self = Self { bytes: 1 << 20, depth: 64, nodes: 10_000 };
    /// Limits for a JSON Schema.
    pub const SCHEMA: Self = Self { bytes: 256 << 10, depth: 64, nodes: 10_000 };
}

/// Why JSON was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The text is longer than [`JsonLimits::bytes`].
    #[error("the JSON is larger than {limit} bytes")]
    TooLarge {
        /// The maximum size in bytes.
        limit: usize,
    },
    /// The nesting is deeper than [`JsonLimits::depth`].
    #[error("the JSON is nested deeper than {limit} levels")]
    TooDeep {
        /// The maximum depth.
        limit: usize,
    },
    /// The document has more values than [`JsonLimits::nodes`].
    #[error("the JSON has more than {limit} values")]
    TooMany {
        /// The maximum number of values.
        limit: usize,
    },
    /// The text is not valid JSON.
    #[error("not valid JSON: {message}")]
    Syntax {
        /// The parser's message, with line and column.
        message: String,
    },
    /// An object has a key twice. Parsers differ in which of the values they use.
    #[error("the key `{key}` appears twice; give it once")]
    DuplicateKey {
        /// The key, shortened.
        key: String,
        /// Nesting depth of the object; 0 for the outermost.
        depth: usize,
    },
    /// An integer does not fit in 64 bits, and would silently become another number.
    #[error("an integer exceeds 64 bits; send it as a string")]
    WideInteger,
}

/// Parses one JSON document within limits.
///
/// The parser is stricter than `serde_json`: it rejects duplicate keys, and integers that do not fit in 64 bits, which would otherwise
/// silently become another number.
///
/// # Errors
/// If the text is not valid JSON or exceeds a limit.
pub fn parse(text: &[u8], limits: JsonLimits) -> Result<Value, JsonError> {
    if text.len() > limits.bytes {
        return Err(JsonError::TooLarge { limit: limits.bytes });
    }
    let state = ParseState { limits, nodes: Cell::new(0), error: Cell::new(None), huge: Cell::new(false) };
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = Seed { state: &state, depth: 0 }.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    match value {
        Ok(_) if state.huge.get() && has_wide_integer(text) => Err(JsonError::WideInteger),
        Ok(value) => Ok(value),
        Err(error) => Err(state.error.take().unwrap_or(JsonError::Syntax { message: error.to_string() })),
    }
}

/// Checks that a parsed value is within limits.
///
/// # Errors
/// If the value exceeds a limit.
pub fn measure(value: &Value, limits: JsonLimits) -> Result<(), JsonError> {
    fn walk(value: &Value, depth: usize, bytes: &mut usize, nodes: &mut usize, limits: JsonLimits) -> Result<(), JsonError> {
        *nodes += 1;
        if *nodes > limits.nodes {
            return Err(JsonError::TooMany { limit: limits.nodes });
        }
        if depth >= limits.depth && matches!(value, Value::Array(_) | Value::Object(_)) {
            return Err(JsonError::TooDeep { limit: limits.depth });
        }
        match value {
            Value::String(text) => *bytes += text.len(),
            Value::Array(items) => {
                for item in items {
                    walk(item, depth + 1, bytes, nodes, limits)?;
                }
            }
            Value::Object(fields) => {
                for (key, field) in fields {
                    *bytes += key.len();
                    walk(field, depth + 1, bytes, nodes, limits)?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        if *bytes > limits.bytes { Err(JsonError::TooLarge { limit: limits.bytes }) } else { Ok(()) }
    }
    walk(value, 0, &mut 0, &mut 0, limits)
}

/// Returns the canonical text of a value: keys sorted, `1.0` as `1`, no white space. Equal values have equal texts.
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut text = String::with_capacity(64);
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            text.push('{');
            for (index, (key, field)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_scalar(key, text);
                text.push(':');
                write_canonical(field, text);
            }
            text.push('}');
        }
        Value::Number(number) => match integral(number) {
            Some(whole) => write_scalar(&whole, text),
            None => write_scalar(number, text),
        },
        Value::Null | Value::Bool(_) | Value::String(_) => write_scalar(value, text),
    }
}

fn write_scalar(value: &impl serde::Serialize, text: &mut String) {
    // Serialising a scalar cannot fail.
    text.push_str(&serde_json::to_string(value).unwrap_or_default());
}

/// Returns the integer that equals a float, if the conversion is exact.
pub(crate) fn integral(number: &Number) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !number.is_f64() {
        return None;
    }
    let float = number.as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53, so it is exact")]
    (float.fract() == 0.0 && float.abs() < EXACT).then_some(float as i64)
}

/// Returns whether a number outside strings has neither fraction nor exponent and does not fit in 64 bits.
fn has_wide_integer(text: &[u8]) -> bool {
    let mut in_string = false;
    let mut bytes = text.iter().copied().enumerate();
    while let Some((start, byte)) = bytes.next() {
        match byte {
            b'\\' if in_string => {
                bytes.next();
            }
            b'"' => in_string = !in_string,
            b'0'..=b'9' if !in_string => {
                let length = text[start..].iter().take_while(|b| b.is_ascii_digit()).count();
                let end = start + length;
                let negative = start > 0 && text[start - 1] == b'-';
                let before = start.checked_sub(1 + usize::from(negative)).map(|at| text[at]);
                let whole = !matches!(text.get(end), Some(b'.' | b'e' | b'E')) && !matches!(before, Some(b'.' | b'e' | b'E' | b'+'));
                let literal = std::str::from_utf8(&text[start - usize::from(negative)..end]).unwrap_or_default();
                if whole && literal.parse::<u64>().is_err() && literal.parse::<i64>().is_err() {
                    return true;
                }
                for _ in 1..length {
                    bytes.next();
                }
            }
            _ => {}
        }
    }
    false
}

/// State that the visitors share while they parse one document.
struct ParseState {
    limits: JsonLimits,
    nodes: Cell<usize>,
    error: Cell<Option<JsonError>>,
    huge: Cell<bool>,
}

impl ParseState {
    fn refuse<E: serde::de::Error>(&self, error: JsonError) -> E {
        let message = error.to_string();
        self.error.set(Some(error));
        E::custom(message)
    }
}

#[derive(Clone, Copy)]
struct Seed<'r> {
    state: &'r ParseState,
    depth: usize,
}

impl Seed<'_> {
    fn inner<E: serde::de::Error>(self) -> Result<Self, E> {
        let limit = self.state.limits.depth;
        if self.depth >= limit {
            return Err(self.state.refuse(JsonError::TooDeep { limit }));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let seen = self.state.nodes.get() + 1;
        self.state.nodes.set(seen);
        let limit = self.state.limits.nodes;
        if seen > limit {
            return Err(self.state.refuse(JsonError::TooMany { limit }));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        if value.abs() >= 9e18 {
            self.state.huge.set(true);
        }
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut object = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            match object.entry(key) {
                Entry::Vacant(place) => {
                    place.insert(fields.next_value_seed(inner)?);
                }
                Entry::Occupied(place) => {
                    let key = place.key().chars().take(MAX_KEY).collect();
                    return Err(self.state.refuse(JsonError::DuplicateKey { key, depth: self.depth }));
                }
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests;
