//! One rich conversation, as each wire writes it.

use std::fmt::Write as _;
use std::sync::Arc;

use helve_core::{GenerateOptions, Message, ModelRequest, ModelTool, ModelTools, Schema, ToolChoice};
use helve_fetch::HeaderMap;
use secrecy::SecretString;
use serde_json::{Map, Value, json};

use super::{snapshot, wires};
use crate::{OpenAiChat, Wire};

const FIRST: &str = "call_01JCQ5ZK8M0000000000000001";
const SECOND: &str = "call_01JCQ5ZK8M0000000000000002";

/// What the wire itself would have stored of the model's response.
fn kept(wire: &str) -> Value {
    let parts = match wire {
        "anthropic" => json!([
            {"type": "thinking", "thinking": "Two things.", "signature": "EqQB"},
            {"type": "redacted_thinking", "data": "EmwK"}
        ]),
        "gemini" => json!([{"part": "text", "signature": "dGV4dA=="}, {"part": 0, "signature": "Zmlyc3Q="}]),
        "openai_responses" => json!([
            {"before": 0, "item": {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA1"}},
            {"before": 2, "item": {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "gAAA2"}},
            {"before": 3, "item": {"type": "reasoning", "id": "rs_3", "summary": [], "encrypted_content": "without a successor"}}
        ]),
        _ => json!([{"type": "reasoning.text", "text": "Two things.", "signature": "EqQB"}]),
    };
    json!({"format": wire, "parts": parts})
}

/// System, a picture, thoughts and two calls, results in the other order and one of them bad, words between them, and
/// more talk.
fn conversation(kept: &Value) -> Vec<Arc<Message>> {
    let messages = json!([
        {"role": "system", "text": "Be \"brief\"."},
        {"role": "system", "text": "Answer in English."},
        {"role": "user", "parts": [{"type": "text", "text": "What is this, and 1 + 2?"}, {"type": "text", "text": ""}, {"type": "image", "media_type": "image/png", "data": "iVBORw0KGgo="}]},
        {"role": "assistant", "text": "I'll look.", "reasoning": "Two things.", "kept": kept, "calls": [
            {"id": FIRST, "model_id": "functions.look:0", "tool": "look", "arguments": "{\"at\": \"the \\u00e9dge\", \"twice\": 1.0}"},
            {"id": SECOND, "tool": "add", "arguments": ""}
        ]},
        {"role": "tool", "call_id": SECOND, "tool": "add", "text": "`a` is missing", "success": false},
        {"role": "user", "parts": [{"type": "text", "text": "Never mind the sum."}]},
        {"role": "tool", "call_id": FIRST, "model_id": "functions.look:0", "tool": "look", "text": "a cat\n", "success": true},
        {"role": "assistant", "text": ""},
        {"role": "user", "parts": [{"type": "text", "text": "Please."}]},
        {"role": "assistant", "text": "It is a cat."},
        {"role": "user", "parts": [{"type": "text", "text": "Thanks!"}]}
    ]);
    serde_json::from_value::<Vec<Message>>(messages).expect("messages").into_iter().map(Arc::new).collect()
}

fn schema(value: Value) -> Schema {
    Schema::new(value).expect("a schema")
}

fn tools() -> Arc<ModelTools> {
    let look = json!({"type": "object", "properties": {"at": {"type": "string"}, "twice": {"type": "number"}}, "required": ["at"]});
    let tool = |name: &str, parameters| ModelTool { name: name.into(), description: format!("Can {name}.").into(), parameters };
    Arc::new(ModelTools::new(vec![tool("look", schema(look)), tool("now", schema(json!({"type": "object", "properties": {}})))]))
}

fn rich(kept: &Value) -> ModelRequest {
    let mut request = ModelRequest::default();
    request.messages = conversation(kept);
    request.tools = tools();
    request.stream = true;
    request
}

fn written(wire: &dyn Wire, model: &str, request: &ModelRequest) -> Map<String, Value> {
    let bytes = wire.to_wire(model, request);
    let again = wire.to_wire(model, request);
    assert_eq!(bytes, again, "what was written once is written the same again");
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&bytes)))
}

fn pretty(value: &Map<String, Value>) -> String {
    serde_json::to_string_pretty(value).expect("JSON")
}

#[test]
fn a_rich_conversation_in_every_wire() {
    for wire in wires() {
        let plain = rich(&kept(wire.name()));
        let base = written(&*wire, "a-model", &plain);
        let mut told = pretty(&base);
        let mut changed = |what: &str, change: &dyn Fn(&mut ModelRequest)| {
            let mut request = plain.clone();
            change(&mut request);
            let now = written(&*wire, "a-model", &request);
            let gone = base.keys().filter(|name| !now.contains_key(*name)).map(|name| (name.clone(), json!("(gone)")));
            let new = now.iter().filter(|(name, value)| base.get(*name) != Some(value)).map(|(name, value)| (name.clone(), value.clone()));
            write!(told, "\n\n{what}: {}", pretty(&new.chain(gone).collect())).expect("memory");
        };
        changed("no tool", &|request| request.tool_choice = ToolChoice::None);
        changed("some tool", &|request| request.tool_choice = ToolChoice::Required);
        changed("one tool", &|request| request.tool_choice = ToolChoice::Specific("look".into()));
        changed("no tools at all", &|request| request.tools = Arc::default());
        changed("whole, held to a schema", &|request| {
            let output = json!({
                "type": "object",
                "properties": {"animal": {"type": "string", "maxLength": 9}, "sure": {"type": "boolean"}},
                "required": ["animal"]
            });
            (request.stream, request.output) = (false, Some(schema(output)));
        });
        changed("with options", &|request| {
            let extra = json!({
                "model": "another",
                "top_p": 1,
                "max_tokens": 1,
                "thinking": {"type": "enabled", "budget_tokens": 2000},
                "generationConfig": {"topP": 1, "thinkingConfig": {"includeThoughts": true}}
            });
            request.options = Arc::new(
                GenerateOptions::default()
                    .temperature(0.5)
                    .top_p(0.25)
                    .max_tokens(100)
                    .stop(["END".to_owned()])
                    .extra(extra.as_object().cloned().expect("an object")),
            );
        });
        snapshot(&format!("request_{}", wire.name()), &told);
    }
}

#[test]
fn what_another_provider_wants_back_is_not_sent() {
    for wire in wires() {
        for other in wires().iter().filter(|other| other.name() != wire.name()) {
            let (with, without) = (rich(&kept(other.name())), rich(&Value::Null));
            assert_eq!(written(&*wire, "a-model", &with), written(&*wire, "a-model", &without), "{} in {}", other.name(), wire.name());
        }
    }
}

#[test]
fn no_field_stands_twice() {
    for wire in wires() {
        let mut request = rich(&Value::Null);
        request.output = Some(schema(json!({"type": "object", "properties": {"a": {"type": "string"}}})));
        // Whatever Helve writes is asked for once more by the user.
        let extra: Map<String, Value> = written(&*wire, "a-model", &request).into_iter().collect();
        request.options = Arc::new(GenerateOptions::default().extra(extra));
        let text = String::from_utf8(wire.to_wire("a-model", &request)).expect("text");
        let names = written(&*wire, "a-model", &request);
        for name in names.keys() {
            let count = text.match_indices(&format!("\"{name}\":")).filter(|(at, _)| depth(&text[..*at]) == 1).count();
            assert_eq!(count, 1, "{}: {name}", wire.name());
        }
    }
}

/// How many brackets are open, outside of strings.
fn depth(text: &str) -> i32 {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    for character in text.chars() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth -= 1,
            _ => {}
        }
    }
    depth
}

#[test]
fn calls_of_others_pass_for_signed_where_signatures_are_wanted() {
    let signature = |model: &str, kept: &Value| {
        let body = Value::Object(written(&crate::Gemini, model, &rich(kept)));
        let part = |number: usize| body["contents"][1]["parts"][number]["thoughtSignature"].clone();
        (part(1), part(2))
    };
    let passed = json!("skip_thought_signature_validator");
    assert_eq!(signature("gemini-3-pro-preview", &Value::Null), (passed.clone(), Value::Null));
    assert_eq!(signature("models/gemini-flash-latest", &Value::Null), (passed, Value::Null));
    assert_eq!(signature("gemini-2.5-flash", &Value::Null), (Value::Null, Value::Null));
    assert_eq!(signature("gemini-3-pro-preview", &kept("gemini")), (json!("Zmlyc3Q="), Value::Null));
}

#[test]
fn keys_travel_in_headers_that_are_not_shown() {
    let key = SecretString::from("sk-secret");
    let names = ["x-api-key", "x-goog-api-key", "authorization", "authorization"];
    for (wire, name) in wires().iter().zip(names) {
        let mut headers = HeaderMap::new();
        wire.headers(None, &mut headers);
        assert!(!headers.contains_key(name), "{} without a key", wire.name());
        wire.headers(Some(&key), &mut headers);
        assert!(headers[name].is_sensitive() && headers[name].as_bytes().ends_with(b"sk-secret"), "{}", wire.name());
    }
}

#[test]
fn models_that_do_not_think_are_not_asked_for_thoughts() {
    let asked = |without_reasoning, model: &str| {
        let body = written(&crate::OpenAiResponses { without_reasoning }, model, &rich(&Value::Null));
        body.contains_key("include")
    };
    assert!(asked(false, "gpt-5") && asked(false, "o3"));
    assert!(!asked(true, "my-deployment") && !asked(false, "gpt-4.1") && !asked(false, "openai/gpt-5-chat-latest"));
}

#[test]
fn thoughts_go_back_over_chat_where_they_must() {
    let wire = OpenAiChat { send_reasoning: true, max_completion_tokens: false };
    let body = Value::Object(written(&wire, "a-model", &rich(&Value::Null)));
    assert_eq!(body["messages"][3]["reasoning_content"], "Two things.");
    assert_eq!(body["messages"][9].get("reasoning_content"), None);
}
