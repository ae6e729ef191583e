//! Tools that request input while a call runs: the call pauses, and resumes once with the response.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::sync::Arc;
use std::time::Duration;

use helve_core::{
    ApprovalRequest, CacheRule, CallContext, Decision, DynTool, ErrorKind, InputNeeded, InputRequest, Output, Permission, PermissionRule,
    Policy, Rules, Schema, ToolCall, ToolError, ToolSpec, Verdict,
};
use helve_testkit::{fake, spec, toolkit};
use helve_tools::{CallState, Executor, Toolkit};
use serde_json::{Value, json};

/// Asks for a name, and greets whoever has it.
fn greeter(rules: Rules) -> Arc<dyn DynTool> {
    fake(spec("greet").with_rules(rules), |_, cx| {
        Box::pin(async move {
            let Some(given) = cx.given() else {
                let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
                let request = InputRequest { key: "who".into(), message: "Who are you?".into(), schema: Some(schema), url: None };
                return Err(ToolError::needs_input(InputNeeded::new(vec![request], json!("half way"))));
            };
            let answer = given.answers.as_ref().map_or("nobody", |answers| answers["who"]["name"].as_str().expect("a name"));
            Ok(Output::text(format!("hello {answer}, from {}", given.state)))
        })
    })
}

fn tools_of(rules: Rules) -> Toolkit {
    toolkit([greeter(rules)])
}

async fn ask(executor: &Executor, tools: &Toolkit) -> ApprovalRequest {
    request(executor.call(tools, ToolCall::new("greet", json!({})), &CallContext::default()).await)
}

fn request(state: CallState) -> ApprovalRequest {
    match state {
        CallState::Waiting(request) => *request,
        CallState::Over(outcome) => panic!("it asks: {outcome:?}"),
    }
}

async fn enter(executor: &Executor, tools: &Toolkit, request: &ApprovalRequest, grant: helve_core::Grant) -> Value {
    json!(executor.resume(tools, request.call.clone(), grant, &CallContext::default()).await.into_outcome())
}

#[tokio::test]
async fn an_answer_goes_to_the_tool_after_a_restart_and_only_once() {
    let tools = tools_of(Rules::default());
    let stored = json!(ask(&Executor::default(), &tools).await);
    assert_eq!(stored["reason"], "the tool requests input: Who are you?");
    let request: ApprovalRequest = serde_json::from_value(stored).expect("a request can be stored");
    let restarted = Executor::default();
    let outcome = enter(&restarted, &tools, &request, request.resolve_with(&json!({"name": "Ada"}), "ada")).await;
    assert_eq!((&outcome["text"], &outcome["call_id"]), (&json!("hello Ada, from \"half way\""), &json!(request.call.id)));
    let again = enter(&restarted, &tools, &request, request.resolve_with(&json!({"name": "Eve"}), "eve")).await;
    assert_eq!(again["error"]["kind"], "permission_denied");
}

#[tokio::test]
async fn a_no_is_told_to_the_tool_and_so_is_a_yes_that_says_too_little() {
    let tools = tools_of(Rules::default());
    for decision in [Verdict::Deny, Verdict::Expired, Verdict::Approve] {
        let executor = Executor::default();
        let request = ask(&executor, &tools).await;
        let outcome = enter(&executor, &tools, &request, request.resolve(decision, "ada")).await;
        assert_eq!(outcome["text"], "hello nobody, from \"half way\"", "{decision}");
    }
}

#[tokio::test]
async fn an_answer_to_a_tool_opens_nothing_else() {
    let tools = tools_of(Rules::default().permission(Permission::Confirm));
    let executor = Executor::default();
    let approval = ask(&executor, &tools).await;
    assert_eq!(approval.input, None, "a person must approve it first");
    // An answer to a request that was never asked about this call.
    let other = ask(&Executor::default(), &tools_of(Rules::default())).await;
    let forged = enter(&executor, &tools, &approval, other.resolve_with(&json!({"name": "Eve"}), "eve")).await;
    assert_eq!(forged["error"]["kind"], "permission_denied");
    // The way it should be: approved first, then asked, then answered.
    let grant = approval.resolve(Verdict::Approve, "ada");
    let request = request(executor.resume(&tools, approval.call.clone(), grant, &CallContext::default()).await);
    let outcome = enter(&executor, &tools, &request, request.resolve_with(&json!({"name": "Ada"}), "ada")).await;
    assert_eq!(outcome["text"], "hello Ada, from \"half way\"");
    // What is denied meanwhile stays denied.
    let request = ask(&executor, &tools_of(Rules::default())).await;
    let deny = PermissionRule::default().permission(Permission::Deny);
    executor.set_policy(Policy::new(vec![deny]));
    let outcome = enter(&executor, &tools_of(Rules::default()), &request, request.resolve_with(&json!({"name": "Ada"}), "ada")).await;
    assert_eq!(outcome["error"]["kind"], "permission_denied");
}

#[tokio::test]
async fn where_nobody_can_be_asked_it_is_a_failure_that_says_what_was_asked() {
    let outcome =
        Executor::default().execute(&tools_of(Rules::default()), ToolCall::new("greet", json!({})), &CallContext::default()).await;
    let error = outcome.error().expect("a failure");
    assert_eq!((error.kind(), error.message()), (ErrorKind::Failed, "the tool requests input: Who are you?"));
}

#[tokio::test]
async fn what_one_person_answered_is_kept_for_nobody_else() {
    let cache = Some(CacheRule { ttl: Duration::from_mins(1), per_caller: false });
    let (executor, tools) = (Executor::default(), tools_of(Rules::default().cache(cache)));
    for name in ["Ada", "Eve"] {
        let request = ask(&executor, &tools).await;
        let outcome = enter(&executor, &tools, &request, request.resolve_with(&json!({"name": name}), "x")).await;
        assert_eq!(outcome["text"], format!("hello {name}, from \"half way\""));
    }
}

#[tokio::test]
async fn a_tool_that_asks_for_ever_is_a_tool_that_fails() {
    let tools = toolkit([fake(spec("greet"), |_, _| {
        Box::pin(async {
            let request = InputRequest { key: "k".into(), message: "More?".into(), schema: None, url: None };
            Err(ToolError::needs_input(InputNeeded::new(vec![request], json!(1))))
        })
    })]);
    let (executor, cx) = (Executor::default(), CallContext::default());
    let mut request = ask(&executor, &tools).await;
    let mut asked = 1;
    let error = loop {
        let grant = request.resolve(Verdict::Deny, "ada");
        match executor.resume(&tools, request.call.clone(), grant, &cx).await {
            CallState::Waiting(next) => request = *next,
            CallState::Over(outcome) => break outcome.error().expect("a failure").message().to_owned(),
        }
        asked += 1;
    };
    assert_eq!((asked, error.as_str()), (10, "the tool requests input: More?"));
}

/// Whoever answers is asked whatever the call needs: first whether it may run, then what its tool wants to know.
#[tokio::test]
async fn one_approver_answers_until_the_call_is_over() {
    let tools = tools_of(Rules::default().permission(Permission::Confirm));
    let (executor, call) = (Executor::default(), || ToolCall::new("greet", json!({})));
    let person = |request: ApprovalRequest| async move {
        if request.input.is_some() { Decision::Edit(json!({"name": "Ada"})) } else { Decision::Approve }
    };
    let outcome = executor.call_with(&tools, call(), &CallContext::default(), &person).await.into_outcome();
    assert_eq!(outcome.text(), "hello Ada, from \"half way\"");
    let later = |_: ApprovalRequest| async { Decision::Later };
    let asked = request(executor.call_with(&tools, call(), &CallContext::default(), &later).await);
    let grant = asked.grant(Decision::Deny { reason: Some("not now".into()) }, "ada").expect("a grant");
    let outcome = enter(&executor, &tools, &asked, grant).await;
    assert_eq!(outcome["error"]["message"], "the user denied the call: not now");
}

/// A person may write other arguments: these are checked, run, and told to the model.
#[tokio::test]
async fn a_person_may_write_other_arguments() {
    let rules = Rules::default().permission(Permission::Confirm);
    let executor = Executor::default();
    let spec = ToolSpec::new(
        "echo",
        "Echoes.",
        Schema::new(json!({"type": "object", "properties": {"n": {"type": "integer"}}})).expect("a schema"),
    );
    let tools = toolkit([fake(spec.expect("a spec").with_rules(rules), |call, _| {
        Box::pin(async move { Ok(Output::text(call.arguments.to_string())) })
    })]);
    let ask = async |n: u32| request(executor.call(&tools, ToolCall::new("echo", json!({"n": n})), &CallContext::default()).await);
    let asked = ask(1).await;
    let grant = || asked.grant(Decision::Edit(json!({"n": 2})), "ada").expect("a grant");
    let outcome = enter(&executor, &tools, &asked, grant()).await;
    assert_eq!(outcome["text"], "[the user changed the arguments to {\"n\":2}]\n{\"n\":2}");
    assert_eq!(enter(&executor, &tools, &asked, grant()).await["error"]["kind"], "permission_denied", "it counts once");
    let wrong = ask(1).await;
    let outcome = enter(&executor, &tools, &wrong, wrong.grant(Decision::Edit(json!({"n": "x"})), "ada").expect("a grant")).await;
    assert_eq!(outcome["error"]["kind"], "invalid_parameters");
    // The answer is for the call that was shown, whatever the person writes.
    let (shown, other) = (ask(3).await, ask(4).await);
    let moved = shown.grant(Decision::Edit(json!({"n": 5})), "ada").expect("a grant");
    let outcome = enter(&executor, &tools, &other, moved).await;
    assert_eq!(outcome["status"], "waiting", "{outcome}");
}
