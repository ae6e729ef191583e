//! Calls of clients: the same way as everyone's, to their end, with what a person must say before and meanwhile.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use helve_core::{CallContext, Caller, Decision, ErrorKind, Grant, InputNeeded, Outcome, Question, ToolCall, ToolError};
use helve_mcp::serve::Incoming;
use helve_mcp::{Passage, content};
use helve_mcp_wire::{CODES, Era, META, RpcError};
use helve_tools::{Admission, Attempted, Entry, Toolkit};
use serde_json::{Value, json};

use super::asking;
use super::kept::{Kept, belonging};
use super::words::{Told, internal, present, refusal, served_name};
use super::{AGENT, Service};

/// How often a client is told that its call still waits.
const STILL: Duration = Duration::from_secs(10);

/// One call of a client.
struct Calling<'a> {
    service: &'a Service,
    toolkit: Toolkit,
    entry: Arc<Entry>,
    request: Incoming,
    cx: CallContext,
    /// Whether a person had to approve it.
    approved: bool,
}

impl Service {
    pub(super) async fn call(&self, mut request: Incoming) -> Result<Value, RpcError> {
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
        let (call, grant, approved) = self.begin(&entry, arguments, &mut request)?;
        let cx = self.context(&request);
        Calling { service: self, toolkit, entry, request, cx, approved }.run(call, grant).await
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

    /// The call that a request is: a new one, or one that goes on.
    fn begin(&self, entry: &Entry, arguments: Value, request: &mut Incoming) -> Result<(ToolCall, Option<Grant>, bool), RpcError> {
        let state = request.params.get("requestState").and_then(Value::as_str).map(str::to_owned);
        let found = state.as_ref().and_then(|state| self.kept.take(state, belonging(entry, &arguments)));
        let call = ToolCall::new(entry.name().clone(), arguments);
        match (found, state) {
            (Some(Kept::Asked(question)), _) => {
                let grant = asking::answer(&question, request.params.get("inputResponses"));
                Ok((question.call, Some(grant), false))
            }
            (Some(Kept::Approved(state)), _) => {
                if let Some(params) = request.params.as_object_mut() {
                    params.remove("requestState");
                    params.extend(state.map(|state| ("requestState".to_owned(), state)));
                }
                // That it may run was decided when it began.
                let caller = Caller::default();
                let question =
                    Question::about_input(call.clone(), entry.source(), entry.spec(), caller, InputNeeded::new(vec![], json!({})));
                Ok((call, Some(question.answer(Decision::Approve, AGENT)), true))
            }
            (None, Some(_)) if !self.serving.gateway => {
                Err(refusal(CODES.params, "the request that this goes on with is over; make it again without `requestState`".to_owned()))
            }
            // It may be the state of a server behind Helve.
            (None, _) => Ok((call, None, false)),
        }
    }

    fn context(&self, request: &Incoming) -> CallContext {
        // Whoever speaks MCP is a model's program: rules for agents hold for it. What it calls itself is its own word.
        let caller = Caller { agent: Some(AGENT.into()), ..Caller::default() };
        let mut cx = CallContext::new(caller).with_cancel(request.cancel.clone());
        if self.serving.gateway {
            let extra = ["inputResponses", "requestState", "_meta"];
            let extra = extra.iter().filter_map(|field| Some(((*field).to_owned(), request.params.get(*field)?.clone()))).collect();
            cx = cx.with_brought(Arc::new(Passage { from: request.from.clone(), extra }));
        }
        if let Some(token) = &request.from.progress_token {
            cx = cx.with_observer(Arc::new(Told { token: token.clone(), channel: request.from.channel.clone() }));
        }
        if asking::can(&request.from.capabilities) { cx.asking() } else { cx }
    }
}

impl Calling<'_> {
    /// Runs the call to its end, also one that waits for a person or runs in the background.
    async fn run(mut self, call: ToolCall, grant: Option<Grant>) -> Result<Value, RpcError> {
        let mut attempted = self.attempt(call, grant).await;
        loop {
            match attempted {
                Attempted::Over(outcome) => return present(outcome).map(|result| self.mark(result)),
                Attempted::Asks(question) if self.request.from.era == Era::Modern => return self.put_aside(question),
                Attempted::Asks(question) => {
                    let grant = asking::ask(&question, &self.request.from).await;
                    attempted = self.attempt(question.call, Some(grant)).await;
                }
            }
        }
    }

    async fn attempt(&mut self, call: ToolCall, grant: Option<Grant>) -> Attempted {
        let (executor, cx) = (&self.service.helve.executor, &self.cx);
        match executor.admit(&self.toolkit, call, cx, grant).await {
            Admission::Ready(prepared) if cx.can_ask() => executor.attempt_or_ask(prepared, cx).await,
            Admission::Ready(prepared) => Attempted::Over(executor.attempt(prepared, cx).await),
            Admission::Answered(outcome) => Attempted::Over(outcome),
            Admission::Accepted(outcome) => {
                let message = format!("runs in the background as task {}", outcome.call_id);
                Attempted::Over(self.still(executor.queued(outcome, cx), message).await)
            }
            Admission::Waiting(question) => {
                let message = format!("waits until a person has answered {}", question.id);
                match self.still(executor.approved(&self.entry, question, cx), message).await {
                    Ok(approved) => {
                        let attempted = executor.make(approved, cx).await;
                        self.approved = true;
                        attempted
                    }
                    Err(outcome) => Attempted::Over(*outcome),
                }
            }
        }
    }

    /// Waits for something, and lets the client know meanwhile that its call was not forgotten.
    async fn still<T>(&self, work: impl Future<Output = T>, message: String) -> T {
        let mut work = pin!(work);
        for told in 1_u64.. {
            tokio::select! {
                done = &mut work => return done,
                () = tokio::time::sleep(STILL) => {}
            }
            if let Some(token) = &self.request.from.progress_token {
                let params = json!({META.progress: token, "progress": told, "message": message});
                self.request.from.channel.notify("notifications/progress", params);
            }
        }
        work.await
    }

    /// Lets a client of the newer era answer a tool, and make the request again with the answer.
    fn put_aside(&self, question: Question) -> Result<Value, RpcError> {
        let (requests, summary) = (asking::requests(&question), question.reason.clone());
        let outcome = Outcome::failed(question.call.id, question.tool.clone(), ToolError::failed(summary));
        match self.keep(Kept::Asked(Box::new(question))) {
            Some(name) => Ok(json!({"resultType": "input_required", "inputRequests": requests, "requestState": name})),
            None => present(outcome),
        }
    }

    /// A server behind Helve may want to know more of a client of the newer era. When that comes back with the answer, nobody needs to
    /// approve the same call again.
    fn mark(&self, mut result: Value) -> Value {
        let asks = result.get("resultType").and_then(Value::as_str) == Some("input_required");
        if self.approved
            && asks
            && let Some(name) = self.keep(Kept::Approved(result.get("requestState").cloned()))
        {
            result["requestState"] = json!(name);
        }
        result
    }

    fn keep(&self, kept: Kept) -> Option<String> {
        let arguments = self.request.params.get("arguments").filter(|arguments| arguments.is_object()).cloned();
        self.service.kept.put(kept, belonging(&self.entry, &arguments.unwrap_or_else(|| json!({}))))
    }
}
