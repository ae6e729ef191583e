//! Permission and approval: who is asked, what an answer opens, and that it opens it once.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use helve_core::{ApprovalRequest, CallContext, Grant, ListSource, Output, Permission, PermissionRule, Policy, Rules, ToolCall, Verdict};
use helve_testkit::{echo, fake, spec, toolkit};
use helve_tools::{CallState, Catalogue, Executor, ExecutorOptions, Selection, Toolkit, View};
use serde_json::{Value, json};

fn wiper() -> (Arc<AtomicU32>, Toolkit) {
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let rules = Rules::default().permission(Permission::Confirm);
    let tool = fake(spec("wipe").with_rules(rules), move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(Output::text("wiped")) })
    });
    (runs, toolkit([tool]))
}

async fn ask(executor: &Executor, tools: &Toolkit, arguments: Value) -> ApprovalRequest {
    match executor.call(tools, ToolCall::new("wipe", arguments), &CallContext::default()).await {
        CallState::Waiting(request) => *request,
        CallState::Over(outcome) => panic!("a person must be asked: {outcome:?}"),
    }
}

/// Goes on with a call and gives the outcome as JSON, or the new request.
async fn enter(executor: &Executor, tools: &Toolkit, call: ToolCall, grant: Grant) -> Result<Value, ApprovalRequest> {
    match executor.resume(tools, call, grant, &CallContext::default()).await {
        CallState::Over(outcome) => Ok(json!(outcome)),
        CallState::Waiting(request) => Err(*request),
    }
}

#[tokio::test]
async fn an_answer_opens_the_call_after_a_restart_and_only_once() {
    let (runs, tools) = wiper();
    let request = ask(&Executor::default(), &tools, json!({"disk": "1"})).await;
    let stored = serde_json::to_string(&request).expect("a request can be stored");
    drop(request);

    let restarted = Executor::default();
    let request: ApprovalRequest = serde_json::from_str(&stored).expect("and read again");
    assert_eq!(runs.load(Ordering::SeqCst), 0, "nothing runs while a person thinks");
    let outcome = enter(&restarted, &tools, request.call.clone(), request.resolve(Verdict::Approve, "ada")).await.expect("an outcome");
    assert_eq!((&outcome["text"], &outcome["call_id"]), (&json!("wiped"), &json!(request.call.id)));
    let again = enter(&restarted, &tools, request.call.clone(), request.resolve(Verdict::Approve, "ada")).await.expect("an outcome");
    assert_eq!(again["error"]["kind"], "permission_denied");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

/// S7: the approver saw other arguments than those that would run.
#[tokio::test]
async fn a_changed_argument_voids_the_answer() {
    let (runs, tools) = wiper();
    let executor = Executor::default();
    let request = ask(&executor, &tools, json!({"disk": 1})).await;
    let changed = ToolCall { arguments: json!({"disk": 2}), ..request.call.clone() };
    let asked_again = enter(&executor, &tools, changed, request.resolve(Verdict::Approve, "ada")).await.expect_err("a new request");
    assert_ne!((asked_again.id, asked_again.digest), (request.id, request.digest));
    assert_eq!(asked_again.call.arguments, json!({"disk": 2}), "the new request shows what would run");
    let other_call = ToolCall::new("wipe", json!({"disk": 1}));
    assert!(enter(&executor, &tools, other_call, request.resolve(Verdict::Approve, "ada")).await.is_err(), "nor does it open another call");
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

/// The approver saw a tool of another source, which has the same name and definition.
#[tokio::test]
async fn an_answer_does_not_open_the_same_tool_of_another_source() {
    let rules = Rules::default().permission(Permission::Confirm);
    let toolkit_of = |source: &str| {
        let catalogue = Catalogue::new();
        catalogue.add_source(Arc::new(ListSource::new(source, [echo("wipe", rules.clone())])));
        Toolkit::everything(&catalogue.snapshot(&View::default()))
    };
    let executor = Executor::default();
    let request = ask(&executor, &toolkit_of("mcp:trusted"), json!({})).await;
    let entered = enter(&executor, &toolkit_of("mcp:evil"), request.call.clone(), request.resolve(Verdict::Approve, "ada")).await;
    assert!(entered.is_err(), "a new request");
}

/// Two requests about one call, as after asking twice, open it once.
#[tokio::test]
async fn a_call_runs_once_however_often_it_is_approved() {
    let (runs, tools) = wiper();
    let executor = Executor::default();
    let first = ask(&executor, &tools, json!({})).await;
    let CallState::Waiting(second) = executor.call(&tools, first.call.clone(), &CallContext::default()).await else {
        panic!("a person must be asked")
    };
    for request in [&first, &*second] {
        let _ = enter(&executor, &tools, request.call.clone(), request.resolve(Verdict::Approve, "ada")).await;
    }
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn rules_may_use_the_name_that_models_use() {
    let policy = Policy::new(vec![PermissionRule::for_tool("self--door--open", Permission::Deny)]);
    let executor = Executor::new(ExecutorOptions::default().policy(policy));
    let outcome = helve_testkit::call(&executor, &toolkit([echo("self.door.open", Rules::default())]), "self.door.open", json!({})).await;
    assert_eq!(outcome["error"]["kind"], "permission_denied");
}

#[tokio::test]
async fn denied_and_expired_are_told_apart() {
    let (runs, tools) = wiper();
    let executor = Executor::default();
    let request = ask(&executor, &tools, json!({})).await;
    let grant = request.resolve(Verdict::Deny, "ada").because("not on a Friday");
    let denied = enter(&executor, &tools, request.call.clone(), grant).await.expect("an outcome");
    assert_eq!(
        denied["error"],
        json!({"kind": "permission_denied", "message": "the user denied the call: not on a Friday", "details": {"reason": "denied"}})
    );
    let approved = enter(&executor, &tools, request.call.clone(), request.resolve(Verdict::Approve, "eve")).await.expect("an outcome");
    assert_eq!(approved["success"], json!(false), "what was denied stays denied");
    let request = ask(&executor, &tools, json!({})).await;
    let expired = enter(&executor, &tools, request.call.clone(), request.resolve(Verdict::Expired, "clock")).await.expect("an outcome");
    assert_eq!(expired["error"]["details"]["reason"], "expired");
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn nobody_is_asked_about_nonsense() {
    let (_, tools) = wiper();
    let outcome = helve_testkit::call(&Executor::default(), &tools, "wipe", json!([1])).await;
    assert_eq!(outcome["error"]["kind"], "invalid_parameters");
}

#[tokio::test]
async fn rules_decide_and_no_answer_opens_what_they_forbid() {
    let (runs, tools) = wiper();
    let request = ask(&Executor::default(), &tools, json!({})).await;
    let policy = Policy::new(vec![PermissionRule::for_tool("wi*", Permission::Deny)]);
    let strict = Executor::new(ExecutorOptions::default().policy(policy));
    let refused = enter(&strict, &tools, request.call.clone(), request.resolve(Verdict::Approve, "ada")).await.expect("an outcome");
    assert_eq!(refused["error"]["message"], "a rule for tool `wi*` says `deny`");
    assert_eq!(refused["error"]["details"], json!({"reason": "policy"}));

    let policy = Policy::new(vec![PermissionRule::for_tool("wipe", Permission::Auto)]);
    let lax = Executor::new(ExecutorOptions::default().policy(policy));
    assert_eq!(helve_testkit::call(&lax, &tools, "wipe", json!({})).await["text"], "wiped");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    let denied = enter(&lax, &tools, request.call.clone(), request.resolve(Verdict::Deny, "ada")).await.expect("an outcome");
    assert_eq!(denied["error"]["details"]["reason"], "denied", "a denied call never runs, whatever the rules say now");
}

#[tokio::test]
async fn an_agent_can_only_tighten() {
    let catalogue = Catalogue::new();
    let wary = Rules::default().permission(Permission::Confirm);
    catalogue.add_source(Arc::new(ListSource::new("test", [echo("read", Rules::default()), echo("write", wary)])));
    let selection = Selection::default()
        .agent("scribe")
        .tools(["*"])
        .restrictions(vec![("read".into(), Permission::Deny), ("write".into(), Permission::Auto)]);
    let tools = catalogue.toolkit(&selection, &View::default()).expect("a toolkit");
    let executor = Executor::default();
    let read = helve_testkit::call(&executor, &tools, "read", json!({})).await;
    assert_eq!(read["error"]["message"], "the agent's own rules say `deny`");
    assert_eq!(helve_testkit::call(&executor, &tools, "write", json!({})).await["status"], "waiting");
}
