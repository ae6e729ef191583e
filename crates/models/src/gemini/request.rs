//! Serialises requests. The JSON of a message is cached, as a list of parts. The results of calls are sent in the order of the calls.

use helve_core::{Message, MessageBody, ModelRequest, Part, ProviderParts, SaidCall, ToolChoice};
use serde_json::{Map, Value, json};

use super::NAME;
use crate::json::WriteJson;
use crate::request::{Body, ToolFormat, has_content, is_shown};

/// Sent instead of a thought signature for calls that another model made; newer models require one.
const UNSIGNED: &str = "skip_thought_signature_validator";

const TOOLS: ToolFormat = ToolFormat { open: r#"{"name":"#, parameters: r#","parametersJsonSchema":"#, close: "}", omit_empty: true };

pub(super) fn write(model: &str, request: &ModelRequest) -> Vec<u8> {
    let (options, mut body) = (&request.options, Body::new());
    write_system(request, &mut body);
    write_contents(wants_signatures(model), request, body.open("contents"));
    let mut tool_config = Map::new();
    if !request.tools.is_empty() {
        request.tools.written().append(NAME, body.open("tools"), |bytes| {
            bytes.raw(r#"[{"functionDeclarations":["#);
            TOOLS.write(&request.tools, bytes);
            bytes.raw("]}]");
        });
        tool_config.extend(choice(&request.tool_choice).map(|choice| ("functionCallingConfig".to_owned(), choice)));
    }
    body.merged("toolConfig", tool_config, &options.extra);
    let mut config = Map::new();
    let mut set = |name: &str, value: Option<Value>| config.extend(value.map(|value| (name.to_owned(), value)));
    set("temperature", options.temperature.map(Value::from));
    set("topP", options.top_p.map(Value::from));
    set("maxOutputTokens", options.max_tokens.map(Value::from));
    set("stopSequences", Some(json!(options.stop)).filter(|_| !options.stop.is_empty()));
    set("responseMimeType", request.output.as_ref().map(|_| json!("application/json")));
    set("responseJsonSchema", request.output.as_ref().map(|schema| schema.value().clone()));
    body.merged("generationConfig", config, &options.extra);
    body.finish(&options.extra)
}

/// Returns whether a model rejects calls without a thought signature in the current turn. Models before Gemini 3 do not.
fn wants_signatures(model: &str) -> bool {
    let family = model.rsplit('/').next().and_then(|name| name.strip_prefix("gemini-"));
    family.is_some_and(|family| !family.starts_with(['1', '2']))
}

fn write_system(request: &ModelRequest, body: &mut Body) {
    let texts = request.messages.iter().filter_map(|message| match message.body() {
        MessageBody::System { text } if !text.is_empty() => Some(json!({"text": text})),
        _ => None,
    });
    let parts: Vec<_> = texts.collect();
    if !parts.is_empty() {
        body.field("systemInstruction", &json!({"parts": parts}));
    }
}

fn write_contents(wants_signatures: bool, request: &ModelRequest, into: &mut Vec<u8>) {
    let name = if wants_signatures { "gemini+signed" } else { NAME };
    let messages = request.messages.iter().map(AsRef::as_ref);
    let mut messages: Vec<&Message> = messages.filter(|message| has_content(message.body(), str::is_empty)).collect();
    sort_results(&mut messages);
    into.raw("[");
    for turn in messages.chunk_by(|one, two| role(one.body()) == role(two.body())) {
        into.comma();
        let models = turn.iter().any(|message| role(message.body()) == Role::Model);
        into.raw(if models { r#"{"role":"model","parts":["# } else { r#"{"role":"user","parts":["# });
        for message in turn {
            into.comma();
            message.written().append(name, into, |bytes| write_parts(message.body(), wants_signatures, bytes));
        }
        into.raw("]}");
    }
    into.raw("]");
}

/// Moves results directly behind their calls and into the same order, because the provider matches calls without ids by position.
fn sort_results(messages: &mut [&Message]) {
    let mut calls: &[SaidCall] = &[];
    for turn in messages.chunk_by_mut(|one, two| (role(one.body()) == Role::Model) == (role(two.body()) == Role::Model)) {
        match turn.last().map(|message| message.body()) {
            Some(MessageBody::Assistant { calls: made, .. }) => calls = made,
            _ => turn.sort_by_key(|message| position(message.body(), calls)),
        }
    }
}

/// The role of a turn. Results of calls are sent as the user, but in a separate turn.
#[derive(PartialEq)]
enum Role {
    User,
    Model,
    Results,
}

fn role(message: &MessageBody) -> Role {
    match message {
        MessageBody::Assistant { .. } => Role::Model,
        MessageBody::Tool { .. } => Role::Results,
        _ => Role::User,
    }
}

/// Returns the sort key of a message: results in the order of their calls, then everything else.
fn position(message: &MessageBody, calls: &[SaidCall]) -> usize {
    match message {
        MessageBody::Tool { call_id, .. } => calls.iter().position(|call| call.id == *call_id).unwrap_or(calls.len()),
        _ => usize::MAX,
    }
}

fn write_parts(message: &MessageBody, wants_signatures: bool, into: &mut Vec<u8>) {
    match message {
        MessageBody::User { parts } => {
            for part in parts.iter().filter(|part| is_shown(part, str::is_empty)) {
                into.comma();
                write_part(part, into);
            }
        }
        MessageBody::Assistant { text, reasoning, calls, kept } => {
            let signatures = Signatures(kept.as_ref().filter(|kept| &*kept.format == NAME));
            if let Some(signature) = signatures.of(&json!("thought")) {
                into.comma();
                into.string(r#"{"text":"#, reasoning.as_deref().unwrap_or_default());
                into.raw(r#","thought":true"#);
                close(Some(signature), into);
            }
            let signature = signatures.of(&json!("text"));
            if !text.is_empty() || signature.is_some() {
                into.comma();
                into.string(r#"{"text":"#, text);
                close(signature, into);
            }
            for (number, call) in calls.iter().enumerate() {
                into.comma();
                write_name(r#"{"functionCall":{"name":"#, &call.tool, call.model_id.as_deref(), into);
                into.raw(r#","args":"#);
                into.arguments(&call.arguments);
                into.raw("}");
                let unsigned = (wants_signatures && number == 0).then_some(UNSIGNED);
                close(signatures.of(&json!(number)).or(unsigned), into);
            }
        }
        MessageBody::Tool { model_id, tool, text, success, .. } => {
            write_name(r#"{"functionResponse":{"name":"#, tool, model_id.as_deref(), into);
            into.untrusted(if *success { r#","response":{"output":"# } else { r#","response":{"error":"# }, text);
            into.raw("}}}");
        }
        _ => {}
    }
}

fn write_part(part: &Part, into: &mut Vec<u8>) {
    match part {
        Part::Text { text } => {
            into.string(r#"{"text":"#, text);
            into.raw("}");
        }
        Part::Image { media_type, data } => into.value(&json!({"inlineData": {"mimeType": media_type, "data": data}})),
        _ => {}
    }
}

/// Writes the name of the called tool, and the id of the call if the model gave one.
fn write_name(before: &str, tool: &str, model_id: Option<&str>, into: &mut Vec<u8>) {
    into.string(before, tool);
    if let Some(id) = model_id {
        into.string(r#","id":"#, id);
    }
}

/// Writes the end of a part, with its thought signature if there is one.
fn close(signature: Option<&str>, into: &mut Vec<u8>) {
    if let Some(signature) = signature {
        into.string(r#","thoughtSignature":"#, signature);
    }
    into.raw("}");
}

/// The thought signatures of a message, each for one part.
struct Signatures<'a>(Option<&'a ProviderParts>);

impl<'a> Signatures<'a> {
    /// Returns the signature of a part: the index of a call, `"text"` or `"thought"`. If there are several, returns the last one.
    fn of(&self, part: &Value) -> Option<&'a str> {
        let kept = self.0?.parts.iter().rfind(|kept| kept.get("part") == Some(part));
        kept?.get("signature")?.as_str()
    }
}

fn choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({"mode": "NONE"})),
        ToolChoice::Required => Some(json!({"mode": "ANY"})),
        ToolChoice::Specific(name) => Some(json!({"mode": "ANY", "allowedFunctionNames": [name]})),
    }
}
