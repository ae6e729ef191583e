//! The store: data that outlives the process. Every method that changes something is one transaction.
//!
//! [`transact`] has the logic, and engines only load and store rows. A lease belongs to a holder, which is a process: one renewal covers
//! everything that the process has claimed. Claims are fenced by an epoch, so that a process whose lease expired cannot overwrite its
//! successor.

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

/// A future with the result of a store.
pub type Stored<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Why the store failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store cannot be reached or written: locked, full, gone.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// A row cannot be read.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// Another version of Helve wrote the store.
    #[error("the store cannot be opened: {0}")]
    Version(String),
    /// Another process has claimed the run.
    #[error("another process has claimed this run")]
    Lost,
    /// There is no such task, run or approval request.
    #[error("there is no {0}")]
    NotFound(String),
    /// The stored state does not allow the change.
    #[error("{0}")]
    Conflict(String),
}

/// Which tasks to list. By default the newest [`TaskFilter::PAGE`] in any state.
#[derive(Debug, Clone, crate::Setters)]
pub struct TaskFilter {
    /// Only tasks in this state.
    pub state: Option<TaskState>,
    /// Only tasks of this conversation.
    pub conversation: Option<ConversationId>,
    /// Only tasks that have ended and whose result the agent of their conversation has not read.
    pub unread: bool,
    /// Maximum number of tasks.
    pub limit: usize,
}

impl TaskFilter {
    /// Default for [`TaskFilter::limit`].
    pub const PAGE: usize = 100;
}

impl Default for TaskFilter {
    fn default() -> Self {
        Self { state: None, conversation: None, unread: false, limit: Self::PAGE }
    }
}

/// A worker's request for work.
#[derive(Debug, Clone)]
pub struct Claim<'a> {
    /// The process that will run the tasks.
    pub holder: HolderId,
    /// Maximum number of tasks.
    pub limit: usize,
    /// Definitions of the tools that it can run; `None` for any.
    pub tools: Option<&'a [Digest]>,
}

/// The work that a process must stop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stop {
    /// Cancelled tasks.
    pub tasks: Vec<CallId>,
    /// Cancelled runs.
    pub runs: Vec<RunId>,
}

/// What recovery took over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Number of tasks of processes that are gone.
    pub tasks: usize,
    /// Number of runs of processes that are gone. They can be resumed.
    pub runs: usize,
    /// Number of approval requests that expired or were cancelled.
    pub approvals: usize,
}

/// A store.
pub trait Store: Send + Sync + 'static {
    /// Renews the lease of a process and stores the progress of its tasks. Returns the tasks and runs that it must stop.
    fn keep<'a>(&'a self, holder: HolderId, lease: Duration, progress: &'a [(CallId, Progress)]) -> Stored<'a, Stop>;
    /// Takes over the work of processes whose lease expired: tasks go back to the queue or end, and runs can be resumed. Approval
    /// requests past their time expire.
    fn recover(&self, holder: HolderId) -> Stored<'_, RecoveryReport>;
    /// Ends the lease of a process. Other processes can take over its work at once.
    fn leave(&self, holder: HolderId) -> Stored<'_, ()>;

    /// Puts a task in the queue, and adds an event to its run.
    fn accept(&self, task: NewTask) -> Stored<'_, AcceptResult>;
    /// Gives tasks to a worker, those with the best rank first.
    fn claim<'a>(&'a self, claim: Claim<'a>) -> Stored<'a, Vec<Task>>;
    /// Stores how attempts ended, and adds events to their runs. A late result is counted and never replaces the outcome.
    fn finish(&self, ended: Vec<Finish>) -> Stored<'_, Vec<FinishResult>>;
    /// Cancels a queued task. If the task is running, asks its worker to stop it.
    fn cancel_task(&self, task: CallId) -> Stored<'_, CancelResult>;
    /// Puts a copy of a failed or cancelled task in the queue, under a new id.
    fn retry_task(&self, task: CallId) -> Stored<'_, Task>;
    /// One task.
    fn task(&self, task: CallId) -> Stored<'_, Option<Task>>;
    /// Tasks, newest first.
    fn tasks(&self, filter: TaskFilter) -> Stored<'_, Vec<Task>>;
    /// Tasks of a conversation that have ended and whose results its agent has not read, oldest first.
    fn inbox(&self, conversation: ConversationId) -> Stored<'_, Vec<Task>>;
    /// Marks a task's result as read by the agent. Stored runs do so with [`RunCommit::read`].
    fn mark_read(&self, task: CallId) -> Stored<'_, ()>;

    /// Stores an approval request for a call that belongs to no run.
    fn add_approval(&self, approval: Approval) -> Stored<'_, ()>;
    /// Decides an approval request. Exactly one decision counts; it makes the run ready, or puts the call in the queue.
    fn decide(&self, approval: ApprovalId, decision: DecisionRecord) -> Stored<'_, DecisionResult>;
    /// One approval request.
    fn approval(&self, approval: ApprovalId) -> Stored<'_, Option<Approval>>;
    /// Approval requests, newest first: those of a run, those that are pending, or all.
    fn approvals(&self, run: Option<RunId>, open: bool, limit: usize) -> Stored<'_, Vec<Approval>>;

    /// Claims a run that no other process drives. A process must know which runs it drives itself.
    fn take_run(&self, run: RunId, holder: HolderId) -> Stored<'_, TakenRun>;
    /// Releases a run that the process claimed under this epoch and no longer drives, so that it can be resumed. Changes nothing if the
    /// run has ended or another process has claimed it.
    fn release_run(&self, run: RunId, holder: HolderId, epoch: u64) -> Stored<'_, ()>;
    /// Stores a step of a run: its state, messages, events and approval requests. Returns the number of the last event before these.
    fn commit_run(&self, commit: RunCommit) -> Stored<'_, u64>;
    /// Asks the process that drives a run to stop it. If no process does, the caller claims the run and ends it.
    fn cancel_run(&self, run: RunId) -> Stored<'_, RunRecord>;
    /// One run.
    fn run(&self, run: RunId) -> Stored<'_, Option<RunRecord>>;
    /// Runs, newest first.
    fn runs(&self, state: Option<RunState>, limit: usize) -> Stored<'_, Vec<RunRecord>>;
    /// Events of a run after this number.
    fn events(&self, run: RunId, after: u64, limit: usize) -> Stored<'_, Vec<Event>>;

    /// A conversation with its messages.
    fn conversation(&self, conversation: ConversationId) -> Stored<'_, Option<ConversationRecord>>;
    /// Conversations without their messages, latest first.
    fn conversations(&self, limit: usize) -> Stored<'_, Vec<ConversationRecord>>;

    /// Stores a large body under its digest.
    fn put_body<'a>(&'a self, bytes: &'a [u8]) -> Stored<'a, Digest>;
    /// A large body.
    fn body(&self, digest: Digest) -> Stored<'_, Option<Vec<u8>>>;

    /// Deletes runs, tasks and decided requests that ended longer ago than `age`, and conversations that have nothing else left. Returns
    /// the number of deleted rows.
    fn prune(&self, age: Duration) -> Stored<'_, usize>;
    /// Copies the store into a file while it is in use.
    fn backup<'a>(&'a self, file: &'a Path) -> Stored<'a, ()> {
        let _ = file;
        Box::pin(std::future::ready(Err(StoreError::Conflict("back up this store with the tools of its database".to_owned()))))
    }
    /// A number that grows with each change. It is a hint: poll the store from time to time as well.
    fn changes(&self) -> watch::Receiver<u64>;
}
