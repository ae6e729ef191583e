//! What is sent. A message is written once, as its parts; results of calls stand together, in the order of the calls.

use helve_core::{Message, MessageBody, ModelRequest, ModelTools, Part, ProviderParts, SaidCall, ToolChoice};
use serde_json::{Map, Value, json};

use super::NAME;
use crate::body::{Body, arguments, comma, value_of};
use crate::wire::{result, string};

/// What stands where a newer model wants its signature, but another model made the call.
const UNSIGNED: &str = "skip_thought_signature_validator";

pub(super) fn write(model: &str, request: &ModelRequest) -> Vec<u8> {
    let (options, mut body) = (&request.options, Body::new());
    write_system(request, &mut body);
    write_contents(wants_signatures(model), request, body.open("contents"));
    let mut tool_config = Map::new();
    if !request.tools.is_empty() {
        request.tools.written().append(NAME, body.open("tools"), |bytes| write_tools(&request.tools, bytes));
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

/// Whether a model refuses calls of the current turn without its signature. Those before the third family do not.
fn wants_signatures(model: &str) -> bool {
    let family = model.rsplit('/').next().and_then(|name| name.strip_prefix("gemini-"));
    family.is_some_and(|family| !family.starts_with(['1', '2']))
}

fn write_system(request: &ModelRequest, body: &mut Body) {
    let said = request.messages.iter().filter_map(|message| match message.body() {
        MessageBody::System { text } if !text.is_empty() => Some(json!({"text": text})),
        _ => None,
    });
    let parts: Vec<_> = said.collect();
    if !parts.is_empty() {
        body.field("systemInstruction", &json!({"parts": parts}));
    }
}

fn write_contents(wants_signatures: bool, request: &ModelRequest, into: &mut Vec<u8>) {
    let name = if wants_signatures { "gemini+signed" } else { NAME };
    let mut said: Vec<&Message> = request.messages.iter().map(AsRef::as_ref).filter(|message| is_said(message.body())).collect();
    sort_results(&mut said);
    into.push(b'[');
    for (place, turn) in said.chunk_by(|one, two| role(one.body()) == role(two.body())).enumerate() {
        comma(into, place);
        let models = turn.iter().any(|message| role(message.body()) == Role::Model);
        into.extend_from_slice(if models { b"{\"role\":\"model\",\"parts\":[" } else { b"{\"role\":\"user\",\"parts\":[" });
        for (place, message) in turn.iter().enumerate() {
            comma(into, place);
            message.written().append(name, into, |bytes| write_parts(message.body(), wants_signatures, bytes));
        }
        into.extend_from_slice(b"]}");
    }
    into.push(b']');
}

/// Puts results right behind their calls and in their order: they are known by their place where the model gave no ids.
fn sort_results(said: &mut [&Message]) {
    let mut asked: &[SaidCall] = &[];
    for turn in said.chunk_by_mut(|one, two| (role(one.body()) == Role::Model) == (role(two.body()) == Role::Model)) {
        match turn.last().map(|message| message.body()) {
            Some(MessageBody::Assistant { calls, .. }) => asked = calls,
            _ => turn.sort_by_key(|message| place_of(message.body(), asked)),
        }
    }
}

/// Who speaks. Results of calls are the user's, but stand for themselves.
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

fn place_of(message: &MessageBody, asked: &[SaidCall]) -> usize {
    match message {
        MessageBody::Tool { call_id, .. } => asked.iter().position(|call| call.id == *call_id).unwrap_or(asked.len()),
        _ => usize::MAX,
    }
}

/// Whether anything of a message stands in a turn. Turns without parts are refused.
fn is_said(message: &MessageBody) -> bool {
    match message {
        MessageBody::User { parts } => parts.iter().any(is_shown),
        MessageBody::Assistant { text, calls, .. } => !text.is_empty() || !calls.is_empty(),
        MessageBody::Tool { .. } => true,
        _ => false,
    }
}

fn is_shown(part: &Part) -> bool {
    match part {
        Part::Text { text } => !text.is_empty(),
        Part::Image { .. } => true,
        _ => false,
    }
}

fn write_parts(message: &MessageBody, wants_signatures: bool, into: &mut Vec<u8>) {
    match message {
        MessageBody::User { parts } => {
            for (place, part) in parts.iter().filter(|part| is_shown(part)).enumerate() {
                comma(into, place);
                write_part(part, into);
            }
        }
        MessageBody::Assistant { text, reasoning, calls, kept } => {
            let signatures = Signatures(kept.as_ref().filter(|kept| &*kept.format == NAME));
            let mut place = 0..;
            let mut next = |into: &mut Vec<u8>| comma(into, place.next().unwrap_or_default());
            if let Some(signature) = signatures.of(&json!("thought")) {
                next(into);
                write_text(reasoning.as_deref().unwrap_or_default(), into);
                into.extend_from_slice(b",\"thought\":true");
                close(Some(signature), into);
            }
            let signature = signatures.of(&json!("text"));
            if !text.is_empty() || signature.is_some() {
                next(into);
                write_text(text, into);
                close(signature, into);
            }
            for (number, call) in calls.iter().enumerate() {
                next(into);
                into.extend_from_slice(b"{\"functionCall\":{\"name\":");
                write_call(&call.tool, call.model_id.as_deref(), into);
                into.extend_from_slice(b",\"args\":");
                arguments(into, &call.arguments);
                into.push(b'}');
                let unsigned = (wants_signatures && number == 0).then_some(UNSIGNED);
                close(signatures.of(&json!(number)).or(unsigned), into);
            }
        }
        MessageBody::Tool { model_id, tool, text, success, .. } => {
            into.extend_from_slice(b"{\"functionResponse\":{\"name\":");
            write_call(tool, model_id.as_deref(), into);
            into.extend_from_slice(if *success { b",\"response\":{\"output\":" } else { b",\"response\":{\"error\":" });
            result(into, text);
            into.extend_from_slice(b"}}}");
        }
        _ => {}
    }
}

fn write_part(part: &Part, into: &mut Vec<u8>) {
    match part {
        Part::Text { text } => {
            write_text(text, into);
            close(None, into);
        }
        Part::Image { media_type, data } => value_of(into, &json!({"inlineData": {"mimeType": media_type, "data": data}})),
        _ => {}
    }
}

/// The name of a call, and its id where the model gave one: others are known by their place.
fn write_call(tool: &str, model_id: Option<&str>, into: &mut Vec<u8>) {
    string(into, tool);
    if let Some(id) = model_id {
        into.extend_from_slice(b",\"id\":");
        string(into, id);
    }
}

/// Begins a part.
fn write_text(text: &str, into: &mut Vec<u8>) {
    into.extend_from_slice(b"{\"text\":");
    string(into, text);
}

/// Ends a part.
fn close(signature: Option<&str>, into: &mut Vec<u8>) {
    if let Some(signature) = signature {
        into.extend_from_slice(b",\"thoughtSignature\":");
        string(into, signature);
    }
    into.push(b'}');
}

/// The signatures that the model gave, each of one part.
struct Signatures<'a>(Option<&'a ProviderParts>);

impl<'a> Signatures<'a> {
    /// The one of a call by its number, of the text or of the thoughts. Where there are several, the last one counts.
    fn of(&self, part: &Value) -> Option<&'a str> {
        let kept = self.0?.parts.iter().rfind(|kept| kept.get("part") == Some(part));
        kept?.get("signature")?.as_str()
    }
}

fn write_tools(tools: &ModelTools, into: &mut Vec<u8>) {
    into.extend_from_slice(b"[{\"functionDeclarations\":[");
    for (place, tool) in tools.iter().enumerate() {
        comma(into, place);
        into.extend_from_slice(b"{\"name\":");
        string(into, &tool.name);
        into.extend_from_slice(b",\"description\":");
        string(into, &tool.description);
        // What takes nothing is declared without parameters.
        let nothing = tool.parameters.value().get("properties").and_then(Value::as_object).is_some_and(Map::is_empty);
        if !nothing {
            into.extend_from_slice(b",\"parametersJsonSchema\":");
            into.extend_from_slice(tool.parameters.text().as_bytes());
        }
        into.push(b'}');
    }
    into.extend_from_slice(b"]}]");
}

fn choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({"mode": "NONE"})),
        ToolChoice::Required => Some(json!({"mode": "ANY"})),
        ToolChoice::Specific(name) => Some(json!({"mode": "ANY", "allowedFunctionNames": [name]})),
    }
}
