//! The runs and tasks that this process has claimed from a store: how other processes stop them, and which runs were dropped.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use helve_core::store::Progress;
use helve_core::{CallId, RunId};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::heartbeat::Signal;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum LeaseKey {
    Task(CallId),
    Run(RunId),
}

/// The leases of this process.
#[derive(Default)]
pub(super) struct Leases {
    stops: Mutex<HashMap<LeaseKey, CancellationToken>>,
    progress: Mutex<HashMap<CallId, Progress>>,
    /// Runs that were dropped before their end, with the time of the drop.
    dropped: Mutex<HashMap<RunId, Instant>>,
}

/// Keeps a run or task claimed by this process until the guard is dropped. If a run is dropped before its end, the heartbeat releases it
/// for other processes, because `drop` cannot wait for the store.
pub struct LeaseGuard {
    leases: Arc<Leases>,
    key: LeaseKey,
    /// Wakes the heartbeat; `None` if dropping the guard must not release anything.
    heartbeat: Option<Sender<Signal>>,
}

impl LeaseGuard {
    /// Makes dropping the guard release nothing, because the store already records that no process drives the run.
    pub fn disarm(&mut self) {
        self.heartbeat = None;
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.leases.stops.lock().remove(&self.key);
        if let (Some(heartbeat), LeaseKey::Run(run)) = (&self.heartbeat, self.key) {
            self.leases.dropped.lock().insert(run, Instant::now());
            let _ = heartbeat.send(Signal::RunDropped);
        }
    }
}

impl Leases {
    pub(super) fn add(self: &Arc<Self>, key: LeaseKey, stop: CancellationToken, heartbeat: Option<&Sender<Signal>>) -> LeaseGuard {
        self.stops.lock().insert(key, stop);
        LeaseGuard { leases: self.clone(), key, heartbeat: heartbeat.cloned() }
    }

    /// Like [`Self::add`], but returns `None` if this process already has the lease.
    pub(super) fn try_add(
        self: &Arc<Self>,
        key: LeaseKey,
        stop: CancellationToken,
        heartbeat: Option<&Sender<Signal>>,
    ) -> Option<LeaseGuard> {
        match self.stops.lock().entry(key) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(free) => free.insert(stop),
        };
        Some(LeaseGuard { leases: self.clone(), key, heartbeat: heartbeat.cloned() })
    }

    pub(super) fn set_progress(&self, task: CallId, progress: Progress) {
        self.progress.lock().insert(task, progress);
    }

    pub(super) fn take_progress(&self) -> Vec<(CallId, Progress)> {
        self.progress.lock().drain().collect()
    }

    pub(super) fn has_run(&self, run: RunId) -> bool {
        self.stops.lock().contains_key(&LeaseKey::Run(run))
    }

    pub(super) fn dropped(&self) -> Vec<(RunId, Instant)> {
        self.dropped.lock().iter().map(|(run, since)| (*run, *since)).collect()
    }

    /// Forgets a dropped run after its release, unless the run was claimed and dropped again in the meantime.
    pub(super) fn released(&self, run: RunId, since: Instant) {
        let mut dropped = self.dropped.lock();
        if dropped.get(&run) == Some(&since) {
            dropped.remove(&run);
        }
    }

    pub(super) fn stop(&self, keys: impl Iterator<Item = LeaseKey>) {
        let stops = self.stops.lock();
        keys.filter_map(|key| stops.get(&key)).for_each(CancellationToken::cancel);
    }

    pub(super) fn stop_all(&self) {
        self.stops.lock().values().for_each(CancellationToken::cancel);
    }
}
