//! Steps of runs to try a record with.

use std::collections::{BTreeMap, BTreeSet};

use helve_core::store::{RunCommit, RunState};
use helve_core::{EventData, RunId, Usage};
use jiff::Timestamp;
use serde_json::json;

/// So many events.
pub(crate) fn notes(count: usize) -> Vec<(Timestamp, EventData)> {
    (0..count).map(|number| (Timestamp::now(), EventData::Notification { message: format!("note {number}") })).collect()
}

/// A step of a run that does nothing else.
pub(crate) fn step(run: RunId, epoch: u64, state: RunState) -> RunCommit {
    RunCommit {
        run,
        epoch,
        begin: None,
        state,
        snapshot: (!state.is_over()).then(|| json!({"at": epoch})),
        events: Vec::new(),
        messages: Vec::new(),
        said: 0,
        asked: Vec::new(),
        heard: Vec::new(),
        allowed: BTreeSet::new(),
        usage: Usage::default(),
        contexts: BTreeMap::new(),
    }
}
