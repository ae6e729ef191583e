//! Runs with a scripted model: what is said, called and told.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use futures_util::StreamExt;
use helve_agent::{Agent, AgentError, AgentOptions, ScriptedModel};
use helve_core::{EndOfRun, EndReason, EventData, MessageBody, ModelDelta, ToolChoice, tool};
use serde_json::json;

/// Adds two numbers.
#[tool(crate = helve_core, idempotent)]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Turns a number around.
#[tool(crate = helve_core, idempotent)]
async fn negate(a: i64) -> i64 {
    -a
}

fn agent(model: ScriptedModel) -> Agent {
    let mut agent = Agent::new(model);
    agent.register_tool(add::tool()).expect("a tool");
    agent
}

/// The calls of a conversation, and whether they ended well.
fn results(agent: &Agent) -> Vec<(String, bool)> {
    let results = agent.conversation().messages.iter().filter_map(|message| match message.body() {
        MessageBody::Tool { tool, success, .. } => Some((tool.to_string(), *success)),
        _ => None,
    });
    results.collect()
}

#[tokio::test]
async fn a_call_is_run_and_its_result_is_told() {
    let model = ScriptedModel::new().calls([("add", json!({"a": 2, "b": 3}))]).says("It is 5.");
    let mut agent = agent(model.clone());
    let answer = agent.run("2 + 3?").await.expect("an answer");
    assert_eq!((answer.text.as_str(), answer.turns, answer.calls), ("It is 5.", 2, 1));
    let asked = model.requests();
    assert_eq!(asked.len(), 2);
    let MessageBody::Tool { text, success: true, .. } = asked[1].messages.last().expect("a message").body() else { panic!("a result") };
    assert_eq!(&**text, "5");
    assert_eq!(agent.conversation().messages.len(), 4);
}

#[tokio::test]
async fn the_answer_is_what_was_said_last() {
    let mut deltas = helve_core::Deltas::default();
    deltas.push(ModelDelta::Text("Let me see."));
    deltas.push(ModelDelta::Call { index: Some(0), id: Some("a"), name: Some("add"), arguments: r#"{"a": 2, "b": 3}"# });
    deltas.push(ModelDelta::End(EndReason::Calls));
    let mut agent = agent(ScriptedModel::new().gives(deltas).says("It is 5."));
    assert_eq!(agent.run("2 + 3?").await.expect("an answer").text, "It is 5.");
}

#[tokio::test]
async fn a_conversation_goes_on() {
    let model = ScriptedModel::new().says("Hello Ada.").says("You are Ada.");
    let mut agent = agent(model.clone());
    agent.run("I am Ada.").await.expect("an answer");
    assert_eq!(agent.run("Who am I?").await.expect("an answer").text, "You are Ada.");
    assert_eq!(model.requests()[1].messages.len(), 4, "what the mark of results means, and three turns");
}

#[tokio::test]
async fn everything_that_happens_is_told_in_order() {
    let model = ScriptedModel::new().calls([("add", json!({"a": 2, "b": 3})), ("add", json!({"a": 1, "b": 1}))]).says("5 and 2");
    let mut agent = agent(model);
    let mut stream = agent.run_stream("sums").await.expect("a run");
    let (mut kinds, mut seqs) = (Vec::new(), Vec::new());
    while let Some(event) = stream.next().await {
        let event = event.expect("an event");
        if !event.data.is_piece() {
            seqs.push(event.seq);
        }
        kinds.push(json!(event)["type"].as_str().expect("a type").to_owned());
    }
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    assert_eq!(kinds.iter().filter(|kind| *kind == "tool_requested").count(), 2);
    assert_eq!(kinds.iter().filter(|kind| *kind == "tool_complete").count(), 2);
    assert_eq!(kinds.last().map(String::as_str), Some("run_finished"));
}

#[tokio::test]
async fn an_unknown_tool_is_told_to_the_model() {
    let model = ScriptedModel::new().calls([("divide by", json!({}))]).says("I cannot.");
    let mut agent = agent(model.clone());
    assert_eq!(agent.run("x").await.expect("an answer").text, "I cannot.");
    let MessageBody::Tool { text, tool, success: false, .. } = model.requests()[1].messages.last().expect("one").body().clone() else {
        panic!()
    };
    assert!(text.contains("unknown_tool"), "{text}");
    assert_eq!(&*tool, "divide_by");
}

#[tokio::test]
async fn a_loop_ends_with_a_reason() {
    let mut model = ScriptedModel::new();
    for _ in 0..30 {
        model = model.calls([("add", json!({"a": 1, "b": 1}))]);
    }
    let error = agent(model).run("loop").await.expect_err("it must stop");
    assert!(matches!(error, AgentError::Stopped { reason: EndOfRun::RepeatedCalls, .. }), "{error}");
    let mut model = ScriptedModel::new();
    for a in 0..30 {
        model = model.calls([("add", json!({"a": a, "b": 1}))]);
    }
    let error = agent(model).run("count").await.expect_err("it must stop");
    assert!(matches!(error, AgentError::Stopped { reason: EndOfRun::MaxIterations, .. }), "{error}");
}

#[tokio::test]
async fn a_call_written_as_text_is_rescued_and_said() {
    let fence = "```json\n{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}\n```";
    let model = ScriptedModel::new().with_info(|info| info.calls_natively = None).says(fence).says("{\"answer\": \"It is 5.\"}");
    let model = model.with_info(|info| info.constrains_output = true);
    let mut agent = agent(model.clone());
    let mut stream = agent.run_stream("2 + 3?").await.expect("a run");
    let mut changed = Vec::new();
    while let Some(event) = stream.next().await {
        if let EventData::StrategyChanged { from, to, .. } = event.expect("an event").data {
            changed.push(format!("{from} {to}"));
        }
    }
    assert_eq!(stream.answer().map(|answer| answer.text.clone()).as_deref(), Some("It is 5."));
    drop(stream);
    assert_eq!(changed, ["native structured"]);
    assert!(model.requests()[1].output.is_some() && model.requests()[1].tools.is_empty());
}

#[tokio::test]
async fn a_call_that_must_be_made_is_asked_for_once_more() {
    let model = ScriptedModel::new().says("I would rather not.").calls([("add", json!({"a": 1, "b": 1}))]).says("2");
    let mut agent = agent(model.clone()).with_options(AgentOptions::default().tool_choice(ToolChoice::Required));
    assert_eq!(agent.run("1 + 1").await.expect("an answer").text, "2");
    assert_eq!(model.requests()[2].tool_choice, ToolChoice::Auto);
}

/// Only the first call of a run must be made: were it each one, no run would end.
#[tokio::test]
async fn after_the_call_that_must_be_made_the_model_is_free() {
    for choice in [ToolChoice::Required, ToolChoice::Specific("add".into())] {
        let options = || AgentOptions::default().tool_choice(choice.clone());
        let model = ScriptedModel::new().calls([("add", json!({"a": 1, "b": 1}))]).calls([("negate", json!({"a": 2}))]).says("-2");
        let mut agent = agent(model.clone()).with_options(options());
        agent.register_tool(negate::tool()).expect("a tool");
        assert_eq!(agent.run("-(1 + 1)").await.expect("an answer").text, "-2");
        assert_eq!(results(&agent), [("add".to_owned(), true), ("negate".to_owned(), true)], "{choice:?}");
        let chosen: Vec<ToolChoice> = model.requests().iter().map(|request| request.tool_choice.clone()).collect();
        assert_eq!(chosen, [choice.clone(), ToolChoice::Auto, ToolChoice::Auto]);
        // The same where calls are written as text, and nobody but Helve can insist.
        let call = "{\"tool_calls\": [{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 1}}]}";
        let model = ScriptedModel::new().with_info(|info| info.calls_natively = Some(false)).says(call).says("2");
        assert_eq!(self::agent(model.clone()).with_options(options()).run("1 + 1").await.expect("an answer").text, "2");
        assert_eq!(model.requests().len(), 2);
    }
}

/// Whether calls begin while the model speaks or afterwards, they are the same calls.
#[tokio::test]
async fn beside_the_one_tool_that_must_be_called_no_other_is() {
    for stream in [false, true] {
        let calls = [("add", json!({"a": 1, "b": 1})), ("negate", json!({"a": 2}))];
        let options = AgentOptions::default().tool_choice(ToolChoice::Specific("add".into()));
        let mut agent = agent(ScriptedModel::new().calls(calls).says("2")).with_options(options);
        agent.register_tool(negate::tool()).expect("a tool");
        let answer = if stream { agent.run_stream("go").await.expect("a run").finish().await } else { agent.run("go").await };
        assert_eq!(answer.expect("an answer").text, "2");
        assert_eq!(results(&agent), [("add".to_owned(), true), ("negate".to_owned(), false)], "stream: {stream}");
    }
}

#[tokio::test]
async fn forks_share_tools_and_not_what_was_said() {
    let model = ScriptedModel::new().says("Hello Ada.").calls([("add", json!({"a": 2, "b": 3}))]).says("5");
    let mut agent = agent(model.clone());
    let mut fork = agent.fork();
    agent.run("I am Ada.").await.expect("an answer");
    assert_eq!(fork.run("2 + 3").await.expect("an answer").text, "5");
    assert_eq!((agent.conversation().messages.len(), fork.conversation().messages.len()), (2, 4));
    assert_ne!(agent.conversation().id, fork.conversation().id);
}

/// Tells more than anybody wants to know.
#[tool(crate = helve_core)]
async fn gossip(cx: &helve_core::CallContext) -> String {
    (0..100_000).for_each(|number| cx.progress(None, format!("{number}")));
    "done".to_owned()
}

#[tokio::test]
async fn a_tool_that_tells_without_end_is_not_heard_out() {
    let model = ScriptedModel::new().calls([("gossip", json!({}))]).says("done");
    let mut agent = Agent::new(model);
    agent.register_tool(gossip::tool()).expect("a tool");
    let events: Vec<_> = agent.run_stream("go").await.expect("a stream").collect().await;
    let told = |wanted: fn(&EventData) -> bool| events.iter().filter(|event| event.as_ref().is_ok_and(|event| wanted(&event.data))).count();
    assert!((1..1000).contains(&told(|data| matches!(data, EventData::ToolProgress { .. }))));
    assert_eq!(told(|data| matches!(data, EventData::ToolStart { .. })), 1);
    assert_eq!(told(|data| matches!(data, EventData::RunFinished { .. })), 1);
}
