//! Runs that are recorded: where, and how one goes on that another process began.

use std::time::Duration;

use helve_core::store::{Approval, RunCommit, RunState, TakenRun, TaskFilter, TaskState};
use helve_core::{RunId, StoreError};
use helve_tools::StoreHandle;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::conversation::Conversation;
use crate::driver::{Driver, Taken};
use crate::error::AgentError;
use crate::run::{Answer, Effect, Input, Run};
use crate::stream::{Outbox, RunStream};

/// Interval between checks for results, where the store does not announce them.
const LOOK: Duration = Duration::from_secs(1);

impl Agent {
    /// The same agent, whose runs are recorded: they survive the process, and people can answer days later.
    ///
    /// Background calls go into the queue of the store. An agent with an executor of its own ([`Agent::new`]) also works on that queue
    /// while it lives; an agent that was given an executor leaves that to a [`Worker`](helve_tools::Worker).
    ///
    /// # Errors
    /// [`AgentError::OtherStore`] if the agent or its executor has another store: its runs and its background calls would be in
    /// two places.
    pub fn with_store(mut self, store: StoreHandle) -> Result<Self, AgentError> {
        let used = self.parts().executor.use_store(store.clone());
        used.map_err(|_| AgentError::OtherStore)?;
        self.parts().store = Some(store);
        Ok(self)
    }

    /// Where its runs are recorded.
    #[must_use]
    pub fn store(&self) -> Option<&StoreHandle> {
        self.own_store()
    }

    /// Goes on with a recorded run that nothing drives: one that waited for people, was dropped, or whose process ended.
    ///
    /// # Errors
    /// Where it cannot be taken, or why there is no answer.
    pub async fn resume_run(&mut self, run: RunId) -> Result<Answer, AgentError> {
        let cancel = CancellationToken::new();
        let (run, taken) = self.take(run, &cancel).await?;
        Driver::new(self.parts(), run, None, cancel).go_on(taken).await
    }

    /// The same, and tells what happens as it happens. What happened before is in the store.
    ///
    /// # Errors
    /// Where it cannot be taken.
    pub async fn resume_run_stream(&mut self, run: RunId) -> Result<RunStream<'_>, AgentError> {
        let (outbox, cancel) = (Outbox::new(self.parts().executor.redactor()), CancellationToken::new());
        let (run, taken) = self.take(run, &cancel).await?;
        let driver = Driver::new(self.parts(), run, Some(outbox.clone()), cancel.clone());
        Ok(RunStream::borrowed(driver.go_on(taken), outbox, cancel))
    }

    /// Answers to results of background calls that came since, as if someone had asked what came of them. Nothing where there are none.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn run_on_results(&mut self) -> Result<Option<Answer>, AgentError> {
        // An agent whose runs are not recorded has a queue in memory, from its first background call on.
        let Some(store) = self.executor().store().cloned() else { return Ok(None) };
        if store.inbox(self.conversation().id).await?.is_empty() {
            return Ok(None);
        }
        self.run(Vec::new()).await.map(Some)
    }

    /// Waits for results of background calls in this conversation, and answers to them. `None` if no call is under way.
    ///
    /// The agent works on the queue from now on, unless workers of its `Helve` do.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn results(&mut self) -> Result<Option<Answer>, AgentError> {
        let Some(store) = self.executor().store().cloned() else { return Ok(None) };
        let mut changes = store.changes();
        let filter = TaskFilter::default().conversation(self.conversation().id).limit(1);
        self.parts().work_on_queue();
        loop {
            // Looked at first: a call that ends in between has its result in the inbox.
            let queued = store.tasks(filter.clone().state(TaskState::Queued)).await?;
            let under_way = !queued.is_empty() || !store.tasks(filter.clone().state(TaskState::Running)).await?.is_empty();
            if let Some(answer) = self.run_on_results().await? {
                return Ok(Some(answer));
            }
            if !under_way {
                return Ok(None);
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// Goes on with a recorded conversation.
    ///
    /// # Errors
    /// Where there is none, or it cannot be read.
    pub async fn open_conversation(&mut self, id: helve_core::ConversationId) -> Result<(), AgentError> {
        let store = self.parts().store.clone().ok_or(AgentError::NoStore)?;
        let stored = store.conversation(id).await?.ok_or_else(|| StoreError::NotFound(format!("conversation {id}")))?;
        let parts = self.parts();
        parts.contexts.restore(stored.contexts);
        parts.conversation = Conversation { id, messages: stored.messages, allowed: stored.allowed, usage: stored.usage };
        Ok(())
    }

    pub(crate) async fn take(&mut self, id: RunId, cancel: &CancellationToken) -> Result<(Run, Taken), AgentError> {
        let store = self.parts().store.clone().ok_or(AgentError::NoStore)?;
        let (TakenRun { record: stored, snapshot }, hold) = store.take_run(id, cancel.clone()).await?;
        self.open_conversation(stored.conversation_id).await?;
        let snapshot = snapshot.ok_or_else(|| StoreError::Damaged(format!("nothing says how run {id} goes on")))?;
        let run = Run::restore(snapshot, self.conversation().messages.clone())?;
        // What the run cost is counted when it ends; the store has counted it already.
        self.parts().conversation.usage = self.parts().conversation.usage.without(run.usage());
        let asked = store.approvals(Some(id), false, usize::MAX).await?;
        let requests = asked.into_iter().map(|Approval { request, .. }| request).filter(|request| run.is_waiting(request.id)).collect();
        Ok((run, Taken { store, hold, epoch: stored.epoch, seq: stored.seq, requests }))
    }
}

/// Cancels a recorded run. Where a process drives it, that one is told and the state is `running`; else it ends here, and every
/// call in it is answered.
///
/// # Errors
/// Where there is none, or the store cannot be used.
pub async fn cancel_run(store: &StoreHandle, id: RunId) -> Result<RunState, StoreError> {
    let stored = store.cancel_run(id).await?;
    if stored.state.is_over() {
        return Ok(stored.state);
    }
    let (taken, mut hold) = match store.take_run(id, CancellationToken::new()).await {
        Ok(taken) => taken,
        Err(StoreError::Conflict(_)) => {
            store.stop_run(id);
            return Ok(RunState::Running);
        }
        Err(error) => return Err(error),
    };
    let conversation = store.conversation(stored.conversation_id).await?;
    let conversation = conversation.ok_or_else(|| StoreError::NotFound(format!("conversation {}", stored.conversation_id)))?;
    let snapshot = taken.snapshot.ok_or_else(|| StoreError::Damaged(format!("nothing says how run {id} goes on")))?;
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
        messages: run.messages().get(conversation.said..).unwrap_or_default().to_vec(),
        said: conversation.said,
        allowed: conversation.allowed,
        usage: conversation.usage,
        contexts: conversation.contexts,
        ..RunCommit::new(id, taken.record.epoch, RunState::Cancelled)
    };
    store.commit_run(commit).await?;
    hold.disarm();
    Ok(RunState::Cancelled)
}
