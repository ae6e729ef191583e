//! Calls of clients: the same way as everyone's, to their end, with what a person must say before and meanwhile.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use helve_core::{CallContext, Caller, CancellationToken, Decision, ErrorKind, Grant, InputNeeded, Outcome, Question, ToolCall, ToolError};
use helve_mcp::serve::Incoming;
use helve_mcp::{Passage, content};
use helve_mcp_wire::{CODES, Era, RpcError};
use helve_tools::{Admission, Attempted, Entry, HeldTask, Toolkit};
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
    /// The call that a person approved, with the arguments that they approved.
    approved: Option<ToolCall>,
    /// The same in the record, while it goes on.
    held: Option<HeldTask>,
    /// Where the client looks how far it is, if it comes back for it.
    task: Option<Arc<Task>>,
}

/// How far a call has come.
pub(super) enum Step {
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
        let mut calling = Calling { service, toolkit, entry, request, cancel, told, cx, approved: None, held: None, task: None };
        let (call, grant) = match kept {
            Some((kept, held)) => {
                calling.held = held;
                calling.resume(kept)
            }
            None => (call, None),
        };
        calling.run(call, grant).await
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
    fn found(&self, entry: &Entry, arguments: &Value, request: &Incoming) -> Result<Option<(Kept, Option<HeldTask>)>, RpcError> {
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
        let caller = Caller { agent: Some(AGENT.into()), ..Caller::default() };
        let mut cx = CallContext::new(caller).with_cancel(cancel.clone());
        if self.serving.gateway {
            let extra = ["inputResponses", "requestState", "_meta"];
            let extra = extra.iter().filter_map(|field| Some(((*field).to_owned(), request.params.get(*field)?.clone()))).collect();
            cx = cx.with_extension(Passage { from: request.from.clone(), extra });
        }
        if let Some(told) = told {
            cx = cx.with_observer(told.clone());
        }
        if asking::can(&request.from.capabilities) { cx.asking() } else { cx }
    }
}

impl Calling {
    /// Runs the call to its end, or as far as it comes by itself. A client that comes back for tasks does not wait for a person, nor for
    /// what runs in the background.
    async fn run(mut self, call: ToolCall, grant: Option<Grant>) -> Result<Value, RpcError> {
        let id = call.id;
        let admitted = self.admit(call, grant).await;
        let later = matches!(admitted, Admission::Waiting(_) | Admission::Accepted(_));
        if later
            && tasks::are_wanted(&self.request.from)
            && let Some(task) = self.service.tasks.begin(id, self.cancel.clone())
        {
            self.cx = self.cx.with_observer(task.clone());
            self.task = Some(task.clone());
            let created = task.created(id);
            tokio::spawn(self.drive(admitted, task));
            return Ok(created);
        }
        let (cancel, gone) = (self.cancel.clone(), self.request.cancel.clone());
        let mut answer = pin!(self.answer(admitted));
        tokio::select! {
            answer = &mut answer => return answer,
            () = gone.cancelled() => cancel.cancel(),
        }
        answer.await
    }

    /// Answers a client that waits.
    async fn answer(mut self, admitted: Admission) -> Result<Value, RpcError> {
        let mut step = self.settle(admitted).await;
        loop {
            step = match step {
                Step::Over(result) => return result,
                Step::Asks(_, Kept::Asked(question)) if self.request.from.era == Era::Legacy => {
                    let grant = asking::ask(&question, &self.request.from).await;
                    if self.request.cancel.is_cancelled() {
                        // The tool is told nothing, and forgets the call.
                        self.cancel.cancel();
                    }
                    let admitted = self.admit(question.call, Some(grant)).await;
                    self.settle(admitted).await
                }
                Step::Asks(result, kept) => return Ok(self.put_aside(result, kept)),
            }
        }
    }

    /// Brings a call to its end that its client comes back for.
    async fn drive(mut self, admitted: Admission, task: Arc<Task>) {
        let mut step = self.settle(admitted).await;
        for round in 1.. {
            match step {
                Step::Over(result) => return task.end(result),
                Step::Asks(asked, kept) => {
                    let Some(answers) = task.ask(&asked, round).await else {
                        self.forget(&kept);
                        return task.end(Err(internal("nobody answered what the tool asked")));
                    };
                    self.request.params["inputResponses"] = answers;
                    let (call, grant) = self.resume(kept);
                    self.cx = self.cx.with_observer(task.clone());
                    let admitted = self.admit(call, grant).await;
                    step = self.settle(admitted).await;
                }
            }
        }
    }

    /// Goes on with a call whose client has answered, in its request.
    fn resume(&mut self, kept: Kept) -> (ToolCall, Option<Grant>) {
        match kept {
            Kept::Asked(question) => {
                let grant = asking::answer(&question, self.request.params.get("inputResponses"));
                (question.call, Some(grant))
            }
            Kept::Approved(mut call, state) => {
                if let Some(params) = self.request.params.as_object_mut() {
                    params.remove("requestState");
                    params.extend(state.map(|state| ("requestState".to_owned(), state)));
                }
                self.cx = self.service.context(&self.request, &self.cancel, self.told.as_ref());
                // As the executor will read them, or the grant would be for another call.
                let _ = self.entry.spec().input().fit(&mut call.arguments);
                self.approved = Some(ToolCall::clone(&call));
                // That it may run was decided when it began.
                let (entry, needed) = (&self.entry, InputNeeded::new(vec![], json!({})));
                let question =
                    Question::about_input(ToolCall::clone(&call), entry.source(), entry.spec(), self.cx.caller().clone(), needed);
                (*call, Some(question.answer(Decision::Approve, AGENT)))
            }
        }
    }

    /// Nobody goes on with a call.
    fn forget(&self, kept: &Kept) {
        match kept {
            Kept::Asked(question) => {
                let state = question.input.as_ref().map_or(&Value::Null, |needed| &needed.state);
                self.entry.tool().forget(&question.call, state);
            }
            Kept::Approved(call, state) => self.entry.tool().forget(call, state.as_ref().unwrap_or(&Value::Null)),
        }
    }

    async fn admit(&self, call: ToolCall, grant: Option<Grant>) -> Admission {
        self.service.helve.executor.admit(&self.toolkit, call, &self.cx, grant).await
    }

    /// Brings a call as far as it comes without its client.
    fn settle(&mut self, admitted: Admission) -> BoxFuture<'_, Step> {
        // It is large, and every way leads here.
        Box::pin(async move {
            let attempted = self.attempt(admitted).await;
            match attempted {
                Attempted::Over(outcome) => self.over(outcome).await,
                Attempted::Asks(question) => {
                    let result = json!({"resultType": "input_required", "inputRequests": asking::requests(&question)});
                    Step::Asks(result, Kept::Asked(Box::new(question)))
                }
            }
        })
    }

    async fn attempt(&mut self, admitted: Admission) -> Attempted {
        let (executor, cx) = (&self.service.helve.executor, &self.cx);
        match admitted {
            Admission::Ready(prepared) if cx.can_ask() => executor.attempt_or_ask(prepared, cx).await,
            Admission::Ready(prepared) => Attempted::Over(executor.attempt(prepared, cx).await),
            Admission::Answered(outcome) => Attempted::Over(outcome),
            Admission::Accepted(outcome) => {
                let message = format!("runs in the background as task {}", outcome.call_id);
                Attempted::Over(self.still(executor.queued(outcome, cx), message).await)
            }
            Admission::Waiting(question) => {
                let (id, tool) = (question.call.id, question.tool.clone());
                let message = format!("waits until a person has answered {}", question.id);
                match self.still(executor.approved(&self.entry, question, cx), message).await {
                    Ok(approved) => {
                        self.approved = Some(approved.call().clone());
                        match self.service.toolkit() {
                            Ok(now) => {
                                let made = executor.make(&now, approved, cx, |outcome| asks(&present(outcome.clone()))).await;
                                self.held = made.held;
                                made.attempted
                            }
                            Err(error) => {
                                Attempted::Over(Outcome::failed(id, tool, ToolError::new(ErrorKind::UnknownTool, error.to_string())))
                            }
                        }
                    }
                    Err(outcome) => Attempted::Over(*outcome),
                }
            }
        }
    }

    /// What an outcome is to the client. A server behind Helve may want to know more; when the client comes back with the answer, nobody
    /// needs to approve the same call again.
    async fn over(&mut self, outcome: Outcome) -> Step {
        let result = present(outcome.clone());
        if let (true, Ok(said), Some(call)) = (asks(&result), &result, &self.approved) {
            let kept = Kept::Approved(Box::new(call.clone()), said.get("requestState").cloned());
            return Step::Asks(said.clone(), kept);
        }
        if let Some(mut held) = self.held.take() {
            held.end(outcome).await;
        }
        Step::Over(result)
    }

    /// Lets a client of the newer era answer, and make the request again with the answer.
    fn put_aside(&mut self, mut result: Value, kept: Kept) -> Value {
        let arguments = self.request.params.get("arguments").filter(|arguments| arguments.is_object()).cloned();
        let belongs = belonging(&self.entry, &arguments.unwrap_or_else(|| json!({})));
        match self.service.kept.put(kept, self.held.take(), belongs) {
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

/// Whether a result wants to know more.
fn asks(result: &Result<Value, RpcError>) -> bool {
    result.as_ref().is_ok_and(|result| result.get("resultType").and_then(Value::as_str) == Some("input_required"))
}
