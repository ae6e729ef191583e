//! Notices a model that makes the same call again and again and learns nothing new.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};

use super::turn::{Slot, State};

/// Counts calls that gave what they gave before.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Guard {
    seen: BTreeMap<u64, u32>,
    /// Whether the model must answer now, without tools.
    pub(super) must_answer: bool,
}

impl Guard {
    /// Takes note of a call and its result; says how often they came.
    pub(super) fn note(&mut self, slot: &Slot) -> u32 {
        let State::Done { text, .. } = &slot.state else { return 0 };
        let mut hasher = DefaultHasher::new();
        (&slot.said.tool, &slot.said.arguments, text).hash(&mut hasher);
        let times = self.seen.entry(hasher.finish()).or_default();
        *times += 1;
        *times
    }
}
