//! A store in the middle of its work, and one step from there. A test crashes the process before or after the commit.

use std::sync::Arc;
use std::time::Duration;

use helve_core::store::{Approval, Claim, DecisionRecord, Finish, NewRun, NewTask, Progress, RunCommit, RunState, TaskEnd};
use helve_core::{
    ApprovalId, ApprovalRequest, CallId, Caller, ConversationId, Digest, ErrorKind, HolderId, Message, MessageBody, Outcome, Output, Part,
    Rules, RunId, Status, Store, StoreError, ToolCall, ToolError, Verdict,
};
use helve_testkit::spec;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::fixtures::{notes, step};
use crate::location::StoreLocation;
use crate::log::{Log, Paths};

/// Every step, and the transaction that it is.
pub const STEPS: [(&str, &str); 24] = [
    ("accept", "accept"),
    ("claim", "claim"),
    ("finish", "finish"),
    ("finish-again", "finish"),
    ("keep", "keep"),
    ("keep-progress", "keep"),
    ("leave", "leave"),
    ("recover", "recover"),
    ("cancel_task", "cancel_task"),
    ("retry_task", "retry_task"),
    ("hear", "hear"),
    ("ask", "ask"),
    ("answer", "answer"),
    ("answer-without-run", "answer"),
    ("answer-waited-for", "answer"),
    ("take_run", "take_run"),
    ("release_run", "release_run"),
    ("commit_run", "commit_run"),
    ("commit_run-begin", "commit_run"),
    ("commit_run-end", "commit_run"),
    ("cancel_run", "cancel_run"),
    ("put_body", "put_body"),
    ("put_body-large-row", "accept"),
    ("prune", "prune"),
];

/// The ids in the store.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Names {
    holder: HolderId,
    conversation: ConversationId,
    /// A run that a process drives, and one that waits.
    running: RunId,
    waiting: RunId,
    queued: CallId,
    held: CallId,
    failed: CallId,
    asked: ApprovalId,
    asked_alone: ApprovalId,
    /// A process waits for the answer.
    waited_for: ApprovalId,
    /// What steps make.
    new_call: CallId,
    new_run: RunId,
}

fn task(name: &str, call: CallId, run: Option<RunId>, conversation: ConversationId) -> NewTask {
    let call = ToolCall { id: call, ..ToolCall::new(name, json!({"n": 1})) };
    NewTask {
        caller: Caller::default().run(run).conversation(conversation),
        idempotent: true,
        ..NewTask::new(call, Digest::of([name.as_bytes()]))
    }
}

fn request(caller: Caller, expires_at: Option<Timestamp>) -> Approval {
    let call = ToolCall::new("wipe", json!({}));
    let request = ApprovalRequest { expires_at, ..ApprovalRequest::new(call, &"here".into(), &spec("wipe"), caller, "because".into()) };
    Approval::new(request, Digest::of(["wipe".as_bytes()]), &Rules::default())
}

fn begin(run: RunId, conversation: ConversationId, holder: HolderId) -> NewRun {
    NewRun { id: run, conversation, parent: None, agent: None, model: "none".into(), input: "hello".into(), holder }
}

fn good(call: CallId) -> Outcome {
    Outcome { call_id: call, tool: "tool".into(), status: Status::Done(Ok(Output::text("fine"))), duration: Duration::ZERO }
}

fn reply() -> DecisionRecord {
    DecisionRecord { verdict: Verdict::Approve, by: "ada".into(), reason: None, always: true, arguments: None }
}

fn said(text: &str) -> Arc<Message> {
    Arc::new(Message::new(MessageBody::User { parts: vec![Part::Text { text: text.into() }] }))
}

/// Prepares a store in which every step can be done, and logs the ids in it.
///
/// # Errors
/// Returns an error if the store is unavailable.
pub async fn prepare(store: &dyn Store, paths: &Paths) -> Result<(), StoreError> {
    let (conversation, other) = (ConversationId::mint(), ConversationId::mint());
    let (holder, running, waiting) = (HolderId::mint(), RunId::mint(), RunId::mint());
    let of = |run: RunId, conversation: ConversationId| Caller::default().run(run).conversation(conversation);
    store.keep(holder, Duration::from_hours(1), &[]).await?;
    let first = RunCommit {
        begin: Some(begin(running, conversation, holder)),
        messages: vec![said("hello")],
        events: notes(1),
        approvals: vec![request(of(running, conversation), None)],
        ..step(running, 1, RunState::Running)
    };
    store.commit_run(first).await?;
    let asked = request(of(waiting, other), None);
    let asked_alone = request(Caller::default(), None);
    let waited_for = request(Caller::default(), None).asked_by(holder);
    let names = Names {
        holder,
        conversation,
        running,
        waiting,
        queued: CallId::mint(),
        held: CallId::mint(),
        failed: CallId::mint(),
        asked: asked.request.id,
        asked_alone: asked_alone.request.id,
        waited_for: waited_for.request.id,
        new_call: CallId::mint(),
        new_run: RunId::mint(),
    };
    let expired = request(of(waiting, other), Some(Timestamp::UNIX_EPOCH));
    let second = RunCommit {
        begin: Some(begin(waiting, other, holder)),
        approvals: vec![asked, expired],
        events: notes(2),
        ..step(waiting, 1, RunState::Waiting)
    };
    store.commit_run(second).await?;
    store.add_approval(asked_alone).await?;
    store.add_approval(waited_for).await?;
    for call in [names.failed, names.held] {
        store.accept(task("tool", call, Some(running), conversation)).await?;
        store.claim(Claim { holder, limit: 1, tools: None }).await?;
        if call == names.failed {
            let outcome = Outcome::failed(call, "tool".into(), ToolError::new(ErrorKind::Failed, "no"));
            store.finish(vec![Finish { task: call, epoch: 1, end: TaskEnd::Over(outcome) }]).await?;
        }
    }
    store.accept(task("tool", names.queued, Some(running), conversation)).await?;
    // An approval whose process is gone.
    store.add_approval(request(Caller::default(), None).asked_by(HolderId::mint())).await?;
    Log::open(&paths.names()).add(&names);
    Ok(())
}

/// Does one step in a copy of that store.
pub fn perform(paths: &Paths, place: &StoreLocation, name: &str) {
    let names: Names = Log::read(&paths.names()).pop().expect("names");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async { one(&*place.open().await, &names, name).await }).expect("a step");
}

async fn one(store: &dyn Store, names: &Names, name: &str) -> Result<(), StoreError> {
    let Names { holder, conversation, running, .. } = *names;
    let finish = |end| vec![Finish { task: names.held, epoch: 1, end }];
    match name {
        "accept" => store.accept(task("tool", names.new_call, Some(running), conversation)).await.map(drop),
        "claim" => store.claim(Claim { holder, limit: 1, tools: None }).await.map(drop),
        "finish" => store.finish(finish(TaskEnd::Over(good(names.held)))).await.map(drop),
        "finish-again" => store.finish(finish(TaskEnd::Again(good(names.held)))).await.map(drop),
        "keep" => store.keep(holder, Duration::from_hours(2), &[]).await.map(drop),
        "keep-progress" => {
            let half = Progress { fraction: Some(0.5), message: "half".to_owned() };
            store.keep(holder, Duration::from_hours(2), &[(names.held, half)]).await.map(drop)
        }
        "leave" => store.leave(holder).await,
        "recover" => store.recover(HolderId::mint()).await.map(drop),
        "cancel_task" => store.cancel_task(names.queued).await.map(drop),
        "retry_task" => store.retry_task(names.failed).await.map(drop),
        "hear" => store.mark_read(names.failed).await,
        "ask" => store.add_approval(request(Caller::default(), None)).await,
        "answer" => store.decide(names.asked, reply()).await.map(drop),
        "answer-without-run" => store.decide(names.asked_alone, reply()).await.map(drop),
        "answer-waited-for" => store.decide(names.waited_for, reply()).await.map(drop),
        "take_run" => store.take_run(names.waiting, holder).await.map(drop),
        "release_run" => store.release_run(running, holder, 1).await,
        "commit_run" => {
            let caller = Caller::default().run(running).conversation(conversation);
            let commit = RunCommit {
                events: notes(3),
                messages: vec![said("more")],
                message_count: 1,
                approvals: vec![request(caller, None)],
                read: vec![names.failed],
                ..step(running, 1, RunState::Waiting)
            };
            store.commit_run(commit).await.map(drop)
        }
        "commit_run-begin" => {
            let begin = Some(begin(names.new_run, ConversationId::mint(), holder));
            let commit = RunCommit { begin, messages: vec![said("hello")], events: notes(1), ..step(names.new_run, 1, RunState::Running) };
            store.commit_run(commit).await.map(drop)
        }
        "commit_run-end" => store.commit_run(RunCommit { events: notes(1), ..step(running, 1, RunState::Done) }).await.map(drop),
        "cancel_run" => store.cancel_run(running).await.map(drop),
        "put_body" => store.put_body(&[7; 1000]).await.map(drop),
        "put_body-large-row" => {
            let mut task = task("tool", names.new_call, Some(running), conversation);
            task.call.arguments = json!({"text": "x".repeat(200_000)});
            store.accept(task).await.map(drop)
        }
        "prune" => store.prune(Duration::ZERO).await.map(drop),
        _ => panic!("unknown step {name}"),
    }
}
