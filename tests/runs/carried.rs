//! Models that write their calls as text, in the formats of all kinds of models: the calls are made all the same.

use helve_dialect::{Dialect, WrittenCall};
use helve_testkit::{Reply, Request, Script};
use serde_json::{Value, json};

use crate::scene::Scene;

fn calls() -> [(&'static str, Value); 2] {
    [("calculate", json!({"expression": "6 * 7"})), ("calculate", json!({"expression": "2^10 + (3 - 1)"}))]
}

fn written(format: &str) -> String {
    let calls = calls().map(|(name, arguments)| (name, arguments.as_object().cloned().unwrap_or_default()));
    let ids = ["call_1", "call_2"];
    let written: Vec<WrittenCall<'_>> = calls.iter().zip(ids).map(|((name, arguments), id)| WrittenCall { id, name, arguments }).collect();
    Dialect::write(format, &written).unwrap_or_else(|| panic!("there is no format {format}"))
}

/// Calls as many models write them who were never told how.
fn objects() -> Vec<String> {
    let object = |(name, arguments): (&str, Value)| json!({"name": name, "arguments": arguments}).to_string();
    calls().map(object).to_vec()
}

/// Writes its calls like this until it is told their results, which come as text too.
fn model(text: String) -> Script {
    Script::from_fn(move |request: &Request| {
        let told = format!("{:?}", request.turns);
        match (told.contains("42") && told.contains("1026"), request.schema.is_some()) {
            (false, _) => Reply::text(text.clone()),
            (true, true) => Reply::text("{\"answer\": \"They are 42 and 1026.\"}"),
            (true, false) => Reply::text("They are 42 and 1026."),
        }
    })
}

/// All formats in two halves, which are tried side by side.
fn half(place: usize) -> impl Iterator<Item = (&'static str, String)> {
    // That one has room for one call only.
    Dialect::names().filter(|format| *format != "glm4_9b").skip(place).step_by(2).map(|format| (format, written(format)))
}

#[test]
fn calls_in_text_are_made_in_half_of_the_formats() {
    made_from(half(0));
}

#[test]
fn calls_in_text_are_made_in_the_other_half_of_the_formats() {
    made_from(half(1));
}

#[test]
fn calls_in_text_are_made_among_words() {
    made_from([
        ("a fence", format!("```json\n{}\n```", objects().join("\n"))),
        ("a list in a fence", format!("Both at once:\n\n```json\n[{}]\n```\n", objects().join(",\n"))),
        ("thoughts before", format!("<think>I need two sums.</think>\n{}", written("hermes"))),
        ("words before", format!("I will compute both.\n\n{}", written("helve_json"))),
        ("words around", format!("Both:\n{}\nThat is all.", written("helve_xml"))),
    ]);
}

/// What stands in an earlier fence may be an example: only the last thing of a message is a call without a mark.
#[test]
fn of_several_fences_only_the_last_is_a_call() {
    let scene = Scene::new(model(format!("```json\n{}\n```\n", objects().join("\n```\n```json\n"))));
    let made = scene.events(&["What are they?"]).calls();
    let [_, (_, last)] = calls();
    assert!(!made.is_empty() && made.iter().all(|(_, arguments, _)| *arguments == last), "{made:?}");
}

fn made_from(texts: impl IntoIterator<Item = (&'static str, String)>) {
    for (format, text) in texts {
        let scene = Scene::new(model(text.clone()));
        let ran = scene.events(&["What are they?"]);
        assert_eq!(
            (ran.code, ran.end()),
            (Some(0), ("answered".into(), "They are 42 and 1026.".into())),
            "{format}: {text}\n{}",
            ran.stderr
        );
        let made: Vec<(String, Value, String)> = ran.calls();
        let wanted: Vec<(String, Value, String)> = calls()
            .into_iter()
            .zip(["42", "1026"])
            .map(|((name, arguments), came)| (name.to_owned(), arguments, came.to_owned()))
            .collect();
        assert_eq!(made, wanted, "{format}: {text}");
        assert_eq!(ran.strategies(), ["native structured"], "{format}: it is said once");
        assert!(ran.stderr.is_empty() || !ran.stderr.contains("error:"), "{format}: {}", ran.stderr);
        assert_eq!(scene.server.requests().len(), 2, "{format}");
    }
}

/// A model whose name is known is read in the formats of its family.
#[test]
fn the_name_of_a_model_says_how_it_writes() {
    for (name, format) in
        [("qwen3-coder-30b", "qwen3_coder"), ("llama-3.1-8b", "llama3_json"), ("gpt-oss-20b", "harmony"), ("kimi-k2", "kimi_k2")]
    {
        let scene = Scene::new(model(written(format)));
        let url = scene.server.url().to_owned();
        let ran = scene.events(&["--model", &format!("{url}#{name}"), "What are they?"]);
        assert_eq!((ran.code, ran.end().1.as_str(), ran.calls().len()), (Some(0), "They are 42 and 1026.", 2), "{name}: {}", ran.stderr);
    }
}

/// A model that surely calls natively may write about calls without making them.
#[test]
fn text_of_a_model_that_calls_natively_is_text() {
    let text = format!("```json\n{}\n```", objects()[0]);
    let scene = Scene::of("openai_compatible", "function_calling: true", Reply::text(text.clone()));
    let ran = scene.events(&["How are calls written?"]);
    assert_eq!((ran.code, ran.end().1, ran.calls().len()), (Some(0), text, 0), "{}", ran.stderr);
    for provider in ["openai_responses", "anthropic", "gemini"] {
        let ran = Scene::of(provider, "", Reply::text(written("hermes"))).events(&["How?"]);
        assert_eq!((ran.code, ran.calls().len()), (Some(0), 0), "{provider}: {}", ran.stderr);
    }
}

/// Prompted, a model writes JSON or whatever it is used to; broken calls are told, and corrected.
#[test]
fn a_broken_call_in_text_is_told_and_corrected() {
    let script = Script::from_fn(|request: &Request| {
        let told = format!("{:?}", request.turns);
        if request.schema.is_some() {
            let message = "'response_format' of type 'json_schema' is not supported";
            return Reply::failure(helve_testkit::Failure::other(400, "invalid_request_error", message));
        }
        match request.number {
            _ if told.contains("42") => Reply::text("It is 42."),
            0 | 1 => Reply::text("{\"tool_calls\": [{\"name\": \"calculate\", \"arguments\": {\"expression\": ]}]}"),
            _ => Reply::text("{\"tool_calls\": [{\"name\": \"calculate\", \"arguments\": {\"expression\": \"6 * 7\"}}]}"),
        }
    });
    let scene = Scene::of("openai_compatible", "function_calling: false", script);
    let ran = scene.events(&["6 * 7?"]);
    assert_eq!((ran.code, ran.end().1.as_str(), ran.calls().len()), (Some(0), "It is 42.", 1), "{}", ran.stderr);
    let never = Script::from_fn(|_| Reply::text("{\"tool_calls\": [{\"name\": \"calculate\", \"arguments\": {\"expression\": ]}]}"));
    let ran = Scene::new(never).events(&["6 * 7?"]);
    assert_eq!((ran.code, ran.end(), ran.calls().len()), (Some(1), ("failed".into(), "parse_error".into()), 0), "{}", ran.stderr);
    assert!(ran.stderr.contains("could not be read, even after a correction") && ran.stderr.contains("larger model"), "{}", ran.stderr);
}
