//! Detects a model that repeats the same call with the same result.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::turn::{CallProgress, Slot};

/// A counter of equal calls with equal results.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct RepetitionGuard {
    #[serde(rename = "seen")]
    counts: BTreeMap<u64, u32>,
    /// Whether the model must answer now, without tools.
    pub(super) must_answer: bool,
}

impl RepetitionGuard {
    /// Counts a call with its result. Returns how often the pair has occurred.
    pub(super) fn count(&mut self, slot: &Slot) -> u32 {
        let CallProgress::Done { text, .. } = &slot.state else { return 0 };
        let pair = [&*slot.call.tool, &slot.call.arguments, text].into_iter().fold(0, |hash, part| mix(hash, part.as_bytes()));
        let times = self.counts.entry(pair).or_default();
        *times += 1;
        *times
    }
}

/// Adds `bytes` to a hash. The hash is fast, and stable across processes, so that another process can resume the run. A collision
/// is harmless: it makes two different calls count as equal.
fn mix(hash: u64, bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let step = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    let mut chunks = bytes.chunks_exact(8);
    let hash = chunks
        .by_ref()
        .fold(step(hash, bytes.len() as u64), |hash, chunk| step(hash, u64::from_le_bytes(chunk.try_into().unwrap_or_default())));
    chunks.remainder().iter().fold(hash, |hash, byte| step(hash, u64::from(*byte)))
}
