//! Calls of clients: the same way as everyone's, to their end, with what a person must say before and meanwhile.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use helve_core::{ApprovalRequest, CallContext, CallId, Caller, CancellationToken, ErrorKind, Grant, Outcome, Status, ToolCall, ToolError};
use helve_mcp::serve::Incoming;
use helve_mcp::{Passage, content};
use helve_mcp_wire::{CODES, Era, RpcError};
use helve_tools::{ApprovedCall, CallState, Entry, Toolkit};
use serde_json::{Value, json};

use super::kept::{Kept, belonging};
use super::tasks::{self, Task};
use super::words::{Told, internal, present, refusal, served_name};
use super::{AGENT, Service, asking};

/// How often a client is told that its call still waits.
const STILL: Duration = Duration::from_secs(10);

/// One call of a client.
pub(super) struct Calling {
    service: Arc<Service>,
    toolkit: Toolkit,
    entry: Arc<Entry>,
    request: Incoming,
    /// Stops the call.
    cancel: CancellationToken,
    /// Where the client hears of progress.
    told: Option<Arc<Told>>,
    cx: CallContext,
    /// The call in the record, where a person approved it and it goes on.
    held: Option<ApprovedCall>,
    /// Where the client looks how far it is, if it comes back for it.
    task: Option<Arc<Task>>,
}

/// What is done with a call next.
enum Move {
    /// It is made.
    Make(ToolCall),
    /// Its tool is told what it asked.
    Answer(Box<(ApprovalRequest, Grant)>),
    /// It was approved, and is made again with what the server behind it asked for.
    MakeAgain(ApprovedCall),
}

/// How far a call has come.
enum Step {
    /// It is over.
    Over(Result<Value, RpcError>),
    /// It wants to know something, as the result says, and goes on with the answer.
    Asks(Value, Kept),
}

impl Service {
    pub(super) async fn call(&self, request: Incoming) -> Result<Value, RpcError> {
        let Some(name) = request.params.get("name").and_then(Value::as_str) else {
            return Err(refusal(CODES.params, "a call names its tool in `name`".to_owned()));
        };
        let arguments = match request.params.get("arguments") {
            None | Some(Value::Null) => json!({}),
            Some(arguments @ Value::Object(_)) => arguments.clone(),
            Some(_) => return Err(refusal(CODES.params, "`arguments` are an object".to_owned())),
        };
        let Some((toolkit, entry)) = self.find(name).await? else {
            let message = format!("unknown tool: {}", helve_core::printable::shorten(name, 200));
            // Servers that are passed on would mostly answer with a result, and clients of theirs expect that.
            let answer = || content::write(&Err(ToolError::new(ErrorKind::UnknownTool, message.clone())));
            return if self.serving.gateway { Ok(answer()) } else { Err(refusal(CODES.params, message.clone())) };
        };
        let Some(service) = self.own.upgrade() else { return Err(internal("the server is stopping")) };
        let kept = service.found(&entry, &arguments, &request)?;
        let call = ToolCall { id: tasks::call_id(), ..ToolCall::new(entry.name().clone(), arguments) };
        let cancel = CancellationToken::new();
        let told = Told::of(&request.from);
        let cx = self.context(&request, &cancel, told.as_ref());
        let mut calling = Calling { service, toolkit, entry, request, cancel, told, cx, held: None, task: None };
        let next = match kept {
            Some(kept) => calling.resume(kept),
            None => Move::Make(call),
        };
        calling.run(next).await
    }

    /// A tool by the name that clients know. One of a server that is just being connected gets a moment.
    async fn find(&self, name: &str) -> Result<Option<(Toolkit, Arc<Entry>)>, RpcError> {
        let find = || -> Result<_, RpcError> {
            let toolkit = self.toolkit().map_err(internal)?;
            let entry = toolkit.get(name).filter(|entry| **served_name(entry) == *name).cloned();
            Ok(entry.map(|entry| (toolkit, entry)))
        };
        if let Some(found) = find()? {
            return Ok(Some(found));
        }
        self.settled().await;
        find()
    }

    /// The call that a request goes on with, if it is not a new one.
    fn found(&self, entry: &Entry, arguments: &Value, request: &Incoming) -> Result<Option<Kept>, RpcError> {
        let Some(state) = request.params.get("requestState").and_then(Value::as_str) else { return Ok(None) };
        match self.kept.take(state, belonging(entry, arguments)) {
            None if !self.serving.gateway || self.kept.is_own(state) => {
                Err(refusal(CODES.params, "the request that this goes on with is over; make it again without `requestState`".to_owned()))
            }
            // It may be the state of a server behind Helve.
            found => Ok(found),
        }
    }

    fn context(&self, request: &Incoming, cancel: &CancellationToken, told: Option<&Arc<Told>>) -> CallContext {
        // Whoever speaks MCP is a model's program: rules for agents hold for it. What it calls itself is its own word.
        let caller = Caller::default().agent(AGENT);
        let mut cx = CallContext::new(caller).with_cancel(cancel.clone());
        if self.serving.gateway {
            let extra = ["inputResponses", "requestState", "_meta"];
            let extra = extra.iter().filter_map(|field| Some(((*field).to_owned(), request.params.get(*field)?.clone()))).collect();
            cx = cx.with_extension(Passage { from: request.from.clone(), extra });
        }
        if let Some(told) = told {
            cx = cx.with_observer(told.clone());
        }
        if asking::can(&request.from.capabilities) { cx } else { cx.silent() }
    }
}

impl Calling {
    /// Runs the call to its end, or as far as it comes by itself. A client that goes away cancels it.
    async fn run(self, next: Move) -> Result<Value, RpcError> {
        let (cancel, gone) = (self.cancel.clone(), self.request.cancel.clone());
        let mut answer = pin!(self.answer(next));
        tokio::select! {
            answer = &mut answer => return answer,
            () = gone.cancelled() => cancel.cancel(),
        }
        answer.await
    }

    /// Answers a client. One that comes back for tasks does not wait for a person, nor for what runs in the background.
    async fn answer(mut self, next: Move) -> Result<Value, RpcError> {
        let state = self.advance(next).await;
        if let Some((call, task)) = self.task_for(&state) {
            self.cx = self.cx.with_observer(task.clone());
            self.task = Some(task.clone());
            let created = task.created(call);
            tokio::spawn(self.drive(state, task));
            return Ok(created);
        }
        let mut step = match state {
            // As almost every call: nothing is left to wait for.
            CallState::Over(outcome) if self.held.is_none() && !matches!(outcome.status, Status::Accepted) => return present(outcome),
            state => self.settle(state).await,
        };
        loop {
            step = match step {
                Step::Over(result) => return result,
                Step::Asks(_, Kept::Asked { request, held }) if self.request.from.era == Era::Legacy => {
                    self.held = held;
                    let grant = asking::ask(&request, &self.request.from).await;
                    if self.request.cancel.is_cancelled() {
                        // The tool is told nothing, and forgets the call.
                        self.cancel.cancel();
                    }
                    let state = self.advance(Move::Answer(Box::new((*request, grant)))).await;
                    self.settle(state).await
                }
                Step::Asks(result, kept) => return Ok(self.put_aside(result, kept)),
            }
        }
    }

    /// Where the client can look how far its call is, if the call takes longer and the client comes back for such calls.
    fn task_for(&self, state: &CallState) -> Option<(CallId, Arc<Task>)> {
        let call = match state {
            CallState::Waiting(request) if request.input.is_none() => request.call.id,
            CallState::Over(Outcome { call_id, status: Status::Accepted, .. }) => *call_id,
            _ => return None,
        };
        let wanted = tasks::are_wanted(&self.request.from);
        let task = wanted.then(|| self.service.tasks.begin(call, self.cancel.clone())).flatten()?;
        Some((call, task))
    }

    /// Brings a call to its end that its client comes back for.
    async fn drive(mut self, state: CallState, task: Arc<Task>) {
        let mut step = self.settle(state).await;
        for round in 1.. {
            match step {
                Step::Over(result) => return task.end(result),
                Step::Asks(asked, kept) => {
                    let Some(answers) = task.ask(&asked, round).await else {
                        self.forget(&kept);
                        return task.end(Err(internal("nobody answered what the tool asked")));
                    };
                    self.request.params["inputResponses"] = answers;
                    let next = self.resume(kept);
                    self.cx = self.cx.with_observer(task.clone());
                    let state = self.advance(next).await;
                    step = self.settle(state).await;
                }
            }
        }
    }

    /// Goes on with a call whose client has answered, in its request.
    fn resume(&mut self, kept: Kept) -> Move {
        match kept {
            Kept::Asked { request, held } => {
                self.held = held;
                let grant = asking::answer(&request, self.request.params.get("inputResponses"));
                Move::Answer(Box::new((*request, grant)))
            }
            Kept::Approved { held, state } => {
                if let Some(params) = self.request.params.as_object_mut() {
                    params.remove("requestState");
                    params.extend(state.map(|state| ("requestState".to_owned(), state)));
                }
                self.cx = self.service.context(&self.request, &self.cancel, self.told.as_ref());
                Move::MakeAgain(held)
            }
        }
    }

    /// Nobody goes on with a call.
    fn forget(&self, kept: &Kept) {
        match kept {
            Kept::Asked { request, .. } => {
                let state = request.input.as_ref().map_or(&Value::Null, |needed| &needed.state);
                self.entry.tool().forget(&request.call, state);
            }
            Kept::Approved { held, state } => self.entry.tool().forget(held.call(), state.as_ref().unwrap_or(&Value::Null)),
        }
    }

    /// Brings a call as far as it comes without a person.
    fn advance(&mut self, next: Move) -> BoxFuture<'_, CallState> {
        // Boxed, because the way of a call is long, and the request is moved several times before it begins.
        match next {
            Move::Make(call) => Box::pin(self.service.helve.executor.call(&self.toolkit, call, &self.cx)),
            Move::Answer(answered) => {
                let (request, grant) = *answered;
                Box::pin(self.service.helve.executor.resume(&self.toolkit, request.call, grant, &self.cx))
            }
            Move::MakeAgain(held) => Box::pin(async move {
                let (state, held) = self.service.helve.executor.run_approved(&self.toolkit, held, &self.cx).await;
                self.held = held;
                state
            }),
        }
    }

    /// Brings a call as far as it comes without its client: a person may have to approve it, and a worker to run it.
    fn settle(&mut self, state: CallState) -> BoxFuture<'_, Step> {
        // It is large, and every way leads here.
        Box::pin(async move {
            let state = match state {
                CallState::Waiting(request) if request.input.is_none() => self.approve(request).await,
                CallState::Over(outcome) if matches!(outcome.status, Status::Accepted) => {
                    let message = format!("runs in the background as task {}", outcome.call_id);
                    CallState::Over(self.still(self.service.helve.executor.wait_for_worker(outcome, &self.cx), message).await)
                }
                state => state,
            };
            match state {
                CallState::Over(outcome) => self.over(outcome).await,
                CallState::Waiting(request) => {
                    let result = json!({"resultType": "input_required", "inputRequests": asking::requests(&request)});
                    Step::Asks(result, Kept::Asked { request, held: self.held.take() })
                }
            }
        })
    }

    /// Waits until a person has approved the call, and makes it.
    async fn approve(&mut self, request: Box<ApprovalRequest>) -> CallState {
        let (executor, cx) = (&self.service.helve.executor, &self.cx);
        let (id, tool) = (request.call.id, request.tool.clone());
        let message = format!("waits until a person has answered {}", request.id);
        let approved = match self.still(executor.request_approval(&self.toolkit, *request, cx), message).await {
            Ok(approved) => approved,
            Err(outcome) => return CallState::Over(*outcome),
        };
        match self.service.toolkit() {
            Ok(now) => {
                let (state, held) = executor.run_approved(&now, approved, cx).await;
                self.held = held;
                state
            }
            Err(error) => CallState::Over(Outcome::failed(id, tool, ToolError::new(ErrorKind::UnknownTool, error.to_string()))),
        }
    }

    /// What an outcome is to the client. A server behind Helve may want to know more; when the client comes back with the answer, nobody
    /// needs to approve the same call again.
    async fn over(&mut self, outcome: Outcome) -> Step {
        let result = present(outcome.clone());
        let Some(held) = self.held.take() else { return Step::Over(result) };
        if let Ok(said) = &result
            && asks(said)
        {
            let state = said.get("requestState").cloned();
            return Step::Asks(said.clone(), Kept::Approved { held: held.kept_open(), state });
        }
        held.end(outcome).await;
        Step::Over(result)
    }

    /// Lets a client of the newer era answer, and make the request again with the answer.
    fn put_aside(&mut self, mut result: Value, kept: Kept) -> Value {
        let arguments = self.request.params.get("arguments").filter(|arguments| arguments.is_object()).cloned();
        let belongs = belonging(&self.entry, &arguments.unwrap_or_else(|| json!({})));
        match self.service.kept.put(kept, belongs) {
            Ok(name) => result["requestState"] = json!(name),
            Err(kept) => {
                self.forget(&kept);
                let message = "the tool asks for something, and too many calls wait for an answer already";
                result = content::write(&Err(ToolError::new(ErrorKind::RateLimited, message)));
            }
        }
        result
    }

    /// Waits for something, and lets the client know meanwhile that its call was not forgotten.
    async fn still<T>(&self, work: impl Future<Output = T>, message: String) -> T {
        if let Some(task) = &self.task {
            task.say(message);
            let done = work.await;
            task.say(String::new());
            return done;
        }
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = tokio::time::sleep(STILL) => {}
            }
            if let Some(told) = &self.told {
                told.say(None, &message);
            }
        }
    }
}

/// Whether a server behind Helve wants to know more.
fn asks(result: &Value) -> bool {
    result.get("resultType").and_then(Value::as_str) == Some("input_required")
}
