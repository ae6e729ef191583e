//! What is sent. A message is written once; a later turn only appends.

use helve_core::{MessageBody, ModelRequest, ModelTools, Part, SaidCall, ToolChoice, wire_id};
use serde_json::{Value, json};

use super::OpenAiChat;
use crate::body::{Body, comma, value_of};
use crate::schema::is_strict;
use crate::wire::{result, string};

/// Larger messages are written anew each time: to keep them twice costs more than to write them.
const KEPT: usize = 16 << 10;

pub(super) fn write(wire: OpenAiChat, model: &str, request: &ModelRequest) -> Vec<u8> {
    let mut body = Body::new();
    body.field("model", model);
    if request.stream {
        body.field("stream", &true);
        body.field("stream_options", &json!({"include_usage": true}));
    }
    let into = body.open("messages");
    into.push(b'[');
    let name = if wire.thoughts_back { "openai_chat+thoughts" } else { "openai_chat" };
    let room: usize = request.messages.iter().map(|message| size(message.body()) + 160).sum();
    into.reserve(room + room / 32 + 2048);
    for (place, message) in request.messages.iter().enumerate() {
        comma(into, place);
        if size(message.body()) <= KEPT {
            message.written().append(name, into, |bytes| write_message(message.body(), wire, bytes));
        } else {
            write_message(message.body(), wire, into);
        }
    }
    into.push(b']');
    if !request.tools.is_empty() && request.tool_choice != ToolChoice::None {
        request.tools.written().append("openai_chat", body.open("tools"), |bytes| write_tools(&request.tools, bytes));
        if request.tool_choice != ToolChoice::Auto {
            body.field("tool_choice", &choice(&request.tool_choice));
        }
    }
    if let Some(schema) = &request.output {
        let into = body.open("response_format");
        into.extend_from_slice(b"{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"answer\",\"schema\":");
        into.extend_from_slice(schema.text().as_bytes());
        // OpenAI itself holds to it only then; others always do.
        into.extend_from_slice(if is_strict(schema.value()) { b",\"strict\":true}}" } else { b"}}" });
    }
    let options = &request.options;
    body.optional("temperature", options.temperature);
    body.optional("top_p", options.top_p);
    body.optional(if wire.max_completion_tokens { "max_completion_tokens" } else { "max_tokens" }, options.max_tokens);
    body.optional("stop", Some(&options.stop).filter(|stop| !stop.is_empty()));
    body.finish(&options.extra)
}

/// About how much a message takes.
fn size(message: &MessageBody) -> usize {
    match message {
        MessageBody::System { text } => text.len(),
        MessageBody::Tool { text, .. } => text.len(),
        MessageBody::User { parts } => parts.iter().map(|part| if let Part::Text { text } = part { text.len() } else { 0 }).sum(),
        MessageBody::Assistant { text, calls, .. } => text.len() + calls.iter().map(|call| call.arguments.len() + 128).sum::<usize>(),
        _ => 0,
    }
}

fn write_message(message: &MessageBody, wire: OpenAiChat, into: &mut Vec<u8>) {
    match message {
        MessageBody::System { text } => open(into, "system", text),
        MessageBody::User { parts } => match &parts[..] {
            [Part::Text { text }] => open(into, "user", text),
            parts => {
                into.extend_from_slice(b"{\"role\":\"user\",\"content\":");
                value_of(into, &parts.iter().map(part).collect::<Vec<_>>());
            }
        },
        MessageBody::Assistant { text, reasoning, calls, kept } => {
            if text.is_empty() && !calls.is_empty() {
                into.extend_from_slice(b"{\"role\":\"assistant\",\"content\":null");
            } else {
                open(into, "assistant", text);
            }
            if let (true, false, Some(thoughts)) = (wire.thoughts_back, calls.is_empty(), reasoning) {
                into.extend_from_slice(b",\"reasoning_content\":");
                string(into, thoughts);
            }
            if let Some(kept) = kept.as_ref().filter(|kept| &*kept.format == "openai_chat") {
                into.extend_from_slice(b",\"reasoning_details\":");
                value_of(into, &kept.parts);
            }
            write_calls(calls, into);
        }
        MessageBody::Tool { call_id, model_id, text, .. } => {
            into.extend_from_slice(b"{\"role\":\"tool\",\"content\":");
            result(into, text);
            into.extend_from_slice(b",\"tool_call_id\":");
            string(into, &wire_id(model_id.as_ref(), *call_id));
        }
        _ => open(into, "user", ""),
    }
    into.push(b'}');
}

fn open(into: &mut Vec<u8>, role: &str, text: &str) {
    into.reserve(text.len() + 64);
    into.extend_from_slice(b"{\"role\":\"");
    into.extend_from_slice(role.as_bytes());
    into.extend_from_slice(b"\",\"content\":");
    string(into, text);
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text { text } => json!({"type": "text", "text": text}),
        Part::Image { media_type, data } => json!({"type": "image_url", "image_url": {"url": format!("data:{media_type};base64,{data}")}}),
        _ => Value::Null,
    }
}

fn write_calls(calls: &[SaidCall], into: &mut Vec<u8>) {
    into.reserve(calls.iter().map(|call| call.arguments.len() + 160).sum());
    for (place, call) in calls.iter().enumerate() {
        into.extend_from_slice(if place == 0 { b",\"tool_calls\":[{\"id\":" } else { b",{\"id\":" });
        string(into, &call.wire_id());
        into.extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
        string(into, &call.tool);
        into.extend_from_slice(b",\"arguments\":");
        string(into, &call.arguments);
        into.extend_from_slice(b"}}");
    }
    if !calls.is_empty() {
        into.push(b']');
    }
}

fn write_tools(tools: &ModelTools, into: &mut Vec<u8>) {
    into.push(b'[');
    for (place, tool) in tools.iter().enumerate() {
        comma(into, place);
        into.extend_from_slice(b"{\"type\":\"function\",\"function\":{\"name\":");
        string(into, &tool.name);
        into.extend_from_slice(b",\"description\":");
        string(into, &tool.description);
        into.extend_from_slice(b",\"parameters\":");
        into.extend_from_slice(tool.parameters.text().as_bytes());
        into.extend_from_slice(b"}}");
    }
    into.push(b']');
}

fn choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Specific(name) => json!({"type": "function", "function": {"name": name}}),
    }
}
