//! How much one message may hold. What is beyond that is text: nothing is lost, and no text makes more items than memory can bear.

use serde_json::{Map, Value};

use crate::json::MAX_VALUES;

/// Calls, and what was meant as one.
pub(super) const MAX_CALLS: usize = 1024;
/// Control tokens.
const MAX_MARKUP: usize = 16 * 1024;

/// What is left.
#[derive(Debug)]
pub(super) struct Room {
    calls: usize,
    markup: usize,
    values: usize,
    /// Bytes of calls whose values need not be counted, because so few bytes cannot hold too many.
    small: usize,
    full: bool,
}

impl Default for Room {
    fn default() -> Self {
        Self { calls: MAX_CALLS, markup: MAX_MARKUP, values: MAX_VALUES, small: MAX_VALUES, full: false }
    }
}

impl Room {
    /// No limits, for tests that count work.
    #[cfg(test)]
    pub const fn endless() -> Self {
        Self { calls: usize::MAX, markup: usize::MAX, values: usize::MAX, small: 0, full: false }
    }

    /// Whether the rest of the message is text.
    pub const fn is_full(&self) -> bool {
        self.full
    }

    /// Takes the place of one call. The first that finds none is the last.
    pub const fn take_call(&mut self) -> bool {
        match self.calls.checked_sub(1) {
            Some(left) => self.calls = left,
            None => self.full = true,
        }
        !self.full
    }

    pub const fn take_markup(&mut self) {
        match self.markup.checked_sub(1) {
            Some(left) => self.markup = left,
            None => self.full = true,
        }
    }

    /// Takes the place of the arguments of a call with so many bytes, if there is so much.
    pub fn take_values(&mut self, length: usize, arguments: &Map<String, Value>) -> bool {
        if let Some(left) = self.small.checked_sub(length) {
            self.small = left;
            return true;
        }
        let left = self.values.checked_sub(members(arguments));
        self.values = left.unwrap_or(self.values);
        left.is_some()
    }
}

fn members(map: &Map<String, Value>) -> usize {
    map.values().map(count).sum()
}

/// How many values a value is. Brackets are nested at most so deep as they were read.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(map) => members(map),
        _ => 0,
    }
}
