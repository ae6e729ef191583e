//! Calls that clients of the newer era come back for, as the extension for tasks has it: those that wait for a person, and those that run
//! in the background.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use helve_core::store::{self, TaskState};
use helve_core::{CallId, CancellationToken, EventData, Observer, Timestamp};
use helve_mcp::serve::Incoming;
use helve_mcp::{Downstream, unguessable_number};
use helve_mcp_wire::{CODES, Era, RpcError};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::words::{internal, present, refusal};
use super::{AGENT, Service};

/// The name of the extension.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// How many tasks are known without the store.
const MAX_TASKS: usize = 1_024;
/// How long the result of one is kept there.
const KEPT: Duration = Duration::from_hours(1);
/// How often a client may look.
const POLL_MS: u64 = 1_000;
/// How often a call may ask.
const MAX_ROUNDS: u32 = 10;
/// How long is waited before a server is asked again that has no request.
const AGAIN: Duration = Duration::from_millis(100);
/// How much results may take before those of older tasks are only in the store.
const MAX_BYTES: usize = 64 << 20;
/// How long a client has to answer what a tool asks.
const PATIENCE: Duration = Duration::from_mins(15);

/// Whether a client comes back for tasks.
pub(super) fn are_wanted(from: &Downstream) -> bool {
    from.era == Era::Modern && from.capabilities.pointer("/extensions").is_some_and(|extensions| extensions.get(EXTENSION).is_some())
}

/// The id of a call, which may be the id of a task: whoever knows it may ask for the result.
pub(super) fn call_id() -> CallId {
    unguessable_number().map_or_else(CallId::mint, CallId::mint_from)
}

/// The tasks of this process.
#[derive(Default)]
pub(super) struct Tasks(Mutex<HashMap<CallId, Arc<Task>>>);

/// One task.
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
    /// It waits for answers to what is left of these requests.
    Asks {
        requests: Map<String, Value>,
        answers: Map<String, Value>,
        reply: oneshot::Sender<Value>,
    },
    /// Since when, how large the result is, and the result.
    Over(Instant, usize, Result<Value, RpcError>),
}

impl Tasks {
    /// Takes note of a call; nothing where there are too many.
    pub fn begin(&self, id: CallId, cancel: CancellationToken) -> Option<Arc<Task>> {
        let mut all = self.0.lock();
        all.retain(|_, task| !matches!(&task.state().phase, Phase::Over(since, ..) if since.elapsed() > KEPT));
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
    /// The answer to the request that began it.
    pub fn created(&self, id: CallId) -> Value {
        let mut created = self.describe(id);
        for field in ["inputRequests", "result", "error"] {
            created.remove(field);
        }
        created.insert("resultType".to_owned(), json!("task"));
        Value::Object(created)
    }

    /// Since when it is over, and how large its result is.
    fn over(&self, id: CallId) -> Option<(Instant, usize, CallId)> {
        if let Phase::Over(since, size, _) = &self.state().phase { Some((*since, *size, id)) } else { None }
    }

    /// What the task does now.
    pub fn say(&self, message: String) {
        let mut state = self.state();
        (state.message, state.updated) = (message, Timestamp::now());
    }

    /// Waits for the client's answers to a result that asks; nothing where it does not answer.
    pub async fn ask(&self, asked: &Value, round: u32) -> Option<Value> {
        let requests = asked.get("inputRequests").and_then(Value::as_object).cloned().unwrap_or_default();
        if round > MAX_ROUNDS {
            return None;
        }
        if requests.is_empty() {
            // It is not done, and wants to be asked again.
            tokio::time::sleep(AGAIN * round).await;
            return Some(json!({}));
        }
        let (reply, answers) = oneshot::channel();
        self.enter(Phase::Asks { requests, answers: Map::new(), reply });
        let answered = tokio::select! {
            answers = answers => answers.ok(),
            () = self.cancel.cancelled() => None,
            () = tokio::time::sleep(PATIENCE) => None,
        };
        self.enter(Phase::Working);
        answered
    }

    /// Takes answers of the client. The task goes on when it has all of them.
    fn answer(&self, given: &Map<String, Value>) {
        let mut state = self.state();
        let Phase::Asks { requests, answers, .. } = &mut state.phase else { return };
        for (key, answer) in given {
            if requests.remove(key).is_some() {
                answers.insert(key.clone(), answer.clone());
            }
        }
        if requests.is_empty()
            && let Phase::Asks { answers, reply, .. } = std::mem::replace(&mut state.phase, Phase::Working)
        {
            let _ = reply.send(Value::Object(answers));
        }
        state.updated = Timestamp::now();
    }

    /// The call is over.
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
            Phase::Asks { requests, .. } => ("input_required", Some(("inputRequests", json!(requests)))),
            Phase::Over(.., Ok(result)) => ("completed", Some(("result", result.clone()))),
            Phase::Over(.., Err(error)) => ("failed", Some(("error", json!(error)))),
        };
        let over = matches!(state.phase, Phase::Over(..)).then(|| state.updated.duration_since(self.created).as_millis());
        let kept = over.and_then(|over| u128::try_from(over).ok()).map(|over| over + KEPT.as_millis());
        let mut said = described(id, status, (self.created, state.updated), kept);
        if !state.message.is_empty() {
            said.insert("statusMessage".to_owned(), json!(state.message));
        }
        said.extend(more.map(|(field, value)| (field.to_owned(), value)));
        said
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Observer for Task {
    fn observe(&self, event: EventData) {
        if let EventData::ToolProgress { fraction, message, .. } = event {
            let done = fraction.map(|fraction| format!("{:.0} %", fraction * 100.0));
            self.say([done.unwrap_or_default(), message].join(" ").trim().to_owned());
        }
    }
}

fn described(id: CallId, status: &str, (created, updated): (Timestamp, Timestamp), kept: Option<u128>) -> Map<String, Value> {
    Map::from_iter([
        ("taskId".to_owned(), json!(id)),
        ("status".to_owned(), json!(status)),
        ("createdAt".to_owned(), json!(created)),
        ("lastUpdatedAt".to_owned(), json!(updated)),
        ("ttlMs".to_owned(), json!(kept.and_then(|kept| u64::try_from(kept).ok()))),
        ("pollIntervalMs".to_owned(), json!(POLL_MS)),
    ])
}

/// A task as the store has it, for a client that comes back after a restart, or late.
fn recorded(task: &store::Task) -> Map<String, Value> {
    let (status, more) = match (task.state, &task.outcome) {
        (TaskState::Cancelled, _) => ("cancelled", None),
        (_, None) => ("working", None),
        (_, Some(outcome)) => match present(outcome.clone()) {
            Ok(result) => ("completed", Some(("result", result))),
            Err(error) => ("failed", Some(("error", json!(error)))),
        },
    };
    let mut said = described(task.id, status, (task.created, task.updated), None);
    if let Some(progress) = task.progress.as_ref().filter(|progress| !progress.message.is_empty() && task.outcome.is_none()) {
        said.insert("statusMessage".to_owned(), json!(progress.message));
    }
    said.extend(more.map(|(field, value)| (field.to_owned(), value)));
    said
}

impl Service {
    /// Answers a request about a task.
    pub(super) async fn task(&self, request: &Incoming) -> Result<Value, RpcError> {
        if !are_wanted(&request.from) {
            let data = json!({"requiredCapabilities": {"extensions": {EXTENSION: {}}}});
            let message = format!("the client does not say that it has the extension `{EXTENSION}`");
            return Err(RpcError { code: CODES.capability, message, data: Some(data) });
        }
        let Some(name) = request.params.get("taskId").and_then(Value::as_str) else {
            return Err(refusal(CODES.params, "a task is named in `taskId`".to_owned()));
        };
        let unknown = || {
            let name = helve_core::printable::escape_line(&helve_core::printable::shorten(name, 200));
            refusal(CODES.params, format!("there is no task `{name}`"))
        };
        let id: CallId = name.parse().map_err(|_| unknown())?;
        let here = self.tasks.find(id);
        let recorded = if here.is_none() { self.recorded(id).await? } else { None };
        match (request.method.as_str(), here, recorded) {
            (_, None, None) => Err(unknown()),
            ("tasks/get", Some(task), _) => Ok(Value::Object(task.describe(id))),
            ("tasks/get", None, Some(task)) => Ok(Value::Object(self::recorded(&task))),
            ("tasks/update", here, _) => {
                let Some(answers) = request.params.get("inputResponses").and_then(Value::as_object) else {
                    return Err(refusal(CODES.params, "`inputResponses` are missing".to_owned()));
                };
                if let Some(task) = here {
                    task.answer(answers);
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

    /// A task of a client, as far as its tool is served here.
    async fn recorded(&self, id: CallId) -> Result<Option<store::Task>, RpcError> {
        let Some(store) = self.helve.executor.store() else { return Ok(None) };
        let found = store.task(id).await.map_err(internal)?;
        let Some(task) = found.filter(|task| task.caller.agent.as_deref() == Some(AGENT)) else { return Ok(None) };
        if self.toolkit().map_err(internal)?.get(&task.tool).is_none() {
            // Its server may just be being connected.
            self.settled().await;
        }
        let served = self.toolkit().map_err(internal)?.get(&task.tool).is_some();
        Ok(served.then_some(task))
    }
}
