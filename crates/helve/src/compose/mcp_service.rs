//! The catalogue as an MCP server: calls go the same way as everyone's, with the same rules.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use helve_core::store::Approval;
use helve_core::{CallContext, Caller, Denial, ErrorKind, EventData, Observer, Outcome, Output, Question, Status, ToolCall, ToolError};
use helve_mcp::serve::{About, Backend, Change, Incoming};
use helve_mcp::{BackChannel, Gateway, Passage, content};
use helve_mcp_wire::{CODES, Era, META, RpcError};
use helve_tools::{Admission, Entry, Selection, Snapshot, Toolkit, ToolkitError, View};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;

use super::Helve;

/// How many changes wait for a client.
const CHANGES: usize = 64;
/// Names that MCP clients take.
const MAX_NAME: usize = 128;
/// How long a list waits for servers that are just being connected.
const SETTLE: Duration = Duration::from_secs(5);
/// How often a client is told that its call still waits.
const STILL: Duration = Duration::from_secs(10);

/// What is served to MCP clients.
#[derive(Debug, Clone, Default)]
pub struct McpServing {
    /// Only the tools of these sets; all tools where there are none.
    pub sets: Vec<Arc<str>>,
    /// Whether what servers have besides tools is passed on, and their questions to clients.
    pub gateway: bool,
}

impl Helve {
    /// The catalogue as an MCP server. Give it to [`helve_mcp::serve::Server`].
    ///
    /// # Errors
    /// Where a tool set is not there.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn mcp_service(&self, serving: McpServing) -> Result<Arc<dyn Backend>, ToolkitError> {
        let service = Arc::new(Service {
            helve: self.clone(),
            serving,
            changes: broadcast::Sender::new(CHANGES),
            all: Mutex::default(),
            followed: Mutex::default(),
        });
        service.toolkit()?;
        tokio::spawn(follow(Arc::downgrade(&service)));
        Ok(service)
    }
}

struct Service {
    helve: Helve,
    serving: McpServing,
    changes: broadcast::Sender<Change>,
    /// All tools, as they were in a snapshot.
    all: Mutex<Option<(Snapshot, Toolkit)>>,
    /// Servers whose changes are passed on.
    followed: Mutex<HashSet<helve_core::Digest>>,
}

/// Tells clients when the catalogue changes, and what else changes at the servers behind it.
async fn follow(service: std::sync::Weak<Service>) {
    let view = View::default();
    let Some(mut snapshot) = service.upgrade().map(|service| service.helve.catalogue.snapshot(&view)) else { return };
    loop {
        let Some(catalogue) = service.upgrade().map(|service| {
            service.follow_servers();
            service.helve.catalogue.clone()
        }) else {
            return;
        };
        snapshot = catalogue.next(&view, &snapshot).await;
        if let Some(service) = service.upgrade() {
            // Where no client listens, nobody needs to know.
            let _ = service.changes.send(Change::Tools);
        }
    }
}

impl Service {
    fn toolkit(&self) -> Result<Toolkit, ToolkitError> {
        if self.serving.sets.is_empty() {
            let snapshot = self.helve.catalogue.snapshot(&View::default());
            let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
            return Ok(match &*all {
                Some((known, toolkit)) if known.is_same(&snapshot) => toolkit.clone(),
                _ => all.insert((snapshot.clone(), Toolkit::everything(&snapshot))).1.clone(),
            });
        }
        let selection = Selection { sets: self.serving.sets.clone(), ..Selection::default() };
        self.helve.catalogue.toolkit(&selection, &View::default())
    }

    fn gateway(&self) -> Option<Gateway> {
        let project = self.helve.project.as_ref().filter(|_| self.serving.gateway)?;
        Some(Gateway::new(project.servers.mcp()))
    }

    fn follow_servers(&self) {
        let Some(gateway) = self.gateway() else { return };
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        for (source, mut changes) in gateway.changes() {
            if followed.insert(source.identity()) {
                let all = self.changes.clone();
                tokio::spawn(async move {
                    loop {
                        match changes.recv().await {
                            // The catalogue tells of tools, once it has them.
                            Ok(Change::Tools) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                            Ok(change) => drop(all.send(change)),
                            Err(broadcast::error::RecvError::Closed) => return,
                        }
                    }
                });
            }
        }
    }

    async fn answer(&self, request: Incoming) -> Result<Value, RpcError> {
        match request.method.as_str() {
            "tools/list" => {
                // Many clients ask once; servers that are just being connected get a moment.
                let _ = tokio::time::timeout(SETTLE, self.helve.catalogue.settled()).await;
                Ok(json!({"tools": self.tools()?}))
            }
            "tools/call" => self.call(request).await,
            _ => match self.gateway() {
                Some(gateway) => gateway.handle(&request).await,
                None => None,
            }
            .unwrap_or_else(|| Err(refusal(CODES.method, format!("there is no method `{}`", request.method)))),
        }
    }

    fn tools(&self) -> Result<Vec<Value>, RpcError> {
        Ok(self.toolkit().map_err(internal)?.list().map(describe).collect())
    }

    async fn call(&self, request: Incoming) -> Result<Value, RpcError> {
        let Some(name) = request.params.get("name").and_then(Value::as_str) else {
            return Err(refusal(CODES.params, "a call names its tool in `name`".to_owned()));
        };
        let arguments = match request.params.get("arguments") {
            None | Some(Value::Null) => json!({}),
            Some(arguments @ Value::Object(_)) => arguments.clone(),
            Some(_) => return Err(refusal(CODES.params, "`arguments` are an object".to_owned())),
        };
        let toolkit = self.toolkit().map_err(internal)?;
        let Some(entry) = toolkit.get(name).filter(|entry| **served_name(entry) == *name).cloned() else {
            if let Some(gateway) = self.gateway()
                && let Some(answer) = gateway.unknown_tool(&request).await
            {
                return answer;
            }
            return Err(refusal(CODES.params, format!("unknown tool: {}", helve_core::printable::shorten(name, 200))));
        };
        let call = ToolCall::new(entry.name().clone(), arguments);
        let mut cx = CallContext::new(Caller::default()).with_cancel(request.cancel.clone());
        if self.serving.gateway {
            let extra = ["inputResponses", "requestState", "_meta"];
            let extra = extra.iter().filter_map(|field| Some(((*field).to_owned(), request.params.get(*field)?.clone()))).collect();
            cx = cx.with_brought(Arc::new(Passage { from: request.from.clone(), extra }));
        }
        if let Some(token) = &request.from.progress_token {
            cx = cx.with_observer(Arc::new(Told { token: token.clone(), channel: request.from.channel.clone() }));
        }
        present(self.settle(&toolkit, call, &cx, &request).await?)
    }

    /// Runs a call to its end, also one that waits for a person or runs in the background.
    async fn settle(&self, toolkit: &Toolkit, call: ToolCall, cx: &CallContext, request: &Incoming) -> Result<Outcome, RpcError> {
        let executor = &self.helve.executor;
        let put_off = match executor.admit(toolkit, call, cx, None).await {
            Admission::Ready(prepared) => return Ok(executor.attempt(prepared, cx).await),
            Admission::Answered(outcome) => return Ok(outcome),
            Admission::Accepted(outcome) => outcome,
            Admission::Waiting(question) => match self.ask(question).await {
                Ok(outcome) => outcome,
                Err(outcome) => return Ok(*outcome),
            },
        };
        let Some(record) = executor.record() else { return Ok(put_off) };
        let mut ended = std::pin::pin!(record.end_of(&put_off));
        let mut told = 0;
        loop {
            tokio::select! {
                ended = &mut ended => return ended.map_err(internal),
                () = request.cancel.cancelled() => {
                    return Ok(Outcome::failed(put_off.call_id, put_off.tool.clone(), ToolError::cancelled()));
                }
                () = tokio::time::sleep(STILL) => {
                    told += 1;
                    tell_still(request, &put_off, told);
                }
            }
        }
    }

    /// Keeps a question for a person. Without a record nobody could answer it.
    async fn ask(&self, question: Question) -> Result<Outcome, Box<Outcome>> {
        let (call_id, tool, id) = (question.call.id, question.tool.clone(), question.id);
        let refused = |why: String| Box::new(Outcome::failed(call_id, tool.clone(), ToolError::denied(Denial::Policy, why)));
        let Some(record) = self.helve.executor.record() else {
            return Err(refused("a person must approve this call, and there is no record in which they could be asked".to_owned()));
        };
        let Some(entry) = self.helve.catalogue.get(&tool) else { return Err(refused("the tool is gone".to_owned())) };
        let approval = Approval::new(question, entry.digest(), entry.spec().rules());
        if let Err(error) = record.store().ask(approval.clone()).await {
            return Err(Box::new(Outcome::failed(call_id, tool.clone(), ToolError::new(ErrorKind::Storage, error.to_string()))));
        }
        record.asked(&approval);
        Ok(Outcome { call_id, tool, status: Status::Waiting(id), duration: Duration::ZERO })
    }
}

/// Lets a client know that its call was not forgotten.
fn tell_still(request: &Incoming, put_off: &Outcome, told: u32) {
    if let Some(token) = &request.from.progress_token {
        let message = match put_off.status {
            Status::Waiting(id) => format!("waits for a person: helve approvals approve {id}"),
            _ => format!("runs in the background as task {}", put_off.call_id),
        };
        let params = json!({META.progress: token, "progress": told, "message": message});
        request.from.channel.notify("notifications/progress", params);
    }
}

impl Backend for Service {
    fn about(&self) -> About {
        About { name: "helve".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned(), instructions: None }
    }

    fn capabilities(&self, era: Era) -> Value {
        let mut all = self.gateway().map(|gateway| gateway.capabilities(era)).unwrap_or_default();
        all.insert("tools".to_owned(), json!({"listChanged": true}));
        Value::Object(all)
    }

    fn handle(&self, request: Incoming) -> BoxFuture<'_, Result<Value, RpcError>> {
        Box::pin(self.answer(request))
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    fn session_ended(&self, session: &str) {
        if let Some(gateway) = self.gateway() {
            gateway.session_ended(session);
        }
    }
}

/// Progress of a call, told by the name that the client gave it.
struct Told {
    token: Value,
    channel: Arc<dyn BackChannel>,
}

impl Observer for Told {
    fn observe(&self, event: EventData) {
        if let EventData::ToolProgress { fraction, message, .. } = event {
            let mut params = Map::new();
            params.insert(META.progress.to_owned(), self.token.clone());
            params.insert("progress".to_owned(), json!(fraction.unwrap_or_default()));
            if fraction.is_some() {
                params.insert("total".to_owned(), json!(1.0));
            }
            if !message.is_empty() {
                params.insert("message".to_owned(), message.into());
            }
            self.channel.notify("notifications/progress", Value::Object(params));
        }
    }
}

/// The name by which clients call a tool: the catalogue's, where all clients take it.
fn served_name(entry: &Entry) -> &Arc<str> {
    let fits = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
    let name = entry.name();
    if name.len() <= MAX_NAME && name.chars().all(fits) { name } else { entry.model_name() }
}

fn describe(entry: &Arc<Entry>) -> Value {
    let spec = entry.spec();
    let description = if spec.description().trim().is_empty() { spec.title().unwrap_or(spec.name()) } else { spec.description() };
    let mut tool = json!({"name": served_name(entry), "description": description, "inputSchema": spec.input().value()});
    if let Some(title) = spec.title() {
        tool["title"] = json!(title);
    }
    if let Some(output) = spec.output() {
        tool["outputSchema"] = output.value().clone();
    }
    if spec.rules().idempotent {
        tool["annotations"] = json!({"idempotentHint": true});
    }
    tool
}

/// What a client reads of an outcome.
fn present(outcome: Outcome) -> Result<Value, RpcError> {
    let result: Result<Output, ToolError> = match outcome.status {
        Status::Done(result) => result,
        Status::Accepted | Status::Waiting(_) => Ok(Output::text(outcome.text())),
    };
    if let Err(error) = &result
        && let Some(protocol) = error.details().get("mcp")
    {
        // What a server said in the words of the protocol goes on in the same words.
        if let Some(said) = protocol.get("error").and_then(|error| serde_json::from_value::<RpcError>(error.clone()).ok()) {
            return Err(said);
        }
        if let Some(said) = protocol.get("result") {
            return Ok(said.clone());
        }
    }
    Ok(content::write(&result))
}

fn refusal(code: i64, message: String) -> RpcError {
    RpcError { code, message, data: None }
}

fn internal(error: impl std::fmt::Display) -> RpcError {
    refusal(CODES.internal, error.to_string())
}
