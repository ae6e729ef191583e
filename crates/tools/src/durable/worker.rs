//! Workers: background calls out of the queue, run like any others.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use helve_core::store::{Claim, Finish, FinishResult, Progress, RecoveryReport, Task, TaskEnd, interrupted};
use helve_core::{CallContext, CallId, Digest, ErrorKind, EventData, Observer, Outcome, StoreError, ToolError};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::catalogue::{Catalogue, Entry, Snapshot, View};
use crate::durable::StoreHandle;
use crate::executor::Executor;
use crate::toolkit::Member;

/// How often a worker looks for work that nobody told it of.
const LOOK: Duration = Duration::from_secs(1);
/// How often processes are looked for that are gone.
const RECOVER: Duration = Duration::from_secs(5);
/// How long a worker that ends still tries to store a result. Then the task's lease decides.
const PATIENCE: Duration = Duration::from_mins(5);

/// Runs background calls that its catalogue has tools for.
pub struct Worker {
    store: StoreHandle,
    executor: Executor,
    catalogue: Catalogue,
    concurrency: usize,
    calls_end_with_it: bool,
    running: JoinSet<()>,
    recovered: Option<Instant>,
    tools: Option<Tools>,
}

/// The tools of a snapshot by their definitions.
struct Tools {
    snapshot: Snapshot,
    entries: HashMap<Digest, Arc<Entry>>,
    known: Vec<Digest>,
}

impl Tools {
    fn of(snapshot: Snapshot) -> Self {
        let entries: HashMap<_, _> = snapshot.iter().map(|entry| (entry.digest(), entry.clone())).collect();
        Self { known: entries.keys().copied().collect(), entries, snapshot }
    }
}

impl Worker {
    /// A worker that runs so many calls at once.
    #[must_use]
    pub fn new(store: StoreHandle, executor: Executor, catalogue: Catalogue, concurrency: usize) -> Self {
        executor.keep_secrets_out_of(&store);
        let (concurrency, running) = (concurrency.max(1), JoinSet::new());
        Self { store, executor, catalogue, concurrency, calls_end_with_it: true, running, recovered: None, tools: None }
    }

    /// Lets calls that are under way come to their end when the worker is stopped.
    #[must_use]
    pub fn finishing_calls(mut self) -> Self {
        self.calls_end_with_it = false;
        self
    }

    /// Works until it is stopped. Calls that are under way are told to stop, unless it [finishes](Self::finishing_calls) them; they go
    /// back to the queue where they may run twice, and are interrupted where they may not.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut changes = self.store.changes();
        loop {
            if let Err(error) = self.take(&stop).await {
                tracing::warn!(%error, "no work can be taken now");
            }
            tokio::select! {
                () = stop.cancelled() => break,
                Some(_) = self.running.join_next() => {}
                Ok(()) = changes.changed() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
        while self.running.join_next().await.is_some() {}
    }

    /// Works until nothing is left that it could do. Says how many calls it ran.
    ///
    /// # Errors
    /// Where the store cannot be used.
    pub async fn run_until_empty(mut self, stop: CancellationToken) -> Result<usize, StoreError> {
        let mut count = 0;
        loop {
            count += self.take(&stop).await?;
            if self.running.join_next().await.is_none() || stop.is_cancelled() {
                break;
            }
        }
        while self.running.join_next().await.is_some() {}
        Ok(count)
    }

    /// Takes as much work as there is room for.
    async fn take(&mut self, stop: &CancellationToken) -> Result<usize, StoreError> {
        while self.running.try_join_next().is_some() {}
        self.store.begin().await?;
        self.recover().await?;
        let free = self.concurrency.saturating_sub(self.running.len());
        if free == 0 || stop.is_cancelled() {
            return Ok(0);
        }
        let snapshot = self.catalogue.snapshot(&View::default());
        if !self.tools.as_ref().is_some_and(|tools| tools.snapshot.is_same(&snapshot)) {
            self.tools = Some(Tools::of(snapshot));
        }
        let Some(tools) = &self.tools else { return Ok(0) };
        let claim = Claim { holder: self.store.holder(), limit: free, tools: Some(&tools.known) };
        let tasks = self.store.claim(claim).await?;
        let count = tasks.len();
        let end_of_calls = if self.calls_end_with_it { stop.clone() } else { CancellationToken::new() };
        for task in tasks {
            if let Some(entry) = tools.entries.get(&task.definition) {
                self.running.spawn(work(self.store.clone(), self.executor.clone(), entry.clone(), task, end_of_calls.clone()));
            }
        }
        Ok(count)
    }

    async fn recover(&mut self) -> Result<(), StoreError> {
        if self.recovered.is_some_and(|last| last.elapsed() < RECOVER) {
            return Ok(());
        }
        let found = self.store.recover(self.store.holder()).await?;
        self.recovered = Some(Instant::now());
        if found != RecoveryReport::default() {
            tracing::warn!(tasks = found.tasks, runs = found.runs, approvals = found.approvals, "taken over from processes that are gone");
        }
        Ok(())
    }
}

/// Runs one task and records what came of it.
async fn work(store: StoreHandle, executor: Executor, entry: Arc<Entry>, task: Task, stop: CancellationToken) {
    // Cancelled by someone, or stopped because the worker ends: not the same.
    let cancel = stop.child_token();
    let _hold = store.hold_task(task.id, cancel.clone());
    let observer = Arc::new(Ear { store: store.clone(), task: task.id });
    let cx = CallContext::new(task.caller.clone()).with_cancel(cancel).with_observer(observer);
    let member = Member { entry, sets: task.sets.clone() };
    // A panic here would leave the task running forever.
    let prepared = catch_unwind(AssertUnwindSafe(|| executor.prepare(&member, task.caller.agent.as_ref(), &task)));
    let outcome = match prepared {
        Ok(Ok(prepared)) => executor.attempt(prepared, &cx, false).await.into_outcome(),
        Ok(Err(outcome)) => *outcome,
        Err(_) => Outcome::failed(task.id, task.tool.clone(), ToolError::failed("the tool panicked before its call could begin")),
    };
    let is = |kind: ErrorKind| outcome.error().is_some_and(|error| error.kind() == kind);
    let end = match (stop.is_cancelled() && is(ErrorKind::Cancelled), task.idempotent) {
        (true, true) => TaskEnd::Untouched,
        (true, false) => TaskEnd::Over(Outcome::failed(task.id, task.tool.clone(), interrupted())),
        (false, true) if may_pass(&outcome) => TaskEnd::Again(outcome),
        _ => TaskEnd::Over(outcome),
    };
    keep(&store, &task.tool, &Finish { task: task.id, epoch: task.epoch, end }, &stop).await;
}

/// Records what came of a task, however long that takes.
pub(crate) async fn keep(store: &StoreHandle, tool: &str, finish: &Finish, stop: &CancellationToken) {
    let mut end = None;
    let mut pause = Duration::from_millis(100);
    loop {
        match store.finish(vec![finish.clone()]).await {
            Ok(said) if said == [FinishResult::Recorded] => return,
            Ok(_) => {
                tracing::warn!(task = %finish.task, tool, "the result came too late: somebody else has the task by now");
                return;
            }
            // As long as the process lives nobody else may take the task, so only it can bring it to an end.
            Err(error) if !stop.is_cancelled() || end.get_or_insert_with(Instant::now).elapsed() < PATIENCE => {
                tracing::warn!(task = %finish.task, %error, "the result is not recorded yet");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(10));
            }
            Err(error) => {
                tracing::error!(task = %finish.task, %error, "the result could not be recorded");
                return;
            }
        }
    }
}

fn may_pass(outcome: &Outcome) -> bool {
    outcome.error().is_some_and(ToolError::is_retryable)
}

/// Hears how far a task is.
struct Ear {
    store: StoreHandle,
    task: CallId,
}

impl Observer for Ear {
    fn observe(&self, event: EventData) {
        if let EventData::ToolProgress { fraction, message, .. } = event {
            self.store.progress(self.task, Progress { fraction, message });
        }
    }
}
