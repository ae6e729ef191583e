//! A subscriber that follows the newest runs, and after each restart resumes after the last event that it received.

use std::collections::BTreeMap;
use std::time::Duration;

use helve_core::RunId;

use super::Scene;
use crate::history::Observation;
use crate::log::{Log, Paths};

/// Number of runs that are followed at a time; the others are read at the end.
const FOLLOWED: usize = 20;
/// Maximum number of events in one read.
const PAGE: usize = 3;

/// The last event that it received of each run.
pub(super) struct Places(BTreeMap<RunId, u64>);

impl Places {
    /// As its log says.
    pub(super) fn read(paths: &Paths) -> Self {
        let mut places = BTreeMap::new();
        for told in Log::read::<Observation>(&paths.events()) {
            if let Observation::Event { run, seq, .. } = told {
                places.insert(run, seq);
            }
        }
        Self(places)
    }
}

/// Follows runs forever.
pub(super) async fn follow(scene: Scene, mut places: Places) {
    loop {
        read_all(&scene, &mut places, FOLLOWED).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Reads new events of a number of runs.
pub(super) async fn read_all(scene: &Scene, places: &mut Places, limit: usize) {
    for run in scene.store.runs(None, limit).await.expect("a list") {
        let place = places.0.entry(run.id).or_default();
        while let Some(last) = scene.store.events(run.id, *place, PAGE).await.expect("events").last() {
            *place = last.seq;
        }
    }
}
