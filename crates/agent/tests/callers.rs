//! On whose behalf an agent calls tools, and what it gives them: seen by tools, by layers and in the store.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::sync::{Arc, Mutex};

use helve_agent::{Agent, ScriptedModel};
use helve_core::store::TaskFilter;
use helve_core::{CallContext, Extensions, Layer, Next, Output, ToolCall, ToolError, tool};
use helve_tools::{Catalogue, Executor, ExecutorOptions};
use serde_json::json;

struct Prefix(&'static str);
struct Suffix(&'static str);

/// Greets whoever is there.
#[tool(crate = helve_core)]
async fn greet(cx: &CallContext) -> Result<String, ToolError> {
    let (Some(Prefix(prefix)), Some(Suffix(suffix))) = (cx.extension(), cx.extension()) else {
        return Err(ToolError::failed("something is missing"));
    };
    Ok(format!("{prefix} {}{suffix}", cx.caller().user.as_deref().unwrap_or("nobody")))
}

/// Greets later.
#[tool(crate = helve_core, background)]
async fn greet_later(cx: &CallContext) -> String {
    format!("{} later", cx.caller().user.as_deref().unwrap_or("nobody"))
}

/// Counts the calls of each user.
#[derive(Clone, Default)]
struct Users(Arc<Mutex<Vec<String>>>);

impl Layer for Users {
    async fn call(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> Result<Output, ToolError> {
        self.0.lock().expect("a list").push(cx.caller().user.as_deref().unwrap_or("nobody").to_owned());
        next.run(call, cx).await
    }
}

#[tokio::test]
async fn tools_and_layers_know_the_user_and_what_they_were_given() {
    let users = Users::default();
    let mut extensions = Extensions::default();
    extensions.insert(Suffix("!"));
    let executor = Executor::new(ExecutorOptions::default().layers(vec![Arc::new(users.clone())]).extensions(extensions));
    let catalogue = Catalogue::new();
    catalogue.register(greet::tool()).expect("a tool");
    let model = ScriptedModel::new().calls([("greet", json!({}))]).says("done");
    let agent = Agent::with_tools(model.clone(), catalogue, executor, None).with_user("ada").with_extension(Prefix("Hello"));
    let mut fork = agent.fork();
    fork.run("greet").await.expect("an answer");
    assert!(json!(model.requests()[1].messages).to_string().contains("Hello ada!"));
    assert_eq!(*users.0.lock().expect("a list"), ["ada"]);
}

#[tokio::test]
async fn the_user_of_a_background_call_is_recorded() {
    let model = ScriptedModel::new().calls([("greet_later", json!({}))]).says("ordered");
    let mut agent = Agent::new(model).with_user("ada");
    agent.register_tool(greet_later::tool()).expect("a tool");
    agent.run("greet").await.expect("an answer");
    let store = agent.executor().store().expect("a queue").inner().clone();
    let mut changes = store.changes();
    loop {
        let task = store.tasks(TaskFilter::default()).await.expect("a list").pop().expect("a task");
        assert_eq!(task.caller.user.as_deref(), Some("ada"));
        if let Some(outcome) = task.outcome {
            return assert_eq!(outcome.text(), "ada later");
        }
        changes.changed().await.expect("a store");
    }
}
