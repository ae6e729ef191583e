//! The store as one process uses it: what it holds, and how it waits for what others write.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use helve_core::store::{Approval, ApprovalState, MemoryStore, Progress, SealedStore, TakenRun};
use helve_core::{ApprovalId, CallId, HolderId, Outcome, Redactor, RunId, Status, Store, StoreError};
use parking_lot::RwLock;
use tokio::sync::{OnceCell, watch};
use tokio_util::sync::CancellationToken;

use super::heartbeat::{Heart, Signal};
use super::hold::{Held, Hold, Key};

/// How long a process that says nothing is thought to live, where nobody says otherwise.
const LEASE: Duration = Duration::from_secs(30);
/// How often is looked for the end of a call that nobody told of.
const LOOK: Duration = Duration::from_millis(500);

/// The store, and what this process holds of it. Cheap to clone; clones share.
#[derive(Clone)]
pub struct StoreHandle(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    sealed: Arc<SealedStore>,
    holder: HolderId,
    lease: Duration,
    held: Arc<Held>,
    begun: OnceCell<Sender<Signal>>,
    in_memory: bool,
    tell: RwLock<Option<Tell>>,
}

/// Someone who is told of requests.
type Tell = Arc<dyn Fn(&Approval) + Send + Sync>;

/// An executor has another store already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the executor has another store already: an executor, its agents and its workers use the same one")]
pub struct StoreConflict;

/// What every process may do with the store stands in [`Store`]; what this one holds, in the methods here.
impl std::ops::Deref for StoreHandle {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        &*self.0.store
    }
}

impl StoreHandle {
    /// A store in a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self::of(store, LEASE, false)
    }

    /// The same for a process that is thought to be gone after it has said nothing for so long. A process holds what it has for as
    /// long as it lives, however long that is.
    #[must_use]
    pub fn with_lease(store: Arc<dyn Store>, lease: Duration) -> Self {
        Self::of(store, lease, false)
    }

    /// A store that ends with the process.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::of(Arc::new(MemoryStore::default()), LEASE, true)
    }

    fn of(store: Arc<dyn Store>, lease: Duration, in_memory: bool) -> Self {
        let sealed = Arc::new(SealedStore::new(store));
        Self(Arc::new(Inner {
            store: sealed.clone(),
            sealed,
            holder: HolderId::mint(),
            lease,
            held: Arc::default(),
            begun: OnceCell::new(),
            in_memory,
            tell: RwLock::default(),
        }))
    }

    /// Keeps the secrets that a redactor knows out of the store, unless they are kept on purpose.
    pub(crate) fn use_secrets(&self, redactor: &Redactor, are_kept: bool) {
        self.0.sealed.use_secrets(redactor, are_kept);
    }

    /// The store. What is read has its secrets back, where they are known.
    #[must_use]
    pub fn inner(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    /// Returns whether both are the same store, not only records in the same store.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Names this process.
    #[must_use]
    pub fn holder(&self) -> HolderId {
        self.0.holder
    }

    /// Whether it ends with the process.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        self.0.in_memory
    }

    /// Begins to hold things. What is held before is anybody's.
    ///
    /// # Errors
    /// Where the store cannot be used.
    pub async fn begin(&self) -> Result<(), StoreError> {
        let start = || async {
            self.0.store.keep(self.0.holder, self.0.lease, &[]).await?;
            let (signal, signals) = channel();
            let inner = &self.0;
            let heart = Heart { store: inner.store.clone(), holder: inner.holder, lease: inner.lease, held: inner.held.clone(), signals };
            let started = thread::Builder::new().name("helve-heart".to_owned()).spawn(move || heart.beat());
            started.map(|_| signal).map_err(|error| StoreError::Unavailable(format!("no thread for the heartbeat: {error}")))
        };
        self.0.begun.get_or_try_init(start).await.map(|_| ())
    }

    /// Lets everything go that is not over.
    ///
    /// # Errors
    /// Where the store cannot be used; then leases end it.
    pub async fn close(&self) -> Result<(), StoreError> {
        match self.0.begun.get() {
            Some(heart) => {
                let _ = heart.send(Signal::End);
                self.0.store.leave(self.0.holder).await
            }
            None => Ok(()),
        }
    }

    /// Tells someone of every request that this process records from now on. It must not take long.
    pub fn on_request(&self, tell: impl Fn(&Approval) + Send + Sync + 'static) {
        *self.0.tell.write() = Some(Arc::new(tell));
    }

    /// A request was recorded.
    pub fn asked(&self, approval: &Approval) {
        let tell = self.0.tell.read().clone();
        if let Some(tell) = tell {
            tell(approval);
        }
    }

    /// Waits for the end of a call that was put off: one in the background, or one that waits for a person.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub async fn end_of(&self, put_off: &Outcome) -> Result<Outcome, StoreError> {
        let mut changes = self.0.store.changes();
        loop {
            if let Some(outcome) = self.0.store.task(put_off.call_id).await?.and_then(|task| task.outcome) {
                return Ok(outcome);
            }
            if let Status::Waiting(id) = put_off.status
                && let Some(error) = self.0.store.approval(id).await?.and_then(|approval| approval.refusal())
            {
                return Ok(Outcome::failed(put_off.call_id, put_off.tool.clone(), error));
            }
            next(&mut changes).await;
        }
    }

    /// Waits for the answer to a request, or that nobody needs it any more.
    pub(crate) async fn answer_to(&self, request: ApprovalId) -> Result<Approval, StoreError> {
        let mut changes = self.0.store.changes();
        loop {
            let approval = self.0.store.approval(request).await?;
            if let Some(approval) = approval.filter(|approval| approval.state != ApprovalState::Pending) {
                return Ok(approval);
            }
            next(&mut changes).await;
        }
    }

    /// Holds a run that begins: who cancels it from elsewhere cancels this token.
    #[must_use]
    pub fn hold_run(&self, run: RunId, stop: CancellationToken) -> Hold {
        self.0.held.hold(Key::Run(run), stop, self.0.begun.get())
    }

    /// Takes a run that nothing drives, here or elsewhere, to go on with it. Who cancels it from elsewhere cancels this token.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if this or another process drives it, or it is over.
    pub async fn take_run(&self, run: RunId, stop: CancellationToken) -> Result<(TakenRun, Hold), StoreError> {
        self.begin().await?;
        // Held before it is taken, so that the heartbeat never sees a run of this process that nothing holds.
        let hold = self.0.held.try_hold(Key::Run(run), stop, self.0.begun.get());
        let mut hold = hold.ok_or_else(|| StoreError::Conflict(format!("this process drives run {run} already")))?;
        let taken = self.0.store.take_run(run, self.0.holder).await;
        taken.inspect_err(|_| hold.disarm()).map(|taken| (taken, hold))
    }

    /// Stops a run that this process drives; others are told by their heartbeat.
    pub fn stop_run(&self, run: RunId) {
        self.0.held.stop(std::iter::once(Key::Run(run)));
    }

    /// Holds a task.
    pub(crate) fn hold_task(&self, task: CallId, stop: CancellationToken) -> Hold {
        self.0.held.hold(Key::Task(task), stop, None)
    }

    /// Remembers how far a task is, for the next heartbeat.
    pub(crate) fn progress(&self, task: CallId, progress: Progress) {
        self.0.held.note(task, progress);
    }
}

/// Waits until something may have changed.
async fn next(changes: &mut watch::Receiver<u64>) {
    tokio::select! {
        _ = changes.changed() => {}
        () = tokio::time::sleep(LOOK) => {}
    }
}
