//! Tasks: background calls in the queue. The state changes are in `transitions.rs`.

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

/// The head start in the queue that each step of priority gives a task. Older tasks of a lower priority run eventually, so no task starves.
pub const AGEING: Duration = Duration::from_secs(10);
/// The default of [`NewTask::max_attempts`].
pub const MAX_ATTEMPTS: u32 = 3;

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, crate::Name)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// The task waits for a worker.
    Queued,
    /// A worker has claimed the task.
    Running,
    /// The task succeeded.
    Done,
    /// The task failed or was interrupted.
    Failed,
    /// Every attempt of the task failed.
    Dead,
    /// The task was cancelled.
    Cancelled,
}

impl TaskState {
    /// All states.
    pub const ALL: [Self; 6] = [Self::Queued, Self::Running, Self::Done, Self::Failed, Self::Dead, Self::Cancelled];

    /// Returns whether the task has ended.
    #[must_use]
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

/// A call to put into the queue.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// The call exactly as it will run. The task gets the id of the call.
    pub call: ToolCall,
    /// The tool's name in the catalogue.
    pub tool: Arc<str>,
    /// Digest of the tool's definition. Only a worker with the same definition may run the call.
    pub definition: Digest,
    /// The caller that made the call.
    pub caller: Caller,
    /// The tool sets that give the caller the tool.
    pub sets: Arc<[Arc<str>]>,
    /// A person's consent; `None` if the call needed no approval.
    pub consent: Option<Consent>,
    /// Whether the call may run more than once.
    pub idempotent: bool,
    /// Priority in the queue: higher runs first. By default 0.
    pub priority: i8,
    /// Minimum time in the queue.
    pub delay: Duration,
    /// Maximum number of attempts.
    pub max_attempts: u32,
}

impl NewTask {
    /// Creates a task with default priority that is not idempotent, so that it runs at most once.
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

/// The result of [`Store::accept`](super::Store::accept).
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
    /// The id of the call, which is also the id of the task.
    pub id: CallId,
    /// The tool's name in the catalogue.
    pub tool: Arc<str>,
    /// The state of the task.
    pub state: TaskState,
    /// The call exactly as it will run.
    pub call: ToolCall,
    /// Digest of the tool's definition. Only a worker with the same definition may run the call.
    pub definition: Digest,
    /// The caller that made the call.
    pub caller: Caller,
    /// The tool sets that gave the caller the tool.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub sets: Arc<[Arc<str>]>,
    /// A person's consent to the call, if there is one. Tasks stored by earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<Consent>,
    /// Whether the call may run more than once.
    pub idempotent: bool,
    /// Priority in the queue: higher runs first.
    pub priority: i8,
    /// Number of attempts so far.
    pub attempts: u32,
    /// Maximum number of attempts.
    pub max_attempts: u32,
    /// Fencing token, which grows with each claim. Only the worker with the latest epoch can finish the task.
    pub epoch: u64,
    /// The process that runs the task.
    pub holder: Option<HolderId>,
    /// The latest progress that the tool reported.
    pub progress: Option<Progress>,
    /// Whether the worker must stop the task.
    pub cancelling: bool,
    /// The outcome of the call, if the task has ended.
    pub outcome: Option<Outcome>,
    /// Number of results that arrived too late.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late: u32,
    /// Whether the agent of the conversation has read the result.
    #[serde(default, rename = "heard")]
    pub read: bool,
    /// The task that this task retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<CallId>,
    /// When the task was put into the queue.
    pub created: Timestamp,
    /// When the task can start at the earliest.
    pub due: Timestamp,
    /// When the state of the task last changed.
    pub updated: Timestamp,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Progress that a tool reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Progress from 0 to 1, if known.
    pub fraction: Option<f64>,
    /// A short message about the progress.
    pub message: String,
}

/// A worker's report that an attempt has ended.
#[derive(Debug, Clone)]
pub struct Finish {
    /// The id of the task.
    pub task: CallId,
    /// The epoch under which the worker claimed the task.
    pub epoch: u64,
    /// How the attempt ended.
    pub end: TaskEnd,
}

/// How an attempt ended.
#[derive(Debug, Clone)]
pub enum TaskEnd {
    /// The call has an outcome.
    Over(Outcome),
    /// The attempt failed with a transient error. The task is retried if it is idempotent and has attempts left.
    Again(Outcome),
    /// The attempt did not start. The task goes back to the queue, and the attempt does not count.
    Untouched,
}

/// The result of [`Store::finish`](super::Store::finish).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishResult {
    /// The outcome was stored, or the task went back to the queue.
    Recorded,
    /// Another worker has claimed the task, or the task has ended. The result is only counted as late.
    Late,
    /// The store has no task with this id.
    Unknown,
}

/// The result of [`Store::cancel_task`](super::Store::cancel_task).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelResult {
    /// The task was cancelled.
    Done,
    /// The task is running, and its worker will be asked to stop it.
    Requested,
    /// The task had already ended.
    TooLate(TaskState),
}

/// Returns the error of a call that must not run twice and whose process ended while it ran.
#[must_use]
pub fn interrupted() -> ToolError {
    ToolError::new(ErrorKind::Interrupted, "the process ended while the tool was running; the call may or may not have taken effect")
}
