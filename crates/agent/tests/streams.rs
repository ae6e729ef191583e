//! Streams that own their agent, as a handler of a web server needs them.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use futures_util::{Stream, StreamExt};
use helve_agent::{Agent, AgentError, AgentOptions, OwnedRunStream, ScriptedModel};
use helve_core::{Event, EventData, OutputStrategy, RunId, Verdict, tool};
use helve_tools::StoreHandle;
use serde_json::json;

/// Deletes a file.
#[tool(crate = helve_core, permission = "confirm")]
async fn delete(path: String) -> String {
    format!("deleted {path}")
}

fn agent(model: ScriptedModel) -> Agent {
    let mut agent = Agent::new(model);
    agent.register_tool(delete::tool()).expect("a tool");
    agent
}

/// What a handler that answers with server-sent events gives its framework.
fn handler(agent: Agent) -> impl Stream<Item = Result<Event, AgentError>> + Send + 'static {
    agent.into_stream("hello")
}

#[test]
fn an_agent_and_its_owned_stream_can_go_anywhere() {
    fn anywhere<T: Send + 'static>() {}
    fn shared<T: Send + Sync + 'static>() {}
    anywhere::<OwnedRunStream>();
    shared::<Agent>();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owned_stream_runs_in_a_task_and_gives_its_agent_back() {
    let model = ScriptedModel::new().says("Hello there").says("Still here");
    let mut stream = agent(model).into_stream("hello");
    let (stream, text) = tokio::spawn(async move {
        let mut text = String::new();
        while let Some(piece) = stream.next_text().await {
            text += &piece.expect("a piece");
        }
        (stream, text)
    })
    .await
    .expect("no panic");
    assert_eq!((text.as_str(), stream.answer().map(|answer| answer.text.as_str())), ("Hello there", Some("Hello there")));
    let mut agent = stream.into_agent().expect("it is over");
    assert_eq!(agent.run("and now?").await.expect("an answer").text, "Still here");
    assert_eq!(agent.conversation().messages.len(), 4);

    let events: Vec<_> = handler(self::agent(ScriptedModel::new().says("Hi"))).collect().await;
    assert!(matches!(events.last(), Some(Ok(Event { data: EventData::RunFinished { .. }, .. }))));
}

#[tokio::test]
async fn what_keeps_a_run_from_beginning_is_told_and_the_agent_comes_back() {
    let output_strategy = OutputStrategy::default().function_calling(false).fallback_to_structured_output(false);
    let options = AgentOptions::default().output_strategy(output_strategy);
    let mut stream = Agent::new(ScriptedModel::new()).with_options(options).into_stream("hello");
    assert!(stream.next().await.is_some_and(|first| first.is_err()));
    assert!(stream.next().await.is_none());
    assert!(stream.into_agent().is_some());

    let agent = agent(ScriptedModel::new()).with_store(StoreHandle::in_memory()).expect("the first");
    let mut stream = agent.resume_run_into_stream(RunId::mint());
    assert!(matches!(stream.next().await, Some(Err(AgentError::Storage(_)))));
    assert!(stream.into_agent().is_some());
}

#[tokio::test]
async fn a_paused_run_goes_on_in_a_stream() {
    let mut agent = agent(ScriptedModel::new().calls([("delete", json!({"path": "a"}))]).says("gone"));
    let Err(AgentError::Waiting(paused)) = agent.run("delete a").await else { panic!("nobody was asked") };
    let grants = paused.requests.iter().map(|request| request.resolve(Verdict::Approve, "ada")).collect();
    let mut stream = agent.resume_stream(*paused, grants).await.expect("the same conversation");
    let mut results = 0;
    while let Some(event) = stream.next().await {
        results += usize::from(matches!(event.expect("an event").data, EventData::ToolComplete { .. }));
    }
    assert_eq!((results, stream.answer().map(|answer| answer.text.as_str())), (1, Some("gone")));
}
