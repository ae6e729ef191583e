//! One engine: does a step, and gives its answer in a form that can be compared.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use helve_core::store::{AcceptResult, Claim, DecisionResult, Finish, RunCommit, Task, TaskEnd};
use helve_core::{CallId, ErrorKind, HolderId, Outcome, Output, Status, Store, StoreError, ToolError};
use serde::Serialize;
use serde_json::{Value, json};

use crate::operation::{Place, Step, missing};

const LEASE: Duration = Duration::from_hours(1);

/// Waits for the next millisecond.
pub fn tick() {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis());
    let begun = now();
    while now() == begun {
        std::thread::yield_now();
    }
}

/// A store, and the tasks in it in the order in which they came.
pub struct Side {
    store: Arc<dyn Store>,
    tasks: Vec<CallId>,
}

impl Side {
    pub fn new(store: impl Store) -> Self {
        Self { store: Arc::new(store), tasks: Vec::new() }
    }

    pub fn reopen(&mut self, store: impl Store) {
        self.store = Arc::new(store);
    }

    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }

    pub async fn leave(&self, holder: HolderId) {
        self.store.leave(holder).await.expect("left");
    }

    fn id(&self, place: Place) -> CallId {
        self.tasks.get(place).copied().unwrap_or_else(missing)
    }

    async fn find(&self, place: Place) -> Option<Task> {
        self.store.task(self.id(place)).await.expect("readable")
    }

    /// Does a step, and says what came of it, without what is another one on each side.
    pub async fn perform(&mut self, step: &Step) -> Value {
        let answer = match self.answer(step).await {
            Ok(value) => value,
            Err(error) => json!({"error": kind(&error)}),
        };
        let names: BTreeMap<String, usize> = self.tasks.iter().enumerate().map(|(place, id)| (id.to_string(), place)).collect();
        plain(answer, &names)
    }

    async fn answer(&mut self, step: &Step) -> Result<Value, StoreError> {
        let store = self.store.clone();
        Ok(match step.clone() {
            Step::Accept(task) => {
                let id = task.call.id;
                let accepted = store.accept(task).await?;
                if accepted == AcceptResult::New && !self.tasks.contains(&id) {
                    self.tasks.push(id);
                }
                json!(format!("{accepted:?}"))
            }
            Step::Claim { holder, alive, limit, tools } => {
                if alive {
                    store.keep(holder, LEASE, &[]).await?;
                }
                value(store.claim(Claim { holder, limit, tools: tools.as_deref() }).await?)
            }
            Step::Finish { task, stale, end } => {
                let (id, found) = (self.id(task), self.find(task).await);
                let epoch = found.map_or(1, |task| task.epoch) + u64::from(stale);
                json!(format!("{:?}", store.finish(vec![Finish { task: id, epoch, end: self::end(id, end) }]).await?))
            }
            Step::Keep { holder, progress } => {
                let progress: Vec<_> = progress.into_iter().map(|(place, progress)| (self.id(place), progress)).collect();
                let cancelled = store.keep(holder, LEASE, &progress).await?;
                json!({"tasks": cancelled.tasks, "runs": cancelled.runs})
            }
            Step::Leave(holder) => {
                store.leave(holder).await?;
                json!(format!("{:?}", store.recover(holder).await?))
            }
            Step::Recover(holder) => json!(format!("{:?}", store.recover(holder).await?)),
            Step::CancelTask(place) => json!(format!("{:?}", store.cancel_task(self.id(place)).await?)),
            Step::RetryTask(place) => {
                let task = store.retry_task(self.id(place)).await?;
                self.tasks.push(task.id);
                value(task)
            }
            Step::Hear(place) => value(store.mark_read(self.id(place)).await?),
            Step::Ask(approval) => value(store.add_approval(*approval).await?),
            Step::Answer(id, reply) => self.answering(store.decide(id, reply).await?).await,
            Step::Commit { commit, stale, heard } => {
                let found = store.run(commit.run).await?;
                let epoch = found.as_ref().map_or(1, |run| run.epoch) + u64::from(stale);
                // Mostly what was said before is known.
                let conversation = match found.filter(|_| commit.message_count < 12) {
                    Some(run) => store.conversation(run.conversation_id).await?,
                    None => None,
                };
                let begun = match &commit.begin {
                    Some(begin) => store.conversation(begin.conversation).await?,
                    None => None,
                };
                let message_count = conversation.or(begun).map_or(commit.message_count, |conversation| conversation.message_count);
                let read = heard.into_iter().map(|place| self.id(place)).collect();
                let epoch = if commit.begin.is_some() { 1 } else { epoch };
                value(store.commit_run(RunCommit { epoch, message_count, read, ..commit }).await?)
            }
            Step::TakeRun(run, holder) => {
                let taken = store.take_run(run, holder).await?;
                json!({"run": taken.record, "snapshot": taken.snapshot})
            }
            Step::ReleaseRun(run, holder, stale) => {
                let epoch = store.run(run).await?.map_or(1, |run| run.epoch) + u64::from(stale);
                value(store.release_run(run, holder, epoch).await?)
            }
            Step::CancelRun(run) => value(store.cancel_run(run).await?),
            Step::PutBody(bytes) => value(store.put_body(&bytes).await?),
            Step::Prune(age) => value(store.prune(age).await?),
            Step::Task(place) => value(store.task(self.id(place)).await?),
            Step::Tasks(filter) => value(store.tasks(filter).await?),
            Step::Inbox(conversation) => value(store.inbox(conversation).await?),
            Step::Approval(id) => value(store.approval(id).await?),
            Step::Approvals(run, open, limit) => value(store.approvals(run, open, limit).await?),
            Step::Run(run) => value(store.run(run).await?),
            Step::Runs(state, limit) => value(store.runs(state, limit).await?),
            Step::Events(run, after, limit) => value(store.events(run, after, limit).await?),
            Step::Conversation(id) => value(store.conversation(id).await?),
            Step::Conversations(limit) => value(store.conversations(limit).await?),
            Step::Body(digest) => value(store.body(digest).await?),
        })
    }

    /// A call that was approved may be a task now.
    async fn answering(&mut self, answering: DecisionResult) -> Value {
        match answering {
            DecisionResult::Accepted(approval) => {
                let call = approval.request.call.id;
                if self.store.task(call).await.expect("readable").is_some() && !self.tasks.contains(&call) {
                    self.tasks.push(call);
                }
                json!({"won": approval})
            }
            DecisionResult::TooLate(approval) => json!({"too late": approval}),
            DecisionResult::Unknown => json!("unknown"),
        }
    }
}

fn value(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("JSON")
}

fn end(call_id: CallId, number: u8) -> TaskEnd {
    let outcome = |result| Outcome { call_id, tool: "a".into(), status: Status::Done(result), duration: Duration::ZERO };
    match number % 6 {
        0 | 1 => TaskEnd::Over(outcome(Ok(Output::text(format!("result {number}"))))),
        2 => TaskEnd::Over(outcome(Err(ToolError::new(ErrorKind::Failed, "no")))),
        3 => TaskEnd::Over(outcome(Err(ToolError::cancelled()))),
        4 => TaskEnd::Again(outcome(Err(ToolError::new(ErrorKind::Unreachable, "not now")))),
        _ => TaskEnd::Untouched,
    }
}

/// Which error; its text may name a task.
fn kind(error: &StoreError) -> &'static str {
    match error {
        StoreError::Lost => "lost",
        StoreError::NotFound(_) => "not found",
        StoreError::Conflict(_) => "conflict",
        _ => "broken",
    }
}

/// Without times, and with tasks by their place.
fn plain(value: Value, names: &BTreeMap<String, usize>) -> Value {
    match value {
        Value::String(text) => match names.get(&text) {
            Some(place) => json!({"task": place}),
            None if text.parse::<helve_core::Timestamp>().is_ok() => json!("a time"),
            None => Value::String(text),
        },
        Value::Array(items) => items.into_iter().map(|item| plain(item, names)).collect(),
        Value::Object(mut fields) => {
            // A copy has another id on each side, and so has the consent to it.
            if fields.contains_key("retry_of")
                && let Some(digest) = fields.get_mut("consent").and_then(|consent| consent.get_mut("digest"))
            {
                *digest = json!("of a copy");
            }
            fields.into_iter().map(|(name, value)| (name, plain(value, names))).collect()
        }
        other => other,
    }
}
