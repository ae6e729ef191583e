//! What agents are told besides: contexts, tools that come and go, answers of a type.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::sync::{Arc, Mutex};

use helve_agent::{Agent, AgentError, Context, ContextError, ScriptedModel};
use helve_core::{IntoTool, MessageBody, Outcome, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Adds two numbers.
#[tool(crate = helve_core)]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Multiplies two numbers.
#[tool(crate = helve_core)]
async fn multiply(a: i64, b: i64) -> i64 {
    a * b
}

/// Remembers the last result and tells it.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<String>>>);

impl Context for Memory {
    fn id(&self) -> &str {
        "memory"
    }

    fn render(&self) -> Result<Option<String>, ContextError> {
        Ok(self.0.lock().expect("a lock").last().map(|last| format!("The last result was {last}.")))
    }

    fn on_tool_call(&mut self, outcome: &Outcome) -> Result<(), ContextError> {
        self.0.lock().expect("a lock").push(outcome.text().into_owned());
        Ok(())
    }
}

struct Broken(bool);

impl Context for Broken {
    fn id(&self) -> &str {
        "broken"
    }

    fn render(&self) -> Result<Option<String>, ContextError> {
        if self.0 { panic!("on purpose") } else { Err("on purpose".into()) }
    }

    fn on_tool_call(&mut self, _: &Outcome) -> Result<(), ContextError> {
        if self.0 { panic!("on purpose") } else { Err("on purpose".into()) }
    }
}

fn system(model: &ScriptedModel, turn: usize) -> String {
    match model.requests()[turn].messages[0].body() {
        MessageBody::System { text } => text.to_string(),
        _ => String::new(),
    }
}

#[tokio::test]
async fn a_context_sees_results_and_is_told_and_a_broken_one_disturbs_nobody() {
    let model = ScriptedModel::new().calls([("add", json!({"a": 2, "b": 3}))]).says("5");
    let memory = Memory::default();
    let mut agent = Agent::new(model.clone()).with_context(Broken(true)).with_context(Broken(false)).with_context(memory.clone());
    agent.register_tool(add::tool()).expect("a tool");
    assert_eq!(agent.run("2 + 3").await.expect("an answer").text, "5");
    assert_eq!(*memory.0.lock().expect("a lock"), ["5"]);
    let (first, second) = (system(&model, 0), system(&model, 1));
    assert!(first.starts_with("Tool results stand between"), "what does not change comes first: {first}");
    assert_eq!(second, format!("{first}\n\nThe last result was 5."));
    let calls = agent.tool_calls().calls();
    assert_eq!(calls.iter().map(|call| (&*call.tool, &*call.text, call.success)).collect::<Vec<_>>(), [("add", "5", true)]);
    assert_eq!(agent.tool_calls().definitions().len(), 1);
}

#[tokio::test]
async fn tools_change_by_source_at_the_next_turn() {
    let model =
        ScriptedModel::new().calls([("add", json!({"a": 2, "b": 3}))]).says("no").calls([("multiply", json!({"a": 2, "b": 3}))]).says("6");
    let mut agent = Agent::new(model.clone());
    agent.update_tools("maths", [add::tool().into_tool().expect("a tool")]);
    agent.run("2 + 3").await.expect("an answer");
    agent.update_tools("maths", [multiply::tool().into_tool().expect("a tool")]);
    assert_eq!(agent.run("2 * 3").await.expect("an answer").text, "6");
    let offered = |turn: usize| model.requests()[turn].tools.iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>();
    assert_eq!((offered(0), offered(2)), (vec!["add".to_owned()], vec!["multiply".to_owned()]));
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct City {
    name: String,
    people: u32,
}

#[tokio::test]
async fn an_answer_can_be_a_value_of_a_type() {
    let model = ScriptedModel::new()
        .says("```json\n{\"name\": \"Bern\", \"people\": \"many\"}\n```")
        .says("{\"name\": \"Bern\", \"people\": 146000}");
    let mut agent = Agent::new(model.clone());
    let city: City = agent.run_as("Which city?").await.expect("a city");
    assert_eq!(city, City { name: "Bern".into(), people: 146_000 });
    let told = json!(model.requests()[1].messages.last()).to_string();
    assert!(told.contains("people"), "the model is told what is wrong: {told}");

    let mut agent = Agent::new(ScriptedModel::new().says("Bern").says("Bern!"));
    let error = agent.run_as::<City>("Which city?").await.expect_err("no city");
    assert!(matches!(error, AgentError::WrongType(_)), "{error}");
}
