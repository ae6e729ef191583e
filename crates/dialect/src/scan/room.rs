//! Limits the number of calls, control tokens and values in one message, and so the memory. Everything beyond a limit is text.

use serde_json::{Map, Value};

use crate::json::MAX_VALUES;

/// Maximum number of calls in a message, valid or malformed.
pub(super) const MAX_CALLS: usize = 1024;
/// Maximum number of control tokens in a message.
const MAX_MARKUP: usize = 16 * 1024;

/// The remaining budget of a message.
#[derive(Debug)]
pub(super) struct Room {
    calls: usize,
    markup: usize,
    values: usize,
    /// Remaining bytes of calls whose values are not counted, because so few bytes cannot contain too many values.
    small: usize,
    full: bool,
}

impl Default for Room {
    fn default() -> Self {
        Self { calls: MAX_CALLS, markup: MAX_MARKUP, values: MAX_VALUES, small: MAX_VALUES, full: false }
    }
}

impl Room {
    /// Returns a budget without limits, for tests that count work.
    #[cfg(test)]
    pub const fn endless() -> Self {
        Self { calls: usize::MAX, markup: usize::MAX, values: usize::MAX, small: 0, full: false }
    }

    /// Returns whether a limit was exceeded, so that the rest of the message is text.
    pub const fn is_full(&self) -> bool {
        self.full
    }

    /// Uses up one call. Returns false if the limit is exceeded.
    pub const fn take_call(&mut self) -> bool {
        match self.calls.checked_sub(1) {
            Some(left) => self.calls = left,
            None => self.full = true,
        }
        !self.full
    }

    /// Uses up one control token.
    pub const fn take_markup(&mut self) {
        match self.markup.checked_sub(1) {
            Some(left) => self.markup = left,
            None => self.full = true,
        }
    }

    /// Uses up the values in the arguments of a call of `length` bytes. Returns false if there are too many.
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

/// Returns the number of values in a value, including itself. The parser's limit on nesting also limits the recursion.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(map) => members(map),
        _ => 0,
    }
}
