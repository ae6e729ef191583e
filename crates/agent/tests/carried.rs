//! The same conversation gives the same outcomes whichever way its calls are carried: natively, or written as text in any format.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::sync::Arc;

use helve_agent::{Agent, ScriptedModel};
use helve_core::{Deltas, DynTool, EndReason, MessageBody, ModelDelta, Output};
use helve_dialect::{Dialect, WrittenCall};
use helve_testkit::{fake, spec_of};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const ANSWER: &str = "That is all.";

/// A call: the tool's name and its arguments.
type Made = (&'static str, Map<String, Value>);

/// Tools that give back what they were called with, one of them with a required argument.
fn tools() -> Vec<Arc<dyn DynTool>> {
    let place = json!({"type": "object", "properties": {"city": {"type": "string"}, "floor": {"type": "integer"}}});
    let properties = json!({
        "text": {"type": "string"}, "count": {"type": "integer"}, "ratio": {"type": "number"}, "sure": {"type": "boolean"},
        "numbers": {"type": "array", "items": {"type": "integer"}}, "place": place,
    });
    let tool = |name: &str, required: Value| {
        let schema = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
        fake(spec_of(name, schema), |call, _| Box::pin(async move { Ok(Output::data(call.arguments.clone())) }))
    };
    vec![tool("note", json!([])), tool("send", json!(["text"]))]
}

/// Words that a person may want to send somewhere, some of which look like something else.
fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9 .,;:!?/_=+-]{1,24}".prop_filter("no words", |text| !text.trim().is_empty()),
        Just("  lines\n\tand tabs \n".to_owned()),
        Just("if (a < b && c > d) { return \"x\"; }".to_owned()),
        Just("你好，世界 🦀 naïve".to_owned()),
        Just("it's \"quoted\" \\ and so on".to_owned()),
        Just("007".to_owned()),
        Just("null".to_owned()),
        Just("{\"a\": [1, 2]}".to_owned()),
        Just("[send(text=\"x\")]".to_owned()),
    ]
}

fn calls() -> impl Strategy<Value = Made> {
    let text = prop::option::weighted(0.8, words().prop_map(|text| ("text", json!(text))));
    let count = prop::option::of(any::<i32>().prop_map(|count| ("count", json!(count))));
    let ratio = prop::option::of((-1000i32..1000).prop_map(|eighths| ("ratio", json!(f64::from(eighths) / 8.0))));
    let sure = prop::option::of(any::<bool>().prop_map(|sure| ("sure", json!(sure))));
    let numbers = prop::option::of(prop::collection::vec(any::<i16>(), 1..4).prop_map(|numbers| ("numbers", json!(numbers))));
    let place = ("[A-Z][a-z]{1,8}", any::<u8>()).prop_map(|(city, floor)| ("place", json!({"city": city, "floor": floor})));
    let arguments = (text, count, ratio, sure, numbers, prop::option::of(place));
    (prop::sample::select(vec!["note", "send"]), arguments).prop_map(|(name, (text, count, ratio, sure, numbers, place))| {
        let given = [text, count, ratio, sure, numbers, place].into_iter().flatten();
        (name, given.map(|(name, value)| (name.to_owned(), value)).collect())
    })
}

/// The turns of a conversation; the last ones are shorter.
fn conversations() -> impl Strategy<Value = Vec<Vec<Made>>> {
    (prop::collection::vec(calls(), 1..4), prop::option::of(calls())).prop_map(|(first, second)| {
        let second = second.map(|call| vec![call]);
        std::iter::once(first).chain(second).collect()
    })
}

fn native(turns: &[Vec<Made>]) -> ScriptedModel {
    let call = |(name, arguments): &Made| (*name, Value::Object(arguments.clone()));
    let called = turns.iter().fold(ScriptedModel::new(), |model, turn| model.calls(turn.iter().map(call)));
    called.says(ANSWER)
}

/// The same in text, in pieces of so many characters. It is known of the model neither that it calls natively nor that it does not.
fn in_text(turns: &[Vec<Made>], pieces: usize, write: impl Fn(&[Made]) -> String) -> ScriptedModel {
    let model = ScriptedModel::new().with_info(|info| info.calls_natively = None);
    let said = turns.iter().map(|turn| write(turn)).chain([ANSWER.to_owned()]);
    said.fold(model, |model, text| {
        let (mut deltas, characters) = (Deltas::default(), text.chars().collect::<Vec<_>>());
        for piece in characters.chunks(pieces) {
            deltas.push(ModelDelta::Text(&piece.iter().collect::<String>()));
        }
        deltas.push(ModelDelta::End(EndReason::Stop));
        model.gives(deltas)
    })
}

fn write_in(format: &str, calls: &[Made]) -> String {
    let ids: Vec<String> = (1..=calls.len()).map(|number| format!("call_{number}")).collect();
    let written: Vec<WrittenCall<'_>> = calls.iter().zip(&ids).map(|((name, arguments), id)| WrittenCall { id, name, arguments }).collect();
    Dialect::write(format, &written).expect("a known format")
}

/// What many models write who were never told how.
fn write_in_fence(calls: &[Made]) -> String {
    let object = |(name, arguments): &Made| json!({"name": name, "arguments": arguments}).to_string();
    format!("```json\n{}\n```", calls.iter().map(object).collect::<Vec<_>>().join("\n"))
}

/// What came of a conversation: each call with its arguments and its result, and the answer.
#[derive(Debug, PartialEq)]
struct Came {
    calls: Vec<(String, Value)>,
    results: Vec<(String, String, bool)>,
    answer: String,
}

async fn came(model: ScriptedModel, stream: bool) -> Came {
    let mut agent = Agent::new(model);
    agent.update_tools("test", tools());
    let answer = if stream { agent.run_stream("Go.").await.expect("a run").finish().await } else { agent.run("Go.").await };
    let mut came =
        Came { calls: Vec::new(), results: Vec::new(), answer: answer.map_or_else(|error| error.to_string(), |answer| answer.text) };
    for message in &agent.conversation().messages {
        match message.body() {
            MessageBody::Assistant { calls, .. } => {
                let read = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| json!(text));
                came.calls.extend(calls.iter().map(|call| (call.tool.to_string(), read(&call.arguments))));
            }
            MessageBody::Tool { tool, text, success, .. } => came.results.push((tool.to_string(), text.clone(), *success)),
            _ => {}
        }
    }
    came
}

/// Whether a format has room for these: some have it for one call only.
fn fits(format: &str, turns: &[Vec<Made>]) -> bool {
    !matches!(format, "glm4_9b" | "gigachat3" | "react") || turns.iter().all(|turn| turn.len() == 1)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_way_makes_no_difference(turns in conversations(), pieces in 1usize..12, stream in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let expected = runtime.block_on(came(native(&turns), stream));
        prop_assert_eq!(&expected.answer, ANSWER);
        let wanted: Vec<_> = turns.iter().flatten().map(|(name, arguments)| ((*name).to_owned(), Value::Object(arguments.clone()))).collect();
        prop_assert_eq!(&expected.calls, &wanted);
        for format in Dialect::names().filter(|format| fits(format, &turns)) {
            let model = in_text(&turns, pieces, |turn| write_in(format, turn));
            let outcome = runtime.block_on(came(model, stream));
            prop_assert_eq!(&outcome, &expected, "{}: {}", format, write_in(format, &turns[0]));
        }
        let outcome = runtime.block_on(came(in_text(&turns, pieces, write_in_fence), stream));
        prop_assert_eq!(&outcome, &expected, "a fence: {}", write_in_fence(&turns[0]));
    }
}
