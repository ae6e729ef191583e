//! Secrets are never stored, and are restored for a process that knows them.

use helve_core::store::{Approval, DecisionRecord, Progress, SealedStore};
use helve_core::{Redactor, SaidCall, Verdict};

use crate::approvals::approval;
use crate::scene::*;

const SECRET: &str = "c4nary\"9000";

fn redactor() -> Redactor {
    let redactor = Redactor::default();
    redactor.add_from("env:HOUSE_TOKEN", [SECRET.to_owned().into()]);
    redactor
}

fn sealed(store: &Arc<dyn Store>, redactor: &Redactor, are_kept: bool) -> SealedStore {
    let sealed = SealedStore::new(store.clone());
    sealed.use_secrets(redactor, are_kept);
    sealed
}

fn result(task: &Task) -> Outcome {
    let output = Output::text(SECRET).with_data(json!({SECRET: SECRET})).with_metadata("x", SECRET.into());
    Outcome { status: Status::Done(Ok(output)), ..good(task) }
}

/// Everything that an engine has of a run and its calls, as text.
async fn everything(store: &dyn Store, run: &Started) -> String {
    let tasks = store.tasks(TaskFilter::default()).await.expect("tasks");
    let approvals = store.approvals(None, false, 100).await.expect("approvals");
    let events = store.events(run.run, 0, 100).await.expect("events");
    let conversation = store.conversation(run.conversation).await.expect("readable");
    let taken = store.take_run(run.run, run.holder).await.expect("the run");
    json!([tasks, approvals, events, conversation, taken.snapshot, taken.record]).to_string()
}

/// Writes the secret wherever there is a text.
async fn say_it_everywhere(store: &dyn Store) -> (Started, Approval, CallId) {
    let run = begin(store, ConversationId::mint(), &[SECRET], 0).await;
    let mut asked = approval(of_run(&run));
    asked.request.call.arguments = json!({"disk": SECRET});
    let (model_id, arguments) = (Some(SECRET.into()), json!([SECRET]).to_string());
    let call = SaidCall { id: CallId::mint(), model_id, tool: SECRET.into(), arguments, native_model: None };
    let reasoning = Some(SECRET.into());
    let body = MessageBody::Assistant { text: SECRET.into(), reasoning, calls: vec![call.clone()], kept: None };
    let events = vec![
        note(SECRET),
        happened(EventData::ToolRequested { call_id: call.id, tool: "x".into(), arguments: json!({"x": SECRET}) }),
        happened(EventData::ModelResponded {
            turn: 1,
            text: SECRET.into(),
            calls: vec![call],
            end: helve_core::EndReason::Stop,
            usage: Usage::default(),
        }),
    ];
    let commit = RunCommit {
        events,
        messages: vec![Arc::new(Message::new(body))],
        message_count: 1,
        approvals: vec![asked.clone()],
        contexts: BTreeMap::from([("notes".to_owned(), json!([SECRET]))]),
        snapshot: Some(json!({"turn": {"slots": [{"arguments": format!("{{\"a\":{}}}", json!(SECRET))}]}})),
        ..step(run.run, 1, RunState::Waiting)
    };
    store.commit_run(commit).await.expect("recorded");
    let written = DecisionRecord {
        verdict: Verdict::Approve,
        by: "ada".into(),
        reason: Some(SECRET.into()),
        always: false,
        arguments: Some(json!({"disk": [SECRET]})),
    };
    store.decide(asked.request.id, written).await.expect("answered");
    let call = ToolCall::new("later", json!({"text": SECRET}));
    let task = accepted(store, NewTask { caller: of_run(&run), ..NewTask::new(call, definition("later")) }).await;
    let held = claim_one(store, run.holder).await;
    assert_eq!(held.call.arguments, json!({"text": SECRET}), "the process that runs it gets it");
    store.keep(run.holder, LEASE, &[(task, Progress { fraction: None, message: SECRET.into() })]).await.expect("kept");
    finish(store, &held, TaskEnd::Over(result(&held))).await;
    (run, asked, task)
}

pub async fn a_secret_is_never_stored_and_comes_back(store: Arc<dyn Store>) {
    let known = sealed(&store, &redactor(), false);
    let (run, asked, task) = say_it_everywhere(&known).await;
    let raw = everything(&*store, &run).await;
    assert!(!raw.contains("c4nary") && raw.contains("[REDACTED:env:HOUSE_TOKEN:"), "{raw}");

    let conversation = known.conversation(run.conversation).await.expect("readable").expect("a conversation");
    assert_eq!(*conversation.messages[0], *said(SECRET));
    assert!(json!(conversation.messages[1]).to_string().matches("c4nary").count() == 5, "{conversation:?}");
    assert_eq!(conversation.contexts["notes"], json!([SECRET]));
    let back = known.approval(asked.request.id).await.expect("readable").expect("a request");
    assert_eq!(back.request, asked.request);
    assert_eq!(back.decision.and_then(|decision| decision.arguments), Some(json!({"disk": [SECRET]})));
    assert_eq!(find(&known, task).await.call.arguments, json!({"text": SECRET}));

    // A process that does not know it sees placeholders.
    let shown = json!(find(&sealed(&store, &Redactor::default(), false), task).await).to_string();
    assert!(!shown.contains("c4nary") && shown.contains("[REDACTED:env:HOUSE_TOKEN:"), "{shown}");
}

pub async fn a_secret_is_stored_where_that_is_wanted(store: Arc<dyn Store>) {
    let (run, ..) = say_it_everywhere(&sealed(&store, &redactor(), true)).await;
    let raw = everything(&*store, &run).await;
    assert!(raw.contains("c4nary") && !raw.contains("[REDACTED"), "{raw}");
}
