//! One call of a client, to its end: approvals, input, and tasks that the client polls.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use helve_core::{ApprovalRequest, CallContext, CallId, CancellationToken, ErrorKind, Grant, Outcome, Status, ToolCall, ToolError};
use helve_mcp::server::ClientRequest;
use helve_mcp::{Passage, content};
use helve_mcp_wire::{Era, InputRequired, InputResponses, RpcError};
use helve_tools::{ApprovedCall, CallState, Entry, Toolkit};
use serde_json::{Value, json};

use super::present::{ProgressReporter, internal, present};
use super::tasks::{self, Task};
use super::waiting_calls::{WaitingCall, call_digest};
use super::{Service, elicitation};

/// Interval between progress notifications while a call waits.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// One call of a client.
pub(super) struct ClientCall {
    pub(super) service: Arc<Service>,
    pub(super) toolkit: Toolkit,
    pub(super) entry: Arc<Entry>,
    pub(super) request: ClientRequest,
    /// The client's responses to an earlier request for input.
    pub(super) input: InputResponses,
    /// Cancels the call.
    pub(super) cancel: CancellationToken,
    pub(super) progress: Option<Arc<ProgressReporter>>,
    pub(super) cx: CallContext,
    /// The call in the store, if a person approved it and it is not over.
    pub(super) held: Option<Box<ApprovedCall>>,
    /// The task that the client polls, if there is one.
    pub(super) task: Option<Arc<Task>>,
}

/// What is done with a call next.
pub(super) enum NextMove {
    /// It is made.
    Make(ToolCall),
    /// Its tool gets the input that it asked for.
    GiveInput(Box<(ApprovalRequest, Grant)>),
    /// It was approved, and is made again with the input that the server behind it asked for.
    MakeAgain(Box<ApprovedCall>),
}

/// How far a call has come.
enum CallProgress {
    /// It is over.
    Over(Result<Value, RpcError>),
    /// It needs input from the client.
    NeedsInput(InputRequired, WaitingCall),
}

impl ClientCall {
    /// Runs the call as far as it comes. A client that disconnects cancels it.
    pub(super) async fn run(self, next: NextMove) -> Result<Value, RpcError> {
        let (cancel, gone) = (self.cancel.clone(), self.request.cancel.clone());
        let mut response = pin!(self.respond(next));
        tokio::select! {
            response = &mut response => return response,
            () = gone.cancelled() => cancel.cancel(),
        }
        response.await
    }

    /// The response to the client. One that polls tasks does not wait for a person, nor for a call in the background.
    async fn respond(mut self, next: NextMove) -> Result<Value, RpcError> {
        let state = self.advance(next).await;
        if let Some((call, task)) = self.task_for(&state) {
            self.cx = self.cx.with_observer(task.clone());
            self.task = Some(task.clone());
            let created = task.created(call);
            tokio::spawn(self.drive(state, task));
            return Ok(created);
        }
        let mut progress = match state {
            // As for almost every call, there is nothing left to wait for.
            CallState::Over(outcome) if self.held.is_none() && matches!(outcome.status, Status::Done(Ok(_))) => return present(outcome),
            state => self.settle(state).await,
        };
        loop {
            progress = match progress {
                CallProgress::Over(result) => return result,
                CallProgress::NeedsInput(_, WaitingCall::Input { request, held }) if self.request.from.era == Era::Legacy => {
                    self.held = held;
                    let grant = elicitation::ask(&request, &self.request.from).await;
                    if self.request.cancel.is_cancelled() {
                        // The tool gets no response, and forgets the call.
                        self.cancel.cancel();
                    }
                    let state = self.advance(NextMove::GiveInput(Box::new((*request, grant)))).await;
                    self.settle(state).await
                }
                CallProgress::NeedsInput(required, waiting) => return Ok(self.put_aside(required, waiting)),
            }
        }
    }

    /// A task for the client to poll, if the call takes longer and the client supports tasks.
    fn task_for(&self, state: &CallState) -> Option<(CallId, Arc<Task>)> {
        let call = match state {
            CallState::Waiting(request) if request.input.is_none() => request.call.id,
            CallState::Over(Outcome { call_id, status: Status::Accepted, .. }) => *call_id,
            _ => return None,
        };
        let supported = tasks::are_supported(&self.request.from);
        let task = supported.then(|| self.service.tasks.begin(call, self.cancel.clone())).flatten()?;
        Some((call, task))
    }

    /// Runs a call to its end while the client polls its task.
    async fn drive(mut self, state: CallState, task: Arc<Task>) {
        let mut progress = self.settle(state).await;
        for round in 1.. {
            match progress {
                CallProgress::Over(result) => return task.end(result),
                CallProgress::NeedsInput(required, waiting) => {
                    let Some(responses) = task.ask(required.requests, round).await else {
                        self.forget(&waiting);
                        return task.end(Err(internal("the tool's request for input got no response")));
                    };
                    self.input.responses = Some(responses);
                    let next = self.resume(waiting);
                    self.cx = self.cx.with_observer(task.clone());
                    let state = self.advance(next).await;
                    progress = self.settle(state).await;
                }
            }
        }
    }

    /// Continues a call with the client's responses.
    pub(super) fn resume(&mut self, waiting: WaitingCall) -> NextMove {
        match waiting {
            WaitingCall::Input { request, held } => {
                self.held = held;
                let grant = elicitation::grant(&request, self.input.responses.as_ref());
                NextMove::GiveInput(Box::new((*request, grant)))
            }
            WaitingCall::Approved { held, state } => {
                self.input.state = state;
                self.cx = self.service.context(&self.request, &self.input, &self.cancel, self.progress.as_ref());
                NextMove::MakeAgain(held)
            }
        }
    }

    /// Tells the tool that a call is not continued.
    fn forget(&self, waiting: &WaitingCall) {
        match waiting {
            WaitingCall::Input { request, .. } => {
                let state = request.input.as_ref().map_or(&Value::Null, |needed| &needed.state);
                self.entry.tool().forget(&request.call, state);
            }
            WaitingCall::Approved { held, state } => self.entry.tool().forget(held.call(), state.as_ref().unwrap_or(&Value::Null)),
        }
    }

    /// Runs a call as far as it comes without a person.
    fn advance(&mut self, next: NextMove) -> BoxFuture<'_, CallState> {
        // Boxed, because the future of a call is large, and the request is moved several times before it starts.
        match next {
            NextMove::Make(call) => Box::pin(self.service.helve.executor.call(&self.toolkit, call, &self.cx)),
            NextMove::GiveInput(input) => {
                let (request, grant) = *input;
                Box::pin(self.service.helve.executor.resume(&self.toolkit, request.call, grant, &self.cx))
            }
            NextMove::MakeAgain(held) => Box::pin(async move {
                let (state, held) = self.service.helve.executor.run_approved(&self.toolkit, *held, &self.cx).await;
                self.held = held.map(Box::new);
                state
            }),
        }
    }

    /// Runs a call as far as it comes without its client: a person may have to approve it, and a worker to run it.
    fn settle(&mut self, state: CallState) -> BoxFuture<'_, CallProgress> {
        // Boxed, because it is large, and every path of a call leads here.
        Box::pin(async move {
            let state = match state {
                CallState::Waiting(request) if request.input.is_none() => self.approve(request).await,
                CallState::Over(outcome) if matches!(outcome.status, Status::Accepted) => {
                    let message = format!("runs in the background as task {}", outcome.call_id);
                    CallState::Over(self.keep_alive(self.service.helve.executor.wait_for_worker(outcome, &self.cx), message).await)
                }
                state => state,
            };
            match state {
                CallState::Over(outcome) => self.over(outcome).await,
                CallState::Waiting(request) => {
                    let required = elicitation::required(&request);
                    CallProgress::NeedsInput(required, WaitingCall::Input { request, held: self.held.take() })
                }
            }
        })
    }

    /// Waits until a person has approved the call, and makes it.
    async fn approve(&mut self, request: Box<ApprovalRequest>) -> CallState {
        let (executor, cx) = (&self.service.helve.executor, &self.cx);
        let (id, tool) = (request.call.id, request.tool.clone());
        let message = format!("waits for approval {}", request.id);
        let approved = match self.keep_alive(executor.request_approval(&self.toolkit, *request, cx), message).await {
            Ok(approved) => approved,
            Err(outcome) => return CallState::Over(*outcome),
        };
        match self.service.toolkit() {
            Ok(now) => {
                let (state, held) = executor.run_approved(&now, approved, cx).await;
                self.held = held.map(Box::new);
                state
            }
            Err(error) => CallState::Over(Outcome::failed(id, tool, ToolError::new(ErrorKind::UnknownTool, error.to_string()))),
        }
    }

    /// Turns an outcome into a result. If the server behind the tool needs input, its request goes to the client, and a call that a person
    /// approved is kept, so that it need not be approved again.
    async fn over(&mut self, outcome: Outcome) -> CallProgress {
        let required = self.cx.extension::<Passage>().and_then(Passage::take_input_required).filter(|_| is_failure(&outcome));
        let Some(required) = required else {
            if let Some(held) = self.held.take() {
                held.end(outcome.clone()).await;
            }
            return CallProgress::Over(present(outcome));
        };
        let redacted = self.service.helve.redactor.cleaned(&required.into_value());
        match (self.held.take(), InputRequired::read(redacted)) {
            (Some(held), Ok(required)) => {
                let state = required.state.clone();
                CallProgress::NeedsInput(required, WaitingCall::Approved { held: Box::new(held.kept_open()), state })
            }
            (_, required) => CallProgress::Over(Ok(required.map_or_else(|result| result, InputRequired::into_value))),
        }
    }

    /// Keeps a call, so that a modern client can repeat its request with the responses.
    fn put_aside(&mut self, mut required: InputRequired, waiting: WaitingCall) -> Value {
        let arguments = self.request.params.get("arguments").filter(|arguments| arguments.is_object()).cloned();
        let digest = call_digest(&self.entry, &arguments.unwrap_or_else(|| json!({})));
        match self.service.waiting.put(waiting, digest) {
            Ok(name) => {
                required.state = Some(name.into());
                required.into_value()
            }
            Err(waiting) => {
                self.forget(&waiting);
                let message = "the tool needs input, and too many calls are waiting for input";
                content::write(Err(ToolError::new(ErrorKind::RateLimited, message)))
            }
        }
    }

    /// Waits for something, and keeps the client informed.
    async fn keep_alive<T>(&self, work: impl Future<Output = T>, message: String) -> T {
        if let Some(task) = &self.task {
            task.set_message(message);
            let done = work.await;
            task.set_message(String::new());
            return done;
        }
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = tokio::time::sleep(KEEP_ALIVE) => {}
            }
            if let Some(progress) = &self.progress {
                progress.report(None, &message);
            }
        }
    }
}

fn is_failure(outcome: &Outcome) -> bool {
    matches!(outcome.status, Status::Done(Err(_)))
}
