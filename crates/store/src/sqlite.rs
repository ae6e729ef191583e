//! A store in one SQLite file, with a writer thread that uses group commit, and a reader thread.
//!
//! Several processes may open the file. Only the process that holds the lock on a lock file beside it claims and recovers tasks. If that
//! process is killed, the operating system releases the lock, and another process can take over at once.

mod cache;
mod clock;
mod paths;
mod process;
mod rows;
mod schema;
mod shape;
mod tasks;
mod thread;
mod wal;

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use helve_core::store::{
    AcceptResult, Approval, CancelResult, Claim, ConversationRecord, DecisionRecord, DecisionResult, Finish, FinishResult, NewTask,
    Progress, RecoveryReport, RunCommit, RunRecord, RunState, Stop, Stored, TakenRun, Task, TaskFilter, transact,
};
use helve_core::{ApprovalId, CallId, ConversationId, Digest, Event, HolderId, RunId, Store, StoreError};
use parking_lot::Mutex;
use tokio::sync::watch;

use self::rows::SqliteRows;
use self::thread::DatabaseThread;
use crate::crash;

/// How much a power failure may lose. A process that ends or is killed loses nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// A power failure loses no committed transaction.
    #[default]
    Full,
    /// A power failure may lose the last transactions.
    Normal,
    /// A power failure may lose or damage the whole store.
    Off,
}

impl Durability {
    fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Normal => "normal",
            Self::Off => "off",
        }
    }
}

/// A store in one SQLite file. Clones share the connections.
#[derive(Clone)]
pub struct SqliteStore(Arc<Inner>);

struct Inner {
    writer: DatabaseThread,
    reader: DatabaseThread,
    changes: watch::Sender<u64>,
    /// The lock file. The process that holds its lock claims tasks.
    lock: PathBuf,
    claimer: Mutex<Option<Claimer>>,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("lock", &self.0.lock).finish_non_exhaustive()
    }
}

/// The lock that lets this process claim tasks, and the holders that use it. The lock is released when the last holder leaves.
struct Claimer {
    _file: File,
    holders: HashSet<HolderId>,
}

impl SqliteStore {
    /// Opens a store file with full durability. Creates the file if it is missing.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened, is not a Helve store, or was written by a newer version of Helve. Also returns an
    /// error if the file may come from another user: a symbolic link, a file with several hard links or another owner, or one with tables
    /// that Helve does not create.
    pub fn open(file: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(file, Durability::Full)
    }

    /// Opens a store file like [`open`](Self::open), but with the given durability. This is for tests of power failures.
    ///
    /// # Errors
    /// Returns the same errors as [`SqliteStore::open`].
    pub fn open_with(file: impl AsRef<Path>, durability: Durability) -> Result<Self, StoreError> {
        let file = paths::prepare(file.as_ref())?;
        let connection = schema::open(&file, durability)?;
        let reader = schema::open_reader(&file)?;
        Ok(Self(Arc::new(Inner {
            writer: DatabaseThread::writer(connection)?,
            reader: DatabaseThread::reader(reader)?,
            changes: watch::Sender::new(0),
            lock: paths::lock_of(&file),
            claimer: Mutex::default(),
        })))
    }

    /// Runs a transaction, and notifies subscribers. `name` selects the crash points before and after the commit.
    fn change<T: Send + 'static>(
        &self,
        name: &'static str,
        change: impl Fn(&mut SqliteRows<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Stored<'_, T> {
        self.change_if(name, change, |_| true)
    }

    /// Runs a transaction like [`change`](Self::change), but notifies subscribers only if `changed` returns true for the result. Otherwise
    /// an idle worker would wake itself forever.
    fn change_if<T: Send + 'static>(
        &self,
        name: &'static str,
        change: impl Fn(&mut SqliteRows<'_>) -> Result<T, StoreError> + Send + 'static,
        changed: fn(&T) -> bool,
    ) -> Stored<'_, T> {
        let result = self.0.writer.run(move |rows| {
            let value = change(rows)?;
            crash::reach(name, crash::BEFORE);
            Ok(value)
        });
        Box::pin(async move {
            let value = result.await?;
            crash::reach(name, crash::AFTER);
            if changed(&value) {
                self.0.changes.send_modify(|number| *number += 1);
            }
            Ok(value)
        })
    }

    fn read<T: Send + 'static>(&self, read: impl Fn(&mut SqliteRows<'_>) -> Result<T, StoreError> + Send + 'static) -> Stored<'_, T> {
        Box::pin(self.0.reader.run(move |rows| rows.at_one_moment(&read)))
    }

    /// Runs a transaction like [`change_if`](Self::change_if) if this process may claim tasks. Otherwise does nothing, and returns the
    /// default. The second argument of `change` is whether the process has just acquired the lock.
    fn change_if_claiming<T: Default + Send + 'static>(
        &self,
        name: &'static str,
        holder: HolderId,
        change: impl Fn(&mut SqliteRows<'_>, bool) -> Result<T, StoreError> + Send + 'static,
        changed: fn(&T) -> bool,
    ) -> Stored<'_, T> {
        let first = match self.may_claim(holder) {
            Ok(Some(first)) => first,
            Ok(None) => return Box::pin(std::future::ready(Ok(T::default()))),
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let change = move |rows: &mut SqliteRows<'_>| {
            if first {
                rows.start_claiming(holder)?;
            }
            change(rows, first)
        };
        self.change_if(name, change, changed)
    }

    /// Tries to acquire the lock for claiming tasks. Returns `None` if another process holds the lock; otherwise whether this process has
    /// just acquired it.
    fn may_claim(&self, holder: HolderId) -> Result<Option<bool>, StoreError> {
        let mut claimer = self.0.claimer.lock();
        if let Some(claimer) = &mut *claimer {
            claimer.holders.insert(holder);
            return Ok(Some(false));
        }
        // Open the file as private: any user who can open it could hold the lock, and block all tasks.
        let file = helve_files::open(&self.0.lock).map_err(paths::refused)?;
        match file.try_lock() {
            Ok(()) => {
                *claimer = Some(Claimer { _file: file, holders: HashSet::from([holder]) });
                Ok(Some(true))
            }
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(error)) => Err(unavailable(&self.0.lock, &error)),
        }
    }
}

fn unavailable(file: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Unavailable(format!("{}: {error}", file.display()))
}

impl Store for SqliteStore {
    fn keep<'a>(&'a self, holder: HolderId, lease: Duration, progress: &'a [(CallId, Progress)]) -> Stored<'a, Stop> {
        let progress = progress.to_vec();
        let keep = move |rows: &mut SqliteRows<'_>| {
            rows.keep_holder(holder, lease)?;
            transact::progress(rows, holder, &progress)
        };
        self.change_if("keep", keep, |_| false)
    }

    fn recover(&self, holder: HolderId) -> Stored<'_, RecoveryReport> {
        let recover = move |rows: &mut SqliteRows<'_>, _| transact::recover(rows, holder);
        self.change_if_claiming("recover", holder, recover, |recovered| *recovered != RecoveryReport::default())
    }

    fn leave(&self, holder: HolderId) -> Stored<'_, ()> {
        let mut claimer = self.0.claimer.lock();
        claimer.take_if(|claimer| claimer.holders.remove(&holder) && claimer.holders.is_empty());
        drop(claimer);
        self.change("leave", move |rows| rows.forget_holder(holder))
    }

    fn accept(&self, task: NewTask) -> Stored<'_, AcceptResult> {
        self.change("accept", move |rows| transact::accept(rows, task.clone()))
    }

    fn claim<'a>(&'a self, claim: Claim<'a>) -> Stored<'a, Vec<Task>> {
        let (holder, limit, tools) = (claim.holder, claim.limit, claim.tools.map(<[Digest]>::to_vec));
        let claim = move |rows: &mut SqliteRows<'_>, first| {
            if first {
                transact::recover(rows, holder)?;
            }
            transact::claim(rows, &Claim { holder, limit, tools: tools.as_deref() })
        };
        self.change_if_claiming("claim", holder, claim, |tasks| !tasks.is_empty())
    }

    fn finish(&self, ended: Vec<Finish>) -> Stored<'_, Vec<FinishResult>> {
        self.change("finish", move |rows| transact::finish(rows, ended.clone()))
    }

    fn cancel_task(&self, task: CallId) -> Stored<'_, CancelResult> {
        self.change("cancel_task", move |rows| transact::cancel_task(rows, task))
    }

    fn retry_task(&self, task: CallId) -> Stored<'_, Task> {
        let copy = CallId::mint();
        self.change("retry_task", move |rows| transact::retry_task(rows, task, copy))
    }

    fn task(&self, task: CallId) -> Stored<'_, Option<Task>> {
        self.read(move |rows| helve_core::store::Rows::task(rows, task))
    }

    fn tasks(&self, filter: TaskFilter) -> Stored<'_, Vec<Task>> {
        self.read(move |rows| tasks::some(rows, &filter))
    }

    fn inbox(&self, conversation: ConversationId) -> Stored<'_, Vec<Task>> {
        self.read(move |rows| tasks::inbox(rows, conversation))
    }

    fn mark_read(&self, task: CallId) -> Stored<'_, ()> {
        self.change("hear", move |rows| transact::mark_read(rows, task))
    }

    fn add_approval(&self, approval: Approval) -> Stored<'_, ()> {
        self.change("ask", move |rows| transact::add_approval(rows, &approval))
    }

    fn decide(&self, approval: ApprovalId, decision: DecisionRecord) -> Stored<'_, DecisionResult> {
        self.change("answer", move |rows| transact::decide(rows, approval, decision.clone()))
    }

    fn approval(&self, approval: ApprovalId) -> Stored<'_, Option<Approval>> {
        self.read(move |rows| helve_core::store::Rows::approval(rows, approval))
    }

    fn approvals(&self, run: Option<RunId>, open: bool, limit: usize) -> Stored<'_, Vec<Approval>> {
        self.read(move |rows| rows.approvals(run, open, limit))
    }

    fn take_run(&self, run: RunId, holder: HolderId) -> Stored<'_, TakenRun> {
        self.change("take_run", move |rows| transact::take_run(rows, run, holder))
    }

    fn release_run(&self, run: RunId, holder: HolderId, epoch: u64) -> Stored<'_, ()> {
        self.change("release_run", move |rows| transact::release_run(rows, run, holder, epoch))
    }

    fn commit_run(&self, commit: RunCommit) -> Stored<'_, u64> {
        self.change("commit_run", move |rows| transact::commit_run(rows, commit.clone()))
    }

    fn cancel_run(&self, run: RunId) -> Stored<'_, RunRecord> {
        self.change("cancel_run", move |rows| transact::cancel_run(rows, run))
    }

    fn run(&self, run: RunId) -> Stored<'_, Option<RunRecord>> {
        self.read(move |rows| helve_core::store::Rows::run(rows, run))
    }

    fn runs(&self, state: Option<RunState>, limit: usize) -> Stored<'_, Vec<RunRecord>> {
        self.read(move |rows| rows.runs(state, limit))
    }

    fn events(&self, run: RunId, after: u64, limit: usize) -> Stored<'_, Vec<Event>> {
        self.read(move |rows| rows.events(run, after, limit))
    }

    fn conversation(&self, conversation: ConversationId) -> Stored<'_, Option<ConversationRecord>> {
        self.read(move |rows| rows.whole_conversation(conversation))
    }

    fn conversations(&self, limit: usize) -> Stored<'_, Vec<ConversationRecord>> {
        self.read(move |rows| rows.conversations(limit))
    }

    fn put_body<'a>(&'a self, bytes: &'a [u8]) -> Stored<'a, Digest> {
        let (digest, bytes) = (Digest::of([bytes]), bytes.to_vec());
        self.change("put_body", move |rows| rows.put_body(digest, &bytes, true).map(|()| digest))
    }

    fn body(&self, digest: Digest) -> Stored<'_, Option<Vec<u8>>> {
        self.read(move |rows| rows.body(digest))
    }

    fn prune(&self, age: Duration) -> Stored<'_, usize> {
        self.change("prune", move |rows| rows.prune(age))
    }

    fn backup<'a>(&'a self, file: &'a Path) -> Stored<'a, ()> {
        let file = file.to_owned();
        Box::pin(self.0.reader.run(move |rows| rows.copy_to(&file)))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }
}
