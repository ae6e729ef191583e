//! What this process holds of a store: how each thing is stopped from elsewhere, and what is given back.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use helve_core::store::Progress;
use helve_core::{CallId, RunId};
use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use super::heartbeat::Signal;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Task(CallId),
    Run(RunId),
}

/// What can be stopped from elsewhere, how far it is, and what was dropped before its end.
#[derive(Default)]
pub(super) struct Held {
    stops: Mutex<HashMap<Key, CancellationToken>>,
    progress: Mutex<HashMap<CallId, Progress>>,
    /// Runs that were dropped before their end, and when.
    dropped: Mutex<HashMap<RunId, Instant>>,
}

/// Something that this process holds as long as this lives. A run that is dropped before its end is given back to the store: by the
/// heartbeat, since dropping cannot wait for a store.
pub struct Hold {
    held: Arc<Held>,
    key: Key,
    /// Wakes the heartbeat; nothing where nothing is left to give back.
    heart: Option<Sender<Signal>>,
}

impl Hold {
    /// The store says by itself that nobody holds this any more: dropping gives nothing back.
    pub fn disarm(&mut self) {
        self.heart = None;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        lock(&self.held.stops).remove(&self.key);
        if let (Some(heart), Key::Run(run)) = (&self.heart, self.key) {
            lock(&self.held.dropped).insert(run, Instant::now());
            let _ = heart.send(Signal::Dropped);
        }
    }
}

impl Held {
    pub(super) fn hold(self: &Arc<Self>, key: Key, stop: CancellationToken, heart: Option<&Sender<Signal>>) -> Hold {
        lock(&self.stops).insert(key, stop);
        Hold { held: self.clone(), key, heart: heart.cloned() }
    }

    /// Holds what nothing in this process holds.
    pub(super) fn try_hold(self: &Arc<Self>, key: Key, stop: CancellationToken, heart: Option<&Sender<Signal>>) -> Option<Hold> {
        match lock(&self.stops).entry(key) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(free) => free.insert(stop),
        };
        Some(Hold { held: self.clone(), key, heart: heart.cloned() })
    }

    pub(super) fn note(&self, task: CallId, progress: Progress) {
        lock(&self.progress).insert(task, progress);
    }

    pub(super) fn take_progress(&self) -> Vec<(CallId, Progress)> {
        lock(&self.progress).drain().collect()
    }

    pub(super) fn holds_run(&self, run: RunId) -> bool {
        lock(&self.stops).contains_key(&Key::Run(run))
    }

    pub(super) fn dropped(&self) -> Vec<(RunId, Instant)> {
        lock(&self.dropped).iter().map(|(run, since)| (*run, *since)).collect()
    }

    /// A run was given back, unless it was taken and dropped once more meanwhile.
    pub(super) fn given_back(&self, run: RunId, since: Instant) {
        let mut dropped = lock(&self.dropped);
        if dropped.get(&run) == Some(&since) {
            dropped.remove(&run);
        }
    }

    pub(super) fn stop(&self, keys: impl Iterator<Item = Key>) {
        let stops = lock(&self.stops);
        for key in keys {
            if let Some(stop) = stops.get(&key) {
                stop.cancel();
            }
        }
    }

    pub(super) fn stop_all(&self) {
        lock(&self.stops).values().for_each(CancellationToken::cancel);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock()
}
