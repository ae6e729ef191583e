//! What is sent. A message is written once, as its items.

use helve_core::{CallId, MessageBody, ModelRequest, ModelTools, Part, ProviderParts, ToolChoice};
use serde_json::{Map, Value, json};

use super::{NAME, OpenAiResponses};
use crate::body::{Body, comma, value_of};
use crate::schema::is_strict;
use crate::wire::{result, string};

/// The longest id of a call.
const MAX_ID: usize = 64;

pub(super) fn write(wire: OpenAiResponses, model: &str, request: &ModelRequest) -> Vec<u8> {
    let (options, mut body) = (&request.options, Body::new());
    body.field("model", model);
    if request.stream {
        body.field("stream", &true);
    }
    body.field("store", &false);
    if !wire.thoughtless && !is_thoughtless(model) {
        body.field("include", &["reasoning.encrypted_content"]);
    }
    let system: Vec<&str> = request.messages.iter().filter_map(|message| instruction(message.body())).collect();
    body.optional("instructions", Some(system.join("\n\n")).filter(|text| !text.is_empty()));
    write_input(request, body.open("input"));
    if !request.tools.is_empty() {
        request.tools.written().append(NAME, body.open("tools"), |bytes| write_tools(&request.tools, bytes));
        body.optional("tool_choice", choice(&request.tool_choice));
    }
    let format = request.output.iter().map(|schema| {
        let strict = is_strict(schema.value());
        let format = json!({"type": "json_schema", "name": "answer", "schema": schema.value(), "strict": strict});
        ("format".to_owned(), format)
    });
    body.merged("text", format.collect::<Map<_, _>>(), &options.extra);
    body.optional("temperature", options.temperature);
    body.optional("top_p", options.top_p);
    body.optional("max_output_tokens", options.max_tokens);
    body.finish(&options.extra)
}

/// Whether a model is one of OpenAI's that do not think. They refuse to be asked for thoughts.
fn is_thoughtless(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    ["gpt-3", "gpt-4", "chatgpt"].iter().any(|family| name.starts_with(family)) || name.contains("-chat")
}

fn instruction(message: &MessageBody) -> Option<&str> {
    match message {
        MessageBody::System { text } => Some(text),
        _ => None,
    }
}

fn write_input(request: &ModelRequest, into: &mut Vec<u8>) {
    let mut first = true;
    into.push(b'[');
    for message in request.messages.iter().filter(|message| is_said(message.body())) {
        if !std::mem::take(&mut first) {
            into.push(b',');
        }
        message.written().append(NAME, into, |bytes| write_items(message.body(), bytes));
    }
    into.push(b']');
}

/// Whether anything of a message is an item.
fn is_said(message: &MessageBody) -> bool {
    match message {
        MessageBody::User { parts } => !parts.is_empty(),
        MessageBody::Assistant { text, calls, .. } => !text.is_empty() || !calls.is_empty(),
        MessageBody::Tool { .. } => true,
        _ => false,
    }
}

fn write_items(message: &MessageBody, into: &mut Vec<u8>) {
    match message {
        MessageBody::User { parts } => match &parts[..] {
            [Part::Text { text }] => write_message("user", text, into),
            parts => value_of(into, &json!({"role": "user", "content": parts.iter().filter_map(part).collect::<Vec<_>>()})),
        },
        MessageBody::Assistant { text, calls, kept, .. } => {
            let mut place = 0..;
            let mut next = |into: &mut Vec<u8>| comma(into, place.next().unwrap_or_default());
            let mut thoughts = thoughts(kept.as_ref()).peekable();
            // Thoughts stand before what they led to: before the text, or before a call.
            let mut thought = |before: u64, into: &mut Vec<u8>, next: &mut dyn FnMut(&mut Vec<u8>)| {
                while let Some((_, item)) = thoughts.next_if(|(at, _)| *at <= before) {
                    next(into);
                    value_of(into, item);
                }
            };
            thought(0, into, &mut next);
            if !text.is_empty() {
                next(into);
                write_message("assistant", text, into);
            }
            for (number, call) in (1..).zip(calls) {
                thought(number, into, &mut next);
                next(into);
                into.extend_from_slice(b"{\"type\":\"function_call\",\"call_id\":");
                string(into, &id(call.model_id.as_deref(), call.id));
                into.extend_from_slice(b",\"name\":");
                string(into, &call.tool);
                into.extend_from_slice(b",\"arguments\":");
                string(into, if call.arguments.trim().is_empty() { "{}" } else { &call.arguments });
                into.push(b'}');
            }
        }
        MessageBody::Tool { call_id, model_id, text, .. } => {
            into.extend_from_slice(b"{\"type\":\"function_call_output\",\"call_id\":");
            string(into, &id(model_id.as_deref(), *call_id));
            into.extend_from_slice(b",\"output\":");
            result(into, text);
            into.push(b'}');
        }
        _ => {}
    }
}

fn write_message(role: &str, text: &str, into: &mut Vec<u8>) {
    into.extend_from_slice(b"{\"role\":\"");
    into.extend_from_slice(role.as_bytes());
    into.extend_from_slice(b"\",\"content\":");
    string(into, text);
    into.push(b'}');
}

fn part(part: &Part) -> Option<Value> {
    match part {
        Part::Text { text } if text.is_empty() => None,
        Part::Text { text } => Some(json!({"type": "input_text", "text": text})),
        Part::Image { media_type, data } => Some(json!({"type": "input_image", "image_url": format!("data:{media_type};base64,{data}")})),
        _ => None,
    }
}

/// Kept thoughts, with the place before which they stand: 0 is the text, 1 the first call. One without a successor is
/// refused, so none stands behind the last.
fn thoughts(kept: Option<&ProviderParts>) -> impl Iterator<Item = (u64, &Value)> {
    let kept = kept.filter(|kept| &*kept.format == NAME);
    kept.into_iter().flat_map(|kept| &kept.parts).filter_map(|part| Some((part.get("before")?.as_u64()?, part.get("item")?)))
}

/// The id of a call. Those of other providers may be too long.
fn id(model_id: Option<&str>, id: CallId) -> String {
    let legal = |id: &&str| (1..=MAX_ID).contains(&id.len());
    model_id.filter(legal).map_or_else(|| id.to_string(), ToOwned::to_owned)
}

fn write_tools(tools: &ModelTools, into: &mut Vec<u8>) {
    into.push(b'[');
    for (place, tool) in tools.iter().enumerate() {
        comma(into, place);
        into.extend_from_slice(b"{\"type\":\"function\",\"name\":");
        string(into, &tool.name);
        into.extend_from_slice(b",\"description\":");
        string(into, &tool.description);
        into.extend_from_slice(b",\"parameters\":");
        into.extend_from_slice(tool.parameters.text().as_bytes());
        // Where nothing is said, this wire makes every parameter a required one.
        into.extend_from_slice(b",\"strict\":false}");
    }
    into.push(b']');
}

fn choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Specific(name) => Some(json!({"type": "function", "name": name})),
    }
}
