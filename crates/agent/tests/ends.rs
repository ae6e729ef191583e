//! How runs end: limits, cancellation, tools that end them; and what is left in the conversation.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::time::Duration;

use futures_util::StreamExt;
use helve_agent::{Agent, AgentError, AgentOptions, RunLimits, ScriptedModel};
use helve_core::{
    Deltas, EndOfRun, EndReason, EventData, LanguageModel, Message, MessageBody, ModelDelta, ModelError, ModelStream, Output, PollDeltas,
    Scope, tool,
};
use helve_testkit::{fake, spec_of};
use helve_tools::{Catalogue, Executor, Selection};
use serde_json::{Value, json};
use tokio::time::timeout;

/// Adds two numbers.
#[tool(crate = helve_core, idempotent)]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Takes long.
#[tool(crate = helve_core)]
async fn wait() -> String {
    tokio::time::sleep(Duration::from_hours(1)).await;
    "never".into()
}

/// Ends the run.
#[tool(crate = helve_core, ends_run)]
async fn finish(text: Option<String>) -> String {
    text.unwrap_or_default()
}

fn agent(model: ScriptedModel, limits: RunLimits) -> Agent {
    let mut agent = Agent::new(model).with_options(AgentOptions::default().limits(limits));
    agent.register_tool(add::tool()).expect("a tool");
    agent.register_tool(wait::tool()).expect("a tool");
    agent.register_tool(finish::tool()).expect("a tool");
    agent
}

fn counting(turns: i64) -> ScriptedModel {
    (0..turns).fold(ScriptedModel::new(), |model, a| model.calls([("add", json!({"a": a, "b": 1}))]))
}

async fn reason(model: ScriptedModel, limits: RunLimits) -> EndOfRun {
    match agent(model, limits).run("go").await {
        Err(AgentError::Stopped { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

/// Every call of a conversation has exactly one result, right behind it.
fn assert_answered(messages: &[std::sync::Arc<Message>]) {
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        match message.body() {
            MessageBody::Tool { call_id, .. } => {
                let place = open.iter().position(|id| *id == call_id.to_string()).expect("a result has a call");
                open.remove(place);
            }
            MessageBody::Assistant { calls, .. } => {
                assert!(open.is_empty(), "calls without a result");
                open = calls.iter().map(|call| call.id.to_string()).collect();
            }
            _ => assert!(open.is_empty(), "calls without a result"),
        }
    }
    assert!(open.is_empty(), "calls without a result");
}

#[tokio::test]
async fn each_limit_ends_a_run_with_its_own_reason() {
    let limits = RunLimits::default;
    assert_eq!(reason(counting(30), limits()).await, EndOfRun::MaxIterations);
    assert_eq!(reason(counting(30), limits().max_calls(3)).await, EndOfRun::MaxCalls);
    assert_eq!(reason(counting(30), limits().max_tokens(40)).await, EndOfRun::TokenBudget);
    let slow = ScriptedModel::new().calls([("wait", json!({}))]);
    assert_eq!(reason(slow, limits().timeout(Duration::from_millis(50))).await, EndOfRun::TimeBudget);
}

#[tokio::test]
async fn as_many_calls_as_allowed_are_allowed() {
    let model = counting(3).says("3");
    let answer = agent(model, RunLimits::default().max_calls(3)).run("count").await.expect("an answer");
    assert_eq!((answer.text.as_str(), answer.calls), ("3", 3));
}

#[tokio::test]
async fn a_cancelled_run_leaves_a_conversation_that_can_go_on() {
    let model = ScriptedModel::new().calls([("add", json!({"a": 1, "b": 1})), ("wait", json!({}))]).says("Here again.");
    let mut agent = agent(model.clone(), RunLimits::default());
    let mut stream = agent.run_stream("go").await.expect("a run");
    let cancel = stream.canceller();
    let mut told = Vec::new();
    let error = loop {
        match stream.next().await {
            Some(Ok(event)) => {
                if matches!(&event.data, EventData::ToolStart { tool, .. } if &**tool == "wait") {
                    cancel.cancel();
                }
                told.push(json!(event)["type"].as_str().unwrap_or_default().to_owned());
            }
            Some(Err(error)) => break error,
            None => panic!("it was cancelled"),
        }
    };
    assert!(matches!(error, AgentError::Stopped { reason: EndOfRun::Cancelled, .. }), "{error}");
    assert_eq!(told.iter().filter(|kind| *kind == "tool_complete").count(), 2);
    assert_eq!(told.last().map(String::as_str), Some("run_finished"));
    drop(stream);
    assert_answered(&agent.conversation().messages);
    assert_eq!(agent.run("and now?").await.expect("an answer").text, "Here again.");
    assert_answered(&model.requests().last().expect("a request").messages);
}

#[tokio::test]
async fn a_run_that_nobody_waits_for_leaves_a_conversation_that_can_go_on() {
    let model = ScriptedModel::new().calls([("wait", json!({}))]).says("Here again.");
    let mut agent = agent(model, RunLimits::default());
    assert!(timeout(Duration::from_millis(50), agent.run("go")).await.is_err());
    assert_answered(&agent.conversation().messages);
    assert_eq!(agent.run("and now?").await.expect("an answer").text, "Here again.");
}

#[tokio::test]
async fn a_tool_can_end_the_run_and_the_other_calls_are_answered() {
    let model = ScriptedModel::new().calls([("finish", json!({"text": "Goodbye."})), ("add", json!({"a": 1, "b": 1}))]);
    let mut agent = agent(model.clone(), RunLimits::default());
    let answer = agent.run("stop").await.expect("an answer");
    assert_eq!((answer.text.as_str(), answer.reason), ("Goodbye.", EndOfRun::Stopped));
    assert_eq!(model.requests().len(), 1);
    assert_answered(&agent.conversation().messages);
    assert_eq!(agent.conversation().messages.len(), 4);
}

#[tokio::test]
async fn the_last_chance_is_an_answer_without_tools() {
    let same = || ("add", json!({"a": 1, "b": 1}));
    let model = ScriptedModel::new().calls([same()]).calls([same()]).calls([same()]).says("2, I am sure.");
    let answer = agent(model.clone(), RunLimits::default()).run("1 + 1").await.expect("an answer");
    assert_eq!(answer.text, "2, I am sure.");
    assert_eq!(model.requests()[3].tool_choice, helve_core::ToolChoice::None);
    let told: Value = json!(model.requests()[2].messages);
    assert!(told.to_string().contains("Do not repeat it"), "{told}");
}

/// Reads a lot.
#[tool(crate = helve_core)]
async fn read() -> String {
    "x".repeat(10_000)
}

#[tokio::test]
async fn a_conversation_that_does_not_fit_is_shortened_and_asked_again() {
    let too_long = || ModelError::ContextLength("8192 tokens at most".into());
    let model = ScriptedModel::new().calls([("read", json!({}))]).fails(too_long()).says("I have read it.");
    let mut agent = agent(model.clone(), RunLimits::default());
    agent.register_tool(read::tool()).expect("a tool");
    assert_eq!(agent.run("read").await.expect("an answer").text, "I have read it.");
    let sizes: Vec<usize> = model.requests()[1..].iter().map(|request| json!(request.messages).to_string().len()).collect();
    assert!(sizes[0] > 10_000 && sizes[1] < 2_000, "{sizes:?}");
    let mut agent = self::agent(ScriptedModel::new().fails(too_long()), RunLimits::default());
    assert!(matches!(agent.run("x").await, Err(AgentError::Provider(ModelError::ContextLength(_)))), "nothing could be shortened");
}

/// A stream that gives these pieces and then fails.
struct Breaks(Option<Deltas>, ModelError);

impl PollDeltas for Breaks {
    fn poll_deltas(&mut self, _: &mut std::task::Context<'_>, into: &mut Deltas) -> std::task::Poll<Result<bool, ModelError>> {
        std::task::Poll::Ready(match self.0.take() {
            Some(deltas) => {
                *into = deltas;
                Ok(true)
            }
            None => Err(self.1.clone()),
        })
    }
}

/// A model whose first answer breaks off after a whole call.
struct BreaksOff(helve_core::ModelInfo, ModelError);

impl LanguageModel for BreaksOff {
    fn info(&self) -> &helve_core::ModelInfo {
        &self.0
    }

    async fn ask(&self, _: helve_core::ModelRequest) -> Result<ModelStream, ModelError> {
        let call = |(index, arguments)| ModelDelta::Call { index: Some(index), id: None, name: Some("add"), arguments };
        let deltas = [(0, "{\"a\": 1, \"b\": 1}"), (1, "{\"a\"")].map(call).into_iter().collect();
        Ok(ModelStream::new(Breaks(Some(deltas), self.1.clone())))
    }
}

#[tokio::test]
async fn a_call_that_began_before_the_answer_broke_off_gets_its_one_outcome() {
    for error in [
        ModelError::Network("gone".into()),
        ModelError::ContextLength("too long".into()),
        ModelError::Unsupported { feature: helve_core::Feature::Tools, message: "invalid tool call".into() },
    ] {
        let mut agent = Agent::new(BreaksOff(helve_core::ModelInfo::default(), error));
        agent.register_tool(add::tool()).expect("a tool");
        let mut stream = agent.run_stream("go").await.expect("a run");
        let (mut requested, mut completed) = (Vec::new(), Vec::new());
        while let Some(Ok(event)) = stream.next().await {
            match event.data {
                EventData::ToolRequested { call_id, .. } => requested.push(call_id),
                EventData::ToolComplete { call_id, .. } => completed.push(call_id),
                _ => {}
            }
        }
        drop(stream);
        assert_eq!(requested.len(), 1, "it began, and was not made again");
        assert_eq!(requested, completed);
        assert_answered(&agent.conversation().messages);
    }
}

#[tokio::test]
async fn an_answer_of_a_hundred_thousand_calls_does_not_hang() {
    let call = "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 1}}</tool_call>\n";
    let model = ScriptedModel::new().with_info(|info| info.calls_natively = None).says(&call.repeat(100_000)).says("{\"answer\": \"2\"}");
    let limits = RunLimits::default().max_calls(5);
    let mut agent = agent(model, limits);
    assert!(matches!(agent.run("go").await, Err(AgentError::Stopped { reason: EndOfRun::MaxCalls | EndOfRun::RepeatedCalls, .. })));
    assert_answered(&agent.conversation().messages);
    assert!(agent.conversation().messages.len() < 1100);
}

/// An agent that may use `add` and nothing else, and the catalogue that it looks into.
fn selective(model: ScriptedModel) -> (Agent, Catalogue) {
    let (catalogue, selection) = (Catalogue::new(), Selection::default().tools(["add"]));
    (Agent::with_tools(model, catalogue.clone(), Executor::default(), Some(selection)), catalogue)
}

/// The kinds of what happened, and the error at the end.
async fn watched(agent: &mut Agent) -> (Vec<String>, AgentError) {
    let mut stream = agent.run_stream("go").await.expect("a run");
    let mut kinds = Vec::new();
    loop {
        match stream.next().await.expect("an end") {
            Ok(event) => kinds.push(json!(event)["type"].as_str().unwrap_or_default().to_owned()),
            Err(error) => return (kinds, error),
        }
    }
}

/// Time stands still unless nobody has anything to do: a run that did not end would meet the limit at once.
#[tokio::test(start_paused = true)]
async fn a_run_whose_tools_are_not_there_fails_and_the_conversation_can_go_on() {
    let model = ScriptedModel::new().says("Here again.");
    let (mut agent, catalogue) = selective(model.clone());
    let (kinds, error) = timeout(Duration::from_mins(1), watched(&mut agent)).await.expect("an end");
    assert!(matches!(&error, AgentError::Tools(said) if said.to_string().contains("add")), "{error}");
    assert_eq!(kinds, ["run_started", "run_failed"]);
    assert_eq!((model.requests().len(), agent.conversation().messages.len()), (0, 1), "what was asked stays");
    catalogue.register(add::tool()).expect("a tool");
    assert_eq!(agent.run("again").await.expect("an answer").text, "Here again.");
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_tools_go_away_fails_after_its_calls_are_answered() {
    let model = ScriptedModel::new().calls([("add", json!({}))]).says("Here again.");
    let (mut agent, catalogue) = selective(model.clone());
    let catalogue_of_tool = catalogue.clone();
    let leaves = fake(spec_of("add", json!({"type": "object"})), move |_, _| {
        catalogue_of_tool.remove_source(&Scope::Global, &"house".into());
        Box::pin(async { Ok(Output::text("gone")) })
    });
    agent.update_tools("house", [leaves]);
    let (kinds, error) = timeout(Duration::from_mins(1), watched(&mut agent)).await.expect("an end");
    assert!(matches!(error, AgentError::Tools(_)), "{error}");
    assert_eq!(kinds.last().map(String::as_str), Some("run_failed"));
    assert_eq!((model.requests().len(), agent.conversation().messages.len()), (1, 3), "what was asked, called and told");
    assert_answered(&agent.conversation().messages);
    catalogue.register(add::tool()).expect("a tool");
    assert_eq!(agent.run("again").await.expect("an answer").text, "Here again.");
}

/// A model need not be behind a line that has limits of its own.
#[tokio::test]
async fn an_answer_without_end_is_broken_off() {
    for thinks in [false, true] {
        let (mebibyte, mut deltas) = ("x".repeat(1 << 20), Deltas::default());
        for _ in 0..40 {
            deltas.push(if thinks { ModelDelta::Reasoning(&mebibyte) } else { ModelDelta::Text(&mebibyte) });
        }
        deltas.push(ModelDelta::End(EndReason::Stop));
        let mut agent = agent(ScriptedModel::new().gives(deltas).says("Here again."), RunLimits::default());
        let error = agent.run("go").await.expect_err("too much");
        assert!(matches!(&error, AgentError::Provider(ModelError::Protocol(said)) if said.contains("33554432")), "{error}");
        let kept: usize = agent.conversation().messages.iter().map(|message| json!(message).to_string().len()).sum();
        assert!(kept <= (32 << 20) + 1000, "{kept}");
        assert_eq!(agent.run("again").await.expect("an answer").text, "Here again.");
    }
}

#[tokio::test]
async fn what_is_kept_for_the_provider_and_of_large_calls_is_bounded() {
    let (mut deltas, large) = (Deltas::default(), json!({"a": "x".repeat(1 << 20)}).to_string());
    for number in 0..5000 {
        deltas.push(ModelDelta::ProviderPart(&json!(number)));
    }
    deltas.push(ModelDelta::Text("Hello."));
    deltas.push(ModelDelta::End(EndReason::Stop));
    let mut agent = agent(ScriptedModel::new().gives(deltas), RunLimits::default());
    agent.run("go").await.expect("an answer");
    let MessageBody::Assistant { kept: Some(kept), .. } = agent.conversation().messages[1].body() else { panic!("an answer") };
    assert_eq!((kept.parts.len(), kept.parts.last()), (4096, Some(&json!(4095))), "the first ones");

    let mut deltas = Deltas::default();
    deltas.push(ModelDelta::Call { index: Some(0), id: None, name: Some("add"), arguments: &large });
    deltas.push(ModelDelta::End(EndReason::Calls));
    let mut agent = self::agent(ScriptedModel::new().gives(deltas).says("no"), RunLimits::default());
    assert_eq!(agent.run("go").await.expect("an answer").calls, 0);
    let told = json!(agent.conversation().messages).to_string();
    assert!(told.len() < 20_000 && told.contains("arguments may have at most 1048576 bytes"), "{} bytes", told.len());
}

#[tokio::test]
async fn results_are_told_up_to_their_limit_in_any_script() {
    for (text, most) in [("x".repeat(10_000), 1000), ("字".repeat(10_000), 1000), ("🦀".repeat(700), 1000)] {
        let long = fake(spec_of("long", json!({"type": "object"})), move |_, _| {
            let text = text.clone();
            Box::pin(async move { Ok(Output::text(text)) })
        });
        let model = ScriptedModel::new().calls([("long", json!({}))]).says("done");
        let mut agent = agent(model, RunLimits::default().result_bytes(most));
        agent.update_tools("house", [long]);
        agent.run("go").await.expect("an answer");
        let MessageBody::Tool { text, .. } = agent.conversation().messages[2].body() else { panic!("a result") };
        assert!(text.len() < most + 50 && text.len() > most - 50, "{} bytes", text.len());
    }
}
