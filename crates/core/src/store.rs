//! The store: data that outlives the process. Every method that changes data is one transaction.
//!
//! [`transact`] contains the logic; an engine only loads and stores rows. A lease belongs to a holder, which is a process: one renewal
//! covers all tasks and runs that the process has claimed. Every claim increments an epoch (fencing), so that a process whose lease expired
//! cannot overwrite data of its successor.

mod approval;
mod consent;
mod memory;
mod rows;
mod run;
mod sealed;
mod task;
mod texts;
pub mod transact;

use std::path::Path;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

pub use self::approval::{Approval, ApprovalState, DecisionRecord, DecisionResult};
pub use self::consent::Consent;
pub use self::memory::MemoryStore;
pub use self::rows::Rows;
pub use self::run::{ConversationRecord, NewRun, RunCommit, RunRecord, RunState, TakenRun};
pub use self::sealed::SealedStore;
pub use self::task::{
    AGEING, AcceptResult, CancelResult, Finish, FinishResult, MAX_ATTEMPTS, NewTask, Progress, Task, TaskEnd, TaskState, interrupted,
};
use crate::digest::Digest;
use crate::event::Event;
use crate::ids::{ApprovalId, CallId, ConversationId, HolderId, RunId};

/// A future that returns the result of a store operation.
pub type Stored<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Why the store failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store cannot be reached or written, for example because it is locked, full or deleted.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// A row cannot be parsed.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The store has a version that this version of Helve cannot use.
    #[error("the store cannot be opened: {0}")]
    Version(String),
    /// Another process has claimed the run.
    #[error("another process has claimed this run")]
    Lost,
    /// The store has no task, run or approval request with this id.
    #[error("there is no {0}")]
    NotFound(String),
    /// The stored state does not allow the change.
    #[error("{0}")]
    Conflict(String),
}

/// Which tasks to list. By default the newest [`TaskFilter::PAGE`] tasks in any state.
#[derive(Debug, Clone, crate::Setters)]
pub struct TaskFilter {
    /// Only tasks in this state.
    pub state: Option<TaskState>,
    /// Only tasks of this conversation.
    pub conversation: Option<ConversationId>,
    /// Only tasks that have ended and whose result the agent of the conversation has not read.
    pub unread: bool,
    /// Maximum number of tasks to list.
    pub limit: usize,
}

impl TaskFilter {
    /// The default of [`TaskFilter::limit`].
    pub const PAGE: usize = 100;
}

impl Default for TaskFilter {
    fn default() -> Self {
        Self { state: None, conversation: None, unread: false, limit: Self::PAGE }
    }
}

/// A worker's request for tasks.
#[derive(Debug, Clone)]
pub struct Claim<'a> {
    /// The process that will run the tasks.
    pub holder: HolderId,
    /// Maximum number of tasks to claim.
    pub limit: usize,
    /// Digests of the tool definitions that the process can run; `None` for any.
    pub tools: Option<&'a [Digest]>,
}

/// The tasks and runs that a process must stop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stop {
    /// The ids of cancelled tasks.
    pub tasks: Vec<CallId>,
    /// The ids of cancelled runs.
    pub runs: Vec<RunId>,
}

/// The number of tasks, runs and approval requests that recovery changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Number of tasks that recovery took over from processes that are gone.
    pub tasks: usize,
    /// Number of runs that recovery released from processes that are gone. These runs can be resumed.
    pub runs: usize,
    /// Number of approval requests that expired or were cancelled.
    pub approvals: usize,
}

/// A store for runs, tasks, approval requests and conversations.
pub trait Store: Send + Sync + 'static {
    /// Renews the lease of a process and stores the progress of its tasks. Returns the tasks and runs that the process must stop.
    fn keep<'a>(&'a self, holder: HolderId, lease: Duration, progress: &'a [(CallId, Progress)]) -> Stored<'a, Stop>;
    /// Takes over the work of processes whose lease expired: tasks go back to the queue or end, and runs can be resumed. Approval requests
    /// past their expiry time expire.
    fn recover(&self, holder: HolderId) -> Stored<'_, RecoveryReport>;
    /// Ends the lease of a process, so that other processes can take over its work at once.
    fn leave(&self, holder: HolderId) -> Stored<'_, ()>;

    /// Puts a task into the queue, and adds an event to its run.
    fn accept(&self, task: NewTask) -> Stored<'_, AcceptResult>;
    /// Claims tasks for a worker, best rank first. Returns the claimed tasks.
    fn claim<'a>(&'a self, claim: Claim<'a>) -> Stored<'a, Vec<Task>>;
    /// Stores how attempts ended, and adds events to their runs. A late result is counted, but never replaces the outcome.
    fn finish(&self, ended: Vec<Finish>) -> Stored<'_, Vec<FinishResult>>;
    /// Cancels a queued task. If the task is running, requests that its worker stop it.
    fn cancel_task(&self, task: CallId) -> Stored<'_, CancelResult>;
    /// Puts a copy of a failed or cancelled task into the queue, under a new id. Returns the copy.
    fn retry_task(&self, task: CallId) -> Stored<'_, Task>;
    /// Returns the task with this id, if it exists.
    fn task(&self, task: CallId) -> Stored<'_, Option<Task>>;
    /// Lists tasks, newest first.
    fn tasks(&self, filter: TaskFilter) -> Stored<'_, Vec<Task>>;
    /// Lists the tasks of a conversation that have ended and whose results its agent has not read, oldest first.
    fn inbox(&self, conversation: ConversationId) -> Stored<'_, Vec<Task>>;
    /// Marks a task's result as read by the agent. Stored runs use [`RunCommit::read`] instead.
    fn mark_read(&self, task: CallId) -> Stored<'_, ()>;

    /// Stores an approval request for a call that belongs to no run.
    fn add_approval(&self, approval: Approval) -> Stored<'_, ()>;
    /// Decides an approval request. Only the first decision counts; it makes the run ready, or puts the call into the queue.
    fn decide(&self, approval: ApprovalId, decision: DecisionRecord) -> Stored<'_, DecisionResult>;
    /// Returns the approval request with this id, if it exists.
    fn approval(&self, approval: ApprovalId) -> Stored<'_, Option<Approval>>;
    /// Lists at most `limit` approval requests, newest first: only those of `run` if given, and only pending ones if `open` is true.
    fn approvals(&self, run: Option<RunId>, open: bool, limit: usize) -> Stored<'_, Vec<Approval>>;

    /// Claims a run that no other process drives. The store does not prevent a process from claiming a run that it already drives.
    fn take_run(&self, run: RunId, holder: HolderId) -> Stored<'_, TakenRun>;
    /// Releases a run that the process claimed under this epoch and no longer drives, so that the run can be resumed. Changes nothing if
    /// the run has ended or another process has claimed it.
    fn release_run(&self, run: RunId, holder: HolderId, epoch: u64) -> Stored<'_, ()>;
    /// Stores a step of a run: its state, messages, events and approval requests. Returns the number of the last event before the step.
    fn commit_run(&self, commit: RunCommit) -> Stored<'_, u64>;
    /// Requests that the process that drives a run stop it. If no process drives the run, the caller must claim the run and end it.
    fn cancel_run(&self, run: RunId) -> Stored<'_, RunRecord>;
    /// Returns the run with this id, if it exists.
    fn run(&self, run: RunId) -> Stored<'_, Option<RunRecord>>;
    /// Lists at most `limit` runs, newest first; only those in `state` if given.
    fn runs(&self, state: Option<RunState>, limit: usize) -> Stored<'_, Vec<RunRecord>>;
    /// Returns at most `limit` events of a run whose number is greater than `after`, in order.
    fn events(&self, run: RunId, after: u64, limit: usize) -> Stored<'_, Vec<Event>>;

    /// Returns the conversation with this id and its messages, if it exists.
    fn conversation(&self, conversation: ConversationId) -> Stored<'_, Option<ConversationRecord>>;
    /// Lists at most `limit` conversations without their messages, last changed first.
    fn conversations(&self, limit: usize) -> Stored<'_, Vec<ConversationRecord>>;

    /// Stores a large value. Returns its digest, which is its key.
    fn put_body<'a>(&'a self, bytes: &'a [u8]) -> Stored<'a, Digest>;
    /// Returns a large value by its digest, or `None` if it is not stored.
    fn body(&self, digest: Digest) -> Stored<'_, Option<Vec<u8>>>;

    /// Deletes runs, tasks and decided approval requests that ended longer ago than `age`, and conversations that have not changed for
    /// `age` and have no runs, tasks or pending requests left. Returns the number of deleted rows.
    fn prune(&self, age: Duration) -> Stored<'_, usize>;
    /// Copies the store to a file while the store is in use.
    fn backup<'a>(&'a self, file: &'a Path) -> Stored<'a, ()> {
        let _ = file;
        Box::pin(std::future::ready(Err(StoreError::Conflict("back up this store with the tools of its database".to_owned()))))
    }
    /// Returns a receiver for a number that grows with each change. Not every change is announced, so also poll the store from time to
    /// time.
    fn changes(&self) -> watch::Receiver<u64>;
}
