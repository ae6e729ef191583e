//! Background calls in the queue. How a task changes its state is in `transitions.rs`.

mod transitions;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::consent::Consent;
use crate::call::{Caller, ToolCall};
use crate::digest::Digest;
use crate::error::{ErrorKind, ToolError};
use crate::ids::{CallId, HolderId};
use crate::outcome::Outcome;

/// How much longer a task waits for each step of lower priority. Old tasks overtake new ones of a higher priority, so none starves.
pub const AGEING: Duration = Duration::from_secs(10);
/// Default for [`NewTask::max_attempts`].
pub const MAX_ATTEMPTS: u32 = 3;

/// State of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, crate::Name)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Waits for a worker.
    Queued,
    /// Claimed by a worker.
    Running,
    /// Succeeded.
    Done,
    /// Failed or was interrupted.
    Failed,
    /// Failed on every attempt.
    Dead,
    /// Was cancelled.
    Cancelled,
}

impl TaskState {
    /// Every state, once.
    pub const ALL: [Self; 6] = [Self::Queued, Self::Running, Self::Done, Self::Failed, Self::Dead, Self::Cancelled];

    /// Whether the task has ended.
    #[must_use]
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

/// A call to put in the queue.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// The exact call. The task has its id.
    pub call: ToolCall,
    /// The tool's name in the catalogue.
    pub tool: Arc<str>,
    /// Digest of the tool's definition. Only a worker with the same definition may run the call.
    pub definition: Digest,
    /// Who made the call.
    pub caller: Caller,
    /// The tool sets through which the caller has the tool.
    pub sets: Arc<[Arc<str>]>,
    /// A person's consent; `None` if the call needed no approval.
    pub consent: Option<Consent>,
    /// Whether the call may run more than once.
    pub idempotent: bool,
    /// Higher runs first; the default is 0.
    pub priority: i8,
    /// Minimum time in the queue.
    pub delay: Duration,
    /// Maximum number of attempts.
    pub max_attempts: u32,
}

impl NewTask {
    /// A call with default priority that is not idempotent: it runs at most once.
    #[must_use]
    pub fn new(call: ToolCall, definition: Digest) -> Self {
        Self {
            tool: call.tool.clone(),
            call,
            definition,
            caller: Caller::default(),
            sets: Arc::default(),
            consent: None,
            idempotent: false,
            priority: 0,
            delay: Duration::ZERO,
            max_attempts: MAX_ATTEMPTS,
        }
    }
}

/// Result of [`Store::accept`](super::Store::accept).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptResult {
    /// The task was added to the queue.
    New,
    /// The queue already had a task with this id.
    Known,
}

/// A background call in the queue.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Task {
    /// The call's id.
    pub id: CallId,
    /// The tool's name in the catalogue.
    pub tool: Arc<str>,
    /// Its state.
    pub state: TaskState,
    /// The exact call.
    pub call: ToolCall,
    /// Digest of the tool's definition.
    pub definition: Digest,
    /// Who made the call.
    pub caller: Caller,
    /// The tool sets through which the caller had the tool.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub sets: Arc<[Arc<str>]>,
    /// A person's consent. Tasks stored by earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<Consent>,
    /// Whether the call may run more than once.
    pub idempotent: bool,
    /// Higher runs first.
    pub priority: i8,
    /// Number of attempts so far.
    pub attempts: u32,
    /// Maximum number of attempts.
    pub max_attempts: u32,
    /// Fencing token: grows with each claim. Only the worker with the latest epoch can finish the task.
    pub epoch: u64,
    /// The process that runs it.
    pub holder: Option<HolderId>,
    /// Progress that the tool reported last.
    pub progress: Option<Progress>,
    /// Whether its worker must stop it.
    pub cancelling: bool,
    /// Its outcome, once it has ended.
    pub outcome: Option<Outcome>,
    /// Number of results that came too late.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late: u32,
    /// Whether the agent of the conversation has read the result.
    #[serde(default, rename = "heard")]
    pub read: bool,
    /// The task of which this is a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<CallId>,
    /// When it was accepted.
    pub created: Timestamp,
    /// Earliest start.
    pub due: Timestamp,
    /// Last change of its state.
    pub updated: Timestamp,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Progress of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// From 0 to 1, if known.
    pub fraction: Option<f64>,
    /// A short message.
    pub message: String,
}

/// A worker's report that an attempt has ended.
#[derive(Debug, Clone)]
pub struct Finish {
    /// The task.
    pub task: CallId,
    /// The epoch under which the worker claimed it.
    pub epoch: u64,
    /// How the attempt ended.
    pub end: TaskEnd,
}

/// How an attempt ended.
#[derive(Debug, Clone)]
pub enum TaskEnd {
    /// The call has its outcome.
    Over(Outcome),
    /// It failed with a transient error. The task is retried if it is idempotent and has attempts left.
    Again(Outcome),
    /// It did not start. The task goes back to the queue, and the attempt does not count.
    Untouched,
}

/// Result of [`Store::finish`](super::Store::finish).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishResult {
    /// The result was stored, or the task went back to the queue.
    Recorded,
    /// Another worker has claimed the task, or it has ended. The result is only counted as late.
    Late,
    /// The store has no such task.
    Unknown,
}

/// Result of [`Store::cancel_task`](super::Store::cancel_task).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelResult {
    /// The task was cancelled.
    Done,
    /// The task is running, and its worker was told to stop.
    Requested,
    /// The task had already ended.
    TooLate(TaskState),
}

/// The error of a call whose process ended during it, and which must not run twice.
#[must_use]
pub fn interrupted() -> ToolError {
    ToolError::new(ErrorKind::Interrupted, "the process ended while the tool was running; the call may or may not have taken effect")
}
