//! State changes of a task: claimed, finished, orphaned, cancelled, retried.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{AGEING, CancelResult, FinishResult, NewTask, Task, TaskEnd, TaskState, interrupted};
use crate::call::ToolCall;
use crate::error::{ErrorKind, ToolError};
use crate::ids::{CallId, HolderId};
use crate::outcome::Outcome;
use crate::store::Consent;

/// Delay before the second attempt, without jitter. The delay doubles with each further attempt.
const FIRST_DELAY: Duration = Duration::from_secs(2);
/// Maximum delay between two attempts, without jitter.
const LONGEST_DELAY: Duration = Duration::from_mins(5);

impl Task {
    /// Creates a queued task.
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
            read: false,
            retry_of: None,
            created: now,
            due: later(now, task.delay),
            updated: now,
        }
    }

    /// Returns the rank of the task in the queue: smaller runs first. Each step of priority is worth [`AGEING`].
    #[must_use]
    pub fn rank(&self) -> i64 {
        let step = i64::try_from(AGEING.as_millis()).unwrap_or(i64::MAX);
        self.due.as_millisecond().saturating_sub(i64::from(self.priority).saturating_mul(step))
    }

    /// Claims the task for a worker.
    pub fn claim(&mut self, holder: HolderId, now: Timestamp) {
        self.state = TaskState::Running;
        self.holder = Some(holder);
        self.attempts += 1;
        self.epoch += 1;
        self.progress = None;
        self.updated = now;
    }

    /// Ends an attempt: the task ends or goes back to the queue. A result from an outdated epoch is only counted as late.
    pub fn finish(&mut self, epoch: u64, end: TaskEnd, now: Timestamp) -> FinishResult {
        if self.state != TaskState::Running || self.epoch != epoch {
            self.late += 1;
            return FinishResult::Late;
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
            TaskEnd::Again(_) => self.queue(self.delay(), now),
            TaskEnd::Untouched => {
                self.attempts -= 1;
                self.queue(Duration::ZERO, now);
            }
        }
        FinishResult::Recorded
    }

    /// Handles the loss of the worker: puts the task back into the queue, or ends it.
    pub fn orphan(&mut self, now: Timestamp) {
        if self.cancelling {
            return self.end(TaskState::Cancelled, self.failed(ToolError::cancelled()), now);
        }
        if !self.idempotent {
            return self.end(TaskState::Failed, self.failed(interrupted()), now);
        }
        if self.attempts >= self.max_attempts {
            let error =
                ToolError::new(ErrorKind::Interrupted, format!("the worker ended {} times while the tool was running", self.attempts));
            return self.end(TaskState::Dead, self.failed(error), now);
        }
        self.queue(self.delay(), now);
    }

    /// Cancels a queued task. If the task is running, requests that its worker stop it.
    pub fn cancel(&mut self, now: Timestamp) -> CancelResult {
        match self.state {
            TaskState::Queued => {
                self.end(TaskState::Cancelled, self.failed(ToolError::cancelled()), now);
                CancelResult::Done
            }
            TaskState::Running => {
                self.cancelling = true;
                self.updated = now;
                CancelResult::Requested
            }
            over => CancelResult::TooLate(over),
        }
    }

    /// Returns a queued copy of the task under another id, with the consent of the person who retries it. Returns `None` unless the task
    /// failed or was cancelled.
    #[must_use]
    pub fn again(&self, id: CallId, now: Timestamp) -> Option<Self> {
        if !matches!(self.state, TaskState::Failed | TaskState::Dead | TaskState::Cancelled) {
            return None;
        }
        let call = ToolCall { id, ..self.call.clone() };
        let task = NewTask {
            consent: Some(Consent::of_caller(&call, self.definition)),
            sets: self.sets.clone(),
            tool: self.tool.clone(),
            caller: self.caller.clone(),
            idempotent: self.idempotent,
            priority: self.priority,
            max_attempts: self.max_attempts,
            ..NewTask::new(call, self.definition)
        };
        Some(Self { retry_of: Some(self.id), ..Self::new(task, now) })
    }

    /// Returns the delay before the next attempt. The jitter, up to half of the delay, comes from the id, so that tasks that were lost with
    /// one worker do not start again at the same time.
    fn delay(&self) -> Duration {
        let delay = FIRST_DELAY.saturating_mul(2u32.saturating_pow(self.attempts.saturating_sub(1))).min(LONGEST_DELAY);
        delay + delay * u32::from(self.id.jitter()) / 512
    }

    fn queue(&mut self, delay: Duration, now: Timestamp) {
        self.state = TaskState::Queued;
        self.holder = None;
        self.progress = None;
        self.due = later(now, delay);
        self.updated = now;
    }

    fn end(&mut self, state: TaskState, outcome: Outcome, now: Timestamp) {
        self.state = state;
        self.holder = None;
        self.outcome = Some(outcome);
        self.updated = now;
    }

    fn failed(&self, error: ToolError) -> Outcome {
        Outcome::failed(self.id, self.tool.clone(), error)
    }
}

fn later(now: Timestamp, delay: Duration) -> Timestamp {
    SignedDuration::try_from(delay).ok().and_then(|delay| now.checked_add(delay).ok()).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

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
        assert!(due.iter().all(|delay| (2000..3000).contains(delay)), "{due:?}");
    }
}
