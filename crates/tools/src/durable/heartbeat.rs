//! The heartbeat: it renews the lease of this process, hears what to stop, and gives back runs that were dropped before their end.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use helve_core::store::RunState;
use helve_core::{HolderId, RunId, Store, StoreError};
use tokio::runtime::{Builder, Runtime};

use super::hold::{Held, Key};

/// How often it says something, or four times in a shorter lease. Whoever cancels from elsewhere waits so long at most.
const BEAT: Duration = Duration::from_secs(2);
const QUICKEST: Duration = Duration::from_millis(10);

/// What wakes the heartbeat before its time.
pub(super) enum Signal {
    /// A run was dropped before its end.
    Dropped,
    /// The process lets everything go.
    End,
}

/// The heartbeat. It has a thread of its own, so that no tool can hold it up.
pub(super) struct Heart {
    pub(super) store: Arc<dyn Store>,
    pub(super) holder: HolderId,
    pub(super) lease: Duration,
    pub(super) held: Arc<Held>,
    pub(super) signals: Receiver<Signal>,
}

impl Heart {
    pub(super) fn beat(self) {
        let Ok(runtime) = Builder::new_current_thread().enable_time().build() else {
            tracing::error!("there is no heartbeat; other processes will take what this one has");
            return;
        };
        let mut kept = Instant::now();
        let mut next = kept + self.interval();
        loop {
            match self.signals.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(Signal::Dropped) => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.keep(&runtime, &mut kept);
                    next = Instant::now() + self.interval();
                }
                Ok(Signal::End) | Err(RecvTimeoutError::Disconnected) => return,
            }
            self.give_back(&runtime);
        }
    }

    fn interval(&self) -> Duration {
        BEAT.min(self.lease / 4).max(QUICKEST)
    }

    fn keep(&self, runtime: &Runtime, kept: &mut Instant) {
        match runtime.block_on(self.store.keep(self.holder, self.lease, &self.held.take_progress())) {
            Ok(stop) => {
                *kept = Instant::now();
                self.held.stop(stop.tasks.into_iter().map(Key::Task).chain(stop.runs.into_iter().map(Key::Run)));
            }
            Err(error) if kept.elapsed() < self.lease => tracing::warn!(%error, "the store was not told that this process lives"),
            Err(error) => {
                tracing::error!(%error, "the store thinks that this process is gone; what it does is stopped");
                self.held.stop_all();
            }
        }
    }

    /// Gives back what was dropped. What the run wrote last may still be on its way to the store, so each is looked at once more later.
    fn give_back(&self, runtime: &Runtime) {
        for (run, since) in self.held.dropped() {
            match runtime.block_on(self.release(run)) {
                Ok(()) if since.elapsed() >= self.interval() => self.held.given_back(run, since),
                Ok(()) => {}
                Err(error) => tracing::warn!(%error, %run, "a run that nothing drives is not given back yet"),
            }
        }
    }

    async fn release(&self, run: RunId) -> Result<(), StoreError> {
        let Some(stored) = self.store.run(run).await? else { return Ok(()) };
        // Whoever takes the run holds it first, and has another epoch.
        let is_left = (stored.state, stored.holder) == (RunState::Running, Some(self.holder)) && !self.held.holds_run(run);
        if is_left { self.store.release_run(run, self.holder, stored.epoch).await } else { Ok(()) }
    }
}
