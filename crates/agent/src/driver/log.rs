//! Writes a run down: each step is one transaction, and nobody is told of an event before it is recorded.
//!
//! A turn costs two commits: before the model is asked, and before its calls begin. What happens while calls take their
//! time is recorded and told shortly after.

use std::time::Duration;

use helve_core::store::{Approval, DecisionRecord, DecisionResult, NewRun, RunCommit, RunState};
use helve_core::{ApprovalRequest, CallId, Decision, Event, EventData, Grant, Redactor, StoreError, Verdict, printable};
use helve_tools::{Hold, StoreHandle};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::Driver;
use crate::error::AgentError;
use crate::run::{Input, Run};

/// Who answers for a tool that was allowed for the whole conversation.
pub(super) const ALWAYS: &str = "always";
/// How long an event waits for others that are recorded with it.
pub(super) const SOON: Duration = Duration::from_millis(50);
/// So much of the request is shown in lists.
const SHOWN: usize = 200;
/// So many events of others are read at once.
const PAGE: usize = 1000;

/// What is not written down yet.
pub(super) struct Log {
    store: StoreHandle,
    epoch: u64,
    begin: Option<NewRun>,
    events: Vec<(Timestamp, EventData)>,
    asked: Vec<Approval>,
    heard: Vec<CallId>,
    /// How much of what was said is written down.
    said: usize,
    /// The last event that listeners know.
    told: u64,
    hold: Hold,
}

impl Log {
    /// The log of a run that begins.
    pub(super) fn new(store: StoreHandle, run: &Run, redactor: &Redactor, said: usize, cancel: CancellationToken) -> Self {
        let (settings, input) = (run.settings(), run.input());
        // Half a secret could not be found any more.
        let input = redactor.clean(&input).map_or(input, Into::into);
        let begin = NewRun {
            id: run.id(),
            conversation: run.conversation(),
            parent: None,
            agent: settings.agent.clone(),
            model: settings.model.clone(),
            input: printable::shorten(&input, SHOWN).into(),
            holder: store.holder(),
        };
        let hold = store.hold_run(run.id(), cancel);
        Self { begin: Some(begin), ..Self::taken(store, hold, 1, said, 0) }
    }

    /// The log of a run that was written down before.
    pub(super) fn taken(store: StoreHandle, hold: Hold, epoch: u64, said: usize, told: u64) -> Self {
        Self { store, epoch, begin: None, events: Vec::new(), asked: Vec::new(), heard: Vec::new(), said, told, hold }
    }

    /// Whether people are asked something that is not written down.
    pub(super) fn asks(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Whether something waits to be told.
    pub(super) fn waits(&self) -> bool {
        !self.events.is_empty()
    }

    pub(super) fn add(&mut self, data: EventData) {
        // Whoever answers a request adds that in the same transaction; what was allowed before is answered by nobody.
        if !matches!(&data, EventData::PermissionResult { by, .. } if by != ALWAYS) {
            self.events.push((Timestamp::now(), data));
        }
    }
}

impl Driver<'_> {
    /// Writes down what happened since, and tells it.
    pub(super) async fn commit(&mut self, state: RunState) -> Result<(), AgentError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let snapshot = if state.is_over() { None } else { Some(self.run.snapshot()?) };
        let messages = self.run.messages().get(log.said..).unwrap_or_default().to_vec();
        let count = messages.len();
        let events = std::mem::take(&mut log.events);
        let conversation = &self.parts.conversation;
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
            said: log.said,
            asked: log.asked.clone(),
            heard: std::mem::take(&mut log.heard),
            allowed: conversation.allowed.clone(),
            usage,
            contexts: self.parts.contexts.save(),
        };
        let store = log.store.clone();
        let before = store.commit_run(commit).await?;
        if state != RunState::Running {
            log.hold.disarm();
        }
        log.said += count;
        for approval in std::mem::take(&mut log.asked) {
            store.asked(&approval);
        }
        let known = std::mem::replace(&mut log.told, before + events.len() as u64);
        if self.outbox.is_some() {
            self.tell_others(&store, known, before).await?;
        }
        let (run_id, conversation_id) = (self.run.id(), Some(self.run.conversation()));
        for (place, (time, data)) in events.into_iter().enumerate() {
            let seq = before + 1 + place as u64;
            self.push(Event { run_id, conversation_id, parent_run_id: None, seq, time, data });
        }
        Ok(())
    }

    /// Tells what others added to the run.
    async fn tell_others(&mut self, store: &StoreHandle, mut known: u64, before: u64) -> Result<(), AgentError> {
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
        self.run.number(event.seq);
        if let Some(outbox) = &self.outbox {
            outbox.push(event);
        }
    }

    /// Hears the results of background calls that came since.
    pub(super) async fn hear_results(&mut self) -> Result<(), AgentError> {
        let Some(store) = self.around.executor.store().cloned() else { return Ok(()) };
        let conversation = self.run.conversation();
        for task in store.inbox(conversation).await? {
            let Some(outcome) = task.outcome else { continue };
            self.parts.contexts.on_tool_call(&outcome);
            self.handle(Input::Result { tool: task.tool, outcome });
            match &mut self.log {
                Some(log) => log.heard.push(task.id),
                None => store.hear(task.id).await?,
            }
        }
        Ok(())
    }

    /// Writes a request down with the next commit.
    pub(super) fn record_request(&mut self, request: &ApprovalRequest) {
        if let Some(log) = &mut self.log
            && let Some(approval) = self.around.toolkit.approval(request.clone())
        {
            log.asked.push(approval);
        }
    }

    /// Records a person's answer. Returns the answer that counts, which may be an earlier one, and whether it also allows later calls.
    pub(super) async fn record_answer(
        &mut self,
        request: &ApprovalRequest,
        answer: Decision,
        by: &str,
    ) -> Result<(Option<Grant>, bool), AgentError> {
        if let Some(log) = &self.log {
            let store = log.store.inner().clone();
            let stored = match DecisionRecord::of(&answer, by) {
                Some(reply) => match store.decide(request.id, reply).await? {
                    DecisionResult::Accepted(approval) | DecisionResult::TooLate(approval) => Some(*approval),
                    DecisionResult::Unknown => None,
                },
                // Somebody else may have answered by now.
                None => store.approval(request.id).await?,
            };
            if let Some(approval) = stored
                && let Some(grant) = approval.grant()
            {
                return Ok((Some(grant), approval.is_always()));
            }
        }
        let always = answer == Decision::Always && request.input.is_none();
        let grant = request.grant(answer, by);
        let always = always && grant.as_ref().is_some_and(|grant| grant.verdict == Verdict::Approve);
        Ok((grant, always))
    }

    /// Takes answers that came from elsewhere. Says whether there were any.
    pub(super) async fn take_answers(&mut self) -> Result<bool, AgentError> {
        let Some(store) = self.log.as_ref().map(|log| log.store.clone()) else { return Ok(false) };
        let stored = store.approvals(Some(self.run.id()), false, usize::MAX).await?;
        let mut any = false;
        for approval in stored {
            let open = self.open.iter().position(|request| request.id == approval.request.id);
            if let (Some(place), Some(grant)) = (open, approval.grant()) {
                let request = self.open.swap_remove(place);
                self.answer(request, Some(grant), approval.is_always());
                any = true;
            }
        }
        Ok(any)
    }
}

impl From<StoreError> for AgentError {
    fn from(error: StoreError) -> Self {
        Self::Storage(error)
    }
}
