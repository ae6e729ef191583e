//! The store as one process uses it: its leases, and waiting for changes by other processes.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use helve_core::store::{Approval, ApprovalState, MemoryStore, Progress, SealedStore, TakenRun};
use helve_core::{ApprovalId, CallId, HolderId, Outcome, Redactor, RunId, Status, Store, StoreError};
use parking_lot::RwLock;
use tokio::sync::{OnceCell, watch};
use tokio_util::sync::CancellationToken;

use super::heartbeat::{Heartbeat, Signal};
use super::lease::{LeaseGuard, LeaseKey, Leases};

/// The default lease: a process without a heartbeat for this long counts as dead.
const LEASE: Duration = Duration::from_secs(30);
/// Interval between checks for the end of a call, if the store does not announce changes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A store, with the runs and tasks that this process has claimed. Cheap to clone; clones share their state.
#[derive(Clone)]
pub struct StoreHandle(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    sealed: Arc<SealedStore>,
    holder: HolderId,
    lease: Duration,
    leases: Arc<Leases>,
    heartbeat: OnceCell<Sender<Signal>>,
    in_memory: bool,
    on_request: RwLock<Option<OnRequest>>,
}

type OnRequest = Arc<dyn Fn(&Approval) + Send + Sync>;

/// The error if the executor already uses another store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the executor already uses another store; an executor, its agents and its workers must share one")]
pub struct StoreConflict;

/// Gives access to the methods of [`Store`], which need no lease. The methods of the handle itself manage leases.
impl std::ops::Deref for StoreHandle {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        &*self.0.store
    }
}

impl StoreHandle {
    /// Creates this process's handle to a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self::with_lease(store, LEASE)
    }

    /// Like [`Self::new`], but with another lease: other processes take over the work of this process if its heartbeat stops for that long.
    #[must_use]
    pub fn with_lease(store: Arc<dyn Store>, lease: Duration) -> Self {
        Self::create(store, lease, false)
    }

    /// Creates a store in memory, whose data is lost when the process ends.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::create(Arc::new(MemoryStore::default()), LEASE, true)
    }

    fn create(store: Arc<dyn Store>, lease: Duration, in_memory: bool) -> Self {
        let sealed = Arc::new(SealedStore::new(store));
        Self(Arc::new(Inner {
            store: sealed.clone(),
            sealed,
            holder: HolderId::mint(),
            lease,
            leases: Arc::default(),
            heartbeat: OnceCell::new(),
            in_memory,
            on_request: RwLock::default(),
        }))
    }

    /// Makes the store save placeholders for the redactor's secrets, unless `store_secrets` is set.
    pub(crate) fn use_secrets(&self, redactor: &Redactor, store_secrets: bool) {
        self.0.sealed.use_secrets(redactor, store_secrets);
    }

    /// Returns the store. Reading from it restores known secrets.
    #[must_use]
    pub fn inner(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    /// Returns whether both are clones of one handle. Two handles to the same database are not the same.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the id of this process in the store.
    #[must_use]
    pub fn holder(&self) -> HolderId {
        self.0.holder
    }

    /// Returns whether the store is in memory, so that its data is lost when the process ends.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        self.0.in_memory
    }

    /// Starts the heartbeat. Until then, other processes may claim the tasks and runs of this process.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn start_heartbeat(&self) -> Result<(), StoreError> {
        let start = || async {
            self.0.store.keep(self.0.holder, self.0.lease, &[]).await?;
            let (signal, signals) = channel();
            let Inner { store, holder, lease, leases, .. } = &*self.0;
            let heartbeat = Heartbeat { store: store.clone(), holder: *holder, lease: *lease, leases: leases.clone(), signals };
            let started = thread::Builder::new().name("helve-heart".to_owned()).spawn(move || heartbeat.run());
            started.map(|_| signal).map_err(|error| StoreError::Unavailable(format!("cannot start the heartbeat thread: {error}")))
        };
        self.0.heartbeat.get_or_try_init(start).await.map(|_| ())
    }

    /// Stops the heartbeat and releases all runs and tasks that this process has claimed.
    ///
    /// # Errors
    /// If the store cannot be written. In that case, the leases expire.
    pub async fn close(&self) -> Result<(), StoreError> {
        match self.0.heartbeat.get() {
            Some(heartbeat) => {
                let _ = heartbeat.send(Signal::Stop);
                self.0.store.leave(self.0.holder).await
            }
            None => Ok(()),
        }
    }

    /// Sets a function that Helve calls with every approval request that this process stores. The function must return quickly.
    pub fn on_request(&self, notify: impl Fn(&Approval) + Send + Sync + 'static) {
        *self.0.on_request.write() = Some(Arc::new(notify));
    }

    /// Calls the function set with [`Self::on_request`]. Call this after storing an approval request.
    pub fn notify_request(&self, approval: &Approval) {
        let notify = self.0.on_request.read().clone();
        if let Some(notify) = notify {
            notify(approval);
        }
    }

    /// Waits for the final outcome of a call that is in the queue or waits for a person.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn end_of(&self, deferred: &Outcome) -> Result<Outcome, StoreError> {
        let mut changes = self.0.store.changes();
        loop {
            if let Some(outcome) = self.0.store.task(deferred.call_id).await?.and_then(|task| task.outcome) {
                return Ok(outcome);
            }
            if let Status::Waiting(id) = deferred.status
                && let Some(error) = self.0.store.approval(id).await?.and_then(|approval| approval.refusal())
            {
                return Ok(Outcome::failed(deferred.call_id, deferred.tool.clone(), error));
            }
            changed(&mut changes).await;
        }
    }

    /// Waits until an approval request is decided, expired or cancelled.
    pub(crate) async fn decision(&self, request: ApprovalId) -> Result<Approval, StoreError> {
        let mut changes = self.0.store.changes();
        loop {
            let approval = self.0.store.approval(request).await?;
            if let Some(approval) = approval.filter(|approval| approval.state != ApprovalState::Pending) {
                return Ok(approval);
            }
            changed(&mut changes).await;
        }
    }

    /// Takes the lease of a new run. If another process cancels the run, `stop` is cancelled.
    #[must_use]
    pub fn lease_run(&self, run: RunId, stop: CancellationToken) -> LeaseGuard {
        self.0.leases.add(LeaseKey::Run(run), stop, self.0.heartbeat.get())
    }

    /// Claims a stored run that no process drives. If another process cancels the run, `stop` is cancelled.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if this or another process drives the run, or the run has ended.
    pub async fn claim_run(&self, run: RunId, stop: CancellationToken) -> Result<(TakenRun, LeaseGuard), StoreError> {
        self.start_heartbeat().await?;
        // Take the lease first, so that the heartbeat never finds a run of this process without a lease.
        let lease = self.0.leases.try_add(LeaseKey::Run(run), stop, self.0.heartbeat.get());
        let mut lease = lease.ok_or_else(|| StoreError::Conflict(format!("this process already drives run {run}")))?;
        let taken = self.0.store.take_run(run, self.0.holder).await;
        taken.inspect_err(|_| lease.disarm()).map(|taken| (taken, lease))
    }

    /// Stops a run if this process drives it. Other processes learn of a cancellation through their heartbeat.
    pub fn stop_run(&self, run: RunId) {
        self.0.leases.stop(std::iter::once(LeaseKey::Run(run)));
    }

    /// Takes the lease of a task. If the task is cancelled in the store, `stop` is cancelled.
    pub(crate) fn lease_task(&self, task: CallId, stop: CancellationToken) -> LeaseGuard {
        self.0.leases.add(LeaseKey::Task(task), stop, None)
    }

    /// Sets the progress of a task. The next heartbeat reports it.
    pub(crate) fn set_progress(&self, task: CallId, progress: Progress) {
        self.0.leases.set_progress(task, progress);
    }
}

/// Waits until the store may have changed.
async fn changed(changes: &mut watch::Receiver<u64>) {
    tokio::select! {
        _ = changes.changed() => {}
        () = tokio::time::sleep(POLL_INTERVAL) => {}
    }
}
