//! Drives a run: asks the model, runs the calls, asks people, and feeds what happens back into the run.

mod calls;
mod heard;
mod log;
mod model;

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

use self::calls::{Around, Calls};
use self::heard::Heard;
use self::log::{ALWAYS, Log, SOON};
use self::model::Work;
use crate::agent::Parts;
use crate::error::{AgentError, Paused};
use crate::run::{Answer, Effect, Input, Run};
use crate::stream::Outbox;

/// So much of what happens in calls waits to be told, and so much of it is progress.
const UNHEARD: usize = 1 << 14;
const UNHEARD_PROGRESS: usize = 256;

/// Drives one run to its end.
pub(crate) struct Driver<'a> {
    parts: &'a mut Parts,
    run: Run,
    effects: Vec<Effect>,
    spare: Vec<Effect>,
    /// Calls that begin when what led to them is recorded.
    starting: Vec<(ToolCall, Option<Grant>)>,
    log: Option<Log>,
    outbox: Option<Outbox>,
    calls: Calls,
    people: FuturesUnordered<BoxFuture<'static, (ApprovalRequest, Decision, String)>>,
    /// Questions that nobody answers now.
    open: Vec<ApprovalRequest>,
    around: Around,
    progress: Option<mpsc::Receiver<EventData>>,
    cancel: CancellationToken,
    heard: Heard,
    ask: bool,
    paused: bool,
    done: Option<Result<Answer, AgentError>>,
}

/// Hears what tools say while they work.
struct Ear(mpsc::Sender<EventData>);

impl Observer for Ear {
    fn observe(&self, event: EventData) {
        // Progress is a hint: a tool that tells faster than anybody listens is not heard out.
        let crowded = self.0.capacity() < UNHEARD - UNHEARD_PROGRESS;
        if !(crowded && matches!(event, EventData::ToolProgress { .. })) {
            let _ = self.0.try_send(event);
        }
    }
}

impl<'a> Driver<'a> {
    pub(crate) fn new(parts: &'a mut Parts, run: Run, outbox: Option<Outbox>, cancel: CancellationToken) -> Self {
        let mut caller = Caller::default().conversation(run.conversation()).run(run.id());
        (caller.agent, caller.user) = (parts.options.name.clone(), parts.user.clone());
        let mut cx = CallContext::new(caller).with_extensions(parts.extensions.clone());
        let mut progress = None;
        if outbox.is_some() {
            let (ear, heard) = mpsc::channel(UNHEARD);
            cx = cx.with_observer(Arc::new(Ear(ear)));
            progress = Some(heard);
        }
        let around = Around { executor: parts.executor.clone(), toolkit: Toolkit::default(), cx: cx.with_cancel(cancel.child_token()) };
        let run = run.watched(outbox.is_some());
        Self {
            parts,
            run,
            effects: Vec::new(),
            spare: Vec::new(),
            starting: Vec::new(),
            log: None,
            outbox,
            calls: Calls::default(),
            people: FuturesUnordered::new(),
            open: Vec::new(),
            around,
            progress,
            cancel,
            heard: Heard::default(),
            ask: false,
            paused: false,
            done: None,
        }
    }

    /// Begins the run, and drives it to its end.
    pub(crate) async fn begin(mut self) -> Result<Answer, AgentError> {
        if let Some(store) = self.parts.store.clone() {
            store.begin().await?;
            let said = self.parts.conversation.messages.len();
            self.log = Some(Log::new(store, &self.run, self.around.executor.redactor(), said, self.cancel.clone()));
            self.run = self.run.watched(true);
        }
        self.parts.accept_background_calls();
        self.handle(Input::Begin);
        self.drive().await
    }

    /// Goes on with a run that was recorded: answers that came meanwhile count, and calls that were under way begin again where
    /// they may.
    pub(crate) async fn go_on(mut self, taken: Taken) -> Result<Answer, AgentError> {
        let said = self.parts.conversation.messages.len();
        self.log = Some(Log::taken(taken.store, taken.hold, taken.epoch, said, taken.seq));
        self.run = self.run.watched(true);
        self.run.number(taken.seq);
        self.parts.accept_background_calls();
        self.around.toolkit = self.parts.toolkit()?;
        self.open = taken.requests;
        self.handle(Input::Recover);
        self.paused = !self.open.is_empty();
        self.take_answers().await?;
        self.drive().await
    }

    /// Goes on with a run that was paused.
    pub(crate) async fn resume(mut self, requests: Vec<ApprovalRequest>, answers: Vec<Grant>) -> Result<Answer, AgentError> {
        self.parts.accept_background_calls();
        self.around.toolkit = self.parts.toolkit()?;
        let mut answers = answers;
        for request in requests {
            let fits = |grant: &Grant| grant.approval_id == request.id && grant.digest == request.digest;
            match answers.iter().position(fits) {
                Some(place) => self.go_on_with(request, answers.swap_remove(place)),
                None => self.open.push(request),
            }
        }
        self.paused = true;
        self.drive().await
    }

    async fn drive(mut self) -> Result<Answer, AgentError> {
        let model: Arc<dyn DynModel> = self.parts.model.clone();
        let mut deadline = self.parts.options.limits.timeout.map(|limit| Instant::now() + limit);
        let (mut work, mut deltas) = (Work::Idle, Deltas::default());
        loop {
            self.apply();
            self.record().await?;
            if let Some(outbox) = &self.outbox {
                outbox.taken().await;
            }
            if let Some(done) = self.done.take() {
                self.commit(state_of(&done)).await?;
                if let Some(outbox) = &self.outbox {
                    outbox.taken().await;
                }
                self.parts.conversation.usage += self.run.usage();
                self.calls.let_go();
                return done;
            }
            if std::mem::take(&mut self.ask) {
                self.hear_results().await?;
                match self.request(&*model) {
                    Ok((request, reader)) => {
                        self.commit(RunState::Running).await?;
                        work = Work::Opening(model.ask(request), reader);
                    }
                    Err(error) => {
                        self.handle(Input::Failed(error));
                        continue;
                    }
                }
            }
            if self.paused && self.people.is_empty() && self.calls.is_empty() && matches!(work, Work::Idle) {
                if self.take_answers().await? {
                    continue;
                }
                self.commit(RunState::Waiting).await?;
                if let Some(outbox) = &self.outbox {
                    outbox.taken().await;
                }
                return Err(AgentError::Waiting(Box::new(Paused { run: self.run, requests: self.open })));
            }
            // The time that people take to think is not the run's.
            let thinking = (!self.people.is_empty() && self.calls.is_empty() && matches!(work, Work::Idle)).then(Instant::now);
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => {
                    work = Work::Idle;
                    self.handle(Input::Cancel);
                }
                () = sleep_until(deadline), if thinking.is_none() => {
                    work = Work::Idle;
                    self.handle(Input::TimeUp);
                }
                Some(event) = heard(&mut self.progress) => self.emit(event),
                Some(settled) = self.calls.next() => {
                    self.settled(settled);
                    // Calls of one turn often end together.
                    while let Some(settled) = self.calls.try_next() {
                        self.settled(settled);
                    }
                }
                Some((request, answer, by)) = self.people.next(), if !self.people.is_empty() => {
                    let (grant, always) = self.record_answer(&request, answer, &by).await?;
                    self.answer(request, grant, always);
                }
                () = soon(self.log.as_ref()) => self.commit(RunState::Running).await?,
                event = work.next(&mut deltas), if !matches!(work, Work::Idle) => {
                    self.model_event(event, &mut work, &deltas);
                    if matches!(work, Work::Idle) {
                        // A whole answer may be large, and is not needed while tools run.
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

    /// Does what can be done at once.
    fn apply(&mut self) {
        while !self.effects.is_empty() {
            // Two lists change places, so that their room is made once.
            let mut effects = std::mem::replace(&mut self.effects, std::mem::take(&mut self.spare));
            for effect in effects.drain(..) {
                match effect {
                    Effect::AskModel => self.ask = true,
                    Effect::StartCall(call) => self.start(call, None),
                    Effect::CancelCalls => self.around.cx.cancellation().cancel(),
                    Effect::AskPerson(request) => self.ask_person(*request),
                    Effect::Emit(event) => self.emit(event),
                    Effect::Persist => self.persist(),
                    Effect::Pause => self.paused = true,
                    Effect::Done(result) => self.done = Some(result),
                }
            }
            self.spare = effects;
        }
    }

    /// Records what happened before the calls that follow from it begin, and before people are asked.
    async fn record(&mut self) -> Result<(), AgentError> {
        if !self.starting.is_empty() || self.log.as_ref().is_some_and(Log::asks) {
            self.commit(RunState::Running).await?;
            for (call, grant) in std::mem::take(&mut self.starting) {
                self.calls.start(&self.around, call, grant);
            }
        }
        Ok(())
    }

    fn persist(&mut self) {
        let conversation = &mut self.parts.conversation;
        let known = conversation.messages.len();
        conversation.messages.extend_from_slice(self.run.messages().get(known..).unwrap_or_default());
        // What was chosen is no experience; what had to be changed is.
        let strategy = self.run.strategy();
        if strategy != self.run.settings().strategy && self.parts.learned.replace(strategy) != Some(strategy) {
            let told = catch_unwind(AssertUnwindSafe(|| self.parts.on_strategy.iter().for_each(|tell| tell(strategy))));
            if told.is_err() {
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
        let seq = self.run.place(&data);
        let (run_id, conversation_id) = (self.run.id(), Some(self.run.conversation()));
        outbox.push(Event { run_id, conversation_id, parent_run_id: None, seq, time: Timestamp::now(), data });
    }

    fn ask_person(&mut self, request: ApprovalRequest) {
        let allowed =
            self.around.toolkit.get(&request.call.tool).is_some_and(|entry| self.parts.conversation.allowed.contains(&entry.digest()));
        if allowed && request.input.is_none() {
            let grant = request.grant(Decision::Approve, ALWAYS);
            return self.answer(request, grant, false);
        }
        self.record_request(&request);
        match &self.parts.approver {
            Some(approver) => {
                let approver = approver.clone();
                self.people.push(Box::pin(async move {
                    let answer = helve_core::decide_safely(&*approver, &request).await;
                    (request, answer, approver.recorded_as())
                }));
            }
            None => self.open.push(request),
        }
    }

    /// Takes an answer; `None` if it comes later. One for always holds for the tool as it is now.
    fn answer(&mut self, request: ApprovalRequest, grant: Option<Grant>, always: bool) {
        if always && let Some(entry) = self.around.toolkit.get(&request.call.tool) {
            self.parts.conversation.allowed.insert(entry.digest());
        }
        match grant {
            Some(grant) => self.go_on_with(request, grant),
            None => self.open.push(request),
        }
    }

    /// Lets a call go on that was answered. An answer to a call that nobody waits for any more opens nothing.
    fn go_on_with(&mut self, request: ApprovalRequest, grant: Grant) {
        if !self.run.is_waiting(request.id) {
            return;
        }
        self.paused = false;
        self.handle(Input::Decided { approval: request.id, decision: grant.verdict, by: grant.by.clone() });
        self.start(request.call, Some(grant));
    }

    /// Starts a call; where the run is recorded, only after that it begins is recorded.
    fn start(&mut self, call: ToolCall, grant: Option<Grant>) {
        match self.log {
            Some(_) => self.starting.push((call, grant)),
            None => self.calls.start(&self.around, call, grant),
        }
    }
}

/// A recorded run that this process took.
pub(crate) struct Taken {
    pub(crate) store: helve_tools::StoreHandle,
    pub(crate) hold: helve_tools::Hold,
    pub(crate) epoch: u64,
    pub(crate) seq: u64,
    pub(crate) requests: Vec<ApprovalRequest>,
}

/// How a run that is over is recorded.
fn state_of(done: &Result<Answer, AgentError>) -> RunState {
    match done {
        Ok(_) => RunState::Done,
        Err(AgentError::Stopped { reason: EndOfRun::Cancelled, .. }) => RunState::Cancelled,
        Err(_) => RunState::Failed,
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Waits for a moment where something waits to be told, else for ever.
async fn soon(log: Option<&Log>) {
    match log {
        Some(log) if log.waits() => tokio::time::sleep(SOON).await,
        _ => std::future::pending().await,
    }
}

async fn heard(progress: &mut Option<mpsc::Receiver<EventData>>) -> Option<EventData> {
    match progress {
        Some(progress) => progress.recv().await,
        None => std::future::pending().await,
    }
}
