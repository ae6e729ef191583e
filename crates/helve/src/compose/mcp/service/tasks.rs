//! Tasks of the MCP extension: calls that modern clients poll, because the call waits for approval or runs in the background.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use helve_core::store::{self, TaskState};
use helve_core::{CallId, CancellationToken, EventData, Observer, Timestamp};
use helve_mcp::server::ClientRequest;
use helve_mcp::{Downstream, random_number};
use helve_mcp_wire::{CODES, Era, InputResponses, ResultType, RpcError};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::present::{internal, present};
use super::{AGENT, Service};

/// The name of the tasks extension.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// Maximum number of tasks in memory.
const MAX_TASKS: usize = 1_024;
/// Time for which a result is kept in memory.
const RESULT_TTL: Duration = Duration::from_hours(1);
/// The poll interval that clients should use, in milliseconds.
const POLL_MS: u64 = 1_000;
/// Maximum number of input requests of one call.
const MAX_ROUNDS: u32 = 10;
/// Delay before Helve repeats a request because the server asked for that. It is multiplied by the number of the attempt.
const RETRY_DELAY: Duration = Duration::from_millis(100);
/// Maximum size of all results in memory, in bytes. Older results are then only in the store.
const MAX_BYTES: usize = 64 << 20;
/// Timeout for input from the client.
const INPUT_TIMEOUT: Duration = Duration::from_mins(15);

/// Returns whether a client supports tasks.
pub(super) fn are_supported(from: &Downstream) -> bool {
    from.era == Era::Modern && from.capabilities.pointer("/extensions").is_some_and(|extensions| extensions.get(EXTENSION).is_some())
}

/// Returns a random id for a call. The id may become the id of a task, and a client that knows it can read the result.
pub(super) fn call_id() -> CallId {
    random_number().map_or_else(CallId::mint, CallId::mint_from)
}

/// The tasks of this process.
#[derive(Default)]
pub(super) struct Tasks(Mutex<HashMap<CallId, Arc<Task>>>);

/// One task of a client.
pub(super) struct Task {
    created: Timestamp,
    cancel: CancellationToken,
    state: Mutex<State>,
}

struct State {
    updated: Timestamp,
    message: String,
    phase: Phase,
}

enum Phase {
    Working,
    /// The task waits for the client's responses to the remaining requests.
    NeedsInput {
        requests: Map<String, Value>,
        responses: Map<String, Value>,
        done: oneshot::Sender<Value>,
    },
    /// The task has ended: when, the size of the result in bytes, and the result.
    Over(Instant, usize, Result<Value, RpcError>),
}

impl Tasks {
    /// Adds a task for a call. Returns `None` if there are too many tasks.
    pub fn begin(&self, id: CallId, cancel: CancellationToken) -> Option<Arc<Task>> {
        let mut all = self.0.lock();
        all.retain(|_, task| !matches!(&task.state().phase, Phase::Over(since, ..) if since.elapsed() > RESULT_TTL));
        let mut over: Vec<(Instant, usize, CallId)> = all.iter().filter_map(|(id, task)| task.over(*id)).collect();
        over.sort_unstable_by_key(|(since, ..)| *since);
        let mut bytes: usize = over.iter().map(|(_, size, _)| size).sum();
        for (_, size, id) in over {
            if bytes <= MAX_BYTES {
                break;
            }
            bytes -= size;
            all.remove(&id);
        }
        if all.len() >= MAX_TASKS {
            return None;
        }
        let now = Timestamp::now();
        let state = Mutex::new(State { updated: now, message: String::new(), phase: Phase::Working });
        let task = Arc::new(Task { created: now, cancel, state });
        all.insert(id, task.clone());
        Some(task)
    }

    fn find(&self, id: CallId) -> Option<Arc<Task>> {
        self.0.lock().get(&id).cloned()
    }
}

impl Task {
    /// Returns the result of the request that started the task.
    pub fn created(&self, id: CallId) -> Value {
        let mut created = self.describe(id);
        for field in ["inputRequests", "result", "error"] {
            created.remove(field);
        }
        ResultType::Task.put(&mut created);
        Value::Object(created)
    }

    /// Returns when the task ended, the size of its result, and its id. Returns `None` if the task has not ended.
    fn over(&self, id: CallId) -> Option<(Instant, usize, CallId)> {
        if let Phase::Over(since, size, _) = &self.state().phase { Some((*since, *size, id)) } else { None }
    }

    /// Sets the status message.
    pub fn set_message(&self, message: String) {
        let mut state = self.state();
        (state.message, state.updated) = (message, Timestamp::now());
    }

    /// Requests input from the client. Returns `None` if the client does not respond.
    pub async fn ask(&self, requests: Map<String, Value>, round: u32) -> Option<Value> {
        if round > MAX_ROUNDS {
            return None;
        }
        if requests.is_empty() {
            // The server only asks to repeat the request.
            tokio::time::sleep(RETRY_DELAY * round).await;
            return Some(json!({}));
        }
        let (done, responses) = oneshot::channel();
        self.enter(Phase::NeedsInput { requests, responses: Map::new(), done });
        let responses = tokio::select! {
            responses = responses => responses.ok(),
            () = self.cancel.cancelled() => None,
            () = tokio::time::sleep(INPUT_TIMEOUT) => None,
        };
        self.enter(Phase::Working);
        responses
    }

    /// Adds responses of the client. The task continues when no request is left.
    fn respond(&self, given: &Map<String, Value>) {
        let mut state = self.state();
        let Phase::NeedsInput { requests, responses, .. } = &mut state.phase else { return };
        for (key, response) in given {
            if requests.remove(key).is_some() {
                responses.insert(key.clone(), response.clone());
            }
        }
        if requests.is_empty()
            && let Phase::NeedsInput { responses, done, .. } = std::mem::replace(&mut state.phase, Phase::Working)
        {
            let _ = done.send(Value::Object(responses));
        }
        state.updated = Timestamp::now();
    }

    /// Ends the task with a result.
    pub fn end(&self, result: Result<Value, RpcError>) {
        let size = result.as_ref().map_or(0, |result| result.to_string().len());
        self.enter(Phase::Over(Instant::now(), size, result));
    }

    fn enter(&self, phase: Phase) {
        let mut state = self.state();
        (state.phase, state.updated) = (phase, Timestamp::now());
    }

    fn describe(&self, id: CallId) -> Map<String, Value> {
        let state = self.state();
        let (status, more) = match &state.phase {
            _ if self.cancel.is_cancelled() => ("cancelled", None),
            Phase::Working => ("working", None),
            Phase::NeedsInput { requests, .. } => ("input_required", Some(("inputRequests", json!(requests)))),
            Phase::Over(.., Ok(result)) => ("completed", Some(("result", result.clone()))),
            Phase::Over(.., Err(error)) => ("failed", Some(("error", json!(error)))),
        };
        let over = matches!(state.phase, Phase::Over(..)).then(|| state.updated.duration_since(self.created).as_millis());
        let ttl = over.and_then(|over| u128::try_from(over).ok()).map(|over| over + RESULT_TTL.as_millis());
        let mut fields = described(id, status, (self.created, state.updated), ttl);
        if !state.message.is_empty() {
            fields.insert("statusMessage".to_owned(), json!(state.message));
        }
        fields.extend(more.map(|(field, value)| (field.to_owned(), value)));
        fields
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Observer for Task {
    fn observe(&self, event: EventData) {
        if let EventData::ToolProgress { fraction, message, .. } = event {
            let done = fraction.map(|fraction| format!("{:.0}%", fraction * 100.0));
            self.set_message([done.unwrap_or_default(), message].join(" ").trim().to_owned());
        }
    }
}

fn described(id: CallId, status: &str, (created, updated): (Timestamp, Timestamp), ttl: Option<u128>) -> Map<String, Value> {
    Map::from_iter([
        ("taskId".to_owned(), json!(id)),
        ("status".to_owned(), json!(status)),
        ("createdAt".to_owned(), json!(created)),
        ("lastUpdatedAt".to_owned(), json!(updated)),
        ("ttlMs".to_owned(), json!(ttl.and_then(|ttl| u64::try_from(ttl).ok()))),
        ("pollIntervalMs".to_owned(), json!(POLL_MS)),
    ])
}

/// Describes a task from the store, for a client that polls after a restart, or after the result was removed from memory.
fn recorded(task: &store::Task) -> Map<String, Value> {
    let (status, more) = match (task.state, &task.outcome) {
        (TaskState::Cancelled, _) => ("cancelled", None),
        (_, None) => ("working", None),
        (_, Some(outcome)) => match present(outcome.clone()) {
            Ok(result) => ("completed", Some(("result", result))),
            Err(error) => ("failed", Some(("error", json!(error)))),
        },
    };
    let mut fields = described(task.id, status, (task.created, task.updated), None);
    if let Some(progress) = task.progress.as_ref().filter(|progress| !progress.message.is_empty() && task.outcome.is_none()) {
        fields.insert("statusMessage".to_owned(), json!(progress.message));
    }
    fields.extend(more.map(|(field, value)| (field.to_owned(), value)));
    fields
}

impl Service {
    /// Handles `tasks/get`, `tasks/update` and `tasks/cancel`.
    pub(super) async fn task(&self, request: &ClientRequest) -> Result<Value, RpcError> {
        if !are_supported(&request.from) {
            let data = json!({"requiredCapabilities": {"extensions": {EXTENSION: {}}}});
            let message = format!("the client does not declare the extension `{EXTENSION}`");
            return Err(RpcError { code: CODES.capability, message, data: Some(data) });
        }
        let Some(name) = request.params.get("taskId").and_then(Value::as_str) else {
            return Err(RpcError::new(CODES.params, "`taskId` is missing"));
        };
        let unknown = || {
            let name = helve_core::printable::escape_line(&helve_core::printable::shorten(name, 200));
            RpcError::new(CODES.params, format!("unknown task `{name}`"))
        };
        let id: CallId = name.parse().map_err(|_| unknown())?;
        let here = self.tasks.find(id);
        let recorded = if here.is_none() { self.recorded(id).await? } else { None };
        match (request.method.as_str(), here, recorded) {
            (_, None, None) => Err(unknown()),
            ("tasks/get", Some(task), _) => Ok(Value::Object(task.describe(id))),
            ("tasks/get", None, Some(task)) => Ok(Value::Object(self::recorded(&task))),
            ("tasks/update", here, _) => {
                let Some(responses) = InputResponses::responses(&request.params) else {
                    return Err(RpcError::new(CODES.params, "`inputResponses` is missing"));
                };
                if let Some(task) = here {
                    task.respond(responses);
                }
                Ok(json!({}))
            }
            (_, Some(task), _) => {
                if !matches!(task.state().phase, Phase::Over(..)) {
                    task.cancel.cancel();
                }
                Ok(json!({}))
            }
            (_, None, Some(task)) => {
                let store = self.helve.executor.store().map(helve_tools::StoreHandle::inner);
                if let Some(store) = store.filter(|_| task.outcome.is_none()) {
                    store.cancel_task(id).await.map_err(internal)?;
                }
                Ok(json!({}))
            }
        }
    }

    /// Returns a task of an MCP client from the store, if its tool is served here.
    async fn recorded(&self, id: CallId) -> Result<Option<store::Task>, RpcError> {
        let Some(store) = self.helve.executor.store() else { return Ok(None) };
        let found = store.task(id).await.map_err(internal)?;
        let Some(task) = found.filter(|task| task.caller.agent.as_deref() == Some(AGENT)) else { return Ok(None) };
        if self.toolkit().map_err(internal)?.get(&task.tool).is_none() {
            // The tool's server may still be connecting.
            self.settled().await;
        }
        let served = self.toolkit().map_err(internal)?.get(&task.tool).is_some();
        Ok(served.then_some(task))
    }
}
