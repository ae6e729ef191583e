//! Calls that need approval: decided inline, denied, edited, allowed for the conversation, or left open.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use helve_agent::{Agent, AgentError, AgentOptions, RunLimits, ScriptedModel};
use helve_core::{
    ApprovalRequest, Approver, Decision, DynTool, EventData, InputNeeded, InputRequest, IntoTool, MessageBody, Output, ToolError, Verdict,
    tool,
};
use serde_json::json;

/// Deletes a file.
#[tool(crate = helve_core, permission = "confirm")]
async fn delete(path: String) -> String {
    format!("deleted {path}")
}

/// Answers from a list, and remembers what it was asked.
#[derive(Clone)]
struct Person {
    answers: Arc<Mutex<VecDeque<Decision>>>,
    asked: Arc<Mutex<Vec<ApprovalRequest>>>,
}

impl Person {
    fn who_says(answers: impl IntoIterator<Item = Decision>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers.into_iter().collect())), asked: Arc::default() }
    }
}

impl Approver for Person {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        self.asked.lock().expect("a lock").push(request.clone());
        self.answers.lock().expect("a lock").pop_front().expect("one more request than expected")
    }
}

fn agent(model: ScriptedModel) -> Agent {
    let mut agent = Agent::new(model);
    agent.register_tool(delete::tool()).expect("a tool");
    agent
}

/// What the model was told of its calls, in order.
fn results(model: &ScriptedModel) -> Vec<String> {
    let asked = model.requests();
    let messages = &asked.last().expect("a request").messages;
    let told = messages.iter().filter_map(|message| match message.body() {
        MessageBody::Tool { text, .. } => Some(text.clone()),
        _ => None,
    });
    told.collect()
}

#[tokio::test]
async fn a_person_says_yes_or_no_and_the_model_is_told() {
    let model = ScriptedModel::new().calls([("delete", json!({"path": "a"})), ("delete", json!({"path": "b"}))]).says("done");
    let person = Person::who_says([Decision::Approve, Decision::Deny { reason: Some("I need b".into()) }]);
    let mut agent = agent(model.clone()).with_approver(person);
    assert_eq!(agent.run("delete a and b").await.expect("an answer").text, "done");
    let told = results(&model);
    assert_eq!(told.len(), 2);
    assert!(told.contains(&"deleted a".to_owned()) || told.contains(&"deleted b".to_owned()), "{told:?}");
    assert!(told.iter().any(|text| text.contains("permission_denied") && text.contains("I need b")), "{told:?}");
}

#[tokio::test]
async fn what_is_allowed_for_good_is_not_asked_again() {
    let model = ScriptedModel::new()
        .calls([("delete", json!({"path": "a"}))])
        .calls([("delete", json!({"path": "b"}))])
        .says("done")
        .calls([("delete", json!({"path": "c"}))])
        .says("done");
    let person = Person::who_says([Decision::Always]);
    let mut agent = agent(model.clone()).with_approver(person.clone());
    agent.run("delete a, then b").await.expect("an answer");
    agent.run("and c").await.expect("an answer");
    assert_eq!(person.asked.lock().expect("a lock").len(), 1);
    assert_eq!(results(&model), ["deleted a", "deleted b", "deleted c"]);
    agent.reset();
    assert!(agent.conversation().allowed.is_empty(), "another conversation begins without");
}

#[tokio::test]
async fn edited_arguments_run_and_the_model_learns_of_it() {
    let model = ScriptedModel::new().calls([("delete", json!({"path": "/"}))]).says("done");
    let person = Person::who_says([Decision::Edit(json!({"path": "/tmp/x"}))]);
    agent(model.clone()).with_approver(person).run("clean up").await.expect("an answer");
    let told = results(&model);
    assert!(told[0].contains("the user changed the arguments") && told[0].ends_with("deleted /tmp/x"), "{told:?}");

    let model = ScriptedModel::new().calls([("delete", json!({"path": "/"}))]).says("done");
    let person = Person::who_says([Decision::Edit(json!({"paht": "/tmp/x"}))]);
    agent(model.clone()).with_approver(person).run("clean up").await.expect("an answer");
    assert!(results(&model)[0].contains("invalid_parameters"), "what a person writes is checked too");
}

#[tokio::test]
async fn without_anyone_to_ask_the_run_pauses_and_goes_on_later() {
    let model = ScriptedModel::new().calls([("delete", json!({"path": "a"})), ("delete", json!({"path": "b"}))]).says("done");
    let mut agent = agent(model.clone());
    let AgentError::Waiting(paused) = agent.run("delete").await.expect_err("it waits") else { panic!("it waits") };
    assert_eq!(paused.requests.len(), 2);
    assert_eq!(model.requests().len(), 1);
    // One answer is not enough.
    let first = paused.requests[0].resolve(Verdict::Approve, "ada");
    let AgentError::Waiting(paused) = agent.resume(*paused, vec![first]).await.expect_err("it still waits") else { panic!("it waits") };
    assert_eq!(paused.requests.len(), 1);
    // It can be written down, and go on elsewhere.
    let text = serde_json::to_string(&paused.run).expect("JSON");
    let run = serde_json::from_str(&text).expect("a run");
    let second = paused.requests[0].resolve(Verdict::Deny, "ada").because("no");
    let paused = helve_agent::PausedRun { run, requests: paused.requests };
    assert_eq!(agent.resume(paused, vec![second]).await.expect("an answer").text, "done");
    let told = results(&model);
    assert_eq!(told[0], "deleted a");
    assert!(told[1].contains("permission_denied"), "{told:?}");
}

#[tokio::test]
async fn questions_and_answers_are_events() {
    let model = ScriptedModel::new().calls([("delete", json!({"path": "a"}))]).says("done");
    let mut agent = agent(model).with_approver(Person::who_says([Decision::Approve]));
    let mut stream = agent.run_stream("delete a").await.expect("a run");
    let mut told = Vec::new();
    while let Some(event) = stream.next().await {
        match event.expect("an event").data {
            EventData::PermissionRequest { tool, arguments, .. } => told.push(format!("may {tool} {arguments}?")),
            EventData::PermissionResult { decision, by, .. } => told.push(format!("{decision} by {by}")),
            EventData::ToolComplete { outcome, .. } => told.push(outcome.text().into_owned()),
            _ => {}
        }
    }
    assert_eq!(told, ["may delete {\"path\":\"a\"}?", "approve by user", "deleted a"]);
}

#[tokio::test]
async fn an_answer_opens_only_the_call_that_was_shown_in_its_own_conversation() {
    let model = || ScriptedModel::new().calls([("delete", json!({"path": "a"}))]).says("done");
    let (mut stranger, mut agent) = (agent(model()), agent(model()));
    let AgentError::Waiting(mut paused) = agent.run("delete a").await.expect_err("it waits") else { panic!("it waits") };
    let shown = paused.requests[0].resolve(Verdict::Approve, "ada");
    // Somebody changes what is stored, together with its digest.
    let other = delete::tool().into_tool().expect("a tool");
    let mut call = paused.requests[0].call.clone();
    call.arguments = json!({"path": "/"});
    paused.requests[0].digest = helve_core::call_digest(&call, &"functions".into(), other.spec());
    paused.requests[0].call = call;
    let AgentError::Waiting(paused) = agent.resume(*paused, vec![shown]).await.expect_err("it still waits") else { panic!("it waits") };
    assert_eq!(paused.requests.len(), 1, "the answer was to another call");
    // A conversation that went on, or another one, is not this run's.
    let answer = paused.requests[0].resolve(Verdict::Approve, "ada");
    let error = stranger.resume(*paused, vec![answer]).await.expect_err("another agent");
    assert!(matches!(error, AgentError::OtherConversation), "{error}");
}

/// Thinks for longer than the run may take.
struct Slow;

impl Approver for Slow {
    async fn decide(&self, _: &ApprovalRequest) -> Decision {
        tokio::time::sleep(Duration::from_mins(10)).await;
        Decision::Approve
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_that_a_person_takes_is_not_the_runs() {
    let model = ScriptedModel::new().calls([("delete", json!({"path": "a"}))]).says("done");
    let limits = RunLimits::default().timeout(Duration::from_mins(1));
    let mut agent = agent(model).with_options(AgentOptions::default().limits(limits)).with_approver(Slow);
    assert_eq!(agent.run("delete a").await.expect("an answer").text, "done");
}

/// A tool that asks for a name before it greets.
fn greeter() -> Arc<dyn DynTool> {
    helve_testkit::fake(helve_testkit::spec("greet"), |_, cx| {
        Box::pin(async move {
            let Some(given) = cx.given() else {
                let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
                let request = InputRequest { key: "who".into(), message: "Who?".into(), schema: Some(schema), url: None };
                return Err(ToolError::needs_input(InputNeeded::new(vec![request], json!(1))));
            };
            let name = given.answers.as_ref().map_or("nobody", |answers| answers["who"]["name"].as_str().expect("a name"));
            Ok(Output::text(format!("hello {name}")))
        })
    })
}

#[tokio::test]
async fn a_tool_asks_a_person_and_goes_on_with_the_answer() {
    let model = ScriptedModel::new().calls([("greet", json!({})), ("greet", json!({}))]).says("done");
    let person = Person::who_says([Decision::Edit(json!({"name": "Ada"})), Decision::Deny { reason: None }]);
    let mut agent = Agent::new(model.clone()).with_approver(person.clone());
    agent.register_tool(greeter()).expect("a tool");
    assert_eq!(agent.run("greet").await.expect("an answer").text, "done");
    let mut told = results(&model);
    told.sort_unstable();
    assert_eq!(told, ["hello Ada", "hello nobody"]);
    assert!(person.asked.lock().expect("a lock").iter().all(|request| request.input.is_some()));
}

#[tokio::test]
async fn a_run_waits_for_what_a_tool_asks_and_is_answered_later() {
    let model = ScriptedModel::new().calls([("greet", json!({}))]).says("done");
    let mut agent = Agent::new(model.clone());
    agent.register_tool(greeter()).expect("a tool");
    let Err(AgentError::Waiting(paused)) = agent.run("greet").await else { panic!("it waits") };
    let paused: helve_agent::PausedRun = serde_json::from_value(json!(paused)).expect("it can be stored");
    let grant = paused.requests[0].resolve_with(&json!({"name": "Ada"}), "ada");
    assert_eq!(agent.resume(paused, vec![grant]).await.expect("an answer").text, "done");
    assert_eq!(results(&model), ["hello Ada"]);
}

#[tokio::test]
async fn what_is_shown_of_a_paused_run_has_ids_and_names_but_no_contents() {
    let mut agent = Agent::new(ScriptedModel::new().calls([("delete", json!({"path": "/etc/hunter2"}))]));
    agent.register_tool(delete::tool()).expect("a tool");
    let error = agent.run("delete what I said: hunter2").await.expect_err("it waits");
    let AgentError::Waiting(paused) = &error else { panic!("{error}") };
    let again = paused.clone();
    for shown in [format!("{again:?}"), format!("{error:?}"), format!("{agent:?}")] {
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("delete") && shown.contains(&paused.run.conversation().to_string()), "{shown}");
    }
    assert!(format!("{again:?}").contains(&again.requests[0].id.to_string()));
}
