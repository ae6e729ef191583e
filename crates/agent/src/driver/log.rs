//! Stores a run: each step is one transaction, and the listener gets an event only after it is stored.
//!
//! A turn needs two commits: before the request to the model, and before its calls start. While calls run, events are committed
//! together after a short delay, and then sent to the listener.

use std::time::Duration;

use helve_core::store::{Approval, NewRun, RunCommit, RunState};
use helve_core::{ApprovalRequest, CallId, Event, EventData, Redactor, printable};
use helve_tools::{LeaseGuard, StoreHandle};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::Driver;
use crate::error::AgentError;
use crate::run::{Answer, Input, Run};

/// The name that is recorded as the decider if a person allowed the tool for the whole conversation.
pub(super) const ALWAYS: &str = "always";
/// Delay before events are committed, so that several events share a commit.
pub(super) const COMMIT_DELAY: Duration = Duration::from_millis(50);
/// Maximum length of the input that lists of runs show, in characters.
const MAX_INPUT: usize = 200;
/// Maximum number of events that are read from the store at once.
const PAGE: usize = 1000;

/// The changes of a run since its last commit, and the position of that commit.
pub(super) struct Log {
    pub(super) store: StoreHandle,
    epoch: u64,
    begin: Option<NewRun>,
    events: Vec<(Timestamp, EventData)>,
    /// Approval requests since the last commit.
    pub(super) requests: Vec<Approval>,
    /// Background calls whose results the run has read since the last commit.
    results: Vec<CallId>,
    /// The number of stored messages.
    stored_messages: usize,
    /// The sequence number of the last event that the listener got.
    last_seq: u64,
    lease: LeaseGuard,
}

/// A stored run that this process has claimed.
pub(crate) struct ClaimedRun {
    pub(crate) store: StoreHandle,
    pub(crate) lease: LeaseGuard,
    pub(crate) epoch: u64,
    pub(crate) seq: u64,
    pub(crate) requests: Vec<ApprovalRequest>,
}

impl Log {
    /// Creates the log of a new run. `stored` is the number of messages that are already stored.
    pub(super) fn new(store: StoreHandle, run: &Run, redactor: &Redactor, stored: usize, cancel: CancellationToken) -> Self {
        let (settings, input) = (run.settings(), run.input());
        // Redact before shortening: the redactor would not recognise half a secret.
        let input = redactor.clean(&input).map_or(input, Into::into);
        let begin = NewRun {
            id: run.id(),
            conversation: run.conversation(),
            parent: None,
            agent: settings.agent.clone(),
            model: settings.model.clone(),
            input: printable::shorten(&input, MAX_INPUT).into(),
            holder: store.holder(),
        };
        let lease = store.lease_run(run.id(), cancel);
        Self { begin: Some(begin), ..Self::resumed(store, lease, 1, stored, 0) }
    }

    /// Creates the log of a stored run.
    fn resumed(store: StoreHandle, lease: LeaseGuard, epoch: u64, stored_messages: usize, last_seq: u64) -> Self {
        Self { store, epoch, begin: None, events: Vec::new(), requests: Vec::new(), results: Vec::new(), stored_messages, last_seq, lease }
    }

    /// Returns whether there are approval requests that are not stored.
    pub(super) fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Returns whether there are events that are not stored.
    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub(super) fn add(&mut self, data: EventData) {
        // The store adds `PermissionResult` itself when it records a decision. A tool that is always allowed has no recorded decision.
        if !matches!(&data, EventData::PermissionResult { by, .. } if by != ALWAYS) {
            self.events.push((Timestamp::now(), data));
        }
    }
}

impl Driver<'_> {
    /// Resumes a stored run: applies decisions that were made in the meantime, and repeats interrupted calls that may be repeated.
    pub(crate) async fn recover(mut self, claimed: ClaimedRun) -> Result<Answer, AgentError> {
        let stored = self.agent.conversation.messages.len();
        self.log = Some(Log::resumed(claimed.store, claimed.lease, claimed.epoch, stored, claimed.seq));
        self.run = self.run.watched(true);
        self.run.set_seq(claimed.seq);
        self.agent.accept_background_calls();
        self.environment.toolkit = self.agent.toolkit()?;
        self.open = claimed.requests;
        self.handle(Input::Recover);
        self.paused = !self.open.is_empty();
        self.take_decisions().await?;
        self.drive().await
    }

    /// Commits everything since the last commit, and passes the events to the listener.
    pub(super) async fn commit(&mut self, state: RunState) -> Result<(), AgentError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let snapshot = if state.is_over() { None } else { Some(self.run.snapshot()?) };
        let messages = self.run.messages().get(log.stored_messages..).unwrap_or_default().to_vec();
        let count = messages.len();
        let events = std::mem::take(&mut log.events);
        let conversation = &self.agent.conversation;
        let mut usage = conversation.usage;
        usage += self.run.usage();
        let commit = RunCommit {
            run: self.run.id(),
            epoch: log.epoch,
            begin: log.begin.take(),
            state,
            snapshot,
            events: events.clone(),
            messages,
            message_count: log.stored_messages,
            approvals: log.requests.clone(),
            read: std::mem::take(&mut log.results),
            allowed: conversation.allowed.clone(),
            usage,
            contexts: self.agent.contexts.save(),
        };
        let store = log.store.clone();
        let before = store.commit_run(commit).await?;
        if state != RunState::Running {
            log.lease.disarm();
        }
        log.stored_messages += count;
        for approval in std::mem::take(&mut log.requests) {
            store.notify_request(&approval);
        }
        let known = std::mem::replace(&mut log.last_seq, before + events.len() as u64);
        if self.outbox.is_some() {
            self.push_others(&store, known, before).await?;
        }
        let (run_id, conversation_id) = (self.run.id(), Some(self.run.conversation()));
        for (index, (time, data)) in events.into_iter().enumerate() {
            let seq = before + 1 + index as u64;
            self.push(Event { run_id, conversation_id, parent_run_id: None, seq, time, data });
        }
        Ok(())
    }

    /// Passes the events that other processes added to the run to the listener.
    async fn push_others(&mut self, store: &StoreHandle, mut known: u64, before: u64) -> Result<(), AgentError> {
        while known < before {
            let page = store.events(self.run.id(), known, PAGE.min(usize::try_from(before - known).unwrap_or(PAGE))).await?;
            let Some(last) = page.last() else { break };
            known = last.seq;
            for event in page {
                self.push(event);
            }
        }
        Ok(())
    }

    fn push(&mut self, event: Event) {
        self.run.set_seq(event.seq);
        if let Some(outbox) = &self.outbox {
            outbox.push(event);
        }
    }

    /// Adds the results of background calls that have ended since the last request to the model.
    pub(super) async fn add_background_results(&mut self) -> Result<(), AgentError> {
        let Some(store) = self.environment.executor.store().cloned() else { return Ok(()) };
        let conversation = self.run.conversation();
        for task in store.inbox(conversation).await? {
            let Some(outcome) = task.outcome else { continue };
            self.agent.contexts.on_tool_call(&outcome);
            self.handle(Input::BackgroundResult { tool: task.tool, outcome });
            match &mut self.log {
                Some(log) => log.results.push(task.id),
                None => store.mark_read(task.id).await?,
            }
        }
        Ok(())
    }
}
