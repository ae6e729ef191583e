//! Drives a run: applies its effects (requests to the model, calls, approval requests), and passes the results back as inputs.

mod approvals;
mod calls;
mod log;
mod model;
mod response_text;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use helve_core::store::RunState;
use helve_core::{
    ApprovalRequest, BoxFuture, CallContext, Caller, Decision, Deltas, DynModel, EndOfRun, Event, EventData, Grant, Observer, ToolCall,
};
use helve_tools::Toolkit;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::calls::{CallEnvironment, Calls};
pub(crate) use self::log::ClaimedRun;
use self::log::{COMMIT_DELAY, Log};
use self::model::ModelResponse;
use self::response_text::ResponseText;
use crate::agent::AgentState;
use crate::error::{AgentError, PausedRun};
use crate::run::{Answer, Effect, Input, Run};
use crate::stream::Outbox;

/// Maximum number of tool events that wait to be emitted.
const MAX_TOOL_EVENTS: usize = 1 << 14;
/// Number of waiting tool events above which new progress events are dropped.
const MAX_PROGRESS: usize = 256;

/// The driver of one run: performs its effects, and passes inputs to it.
pub(crate) struct Driver<'a> {
    agent: &'a mut AgentState,
    run: Run,
    effects: Vec<Effect>,
    spare: Vec<Effect>,
    /// Calls of a stored run that start after the next commit.
    starting: Vec<(ToolCall, Option<Grant>)>,
    log: Option<Log>,
    outbox: Option<Outbox>,
    calls: Calls,
    /// Approval requests that the approver is deciding.
    deciding: FuturesUnordered<BoxFuture<'static, (ApprovalRequest, Decision, String)>>,
    /// Approval requests without a decision: there is no approver, or the approver decides later.
    open: Vec<ApprovalRequest>,
    environment: CallEnvironment,
    tool_events: Option<mpsc::Receiver<EventData>>,
    cancel: CancellationToken,
    response_text: ResponseText,
    ask_model: bool,
    paused: bool,
    done: Option<Result<Answer, AgentError>>,
}

/// An observer that forwards the events of tools to the driver.
struct ToolObserver(mpsc::Sender<EventData>);

impl Observer for ToolObserver {
    fn observe(&self, event: EventData) {
        // Drop progress events rather than others, if a tool reports progress faster than the listener reads.
        let crowded = self.0.capacity() < MAX_TOOL_EVENTS - MAX_PROGRESS;
        if !(crowded && matches!(event, EventData::ToolProgress { .. })) {
            let _ = self.0.try_send(event);
        }
    }
}

impl<'a> Driver<'a> {
    pub(crate) fn new(agent: &'a mut AgentState, run: Run, outbox: Option<Outbox>, cancel: CancellationToken) -> Self {
        let mut caller = Caller::default().conversation(run.conversation()).run(run.id());
        (caller.agent, caller.user) = (agent.options.name.clone(), agent.user.clone());
        let mut cx = CallContext::new(caller).with_extensions(agent.extensions.clone());
        let mut tool_events = None;
        if outbox.is_some() {
            let (sender, receiver) = mpsc::channel(MAX_TOOL_EVENTS);
            cx = cx.with_observer(Arc::new(ToolObserver(sender)));
            tool_events = Some(receiver);
        }
        let cx = cx.with_cancel(cancel.child_token());
        let environment = CallEnvironment { executor: agent.executor.clone(), toolkit: Toolkit::default(), cx };
        let run = run.watched(outbox.is_some());
        Self {
            agent,
            run,
            effects: Vec::new(),
            spare: Vec::new(),
            starting: Vec::new(),
            log: None,
            outbox,
            calls: Calls::default(),
            deciding: FuturesUnordered::new(),
            open: Vec::new(),
            environment,
            tool_events,
            cancel,
            response_text: ResponseText::default(),
            ask_model: false,
            paused: false,
            done: None,
        }
    }

    /// Starts the run, and drives it to its end.
    pub(crate) async fn start(mut self) -> Result<Answer, AgentError> {
        if let Some(store) = self.agent.store.clone() {
            store.start_heartbeat().await?;
            let stored = self.agent.conversation.messages.len();
            self.log = Some(Log::new(store, &self.run, self.environment.executor.redactor(), stored, self.cancel.clone()));
            self.run = self.run.watched(true);
        }
        self.agent.accept_background_calls();
        self.handle(Input::Start);
        self.drive().await
    }

    /// Drives the run to its end: applies effects, then waits for the next input. This is one long function because a single `select!`
    /// must wait for everything that can happen.
    async fn drive(mut self) -> Result<Answer, AgentError> {
        let model: Arc<dyn DynModel> = self.agent.model.clone();
        let mut deadline = self.agent.options.limits.timeout.map(|limit| Instant::now() + limit);
        let (mut response, mut deltas) = (ModelResponse::Idle, Deltas::default());
        loop {
            self.apply();
            self.start_calls().await?;
            self.flush().await;
            if let Some(done) = self.done.take() {
                self.commit(state_of(&done)).await?;
                self.flush().await;
                self.agent.conversation.usage += self.run.usage();
                self.calls.detach();
                return done;
            }
            if std::mem::take(&mut self.ask_model) {
                self.add_background_results().await?;
                match self.request(&*model) {
                    Ok((request, reader)) => {
                        self.commit(RunState::Running).await?;
                        response = ModelResponse::Requested(model.ask(request), reader);
                    }
                    Err(error) => {
                        self.handle(Input::Failed(error));
                        continue;
                    }
                }
            }
            let only_people_left = self.calls.is_empty() && response.is_idle();
            if self.paused && self.deciding.is_empty() && only_people_left {
                if self.take_decisions().await? {
                    continue;
                }
                self.commit(RunState::Waiting).await?;
                self.flush().await;
                return Err(AgentError::Waiting(Box::new(PausedRun { run: self.run, requests: self.open })));
            }
            // The time that people need to decide does not count towards the time limit.
            let thinking = (!self.deciding.is_empty() && only_people_left).then(Instant::now);
            let commit_due = self.log.as_ref().is_some_and(Log::has_events);
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => {
                    response = ModelResponse::Idle;
                    self.handle(Input::Cancel);
                }
                () = or_pending(deadline.map(tokio::time::sleep_until)), if thinking.is_none() => {
                    response = ModelResponse::Idle;
                    self.handle(Input::Timeout);
                }
                Some(event) = or_pending(self.tool_events.as_mut().map(mpsc::Receiver::recv)) => self.emit(event),
                Some(state) = self.calls.next() => {
                    self.call_changed(state);
                    // Calls of one turn often end together.
                    while let Some(state) = self.calls.try_next() {
                        self.call_changed(state);
                    }
                }
                Some((request, decision, by)) = self.deciding.next(), if !self.deciding.is_empty() => {
                    let (grant, always) = self.record_decision(&request, decision, &by).await?;
                    self.decided(request, grant, always);
                }
                () = or_pending(commit_due.then(|| tokio::time::sleep(COMMIT_DELAY))) => self.commit(RunState::Running).await?,
                result = response.next(&mut deltas), if !response.is_idle() => {
                    self.model_progress(result, &mut response, &deltas);
                    if response.is_idle() {
                        // Free the memory: a response may be large, and the driver does not need it while tools run.
                        deltas = Deltas::default();
                    }
                }
            }
            if let (Some(deadline), Some(since)) = (&mut deadline, thinking) {
                *deadline += since.elapsed();
            }
        }
    }

    fn handle(&mut self, input: Input<'_>) {
        self.run.handle(input, &mut self.effects);
    }

    /// Applies the effects that do not wait.
    fn apply(&mut self) {
        while !self.effects.is_empty() {
            // Swap the two lists to reuse their memory.
            let mut effects = std::mem::replace(&mut self.effects, std::mem::take(&mut self.spare));
            for effect in effects.drain(..) {
                match effect {
                    Effect::AskModel => self.ask_model = true,
                    Effect::StartCall(call) => self.start_call(call, None),
                    Effect::CancelCalls => self.environment.cx.cancellation().cancel(),
                    Effect::RequestApproval(request) => self.request_approval(*request),
                    Effect::Emit(event) => self.emit(event),
                    Effect::Persist => self.persist(),
                    Effect::Pause => self.paused = true,
                    Effect::Done(result) => self.done = Some(result),
                }
            }
            self.spare = effects;
        }
    }

    /// Starts a call. In a stored run the call starts after the next commit.
    fn start_call(&mut self, call: ToolCall, grant: Option<Grant>) {
        match self.log {
            Some(_) => self.starting.push((call, grant)),
            None => self.calls.start(&self.environment, call, grant),
        }
    }

    /// Commits pending approval requests and the start of calls, then starts the calls.
    async fn start_calls(&mut self) -> Result<(), AgentError> {
        if !self.starting.is_empty() || self.log.as_ref().is_some_and(Log::has_requests) {
            self.commit(RunState::Running).await?;
            for (call, grant) in std::mem::take(&mut self.starting) {
                self.calls.start(&self.environment, call, grant);
            }
        }
        Ok(())
    }

    fn persist(&mut self) {
        let conversation = &mut self.agent.conversation;
        let known = conversation.messages.len();
        conversation.messages.extend_from_slice(self.run.messages().get(known..).unwrap_or_default());
        // Remember a strategy only if the run had to change to it.
        let strategy = self.run.strategy();
        if strategy != self.run.settings().strategy && self.agent.learned.replace(strategy) != Some(strategy) {
            let called = catch_unwind(AssertUnwindSafe(|| self.agent.on_strategy.iter().for_each(|notify| notify(strategy))));
            if called.is_err() {
                tracing::error!(%strategy, "the `on_strategy` hook panicked");
            }
        }
    }

    fn emit(&mut self, data: EventData) {
        if let Some(log) = &mut self.log
            && !data.is_piece()
        {
            return log.add(data);
        }
        let Some(outbox) = &self.outbox else { return };
        let seq = self.run.next_seq(&data);
        let (run_id, conversation_id) = (self.run.id(), Some(self.run.conversation()));
        outbox.push(Event { run_id, conversation_id, parent_run_id: None, seq, time: Timestamp::now(), data });
    }

    /// Waits until the listener has read all events.
    async fn flush(&mut self) {
        if let Some(outbox) = &self.outbox {
            outbox.flushed().await;
        }
    }
}

/// Returns the state to store for a run that has ended.
fn state_of(done: &Result<Answer, AgentError>) -> RunState {
    match done {
        Ok(_) => RunState::Done,
        Err(AgentError::Stopped { reason: EndOfRun::Cancelled, .. }) => RunState::Cancelled,
        Err(_) => RunState::Failed,
    }
}

/// Waits for the future, or forever if `future` is `None`.
async fn or_pending<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
