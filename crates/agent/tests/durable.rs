//! Runs that are recorded: they survive their process, people answer days later, and background calls come back.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use helve_agent::{Agent, AgentError, Context, ContextError, ScriptedModel};
use helve_core::store::{ApprovalState, DecisionRecord, DecisionResult, MemoryStore, RunState, TaskFilter, TaskState};
use helve_core::{ErrorKind, EventData, MessageBody, Outcome, RunId, Store, Verdict, tool};
use helve_tools::{Catalogue, Executor, StoreHandle, Worker};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Deletes a file.
#[tool(crate = helve_core, permission = "confirm")]
async fn delete(path: String) -> String {
    format!("deleted {path}")
}

/// Adds.
#[tool(crate = helve_core)]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

static CHARGED: AtomicUsize = AtomicUsize::new(0);

/// Takes money, and never comes back.
#[tool(crate = helve_core)]
async fn charge() -> String {
    CHARGED.fetch_add(1, Ordering::SeqCst);
    std::future::pending().await
}

static LOOKED: AtomicUsize = AtomicUsize::new(0);

/// Looks something up; the first time it never comes back.
#[tool(crate = helve_core, idempotent)]
async fn look() -> String {
    if LOOKED.fetch_add(1, Ordering::SeqCst) == 0 {
        std::future::pending::<()>().await;
    }
    "seen".to_owned()
}

/// Makes a report, later.
#[tool(crate = helve_core, background)]
async fn report(topic: String) -> String {
    format!("all about {topic}")
}

static GATES: [Notify; 2] = [const { Notify::const_new() }; 2];

/// Makes a report when its gate opens.
#[tool(crate = helve_core, background)]
async fn gated_report(gate: usize) -> String {
    GATES[gate].notified().await;
    "all about gates".to_owned()
}

fn agent(model: ScriptedModel, store: &MemoryStore) -> Agent {
    let mut agent = Agent::new(model).with_store(StoreHandle::new(Arc::new(store.clone()))).expect("the first");
    register(&mut agent);
    agent
}

fn register(agent: &mut Agent) {
    for tool in [delete::tool(), add::tool(), charge::tool(), look::tool(), report::tool(), gated_report::tool()] {
        agent.register_tool(tool).expect("a tool");
    }
}

async fn only_run(store: &MemoryStore) -> helve_core::store::RunRecord {
    let mut runs = store.runs(None, 10).await.expect("a list");
    assert_eq!(runs.len(), 1);
    runs.pop().expect("a run")
}

/// What is recorded of a run keeps the contract: numbers without gaps, each call with exactly one end.
async fn events(store: &MemoryStore, run: RunId) -> Vec<EventData> {
    let events = store.events(run, 0, 1000).await.expect("events");
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let events: Vec<EventData> = events.into_iter().map(|event| event.data).collect();
    assert!(!events.iter().any(EventData::is_piece));
    for event in &events {
        if let EventData::ToolRequested { call_id, .. } = event {
            let is_end = |event: &&EventData| matches!(event, EventData::ToolComplete { call_id: other, .. } if other == call_id);
            assert_eq!(events.iter().filter(is_end).count(), 1, "{call_id} in {events:?}");
        }
    }
    events
}

fn told(model: &ScriptedModel) -> String {
    let asked = model.requests();
    let messages = asked.last().expect("a request").messages.iter();
    messages
        .map(|message| match message.body() {
            MessageBody::Tool { text, .. } => format!("{text}\n"),
            body => format!("{body:?}\n"),
        })
        .collect()
}

fn yes(by: &str) -> DecisionRecord {
    DecisionRecord { verdict: Verdict::Approve, by: by.into(), reason: None, always: false, arguments: None }
}

#[tokio::test]
async fn a_run_is_recorded_with_two_commits_a_turn() {
    let store = MemoryStore::default();
    let model = ScriptedModel::new().calls([("add", json!({"a": 1, "b": 2})), ("add", json!({"a": 3, "b": 4}))]).says("3 and 7");
    let mut agent = agent(model, &store);
    let live: Vec<_> = agent.run_stream("add").await.expect("a run").collect().await;
    let run = only_run(&store).await;
    assert_eq!((run.state, &*run.input, run.holder), (RunState::Done, "add", None));
    let recorded = events(&store, run.id).await;
    assert!(matches!(recorded.last(), Some(EventData::RunFinished { text, .. }) if &**text == "3 and 7"));
    let seen: Vec<u64> = live.iter().flatten().filter(|event| !event.data.is_piece()).map(|event| event.seq).collect();
    assert_eq!(seen, (1..=recorded.len() as u64).collect::<Vec<_>>(), "whoever listens sees what is recorded");
    // Two for each of the two turns.
    assert_eq!(*store.changes().borrow(), 2 * 2);
    let conversation = store.conversation(run.conversation_id).await.expect("readable").expect("a conversation");
    assert_eq!(conversation.messages, agent.conversation().messages);
}

#[tokio::test]
async fn a_run_waits_for_an_answer_and_goes_on_in_another_process() {
    let store = MemoryStore::default();
    let calls = [("delete", json!({"path": "a"})), ("add", json!({"a": 1, "b": 2})), ("delete", json!({"path": "b"}))];
    let error = agent(ScriptedModel::new().calls(calls), &store).run("go").await.expect_err("it waits");
    assert!(matches!(error, AgentError::Waiting(_)));
    let run = only_run(&store).await;
    assert_eq!((run.state, run.holder), (RunState::Waiting, None));
    let mut open = store.approvals(Some(run.id), true, 10).await.expect("a list");
    open.sort_by_key(|approval| approval.request.call.arguments["path"].to_string());
    let [a, b] = &open[..] else { panic!("two requests") };
    assert_eq!(a.request.call.arguments, json!({"path": "a"}));
    let no = DecisionRecord { verdict: Verdict::Deny, reason: Some("I need it".into()), ..yes("bob") };
    assert!(matches!(store.decide(b.request.id, no).await, Ok(DecisionResult::Accepted(_))));
    // One answer is not enough.
    let error = agent(ScriptedModel::new(), &store).resume_run(run.id).await.expect_err("it waits still");
    assert!(matches!(error, AgentError::Waiting(paused) if paused.requests.len() == 1));
    store.decide(a.request.id, yes("ada")).await.expect("answered");
    assert_eq!(store.run(run.id).await.expect("readable").expect("a run").state, RunState::Ready);
    let model = ScriptedModel::new().says("done");
    let answer = agent(model.clone(), &store).resume_run(run.id).await.expect("an answer");
    assert_eq!(answer.text, "done");
    let told = told(&model);
    assert!(told.contains("deleted a") && told.contains("I need it") && !told.contains("deleted b"), "{told}");
    let results = events(&store, run.id).await.into_iter().filter_map(|event| match event {
        EventData::PermissionResult { decision, by, .. } => Some((decision, by)),
        _ => None,
    });
    assert_eq!(results.collect::<Vec<_>>(), [(Verdict::Deny, "bob".to_owned()), (Verdict::Approve, "ada".to_owned())]);
}

#[tokio::test]
async fn arguments_that_a_person_changed_run_instead() {
    let store = MemoryStore::default();
    let model = ScriptedModel::new().calls([("delete", json!({"path": "a"}))]);
    agent(model, &store).run("go").await.expect_err("it waits");
    let open = store.approvals(None, true, 10).await.expect("a list").pop().expect("a request");
    store
        .decide(open.request.id, DecisionRecord { arguments: Some(json!({"path": "z"})), always: true, ..yes("ada") })
        .await
        .expect("answered");
    let model = ScriptedModel::new().calls([("delete", json!({"path": "y"}))]).says("done");
    let run = only_run(&store).await;
    let mut agent = agent(model.clone(), &store);
    agent.resume_run(run.id).await.expect("an answer, without another request");
    let told = told(&model);
    assert!(told.contains("deleted z") && !told.contains("deleted a") && told.contains("deleted y"), "{told}");
}

/// Drops a run in the middle of a call, as a process does that is killed.
async fn killed(agent: &mut Agent, store: &MemoryStore) -> RunId {
    let handle = agent.store().expect("a store").clone();
    let mut run = Box::pin(agent.run("go"));
    assert!(tokio::time::timeout(Duration::from_millis(200), &mut run).await.is_err());
    // Without a heartbeat nothing is given back.
    handle.close().await.expect("gone");
    drop(run);
    let run = only_run(store).await;
    assert_eq!(run.state, RunState::Running);
    run.id
}

#[tokio::test]
async fn a_call_that_must_not_run_twice_is_interrupted() {
    let store = MemoryStore::default();
    let model = ScriptedModel::new().calls([("charge", json!({})), ("add", json!({"a": 1, "b": 2}))]);
    let run = killed(&mut agent(model, &store), &store).await;
    let model = ScriptedModel::new().says("done");
    agent(model.clone(), &store).resume_run(run).await.expect("an answer");
    assert_eq!(CHARGED.load(Ordering::SeqCst), 1);
    assert!(told(&model).contains("interrupted"), "{}", told(&model));
    let ends = events(&store, run).await.into_iter().filter_map(|event| match event {
        EventData::ToolComplete { outcome, .. } => outcome.error().map(helve_core::ToolError::kind),
        _ => None,
    });
    assert!(ends.collect::<Vec<_>>().contains(&ErrorKind::Interrupted));
}

#[tokio::test]
async fn a_call_that_may_run_twice_runs_again() {
    let store = MemoryStore::default();
    let run = killed(&mut agent(ScriptedModel::new().calls([("look", json!({}))]), &store), &store).await;
    let model = ScriptedModel::new().says("done");
    agent(model.clone(), &store).resume_run(run).await.expect("an answer");
    assert!(told(&model).contains("seen"));
    events(&store, run).await;
}

#[tokio::test]
async fn a_run_that_lost_its_lease_cannot_write_any_more() {
    let store = MemoryStore::default();
    let model = ScriptedModel::new().calls([("delete", json!({"path": "a"}))]).says("never");
    let mut first = agent(model, &store);
    let error = first.run("go").await.expect_err("it waits");
    let run = only_run(&store).await.id;
    let open = store.approvals(None, true, 10).await.expect("a list").pop().expect("a request");
    store.decide(open.request.id, yes("ada")).await.expect("answered");
    agent(ScriptedModel::new().says("done"), &store).resume_run(run).await.expect("an answer");
    let error = match error {
        AgentError::Waiting(_) => first.resume_run(run).await.expect_err("it is over"),
        other => other,
    };
    assert_eq!(error.kind(), "storage");
    assert_eq!(store.approvals(None, false, 10).await.expect("a list")[0].state, ApprovalState::Approved);
}

#[tokio::test]
async fn a_background_call_is_accepted_and_its_result_told_once() {
    let store = MemoryStore::default();
    let model = ScriptedModel::new().calls([("report", json!({"topic": "bees"}))]).says("I ordered it").says("bees!").says("again");
    // Whoever brings an executor brings a worker.
    let agent = Agent::with_tools(model.clone(), Catalogue::new(), Executor::default(), None).with_context(Counter(0));
    let mut agent = agent.with_store(StoreHandle::new(Arc::new(store.clone()))).expect("the first");
    register(&mut agent);
    assert_eq!(agent.run("report on bees").await.expect("an answer").text, "I ordered it");
    assert!(told(&model).contains("accepted"));
    let task = store.tasks(TaskFilter::default()).await.expect("a list").pop().expect("a task");
    assert_eq!(task.state, TaskState::Queued);
    let count = Worker::new(StoreHandle::new(Arc::new(store.clone())), Executor::default(), agent.catalogue().clone(), 4)
        .run_until_empty(CancellationToken::new())
        .await
        .expect("work");
    assert_eq!(count, 1);
    let run = task.caller.run.expect("a run");
    let finished = events(&store, run).await;
    assert!(matches!(finished.last(), Some(EventData::TaskFinished { outcome, .. }) if outcome.is_success()), "{finished:?}");
    agent.run("and?").await.expect("an answer");
    assert!(told(&model).contains("all about bees"));
    agent.run("and now?").await.expect("an answer");
    assert_eq!(told(&model).matches("all about bees").count(), 1);
    let saved = store.conversations(1).await.expect("a list").pop().expect("a conversation");
    assert_eq!(saved.contexts["counter"], json!(2), "accepted, and then done");
}

/// Counts what it hears, and remembers it.
struct Counter(u64);

impl Context for Counter {
    fn id(&self) -> &str {
        "counter"
    }

    fn render(&self) -> Result<Option<String>, ContextError> {
        Ok(None)
    }

    fn save(&self) -> Option<Value> {
        Some(json!(self.0))
    }

    fn restore(&mut self, saved: Value) -> Result<(), ContextError> {
        self.0 = serde_json::from_value(saved)?;
        Ok(())
    }

    fn on_tool_call(&mut self, _: &Outcome) -> Result<(), ContextError> {
        self.0 += 1;
        Ok(())
    }
}

#[tokio::test]
async fn contexts_remember_across_processes() {
    let store = MemoryStore::default();
    let model = ScriptedModel::new().calls([("add", json!({"a": 1, "b": 2}))]).calls([("delete", json!({"path": "a"}))]);
    agent(model, &store).with_context(Counter(0)).run("go").await.expect_err("it waits");
    let open = store.approvals(None, true, 10).await.expect("a list").pop().expect("a request");
    store.decide(open.request.id, yes("ada")).await.expect("answered");
    let run = only_run(&store).await;
    agent(ScriptedModel::new().says("done"), &store).with_context(Counter(0)).resume_run(run.id).await.expect("an answer");
    let saved = store.conversation(run.conversation_id).await.expect("readable").expect("a conversation");
    assert_eq!(saved.contexts["counter"], json!(2));
    assert_eq!(saved.message_count, saved.messages.len());
}

/// An agent whose runs are not recorded has a queue too; it ends with the agent.
#[tokio::test]
async fn without_a_record_background_calls_run_in_memory() {
    let model = ScriptedModel::new().calls([("report", json!({"topic": "bees"}))]);
    let model = (0..200).fold(model, |model, _| model.says("I see"));
    let mut agent = Agent::new(model.clone());
    agent.register_tool(report::tool()).expect("a tool");
    agent.run("report on bees").await.expect("an answer");
    assert!(told(&model).contains("accepted"));
    while !told(&model).contains("all about bees") {
        tokio::time::sleep(Duration::from_millis(20)).await;
        agent.run("and?").await.expect("an answer");
    }
    assert!(agent.tool_calls().pending().is_empty());
}

/// Waits until the agent has something to say to results.
async fn result(agent: &mut Agent, store: &dyn Store) -> String {
    let mut changes = store.changes();
    loop {
        if let Some(answer) = agent.run_on_results().await.expect("no trouble") {
            return answer.text;
        }
        changes.changed().await.expect("a store");
    }
}

#[tokio::test]
async fn an_agent_with_an_executor_of_its_own_works_on_its_queue() {
    let store = MemoryStore::default();
    let model = ScriptedModel::new().calls([("gated_report", json!({"gate": 0}))]).says("I ordered it").says("here it is");
    let mut agent = agent(model.clone(), &store);
    assert_eq!(agent.run_on_results().await.expect("no trouble"), None, "nothing was ordered");
    assert_eq!(agent.run("report").await.expect("an answer").text, "I ordered it");
    GATES[0].notify_one();
    assert_eq!(result(&mut agent, &store).await, "here it is");
    assert!(told(&model).contains("all about gates"));
}

#[tokio::test]
async fn results_of_a_queue_in_memory_are_answered_too() {
    let model = ScriptedModel::new().calls([("gated_report", json!({"gate": 1}))]).says("I ordered it").says("here it is");
    let mut agent = Agent::new(model.clone());
    register(&mut agent);
    assert_eq!(agent.run_on_results().await.expect("no trouble"), None, "there is no queue yet");
    assert_eq!(agent.run("report").await.expect("an answer").text, "I ordered it");
    // A fork goes on with the queue when the first agent is gone.
    let mut fork = agent.fork().with_conversation(agent.conversation().clone());
    drop(agent);
    GATES[1].notify_one();
    let store = fork.executor().store().expect("a queue").inner().clone();
    assert_eq!(result(&mut fork, &*store).await, "here it is");
}

#[tokio::test]
async fn an_agent_and_its_executor_have_one_record() {
    let (first, second) = (StoreHandle::in_memory(), StoreHandle::in_memory());
    let executor = Executor::default();
    executor.use_store(first.clone()).expect("the first");
    executor.use_store(first.clone()).expect("the same");
    assert!(executor.use_store(second.clone()).is_err());
    let agent = || Agent::with_tools(ScriptedModel::new(), Catalogue::new(), executor.clone(), None);
    let agent = agent().with_store(second.clone()).err().map(|error| (error, agent().with_store(first)));
    let Some((error, Ok(agent))) = agent else { panic!("only the executor's own store fits") };
    assert!(matches!(&error, AgentError::OtherStore), "{error}");
    assert!(agent.with_store(second).is_err());
}
