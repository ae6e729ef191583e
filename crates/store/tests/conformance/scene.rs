//! Tasks, runs and processes to try a store with.

pub use std::collections::{BTreeMap, BTreeSet};
pub use std::sync::Arc;
pub use std::time::Duration;

pub use helve_core::store::{Claim, Consent, Finish, NewRun, NewTask, RunCommit, RunState, Task, TaskEnd, TaskFilter};
pub use helve_core::{
    CallId, Caller, ConversationId, Digest, EndOfRun, ErrorKind, EventData, HolderId, Message, MessageBody, Outcome, Output, Part, RunId,
    Status, Store, ToolCall, ToolError, Usage,
};
pub use jiff::Timestamp;
pub use serde_json::json;

pub const LEASE: Duration = Duration::from_mins(1);

pub fn definition(name: &str) -> Digest {
    Digest::of([name.as_bytes()])
}

/// A task that may run more than once.
pub fn task(tool: &str) -> NewTask {
    NewTask { idempotent: true, ..NewTask::new(ToolCall::new(tool, json!({"n": 1})), definition(tool)) }
}

pub async fn accepted(store: &dyn Store, task: NewTask) -> CallId {
    let id = task.call.id;
    store.accept(task).await.expect("accepted");
    id
}

/// A process that holds what it takes for a minute.
pub async fn process(store: &dyn Store) -> HolderId {
    let holder = HolderId::mint();
    store.keep(holder, LEASE, &[]).await.expect("a lease");
    holder
}

pub async fn claim(store: &dyn Store, holder: HolderId, limit: usize) -> Vec<Task> {
    store.claim(Claim { holder, limit, tools: None }).await.expect("a claim")
}

pub async fn claim_one(store: &dyn Store, holder: HolderId) -> Task {
    claim(store, holder, 1).await.pop().expect("a task")
}

pub fn good(task: &Task) -> Outcome {
    Outcome { call_id: task.id, tool: task.tool.clone(), status: Status::Done(Ok(Output::text("fine"))), duration: Duration::ZERO }
}

pub fn bad(task: &Task, kind: ErrorKind) -> Outcome {
    let error = ToolError::new(kind, "no");
    Outcome { call_id: task.id, tool: task.tool.clone(), status: Status::Done(Err(error)), duration: Duration::ZERO }
}

pub async fn finish(store: &dyn Store, task: &Task, end: TaskEnd) -> helve_core::store::FinishResult {
    let ended = vec![Finish { task: task.id, epoch: task.epoch, end }];
    store.finish(ended).await.expect("recorded").pop().expect("one answer")
}

pub async fn find(store: &dyn Store, id: CallId) -> Task {
    store.task(id).await.expect("readable").expect("a task")
}

pub async fn ids(store: &dyn Store) -> Vec<CallId> {
    store.tasks(TaskFilter::default().limit(1000)).await.expect("a list").into_iter().map(|task| task.id).collect()
}

/// A run that a process began.
pub struct Started {
    pub run: RunId,
    pub conversation: ConversationId,
    pub holder: HolderId,
}

pub fn step(run: RunId, epoch: u64, state: RunState) -> RunCommit {
    RunCommit { snapshot: (!state.is_over()).then(|| json!({"at": epoch})), ..RunCommit::new(run, epoch, state) }
}

pub fn happened(data: EventData) -> (Timestamp, EventData) {
    (Timestamp::now(), data)
}

pub fn note(text: &str) -> (Timestamp, EventData) {
    happened(EventData::Notification { message: text.to_owned() })
}

pub fn ended() -> (Timestamp, EventData) {
    happened(EventData::RunFinished { text: "done".into(), reason: EndOfRun::Answered, usage: Usage::default() })
}

pub fn said(text: &str) -> Arc<Message> {
    Arc::new(Message::new(MessageBody::User { parts: vec![Part::Text { text: text.into() }] }))
}

pub fn new_run(conversation: ConversationId, holder: HolderId) -> NewRun {
    NewRun {
        id: RunId::mint(),
        conversation,
        parent: None,
        agent: Some("ada".into()),
        model: "scripted".into(),
        input: "hello".into(),
        holder,
    }
}

pub async fn begin(store: &dyn Store, conversation: ConversationId, messages: &[&str], before: usize) -> Started {
    let holder = process(store).await;
    let new = new_run(conversation, holder);
    let run = new.id;
    let messages = messages.iter().map(|text| said(text)).collect();
    let commit =
        RunCommit { begin: Some(new), messages, message_count: before, events: vec![note("begun")], ..step(run, 1, RunState::Running) };
    store.commit_run(commit).await.expect("begun");
    Started { run, conversation, holder }
}

pub async fn started(store: &dyn Store) -> Started {
    begin(store, ConversationId::mint(), &["hello"], 0).await
}

pub async fn seqs(store: &dyn Store, run: RunId) -> Vec<u64> {
    store.events(run, 0, 1000).await.expect("events").into_iter().map(|event| event.seq).collect()
}

pub fn of_run(started: &Started) -> Caller {
    Caller::default().agent("ada").conversation(started.conversation).run(started.run).user("ada@example.org")
}
