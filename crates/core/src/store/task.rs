//! A background call in the queue, and what can become of it.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::consent::Consent;
use crate::call::{Caller, ToolCall};
use crate::digest::Digest;
use crate::error::{ErrorKind, ToolError};
use crate::ids::{CallId, HolderId};
use crate::outcome::{Outcome, Status};

/// How much longer a task of the next lower priority waits. Old tasks pass new ones of a higher priority, so nobody starves.
pub const AGEING: Duration = Duration::from_secs(10);
/// How often a task is tried, where nobody says otherwise.
pub const MAX_ATTEMPTS: u32 = 3;
/// The longest pause between two tries, before lots are drawn.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, crate::Name)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// It waits for a worker.
    Queued,
    /// A worker has it.
    Running,
    /// It ended well.
    Done,
    /// The tool failed, or was interrupted.
    Failed,
    /// It was tried as often as it may.
    Dead,
    /// Someone cancelled it.
    Cancelled,
}

impl TaskState {
    /// Every state, once.
    pub const ALL: [Self; 6] = [Self::Queued, Self::Running, Self::Done, Self::Failed, Self::Dead, Self::Cancelled];

    /// Whether nothing more can become of it.
    #[must_use]
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

/// A call that shall run in the background.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// The exact call; the task has its id.
    pub call: ToolCall,
    /// The tool's name in the catalogue.
    pub tool: Arc<str>,
    /// How the tool is defined: only a worker with this definition may run it.
    pub definition: Digest,
    /// On whose behalf.
    pub caller: Caller,
    /// The tool sets through which the caller has the tool.
    pub sets: Arc<[Arc<str>]>,
    /// The consent of a person under which it is accepted; `None` where no approval was needed.
    pub consent: Option<Consent>,
    /// Whether it may run more than once.
    pub idempotent: bool,
    /// Higher goes first; 0 is usual.
    pub priority: i8,
    /// How long it waits at least.
    pub delay: Duration,
    /// How often it is tried.
    pub max_attempts: u32,
}

impl NewTask {
    /// A call that nobody hurries, tried as often as usual where it may run more than once. It may not, unless that is said.
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

/// Whether a task is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// It is in the queue now.
    New,
    /// It was accepted before.
    Known,
}

/// A background call in the queue.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Task {
    /// The call's id.
    pub id: CallId,
    /// The tool's name in the catalogue.
    pub tool: Arc<str>,
    /// How far it is.
    pub state: TaskState,
    /// The exact call.
    pub call: ToolCall,
    /// How the tool is defined.
    pub definition: Digest,
    /// On whose behalf.
    pub caller: Caller,
    /// The tool sets through which the caller had the tool.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub sets: Arc<[Arc<str>]>,
    /// The consent of a person under which it was accepted. Tasks of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<Consent>,
    /// Whether it may run more than once.
    pub idempotent: bool,
    /// Higher goes first.
    pub priority: i8,
    /// How often it was tried.
    pub attempts: u32,
    /// How often it may be tried.
    pub max_attempts: u32,
    /// Counts who had it; only the last one may say what came of it.
    pub epoch: u64,
    /// Who has it.
    pub holder: Option<HolderId>,
    /// How far the tool says it is.
    pub progress: Option<Progress>,
    /// Whether its worker shall stop.
    pub cancelling: bool,
    /// What came of it.
    pub outcome: Option<Outcome>,
    /// Results that came too late.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late: u32,
    /// Whether the conversation's agent was told.
    #[serde(default)]
    pub heard: bool,
    /// The task that it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<CallId>,
    /// When it was accepted.
    pub created: Timestamp,
    /// When it may begin.
    pub due: Timestamp,
    /// When something became of it last.
    pub updated: Timestamp,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// How far a tool says it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// From 0 to 1, where known.
    pub fraction: Option<f64>,
    /// A few words.
    pub message: String,
}

/// What a worker says of a task.
#[derive(Debug, Clone)]
pub struct Finish {
    /// The task.
    pub task: CallId,
    /// The epoch under which the worker got it.
    pub epoch: u64,
    /// What came of it.
    pub end: TaskEnd,
}

/// What came of one try.
#[derive(Debug, Clone)]
pub enum TaskEnd {
    /// The call has its outcome.
    Over(Outcome),
    /// It failed in a way that may pass: it is tried again where it may be.
    Again(Outcome),
    /// It was not begun, and goes back to the queue as if nobody had taken it.
    Untouched,
}

/// Whether a result counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    /// It is the result, or the task is in the queue again.
    Recorded,
    /// Somebody else has the task by now, or it has a result: this one is kept as late.
    Late,
    /// There is no such task.
    Unknown,
}

/// What became of the wish to cancel a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelling {
    /// It is cancelled.
    Done,
    /// Its worker is told.
    Told,
    /// It was over before.
    TooLate(TaskState),
}

impl Task {
    /// A task that was just accepted.
    #[must_use]
    pub fn new(task: NewTask, now: Timestamp) -> Self {
        Self {
            id: task.call.id,
            tool: task.tool,
            state: TaskState::Queued,
            call: task.call,
            definition: task.definition,
            caller: task.caller,
            sets: task.sets,
            consent: task.consent,
            idempotent: task.idempotent,
            priority: task.priority,
            attempts: 0,
            max_attempts: task.max_attempts.max(1),
            epoch: 0,
            holder: None,
            progress: None,
            cancelling: false,
            outcome: None,
            late: 0,
            heard: false,
            retry_of: None,
            created: now,
            due: later(now, task.delay),
            updated: now,
        }
    }

    /// Its place in the queue: smaller goes first. A step of priority is worth [`AGEING`].
    #[must_use]
    pub fn rank(&self) -> i64 {
        let step = i64::try_from(AGEING.as_millis()).unwrap_or(i64::MAX);
        self.due.as_millisecond().saturating_sub(i64::from(self.priority).saturating_mul(step))
    }

    /// A worker takes it.
    pub fn claim(&mut self, holder: HolderId, now: Timestamp) {
        self.state = TaskState::Running;
        self.holder = Some(holder);
        self.attempts += 1;
        self.epoch += 1;
        self.progress = None;
        self.updated = now;
    }

    /// A worker says what came of it. Says whether that counts; then the task is over, or in the queue again.
    pub fn finish(&mut self, epoch: u64, end: TaskEnd, now: Timestamp) -> Finished {
        if self.state != TaskState::Running || self.epoch != epoch {
            self.late += 1;
            return Finished::Late;
        }
        match end {
            TaskEnd::Over(outcome) => {
                let cancelled = outcome.error().is_some_and(|error| error.kind() == ErrorKind::Cancelled);
                let state = match (outcome.is_success(), cancelled) {
                    (true, _) => TaskState::Done,
                    (false, true) => TaskState::Cancelled,
                    (false, false) => TaskState::Failed,
                };
                self.end(state, outcome, now);
            }
            TaskEnd::Again(outcome) if self.cancelling || !self.idempotent => self.end(TaskState::Failed, outcome, now),
            TaskEnd::Again(outcome) if self.attempts >= self.max_attempts => self.end(TaskState::Dead, outcome, now),
            TaskEnd::Again(_) => self.queue(self.pause(), now),
            TaskEnd::Untouched => {
                self.attempts -= 1;
                self.queue(Duration::ZERO, now);
            }
        }
        Finished::Recorded
    }

    /// Its worker is gone.
    pub fn orphan(&mut self, now: Timestamp) {
        if self.cancelling {
            return self.end(TaskState::Cancelled, self.failed(ToolError::cancelled()), now);
        }
        if !self.idempotent {
            return self.end(TaskState::Failed, self.failed(interrupted()), now);
        }
        if self.attempts >= self.max_attempts {
            let error = ToolError::new(ErrorKind::Interrupted, format!("its worker ended {} times while the tool ran", self.attempts));
            return self.end(TaskState::Dead, self.failed(error), now);
        }
        self.queue(self.pause(), now);
    }

    /// Someone wants it cancelled.
    pub fn cancel(&mut self, now: Timestamp) -> Cancelling {
        match self.state {
            TaskState::Queued => {
                self.end(TaskState::Cancelled, self.failed(ToolError::cancelled()), now);
                Cancelling::Done
            }
            TaskState::Running => {
                self.cancelling = true;
                self.updated = now;
                Cancelling::Told
            }
            over => Cancelling::TooLate(over),
        }
    }

    /// The same call once more, under another id; nothing where it did not end badly. Whoever asks for that consents to it.
    #[must_use]
    pub fn again(&self, id: CallId, now: Timestamp) -> Option<Self> {
        if !matches!(self.state, TaskState::Failed | TaskState::Dead | TaskState::Cancelled) {
            return None;
        }
        let call = ToolCall { id, ..self.call.clone() };
        let task = NewTask {
            consent: Some(Consent::of_caller(&call, self.definition)),
            sets: self.sets.clone(),
            call,
            tool: self.tool.clone(),
            definition: self.definition,
            caller: self.caller.clone(),
            idempotent: self.idempotent,
            priority: self.priority,
            delay: Duration::ZERO,
            max_attempts: self.max_attempts,
        };
        Some(Self { retry_of: Some(self.id), ..Self::new(task, now) })
    }

    /// How long it waits for its next try: up to half as long again by lot. Tasks that a worker took down with it come back apart
    /// from each other, and from the one that did it.
    fn pause(&self) -> Duration {
        let pause = back_off(self.attempts);
        pause + pause * u32::from(self.id.lot()) / 512
    }

    fn queue(&mut self, pause: Duration, now: Timestamp) {
        self.state = TaskState::Queued;
        self.holder = None;
        self.progress = None;
        self.due = later(now, pause);
        self.updated = now;
    }

    fn end(&mut self, state: TaskState, outcome: Outcome, now: Timestamp) {
        self.state = state;
        self.holder = None;
        self.outcome = Some(outcome);
        self.updated = now;
    }

    fn failed(&self, error: ToolError) -> Outcome {
        Outcome { call_id: self.id, tool: self.tool.clone(), status: Status::Done(Err(error)), duration: Duration::ZERO }
    }
}

/// What a call is told whose process ended, and which must not run twice.
#[must_use]
pub fn interrupted() -> ToolError {
    ToolError::new(ErrorKind::Interrupted, "the process ended while the tool ran; whether it did its work is not known")
}

/// How long to wait after so many tries.
#[must_use]
pub fn back_off(attempts: u32) -> Duration {
    Duration::from_secs(2).saturating_mul(2u32.saturating_pow(attempts.saturating_sub(1))).min(LONGEST_PAUSE)
}

fn later(now: Timestamp, delay: Duration) -> Timestamp {
    SignedDuration::try_from(delay).ok().and_then(|delay| now.checked_add(delay).ok()).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_went_down_together_come_back_apart() {
        let now = Timestamp::UNIX_EPOCH;
        let lost = |_| {
            let new = NewTask::new(ToolCall::new("a", serde_json::json!({})), Digest::of([b"a".as_slice()]));
            let mut task = Task::new(NewTask { idempotent: true, ..new }, now);
            task.claim(HolderId::mint(), now);
            task.orphan(now);
            task.due.duration_since(now).as_millis()
        };
        let due: std::collections::BTreeSet<i128> = (0..64).map(lost).collect();
        assert!(due.len() > 16, "{due:?}");
        assert!(due.iter().all(|pause| (2000..3000).contains(pause)), "{due:?}");
    }
}
