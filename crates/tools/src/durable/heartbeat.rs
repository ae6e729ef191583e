//! The heartbeat: renews the lease of this process, stops cancelled runs and tasks, and releases runs that were dropped before their end.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use helve_core::store::RunState;
use helve_core::{HolderId, RunId, Store, StoreError};
use tokio::runtime::{Builder, Runtime};

use super::lease::{LeaseKey, Leases};

/// Maximum interval between heartbeats. A lease is renewed at least four times before it expires. A cancellation by another process takes
/// effect at the next heartbeat.
const LONGEST_INTERVAL: Duration = Duration::from_secs(2);
/// Minimum interval between heartbeats.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);

/// A signal that wakes the heartbeat early.
pub(super) enum Signal {
    /// A run was dropped before its end.
    RunDropped,
    /// The process releases all its runs and tasks.
    Stop,
}

/// The heartbeat. It runs in its own thread, so that no tool can delay it.
pub(super) struct Heartbeat {
    pub(super) store: Arc<dyn Store>,
    pub(super) holder: HolderId,
    pub(super) lease: Duration,
    pub(super) leases: Arc<Leases>,
    pub(super) signals: Receiver<Signal>,
}

impl Heartbeat {
    pub(super) fn run(self) {
        let Ok(runtime) = Builder::new_current_thread().enable_time().build() else {
            tracing::error!("cannot start the heartbeat; other processes will claim the runs and tasks of this one");
            return;
        };
        let mut renewed = Instant::now();
        let mut next = renewed + self.interval();
        loop {
            match self.signals.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(Signal::RunDropped) => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.renew(&runtime, &mut renewed);
                    next = Instant::now() + self.interval();
                }
                Ok(Signal::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
            self.release_dropped(&runtime);
        }
    }

    fn interval(&self) -> Duration {
        LONGEST_INTERVAL.min(self.lease / 4).max(SHORTEST_INTERVAL)
    }

    fn renew(&self, runtime: &Runtime, renewed: &mut Instant) {
        match runtime.block_on(self.store.keep(self.holder, self.lease, &self.leases.take_progress())) {
            Ok(stop) => {
                *renewed = Instant::now();
                self.leases.stop(stop.tasks.into_iter().map(LeaseKey::Task).chain(stop.runs.into_iter().map(LeaseKey::Run)));
            }
            Err(error) if renewed.elapsed() < self.lease => tracing::warn!(%error, "heartbeat failed"),
            Err(error) => {
                tracing::error!(%error, "the lease of this process expired; its runs and tasks are stopped");
                self.leases.stop_all();
            }
        }
    }

    /// Releases dropped runs. The last write of a run may still be on its way to the store, so each run is checked once more later.
    fn release_dropped(&self, runtime: &Runtime) {
        for (run, since) in self.leases.dropped() {
            match runtime.block_on(self.release(run)) {
                Ok(()) if since.elapsed() >= self.interval() => self.leases.released(run, since),
                Ok(()) => {}
                Err(error) => tracing::warn!(%error, %run, "could not release a dropped run; retrying"),
            }
        }
    }

    async fn release(&self, run: RunId) -> Result<(), StoreError> {
        let Some(stored) = self.store.run(run).await? else { return Ok(()) };
        // To claim a run again, this process takes the lease before it claims the run in the store, and the epoch changes.
        let is_unused = (stored.state, stored.holder) == (RunState::Running, Some(self.holder)) && !self.leases.has_run(run);
        if is_unused { self.store.release_run(run, self.holder, stored.epoch).await } else { Ok(()) }
    }
}
