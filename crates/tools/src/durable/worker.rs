//! Workers, which run background calls from the queue.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use helve_core::store::{Claim, Finish, FinishResult, Progress, RecoveryReport, Task, TaskEnd, interrupted};
use helve_core::{Backoff, CallContext, CallId, Digest, ErrorKind, EventData, Observer, Outcome, StoreError, ToolError};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::catalogue::{Catalogue, Entry, Snapshot, View};
use crate::durable::StoreHandle;
use crate::executor::Executor;
use crate::toolkit::Member;

/// Interval between checks for tasks, if the store does not announce changes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Interval between checks for dead processes.
const RECOVERY_INTERVAL: Duration = Duration::from_secs(5);
/// How long a stopped worker keeps trying to record a result. After that, its lease expires.
const RECORD_TIMEOUT: Duration = Duration::from_mins(5);
/// First delay between attempts to record a result.
const FIRST_DELAY: Duration = Duration::from_millis(100);
/// Maximum delay between attempts to record a result.
const LONGEST_DELAY: Duration = Duration::from_secs(10);

/// Runs the background calls to the tools in its catalogue.
pub struct Worker {
    store: StoreHandle,
    executor: Executor,
    catalogue: Catalogue,
    concurrency: usize,
    finishes_calls: bool,
    running: JoinSet<()>,
    last_recovery: Option<Instant>,
    tools: Option<ToolsByDigest>,
}

/// The tools of a snapshot, by the digests of their definitions.
struct ToolsByDigest {
    snapshot: Snapshot,
    entries: HashMap<Digest, Arc<Entry>>,
    digests: Vec<Digest>,
}

impl ToolsByDigest {
    fn new(snapshot: Snapshot) -> Self {
        let entries: HashMap<_, _> = snapshot.iter().map(|entry| (entry.digest(), entry.clone())).collect();
        Self { digests: entries.keys().copied().collect(), entries, snapshot }
    }
}

impl Worker {
    /// Creates a worker that runs at most `concurrency` calls at once.
    #[must_use]
    pub fn new(store: StoreHandle, executor: Executor, catalogue: Catalogue, concurrency: usize) -> Self {
        executor.keep_secrets_out_of(&store);
        let (concurrency, running) = (concurrency.max(1), JoinSet::new());
        Self { store, executor, catalogue, concurrency, finishes_calls: false, running, last_recovery: None, tools: None }
    }

    /// Makes the worker finish its running calls when it is stopped.
    #[must_use]
    pub fn finishing_calls(mut self) -> Self {
        self.finishes_calls = true;
        self
    }

    /// Runs until `stop` is cancelled. Then running calls are cancelled, unless the worker [finishes](Self::finishing_calls) them:
    /// idempotent calls go back to the queue, all others end as interrupted.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut changes = self.store.changes();
        loop {
            if let Err(error) = self.claim(&stop).await {
                tracing::warn!(%error, "cannot claim tasks");
            }
            tokio::select! {
                () = stop.cancelled() => break,
                Some(_) = self.running.join_next() => {}
                Ok(()) = changes.changed() => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        }
        while self.running.join_next().await.is_some() {}
    }

    /// Runs until the queue has no more tasks for this worker. Returns the number of calls that it ran.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub async fn run_until_empty(mut self, stop: CancellationToken) -> Result<usize, StoreError> {
        let mut count = 0;
        loop {
            count += self.claim(&stop).await?;
            if self.running.join_next().await.is_none() || stop.is_cancelled() {
                break;
            }
        }
        while self.running.join_next().await.is_some() {}
        Ok(count)
    }

    /// Claims as many tasks as the worker can run now. Returns their number.
    async fn claim(&mut self, stop: &CancellationToken) -> Result<usize, StoreError> {
        while self.running.try_join_next().is_some() {}
        self.store.start_heartbeat().await?;
        self.recover().await?;
        let free = self.concurrency.saturating_sub(self.running.len());
        if free == 0 || stop.is_cancelled() {
            return Ok(0);
        }
        let snapshot = self.catalogue.snapshot(&View::default());
        if !self.tools.as_ref().is_some_and(|tools| tools.snapshot.is_same(&snapshot)) {
            self.tools = Some(ToolsByDigest::new(snapshot));
        }
        let Some(tools) = &self.tools else { return Ok(0) };
        let claim = Claim { holder: self.store.holder(), limit: free, tools: Some(&tools.digests) };
        let tasks = self.store.claim(claim).await?;
        let count = tasks.len();
        let stop_calls = if self.finishes_calls { CancellationToken::new() } else { stop.clone() };
        for task in tasks {
            if let Some(entry) = tools.entries.get(&task.definition) {
                self.running.spawn(run(self.store.clone(), self.executor.clone(), entry.clone(), task, stop_calls.clone()));
            }
        }
        Ok(count)
    }

    async fn recover(&mut self) -> Result<(), StoreError> {
        if self.last_recovery.is_some_and(|last| last.elapsed() < RECOVERY_INTERVAL) {
            return Ok(());
        }
        let found = self.store.recover(self.store.holder()).await?;
        self.last_recovery = Some(Instant::now());
        if found != RecoveryReport::default() {
            tracing::warn!(tasks = found.tasks, runs = found.runs, approvals = found.approvals, "took over work from dead processes");
        }
        Ok(())
    }
}

/// Runs one task and records its outcome.
async fn run(store: StoreHandle, executor: Executor, entry: Arc<Entry>, task: Task, stop: CancellationToken) {
    // `cancel` is separate from `stop`, because cancelling the task and stopping the worker end it differently; see `end` below.
    let cancel = stop.child_token();
    let _lease = store.lease_task(task.id, cancel.clone());
    let observer = Arc::new(ProgressObserver { store: store.clone(), task: task.id });
    let cx = CallContext::new(task.caller.clone()).with_cancel(cancel).with_observer(observer);
    let member = Member { entry, sets: task.sets.clone() };
    // Without this, a panic would leave the task running forever.
    let prepared = catch_unwind(AssertUnwindSafe(|| executor.prepare(&member, task.caller.agent.as_ref(), &task)));
    let outcome = match prepared {
        Ok(Ok(prepared)) => executor.attempt(prepared, &cx, false).await.into_outcome(),
        Ok(Err(outcome)) => *outcome,
        Err(_) => Outcome::failed(
            task.id,
            task.tool.clone(),
            ToolError::failed("the tool panicked while its call was being prepared; it did not run"),
        ),
    };
    let is = |kind: ErrorKind| outcome.error().is_some_and(|error| error.kind() == kind);
    let end = match (stop.is_cancelled() && is(ErrorKind::Cancelled), task.idempotent) {
        (true, true) => TaskEnd::Untouched,
        (true, false) => TaskEnd::Over(Outcome::failed(task.id, task.tool.clone(), interrupted())),
        (false, true) if outcome.error().is_some_and(ToolError::is_retryable) => TaskEnd::Again(outcome),
        _ => TaskEnd::Over(outcome),
    };
    record(&store, &task.tool, &Finish { task: task.id, epoch: task.epoch, end }, &stop).await;
}

/// Records how a task ended. Retries until the store accepts the result, or the worker is stopped and [`RECORD_TIMEOUT`] has passed.
pub(crate) async fn record(store: &StoreHandle, tool: &str, finish: &Finish, stop: &CancellationToken) {
    let mut stopped = None;
    let mut backoff = Backoff::new(FIRST_DELAY, LONGEST_DELAY);
    loop {
        match store.finish(vec![finish.clone()]).await {
            Ok(results) if results == [FinishResult::Recorded] => return,
            Ok(_) => {
                tracing::warn!(task = %finish.task, tool, "the result came too late: the task has ended or another process has claimed it");
                return;
            }
            // While this process lives, no other process may claim the task, so only this process can end it.
            Err(error) if !stop.is_cancelled() || stopped.get_or_insert_with(Instant::now).elapsed() < RECORD_TIMEOUT => {
                tracing::warn!(task = %finish.task, %error, "could not record the result; retrying");
                tokio::time::sleep(backoff.delay()).await;
            }
            Err(error) => {
                tracing::error!(task = %finish.task, %error, "could not record the result");
                return;
            }
        }
    }
}

/// Passes the progress of a task to the heartbeat.
struct ProgressObserver {
    store: StoreHandle,
    task: CallId,
}

impl Observer for ProgressObserver {
    fn observe(&self, event: EventData) {
        if let EventData::ToolProgress { fraction, message, .. } = event {
            self.store.set_progress(self.task, Progress { fraction, message });
        }
    }
}
