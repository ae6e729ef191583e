//! Notices a model that makes the same call again and again and learns nothing new.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::turn::{Slot, State};

/// Counts calls that gave what they gave before.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Guard {
    seen: BTreeMap<u64, u32>,
    /// Whether the model must answer now, without tools.
    pub(super) must_answer: bool,
}

impl Guard {
    /// Takes note of a call and its result; says how often they came.
    pub(super) fn note(&mut self, slot: &Slot) -> u32 {
        let State::Done { text, .. } = &slot.state else { return 0 };
        let seen = [&*slot.said.tool, &slot.said.arguments, text].into_iter().fold(0, |hash, part| mix(hash, part.as_bytes()));
        let times = self.seen.entry(seen).or_default();
        *times += 1;
        *times
    }
}

/// A quick hash that is the same in every process, so that a run can be resumed elsewhere. Nobody gains by a collision: it only
/// ends a run that called its tools again and again.
fn mix(hash: u64, bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let step = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    let mut chunks = bytes.chunks_exact(8);
    let hash = chunks
        .by_ref()
        .fold(step(hash, bytes.len() as u64), |hash, chunk| step(hash, u64::from_le_bytes(chunk.try_into().unwrap_or_default())));
    chunks.remainder().iter().fold(hash, |hash, byte| step(hash, u64::from(*byte)))
}
