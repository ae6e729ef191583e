//! Steps of runs to try a store with.

use helve_core::store::{RunCommit, RunState};
use helve_core::{EventData, RunId};
use jiff::Timestamp;
use serde_json::json;

/// A number of events.
pub(crate) fn notes(count: usize) -> Vec<(Timestamp, EventData)> {
    (0..count).map(|number| (Timestamp::now(), EventData::Notification { message: format!("note {number}") })).collect()
}

/// A step of a run that does nothing else.
pub(crate) fn step(run: RunId, epoch: u64, state: RunState) -> RunCommit {
    RunCommit { snapshot: (!state.is_over()).then(|| json!({"at": epoch})), ..RunCommit::new(run, epoch, state) }
}
