//! What people decide, as attackers and accidents would have it: edited into what a rule denies, late, for ever, twice, in the middle of
//! a secret, by an approver that panics.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use helve::CancellationToken;
use helve::catalogue::ListSource;
use helve::event::EventData;
use helve::model::{Deltas, EndReason, ModelDelta, ModelError, ModelStream, model_fn};
use helve::permission::{Decision, Verdict};
use helve::prelude::*;
use helve::secret::Redactor;
use helve::store::{StoreHandle, TaskFilter, TaskState};
use helve::tool::{DynTool, InputNeeded, InputRequest};
use helve_testkit::{fake, spec};
use serde_json::Value;

const SECRET: &str = "Zq8xK2mVt5wLr9Bn";

type Ran = Arc<Mutex<Vec<Value>>>;

/// A tool that must be confirmed, and what it was called with.
fn wipe() -> (Arc<dyn DynTool>, Ran) {
    let ran = Ran::default();
    let noted = ran.clone();
    let tool = fake(spec("wipe").with_rules(Rules::default().permission(Permission::Confirm)), move |call, _| {
        noted.lock().expect("a list").push(call.arguments.clone());
        Box::pin(async { Ok(Output::text("wiped")) })
    });
    (tool, ran)
}

/// A tool that wants to know something.
fn curious() -> Arc<dyn DynTool> {
    fake(spec("ask"), |call, cx| {
        Box::pin(async move {
            if cx.given().is_some() || call.arguments.get("danger").is_some() {
                return Ok(Output::text("done"));
            }
            let request = InputRequest { key: "which".into(), message: "Which?".into(), schema: None, url: None };
            Err(ToolError::needs_input(InputNeeded::new(vec![request], json!(1))))
        })
    })
}

fn helve_with(options: ExecutorOptions, tools: impl IntoIterator<Item = Arc<dyn DynTool>>) -> Helve {
    let helve = Helve::with_options(options);
    helve.catalogue().add_source(Arc::new(ListSource::new("tests", tools)));
    helve
}

fn recorded(tools: impl IntoIterator<Item = Arc<dyn DynTool>>) -> Helve {
    helve_with(ExecutorOptions::default().store(StoreHandle::in_memory()), tools)
}

fn secrets() -> Redactor {
    let redactor = Redactor::default();
    redactor.add([SECRET.to_owned().into()]);
    redactor
}

fn asked(state: CallState) -> ApprovalRequest {
    match state {
        CallState::Waiting(request) => *request,
        CallState::Over(outcome) => panic!("a person must be asked: {outcome:?}"),
    }
}

async fn work(helve: &Helve) {
    let store = helve.executor().store().expect("a store");
    helve.task_worker(store, 1).run_until_empty(CancellationToken::new()).await.expect("worked");
}

#[tokio::test]
async fn rules_for_sets_and_agents_hold_for_calls_that_are_answered_later() {
    for rule in [PermissionRule::default().set("files"), PermissionRule::default().agent("bob")] {
        let (tool, ran) = wipe();
        let helve = recorded([tool]);
        helve.catalogue().define_set(ToolSet::new("files", ["wipe"]));
        helve.executor().set_policy(Policy::new(vec![rule.permission(Permission::Deny).when("path", "/etc/*")]));
        let selection = Selection::default().agent("bob").sets(["files"]);
        let toolkit = helve.catalogue().toolkit(&selection, &View::default()).expect("a toolkit");
        let call = ToolCall::new("wipe", json!({"path": "/tmp/x"}));
        let request = asked(helve.executor().call(&toolkit, call, &CallContext::default()).await);
        let id = request.id;
        helve.executor().ask_later(&toolkit, request).await.expect("stored");
        helve.decide(id, &Decision::Edit(json!({"path": "/etc/passwd"})), "ada").await.expect("answered");
        work(&helve).await;
        assert!(ran.lock().expect("a list").is_empty());
        let tasks = helve.executor().store().expect("a store").tasks(TaskFilter::default()).await.expect("tasks");
        assert_eq!(tasks[0].state, TaskState::Failed);
    }
}

#[tokio::test]
async fn what_a_tool_wants_to_know_is_no_approval_of_a_call() {
    let helve = recorded([curious()]);
    let request = asked(helve.executor().call(&helve.toolkit(), ToolCall::new("ask", json!({})), &CallContext::default()).await);
    assert!(helve.ask_later(request).await.is_err(), "its call has begun, and cannot begin later");
}

#[tokio::test]
async fn always_to_what_a_tool_wants_to_know_allows_nothing() {
    let policy = Policy::new(vec![PermissionRule::for_tool("ask", Permission::Confirm).when("danger", "*")]);
    let helve = helve_with(ExecutorOptions::default().policy(policy).store(StoreHandle::in_memory()), [curious()]);
    let Err(AgentError::Waiting(paused)) = helve.agent(ScriptedModel::new().calls([("ask", json!({}))])).run("go").await else {
        panic!("a person must answer");
    };
    helve.decide(paused.requests[0].id, &Decision::Always, "ada").await.expect("answered");
    let mut agent = helve.agent(ScriptedModel::new().calls([("ask", json!({"danger": "1"}))]).says("done"));
    let ended = agent.resume_run(paused.run.id()).await;
    assert!(matches!(ended, Err(AgentError::Waiting(_))), "{ended:?}");
}

#[tokio::test]
async fn a_late_always_opens_nothing() {
    for store in [None, Some(StoreHandle::in_memory())] {
        let (tool, ran) = wipe();
        let policy = Policy::default().with_approval_time(Some(Duration::from_millis(20)));
        let mut options = ExecutorOptions::default().policy(policy);
        options.store = store;
        let first = Arc::new(AtomicUsize::new(0));
        let slow = move |_: ApprovalRequest| {
            let first = first.clone();
            async move {
                if first.fetch_add(1, Ordering::SeqCst) > 0 {
                    return Decision::Deny { reason: None };
                }
                tokio::time::sleep(Duration::from_millis(60)).await;
                Decision::Always
            }
        };
        let model = ScriptedModel::new().calls([("wipe", json!({"n": 1}))]).calls([("wipe", json!({"n": 2}))]).says("done");
        let mut agent = helve_with(options, [tool]).agent(model).with_approver(slow);
        agent.run("go").await.expect("an answer");
        assert!(ran.lock().expect("a list").is_empty());
    }
}

#[tokio::test]
async fn a_no_that_was_said_stays_said_when_a_rule_is_lifted() {
    let (tool, ran) = wipe();
    let helve = helve_with(ExecutorOptions::default(), [tool]);
    let (executor, toolkit, cx) = (helve.executor(), helve.toolkit(), CallContext::default());
    let request = asked(executor.call(&toolkit, ToolCall::new("wipe", json!({})), &cx).await);
    executor.set_policy(Policy::new(vec![PermissionRule::for_tool("wipe", Permission::Deny)]));
    executor.resume(&toolkit, request.call.clone(), request.resolve(Verdict::Deny, "ada"), &cx).await;
    executor.set_policy(Policy::default());
    let state = executor.resume(&toolkit, request.call.clone(), request.resolve(Verdict::Approve, "eve"), &cx).await;
    assert!(state.into_outcome().error().is_some() && ran.lock().expect("a list").is_empty());
}

#[tokio::test]
async fn a_secret_in_edited_arguments_is_told_to_nobody() {
    let (tool, ran) = wipe();
    let helve = helve_with(ExecutorOptions::default().redactor(secrets()), [tool]);
    let model = ScriptedModel::new().calls([("wipe", json!({}))]).says("done");
    let person = |_: ApprovalRequest| async { Decision::Edit(json!({"key": SECRET})) };
    helve.agent(model.clone()).with_approver(person).run("go").await.expect("an answer");
    assert_eq!(*ran.lock().expect("a list"), [json!({"key": SECRET})]);
    let told = json!(model.requests().last().expect("asked").messages).to_string();
    assert!(told.contains("the user changed the arguments") && !told.contains(SECRET), "{told}");
}

/// A tool that works while the model still speaks must not show half of a secret.
#[tokio::test]
async fn a_secret_is_not_cut_in_two_by_what_happens_beside_it() {
    let (begun, spoken) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let (starts, goes_on) = (begun.clone(), spoken.clone());
    let look = fake(spec("look").with_rules(Rules::default().idempotent(true)), move |_, cx| {
        let (starts, goes_on) = (starts.clone(), goes_on.clone());
        Box::pin(async move {
            goes_on.notified().await;
            cx.progress(Some(0.5), "half way");
            starts.notify_one();
            Ok(Output::text("seen"))
        })
    });
    let turn = Arc::new(AtomicUsize::new(0));
    let model = model_fn("torn", move |_| {
        let (begun, spoken, turn) = (begun.clone(), spoken.clone(), turn.fetch_add(1, Ordering::SeqCst));
        async move {
            if turn > 0 {
                return Ok::<_, ModelError>(ModelStream::from("done"));
            }
            let (first, second) = SECRET.split_at(8);
            let call = ModelDelta::Call { index: Some(0), id: Some("c1"), name: Some("look"), arguments: "{}" };
            let head: Deltas = [call, ModelDelta::Text("the key is "), ModelDelta::Text(first)].into_iter().collect();
            let tail: Deltas = [ModelDelta::Text(second), ModelDelta::Text(" ok"), ModelDelta::End(EndReason::Calls)].into_iter().collect();
            let pieces = futures_util::stream::once(async { Ok(head) }).chain(futures_util::stream::once(async move {
                spoken.notify_one();
                let _ = tokio::time::timeout(Duration::from_secs(2), begun.notified()).await;
                Ok(tail)
            }));
            Ok(ModelStream::of(pieces))
        }
    });
    let mut agent = helve_with(ExecutorOptions::default().redactor(secrets()), [look]).agent(model);
    let mut stream = agent.run_stream("go").await.expect("a run");
    let mut text = String::new();
    while let Some(event) = stream.next().await {
        if let EventData::TextDelta { text: piece } = event.expect("an event").data {
            text.push_str(&piece);
        }
    }
    assert!(!text.contains(SECRET) && !text.contains(&SECRET[..8]) && text.contains("done"), "{text}");
}

#[tokio::test]
async fn a_stored_no_is_not_overruled_by_whoever_holds_the_paused_run() {
    let (tool, ran) = wipe();
    let helve = recorded([tool]);
    let mut agent = helve.agent(ScriptedModel::new().calls([("wipe", json!({}))]).says("one"));
    let Err(AgentError::Waiting(paused)) = agent.run("go").await else { panic!("a person must decide") };
    helve.decide(paused.requests[0].id, &Decision::Deny { reason: None }, "ada").await.expect("answered");
    let grants = paused.requests.iter().map(|request| request.resolve(Verdict::Approve, "eve")).collect();
    assert_eq!(agent.resume(*paused, grants).await.expect("an answer").text, "one");
    assert!(ran.lock().expect("a list").is_empty());
}

#[tokio::test]
async fn a_paused_run_that_goes_on_is_over_for_everybody() {
    let (tool, ran) = wipe();
    let helve = recorded([tool]);
    let mut agent = helve.agent(ScriptedModel::new().calls([("wipe", json!({}))]).says("one"));
    let Err(AgentError::Waiting(paused)) = agent.run("go").await else { panic!("a person must decide") };
    let (run, request) = (paused.run.id(), paused.requests[0].id);
    let grants = paused.requests.iter().map(|request| request.resolve(Verdict::Approve, "eve")).collect();
    agent.resume(*paused, grants).await.expect("an answer");
    assert!(helve.decide(request, &Decision::Approve, "ada").await.is_err(), "it was answered");
    assert!(helve.agent(ScriptedModel::new().says("two")).resume_run(run).await.is_err(), "it is over");
    assert_eq!(ran.lock().expect("a list").len(), 1);
}

#[tokio::test]
async fn panics_of_approvers_and_models_are_contained() {
    let (tool, ran) = wipe();
    let helve = helve_with(ExecutorOptions::default(), [tool]);
    let model = ScriptedModel::new().calls([("wipe", json!({}))]).says("done");
    let panics = |_: ApprovalRequest| async { panic!("the approver is broken") };
    let ended = helve.agent(model).with_approver(panics).run("go").await;
    assert!(matches!(ended, Err(AgentError::Waiting(_))), "nobody has answered: {ended:?}");
    let state = helve.executor().call_with(&helve.toolkit(), ToolCall::new("wipe", json!({})), &CallContext::default(), &panics).await;
    assert!(matches!(state, CallState::Waiting(_)) && ran.lock().expect("a list").is_empty());
    let broken = model_fn("broken", |_| async { if true { panic!("the model is broken") } else { Ok::<_, ModelError>("") } });
    let ended = helve.agent(broken).run("go").await;
    assert!(matches!(ended, Err(AgentError::Provider(_))), "{ended:?}");
}

#[tokio::test]
async fn results_are_waited_for_behind_a_hundred_others_and_without_workers() {
    let nap = tool_fn("nap", "Naps.", |args: Value, _| async move {
        tokio::time::sleep(Duration::from_millis(args["ms"].as_u64().unwrap_or_default())).await;
        Ok("rested")
    });
    let helve = Helve::builder().tool(nap.background()).store_handle(StoreHandle::in_memory()).build().await.expect("a helve");
    let calls: Vec<_> = std::iter::once(("nap", json!({"ms": 300}))).chain((0..110).map(|n| ("nap", json!({"ms": 0, "n": n})))).collect();
    let mut model = ScriptedModel::new().calls(calls).says("They nap.");
    for _ in 0..120 {
        model = model.says("Some are rested.");
    }
    // The agent outlives its Helve.
    let mut agent = helve.agent(model).limits(helve::agent::RunLimits::default().max_calls(1000).same_calls(1000));
    drop(helve);
    agent.run("go").await.expect("an answer");
    while let Some(answer) = tokio::time::timeout(Duration::from_secs(20), agent.results()).await.expect("no hang").expect("an answer") {
        assert_eq!(answer.text, "Some are rested.");
    }
    let store = agent.executor().store().expect("a store").inner().clone();
    let tasks = store.tasks(TaskFilter::default().limit(1000)).await.expect("tasks");
    assert!(tasks.len() == 111 && tasks.iter().all(|task| task.state == TaskState::Done));
    assert!(store.tasks(TaskFilter::default().unread(true)).await.expect("tasks").is_empty(), "the agent has heard all");
}
