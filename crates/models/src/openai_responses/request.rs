//! Serialises requests. The JSON of a message is cached, as a list of items.

use helve_core::{MessageBody, ModelRequest, Part, ProviderParts};
use serde_json::{Map, Value, json};

use super::{NAME, OpenAiResponses};
use crate::json::WriteJson;
use crate::request::{Body, ChoiceFormat, ToolFormat, call_id, write_role};
use crate::schema::is_strict;

/// Maximum length of a call id, in bytes.
const MAX_ID: usize = 64;

/// The format of tools. Without `"strict":false`, this API makes every parameter required.
const TOOLS: ToolFormat =
    ToolFormat { open: r#"{"type":"function","name":"#, parameters: r#","parameters":"#, close: r#","strict":false}"#, omit_empty: false };

const CHOICE: ChoiceFormat =
    ChoiceFormat { none: r#""none""#, required: r#""required""#, specific: [r#"{"type":"function","name":"#, "}"] };

pub(super) fn write(wire: OpenAiResponses, model: &str, request: &ModelRequest) -> Vec<u8> {
    let (options, mut body) = (&request.options, Body::new());
    body.field("model", model);
    if request.stream {
        body.field("stream", &true);
    }
    body.field("store", &false);
    if !wire.without_reasoning && !is_without_reasoning(model) {
        body.field("include", &["reasoning.encrypted_content"]);
    }
    let system: Vec<&str> = request.messages.iter().filter_map(|message| instruction(message.body())).collect();
    body.optional("instructions", Some(system.join("\n\n")).filter(|text| !text.is_empty()));
    let into = body.open("input");
    into.raw("[");
    for message in request.messages.iter().filter(|message| has_items(message.body())) {
        into.comma();
        message.written().append(NAME, into, |bytes| write_items(message.body(), bytes));
    }
    into.raw("]");
    if !request.tools.is_empty() {
        request.tools.written().append(NAME, body.open("tools"), |bytes| {
            bytes.raw("[");
            TOOLS.write(&request.tools, bytes);
            bytes.raw("]");
        });
        CHOICE.write(&request.tool_choice, &mut body);
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

/// Returns whether a model is an OpenAI model without reasoning. These models reject requests for encrypted reasoning.
fn is_without_reasoning(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    ["gpt-3", "gpt-4", "chatgpt"].iter().any(|family| name.starts_with(family)) || name.contains("-chat")
}

fn instruction(message: &MessageBody) -> Option<&str> {
    match message {
        MessageBody::System { text } => Some(text),
        _ => None,
    }
}

fn has_items(message: &MessageBody) -> bool {
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
            parts => into.value(&json!({"role": "user", "content": parts.iter().filter_map(part).collect::<Vec<_>>()})),
        },
        MessageBody::Assistant { text, calls, kept, .. } => {
            let mut reasoning = reasoning(kept.as_ref()).peekable();
            // A reasoning item comes before the text or the call that it led to.
            let mut reasoning_before = |place: u64, into: &mut Vec<u8>| {
                while let Some((_, item)) = reasoning.next_if(|(before, _)| *before <= place) {
                    into.comma();
                    into.value(item);
                }
            };
            reasoning_before(0, into);
            if !text.is_empty() {
                into.comma();
                write_message("assistant", text, into);
            }
            for (number, call) in (1..).zip(calls) {
                reasoning_before(number, into);
                into.comma();
                into.string(r#"{"type":"function_call","call_id":"#, &call_id(call.model_id.as_deref(), call.id, is_id));
                into.string(r#","name":"#, &call.tool);
                into.string(r#","arguments":"#, if call.arguments.trim().is_empty() { "{}" } else { &call.arguments });
                into.raw("}");
            }
        }
        MessageBody::Tool { call_id: id, model_id, text, .. } => {
            into.string(r#"{"type":"function_call_output","call_id":"#, &call_id(model_id.as_deref(), *id, is_id));
            into.untrusted(r#","output":"#, text);
            into.raw("}");
        }
        _ => {}
    }
}

fn write_message(role: &str, text: &str, into: &mut Vec<u8>) {
    write_role(role, text, into);
    into.raw("}");
}

fn part(part: &Part) -> Option<Value> {
    match part {
        Part::Text { text } if text.is_empty() => None,
        Part::Text { text } => Some(json!({"type": "input_text", "text": text})),
        Part::Image { media_type, data } => Some(json!({"type": "input_image", "image_url": format!("data:{media_type};base64,{data}")})),
        _ => None,
    }
}

/// Returns the stored reasoning items, each with the position before which it belongs: 0 is the text, 1 the first call. Items after
/// the last call are not sent, because the provider rejects a reasoning item that nothing follows.
fn reasoning(kept: Option<&ProviderParts>) -> impl Iterator<Item = (u64, &Value)> {
    let kept = kept.filter(|kept| &*kept.format == NAME);
    kept.into_iter().flat_map(|kept| &kept.parts).filter_map(|part| Some((part.get("before")?.as_u64()?, part.get("item")?)))
}

fn is_id(id: &str) -> bool {
    (1..=MAX_ID).contains(&id.len())
}
