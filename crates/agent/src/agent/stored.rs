//! Stored runs: sets the store of an agent, and resumes runs that another process started.

use std::time::Duration;

use helve_core::store::{Approval, RunCommit, RunState, TakenRun, TaskFilter, TaskState};
use helve_core::{RunId, StoreError};
use helve_tools::StoreHandle;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::Agent;
use crate::conversation::Conversation;
use crate::driver::{ClaimedRun, Driver};
use crate::error::AgentError;
use crate::run::{Answer, Effect, Input, Run};
use crate::stream::RunStream;

/// Interval between checks for background results, if the store does not notify about changes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

impl Agent {
    /// Sets the store of the agent's runs. Stored runs survive the process, and people can decide days later.
    ///
    /// Background calls go into the queue of the store. An agent with its own executor ([`Agent::new`]) also runs a worker for that queue
    /// until the agent is dropped. An agent with a shared executor needs a separate [`Worker`](helve_tools::Worker).
    ///
    /// # Errors
    /// Returns [`AgentError::OtherStore`] if the executor already has another store: runs and background calls must share one.
    pub fn with_store(mut self, store: StoreHandle) -> Result<Self, AgentError> {
        self.0.executor.use_store(store.clone()).map_err(|_| AgentError::OtherStore)?;
        self.0.store = Some(store);
        Ok(self)
    }

    /// Returns the store of the agent's runs, or `None` if they are not stored.
    #[must_use]
    pub fn store(&self) -> Option<&StoreHandle> {
        self.0.store.as_ref()
    }

    /// Resumes a stored run that no process drives: a run that is paused, was dropped, or whose process ended.
    ///
    /// # Errors
    /// Returns an error if the agent cannot claim the run, or there is no answer.
    pub async fn resume_run(&mut self, run: RunId) -> Result<Answer, AgentError> {
        let cancel = CancellationToken::new();
        let (run, claimed) = self.claim(run, &cancel).await?;
        Driver::new(&mut self.0, run, None, cancel).recover(claimed).await
    }

    /// Resumes a stored run like [`Self::resume_run`], and returns a stream of its new events. Earlier events are in the store.
    ///
    /// # Errors
    /// Returns an error if the agent cannot claim the run.
    pub async fn resume_run_stream(&mut self, run: RunId) -> Result<RunStream<'_>, AgentError> {
        let cancel = CancellationToken::new();
        let (run, claimed) = self.claim(run, &cancel).await?;
        Ok(self.stream(run, cancel, |driver| driver.recover(claimed)))
    }

    /// Starts a run with the background results that the agent has not seen yet. Returns `None` if there are none.
    ///
    /// # Errors
    /// Returns an error if there is no answer.
    pub async fn run_on_results(&mut self) -> Result<Option<Answer>, AgentError> {
        // This is not `self.store()`: an agent without a store has a queue in memory.
        let Some(store) = self.executor().store().cloned() else { return Ok(None) };
        if store.inbox(self.conversation().id).await?.is_empty() {
            return Ok(None);
        }
        self.run(Vec::new()).await.map(Some)
    }

    /// Waits for a result of a background call in this conversation, and starts a run with it. Returns `None` if no background call is
    /// queued or running.
    ///
    /// Starts a worker for the queue, unless the agent or its `Helve` has one.
    ///
    /// # Errors
    /// Returns an error if there is no answer.
    pub async fn results(&mut self) -> Result<Option<Answer>, AgentError> {
        let Some(store) = self.executor().store().cloned() else { return Ok(None) };
        let mut changes = store.changes();
        let filter = TaskFilter::default().conversation(self.conversation().id).limit(1);
        self.0.start_worker();
        loop {
            // Check the tasks before the inbox: if a call ends in between, its result is in the inbox.
            let queued = store.tasks(filter.clone().state(TaskState::Queued)).await?;
            let is_running = !queued.is_empty() || !store.tasks(filter.clone().state(TaskState::Running)).await?.is_empty();
            if let Some(answer) = self.run_on_results().await? {
                return Ok(Some(answer));
            }
            if !is_running {
                return Ok(None);
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        }
    }

    /// Loads a stored conversation, which replaces the current one.
    ///
    /// # Errors
    /// Returns an error if the agent has no store, or the conversation does not exist or cannot be loaded.
    pub async fn open_conversation(&mut self, id: helve_core::ConversationId) -> Result<(), AgentError> {
        let store = self.0.store.clone().ok_or(AgentError::NoStore)?;
        let stored = store.conversation(id).await?.ok_or_else(|| StoreError::NotFound(format!("conversation {id}")))?;
        self.0.contexts.restore(stored.contexts);
        self.0.conversation = Conversation { id, messages: stored.messages, allowed: stored.allowed, usage: stored.usage };
        Ok(())
    }

    pub(super) async fn claim(&mut self, id: RunId, cancel: &CancellationToken) -> Result<(Run, ClaimedRun), AgentError> {
        let store = self.0.store.clone().ok_or(AgentError::NoStore)?;
        let (TakenRun { record: stored, snapshot }, lease) = store.claim_run(id, cancel.clone()).await?;
        self.open_conversation(stored.conversation_id).await?;
        let run = Run::restore(snapshot.ok_or_else(|| no_snapshot(id))?, self.conversation().messages.clone())?;
        // The usage of the run is added when it ends, and the stored conversation already includes it.
        self.0.conversation.usage = self.0.conversation.usage.without(run.usage());
        let approvals = store.approvals(Some(id), false, usize::MAX).await?;
        let requests = approvals.into_iter().map(|Approval { request, .. }| request).filter(|request| run.is_waiting(request.id)).collect();
        Ok((run, ClaimedRun { store, lease, epoch: stored.epoch, seq: stored.seq, requests }))
    }
}

/// Cancels a stored run, and returns its state. If a process drives the run, this function notifies that process and returns
/// [`RunState::Running`]. Otherwise the run ends at once, and its unfinished calls end as cancelled.
///
/// # Errors
/// Returns an error if the run does not exist, or the store fails.
pub async fn cancel_run(store: &StoreHandle, id: RunId) -> Result<RunState, StoreError> {
    let stored = store.cancel_run(id).await?;
    if stored.state.is_over() {
        return Ok(stored.state);
    }
    let (taken, mut lease) = match store.claim_run(id, CancellationToken::new()).await {
        Ok(taken) => taken,
        Err(StoreError::Conflict(_)) => {
            store.stop_run(id);
            return Ok(RunState::Running);
        }
        Err(error) => return Err(error),
    };
    let conversation = store.conversation(stored.conversation_id).await?;
    let conversation = conversation.ok_or_else(|| StoreError::NotFound(format!("conversation {}", stored.conversation_id)))?;
    let snapshot = taken.snapshot.ok_or_else(|| no_snapshot(id))?;
    let run = Run::restore(snapshot, conversation.messages).map_err(|error| StoreError::Damaged(error.to_string()))?;
    let mut run = run.watched(true);
    let mut effects = Vec::new();
    run.handle(Input::Cancel, &mut effects);
    let emitted = effects.into_iter().filter_map(|effect| match effect {
        Effect::Emit(data) => Some((Timestamp::now(), data)),
        _ => None,
    });
    let commit = RunCommit {
        events: emitted.collect(),
        messages: run.messages().get(conversation.message_count..).unwrap_or_default().to_vec(),
        message_count: conversation.message_count,
        allowed: conversation.allowed,
        usage: conversation.usage,
        contexts: conversation.contexts,
        ..RunCommit::new(id, taken.record.epoch, RunState::Cancelled)
    };
    store.commit_run(commit).await?;
    lease.disarm();
    Ok(RunState::Cancelled)
}

fn no_snapshot(run: RunId) -> StoreError {
    StoreError::Damaged(format!("run {run} has no snapshot to resume from"))
}
