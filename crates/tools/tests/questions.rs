//! Tools that ask a person while a call runs: the call ends for now, and goes on with the answer, once.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::sync::Arc;
use std::time::Duration;

use helve_core::{
    CacheRule, CallContext, Decision, DynTool, ErrorKind, InputNeeded, InputRequest, Output, Permission, PermissionRule, Policy, Question,
    Rules, ToolCall, ToolError,
};
use helve_testkit::{fake, spec, toolkit};
use helve_tools::{Admission, Attempted, Executor, Toolkit};
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

async fn ask(executor: &Executor, tools: &Toolkit) -> Question {
    let cx = CallContext::default();
    let Admission::Ready(prepared) = executor.admit(tools, ToolCall::new("greet", json!({})), &cx, None).await else {
        panic!("it may run")
    };
    let Attempted::Asks(question) = executor.attempt_or_ask(prepared, &cx).await else { panic!("it asks") };
    question
}

async fn enter(executor: &Executor, tools: &Toolkit, question: &Question, grant: helve_core::Grant) -> Value {
    let cx = CallContext::default();
    match executor.admit(tools, question.call.clone(), &cx, Some(grant)).await {
        Admission::Ready(prepared) => json!(executor.attempt(prepared, &cx).await),
        Admission::Answered(outcome) => json!(outcome),
        _ => panic!("an answer ends the question"),
    }
}

#[tokio::test]
async fn an_answer_goes_to_the_tool_after_a_restart_and_only_once() {
    let tools = tools_of(Rules::default());
    let stored = json!(ask(&Executor::default(), &tools).await);
    assert_eq!(stored["reason"], "the tool asks: Who are you?");
    let question: Question = serde_json::from_value(stored).expect("a question can be stored");
    let restarted = Executor::default();
    let outcome = enter(&restarted, &tools, &question, question.answer_with(&json!({"name": "Ada"}), "ada")).await;
    assert_eq!((&outcome["text"], &outcome["call_id"]), (&json!("hello Ada, from \"half way\""), &json!(question.call.id)));
    let again = enter(&restarted, &tools, &question, question.answer_with(&json!({"name": "Eve"}), "eve")).await;
    assert_eq!(again["error"]["kind"], "permission_denied");
}

#[tokio::test]
async fn a_no_is_told_to_the_tool_and_so_is_a_yes_that_says_too_little() {
    let tools = tools_of(Rules::default());
    for decision in [Decision::Deny, Decision::Expired, Decision::Approve] {
        let executor = Executor::default();
        let question = ask(&executor, &tools).await;
        let outcome = enter(&executor, &tools, &question, question.answer(decision, "ada")).await;
        assert_eq!(outcome["text"], "hello nobody, from \"half way\"", "{decision}");
    }
}

#[tokio::test]
async fn an_answer_to_a_tool_opens_nothing_else() {
    let tools = tools_of(Rules { permission: Permission::Confirm, ..Rules::default() });
    let executor = Executor::default();
    let cx = CallContext::default();
    let Admission::Waiting(approval) = executor.admit(&tools, ToolCall::new("greet", json!({})), &cx, None).await else {
        panic!("a person must be asked")
    };
    // An answer to a question that was never asked about this call.
    let other = ask(&Executor::default(), &tools_of(Rules::default())).await;
    let forged = enter(&executor, &tools, &approval, other.answer_with(&json!({"name": "Eve"}), "eve")).await;
    assert_eq!(forged["error"]["kind"], "permission_denied");
    // The way it should be: approved first, then asked, then answered.
    let grant = approval.answer(Decision::Approve, "ada");
    let Admission::Ready(prepared) = executor.admit(&tools, approval.call.clone(), &cx, Some(grant)).await else { panic!("approved") };
    let Attempted::Asks(question) = executor.attempt_or_ask(prepared, &cx).await else { panic!("it asks") };
    let outcome = enter(&executor, &tools, &question, question.answer_with(&json!({"name": "Ada"}), "ada")).await;
    assert_eq!(outcome["text"], "hello Ada, from \"half way\"");
    // What is denied meanwhile stays denied.
    let question = ask(&executor, &tools_of(Rules::default())).await;
    let deny = PermissionRule { permission: Permission::Deny, ..PermissionRule::default() };
    executor.set_policy(Policy::new(vec![deny]));
    let outcome = enter(&executor, &tools_of(Rules::default()), &question, question.answer_with(&json!({"name": "Ada"}), "ada")).await;
    assert_eq!(outcome["error"]["kind"], "permission_denied");
}

#[tokio::test]
async fn where_nobody_can_be_asked_it_is_a_failure_that_says_what_was_asked() {
    let outcome =
        Executor::default().execute(&tools_of(Rules::default()), ToolCall::new("greet", json!({})), &CallContext::default()).await;
    let error = outcome.error().expect("a failure");
    assert_eq!((error.kind(), error.message()), (ErrorKind::Failed, "the tool asks: Who are you?"));
}

#[tokio::test]
async fn what_one_person_answered_is_kept_for_nobody_else() {
    let cache = Some(CacheRule { ttl: Duration::from_mins(1), per_caller: false });
    let (executor, tools) = (Executor::default(), tools_of(Rules { cache, ..Rules::default() }));
    for name in ["Ada", "Eve"] {
        let question = ask(&executor, &tools).await;
        let outcome = enter(&executor, &tools, &question, question.answer_with(&json!({"name": name}), "x")).await;
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
    let mut question = ask(&executor, &tools).await;
    let mut asked = 1;
    let error = loop {
        let grant = question.answer(Decision::Deny, "ada");
        let Admission::Ready(prepared) = executor.admit(&tools, question.call.clone(), &cx, Some(grant)).await else {
            panic!("it goes on")
        };
        match executor.attempt_or_ask(prepared, &cx).await {
            Attempted::Asks(next) => question = next,
            Attempted::Over(outcome) => break outcome.error().expect("a failure").message().to_owned(),
        }
        asked += 1;
    };
    assert_eq!((asked, error.as_str()), (10, "the tool asks: More?"));
}
