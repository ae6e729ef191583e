//! The record: what must survive the process. Every method that changes something is one transaction.
//!
//! What a change means stands in pure functions on [`Task`] and [`Approval`], so that engines only load and keep rows.
//! Leases belong to holders, which are processes: one renewal keeps all that a process holds. What a holder took is
//! fenced by an epoch, so that one which was thought dead cannot write over its successor.

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
    AGEING, Accepted, Cancelling, Finish, Finished, MAX_ATTEMPTS, NewTask, Progress, Task, TaskEnd, TaskState, back_off, interrupted,
};
use crate::digest::Digest;
use crate::event::Event;
use crate::ids::{ApprovalId, CallId, ConversationId, HolderId, RunId};

/// What a store gives back.
pub type Stored<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Why something was not recorded or cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The record cannot be reached or written now: locked, full, gone.
    #[error("the record cannot be used now: {0}")]
    Unavailable(String),
    /// What is there cannot be understood.
    #[error("the record is damaged: {0}")]
    Damaged(String),
    /// Another version of Helve wrote it.
    #[error("the record cannot be opened: {0}")]
    Version(String),
    /// Somebody else drives this run by now.
    #[error("another process goes on with this run")]
    Lost,
    /// There is no such thing.
    #[error("there is no {0}")]
    NotFound(String),
    /// What was asked does not fit what is there.
    #[error("{0}")]
    Conflict(String),
}

/// Which tasks are wanted. By default the newest [`TaskFilter::PAGE`], whatever their state.
#[derive(Debug, Clone, crate::Setters)]
pub struct TaskFilter {
    /// Only those in this state.
    pub state: Option<TaskState>,
    /// Only those of this conversation.
    pub conversation: Option<ConversationId>,
    /// Only those that are over, and of whose result the agent of their conversation was not told.
    pub unheard: bool,
    /// At most so many, newest first.
    pub limit: usize,
}

impl TaskFilter {
    /// How many tasks are listed by default.
    pub const PAGE: usize = 100;
}

impl Default for TaskFilter {
    fn default() -> Self {
        Self { state: None, conversation: None, unheard: false, limit: Self::PAGE }
    }
}

/// A worker's request for work.
#[derive(Debug, Clone)]
pub struct Claim<'a> {
    /// The process that will do it.
    pub holder: HolderId,
    /// At most so many.
    pub limit: usize,
    /// The definitions of the tools that it can run; nothing means any.
    pub tools: Option<&'a [Digest]>,
}

/// What a process shall stop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stop {
    /// Tasks that someone cancelled.
    pub tasks: Vec<CallId>,
    /// Runs that someone cancelled.
    pub runs: Vec<RunId>,
}

/// What recovery found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Tasks of processes that are gone.
    pub tasks: usize,
    /// Runs of processes that are gone; they can be resumed.
    pub runs: usize,
    /// Questions whose time is over.
    pub approvals: usize,
}

/// The record.
pub trait Store: Send + Sync + 'static {
    /// Keeps what a process holds for so long from now, and tells how far its tasks are. Says what it shall stop.
    fn keep<'a>(&'a self, holder: HolderId, lease: Duration, progress: &'a [(CallId, Progress)]) -> Stored<'a, Stop>;
    /// Takes what processes held that are gone: tasks go back to the queue or end, runs can be resumed. Questions whose time
    /// is over expire.
    fn recover(&self, holder: HolderId) -> Stored<'_, Recovered>;
    /// A process ends well: what it holds can be taken at once.
    fn leave(&self, holder: HolderId) -> Stored<'_, ()>;

    /// Puts a task in the queue, and tells its run.
    fn accept(&self, task: NewTask) -> Stored<'_, Accepted>;
    /// Gives tasks to a worker: those that waited longest for their priority.
    fn claim<'a>(&'a self, claim: Claim<'a>) -> Stored<'a, Vec<Task>>;
    /// Records what came of tasks, and tells their runs. A result that comes too late is kept as such, never as the result.
    fn finish(&self, ended: Vec<Finish>) -> Stored<'_, Vec<Finished>>;
    /// Cancels a task: at once while it waits, else its worker is told.
    fn cancel_task(&self, task: CallId) -> Stored<'_, Cancelling>;
    /// Puts a copy of a task that ended badly in the queue, under a new id.
    fn retry_task(&self, task: CallId) -> Stored<'_, Task>;
    /// One task.
    fn task(&self, task: CallId) -> Stored<'_, Option<Task>>;
    /// Tasks, newest first.
    fn tasks(&self, filter: TaskFilter) -> Stored<'_, Vec<Task>>;
    /// Tasks of a conversation that ended and that its agent has not heard of, oldest first.
    fn inbox(&self, conversation: ConversationId) -> Stored<'_, Vec<Task>>;
    /// The agent was told of a task's result. For runs that are not recorded; others say so with their next step.
    fn hear(&self, task: CallId) -> Stored<'_, ()>;

    /// Stores a request about a call that belongs to no run.
    fn add_approval(&self, approval: Approval) -> Stored<'_, ()>;
    /// Answers a request. Exactly one answer wins; with it the run can be resumed, or the call goes into the queue.
    fn decide(&self, approval: ApprovalId, decision: DecisionRecord) -> Stored<'_, DecisionResult>;
    /// One request.
    fn approval(&self, approval: ApprovalId) -> Stored<'_, Option<Approval>>;
    /// Questions, newest first: those of a run, those that are open, or all.
    fn approvals(&self, run: Option<RunId>, open: bool, limit: usize) -> Stored<'_, Vec<Approval>>;

    /// Takes a run that no other process drives, to go on with it. A process knows itself what it drives.
    fn take_run(&self, run: RunId, holder: HolderId) -> Stored<'_, TakenRun>;
    /// Gives back a run that the process took under this epoch and does not drive any more, so that it can be resumed. Changes nothing
    /// if the run is over, or somebody else drives it by now.
    fn release_run(&self, run: RunId, holder: HolderId, epoch: u64) -> Stored<'_, ()>;
    /// Records a step of a run: its state, what was said, what happened, what people are asked. Gives the number of the last
    /// event before these.
    fn commit_run(&self, commit: RunCommit) -> Stored<'_, u64>;
    /// Tells the process that drives a run to stop it. Where nobody drives it, whoever asks takes it and ends it.
    fn cancel_run(&self, run: RunId) -> Stored<'_, RunRecord>;
    /// One run.
    fn run(&self, run: RunId) -> Stored<'_, Option<RunRecord>>;
    /// Runs, newest first.
    fn runs(&self, state: Option<RunState>, limit: usize) -> Stored<'_, Vec<RunRecord>>;
    /// What happened in a run after a number.
    fn events(&self, run: RunId, after: u64, limit: usize) -> Stored<'_, Vec<Event>>;

    /// What was said in a conversation, and what was granted.
    fn conversation(&self, conversation: ConversationId) -> Stored<'_, Option<ConversationRecord>>;
    /// The conversations that someone spoke in last.
    fn conversations(&self, limit: usize) -> Stored<'_, Vec<ConversationRecord>>;

    /// Keeps a large body by its digest.
    fn put_body<'a>(&'a self, bytes: &'a [u8]) -> Stored<'a, Digest>;
    /// A large body.
    fn body(&self, digest: Digest) -> Stored<'_, Option<Vec<u8>>>;

    /// Forgets runs, tasks and answered requests that ended before so long, and conversations of which nothing else is left. Says how many.
    fn prune(&self, age: Duration) -> Stored<'_, usize>;
    /// Copies the record into a file, while it is used.
    fn backup<'a>(&'a self, file: &'a Path) -> Stored<'a, ()> {
        let _ = file;
        Box::pin(std::future::ready(Err(StoreError::Conflict("this record is copied with the tools of its database".to_owned()))))
    }
    /// A number that grows when something changed. A hint: whoever waits also looks from time to time.
    fn changes(&self) -> watch::Receiver<u64>;
}
