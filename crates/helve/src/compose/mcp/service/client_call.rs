//! Runs one call from a client to its end: waits for approval, requests input, and creates a task if the client polls.

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

/// One call from a client.
pub(super) struct ClientCall {
    pub(super) service: Arc<Service>,
    pub(super) toolkit: Toolkit,
    pub(super) entry: Arc<Entry>,
    pub(super) request: ClientRequest,
    /// The client's responses to an earlier input request.
    pub(super) input: InputResponses,
    /// Cancels the call.
    pub(super) cancel: CancellationToken,
    pub(super) progress: Option<Arc<ProgressReporter>>,
    pub(super) cx: CallContext,
    /// The call in the store, if a person approved the call and it has not ended.
    pub(super) held: Option<Box<ApprovedCall>>,
    /// The task that the client polls, if any.
    pub(super) task: Option<Arc<Task>>,
}

/// The next step of a call.
pub(super) enum NextMove {
    /// Run the call.
    Make(ToolCall),
    /// Pass the requested input to the tool.
    GiveInput(Box<(ApprovalRequest, Grant)>),
    /// Run an approved call again, with the input that the server behind the tool requested.
    MakeAgain(Box<ApprovedCall>),
}

/// The progress of a call.
enum CallProgress {
    /// The call has ended with this result.
    Over(Result<Value, RpcError>),
    /// The call needs input from the client.
    NeedsInput(InputRequired, WaitingCall),
}

impl ClientCall {
    /// Runs the call as far as possible. The call is cancelled if the client disconnects.
    pub(super) async fn run(self, next: NextMove) -> Result<Value, RpcError> {
        let (cancel, gone) = (self.cancel.clone(), self.request.cancel.clone());
        let mut response = pin!(self.respond(next));
        tokio::select! {
            response = &mut response => return response,
            () = gone.cancelled() => cancel.cancel(),
        }
        response.await
    }

    /// Returns the response to the client. A client that polls tasks does not wait for an approval or a background call.
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
            // The fast path, for almost every call: there is nothing left to wait for.
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

    /// Creates a task for the client to poll, if the call waits for approval or a worker and the client supports tasks.
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
                        return task.end(Err(internal("the client did not respond to the tool's input request")));
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

    /// Tells the tool that a call will not continue.
    fn forget(&self, waiting: &WaitingCall) {
        match waiting {
            WaitingCall::Input { request, .. } => {
                let state = request.input.as_ref().map_or(&Value::Null, |needed| &needed.state);
                self.entry.tool().forget(&request.call, state);
            }
            WaitingCall::Approved { held, state } => self.entry.tool().forget(held.call(), state.as_ref().unwrap_or(&Value::Null)),
        }
    }

    /// Advances a call as far as possible without a person.
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

    /// Advances a call as far as possible without input from the client: waits until a person approves the call, and until a worker has run
    /// a background call.
    fn settle(&mut self, state: CallState) -> BoxFuture<'_, CallProgress> {
        // Boxed, because the future is large, and every call gets here.
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

    /// Waits until a person has approved the call, and runs it.
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

    /// Turns an outcome into a result. If the server behind the tool needs input, forwards its request to the client, and keeps a call that
    /// a person approved, so that it need not be approved again.
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

    /// Keeps a call, so that a modern client can repeat its request with its responses. Returns the result that requests the input.
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
                let message = "the tool requests input, but too many calls are already waiting for input; try again later";
                content::write(Err(ToolError::new(ErrorKind::RateLimited, message)))
            }
        }
    }

    /// Waits for `work`, and meanwhile sends `message` to the client as progress.
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
