//! Notices a model that makes the same call again and again and learns nothing new.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};

use super::turn::{Slot, State};

/// Counts turns that repeat the one before them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Guard {
    last: u64,
    times: u32,
}

impl Guard {
    /// Takes note of a turn's calls and results; says how often they came in a row.
    pub(super) fn note(&mut self, slots: &[Slot]) -> u32 {
        let mut hasher = DefaultHasher::new();
        for slot in slots {
            let State::Done { text, .. } = &slot.state else { continue };
            (&slot.said.tool, &slot.said.arguments, text).hash(&mut hasher);
        }
        let now = hasher.finish();
        self.times = if now == self.last { self.times + 1 } else { 1 };
        self.last = now;
        self.times
    }
}
