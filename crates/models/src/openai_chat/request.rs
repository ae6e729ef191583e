//! Serialises requests. The JSON of a message is cached, so that later turns serialise only new messages.

use helve_core::{MessageBody, ModelRequest, Part, SaidCall, ToolChoice, wire_id};
use serde_json::{Value, json};

use super::{NAME, OpenAiChat};
use crate::json::WriteJson;
use crate::request::{Body, ChoiceFormat, ToolFormat, write_role};
use crate::schema::is_strict;

/// Maximum size of messages whose JSON is cached, in bytes. For larger ones, a second copy costs more than serialising them again.
const MAX_CACHED: usize = 16 << 10;

const TOOLS: ToolFormat =
    ToolFormat { open: r#"{"type":"function","function":{"name":"#, parameters: r#","parameters":"#, close: "}}", omit_empty: false };

const CHOICE: ChoiceFormat =
    ChoiceFormat { none: r#""none""#, required: r#""required""#, specific: [r#"{"type":"function","function":{"name":"#, "}}"] };

pub(super) fn write(wire: OpenAiChat, model: &str, request: &ModelRequest) -> Vec<u8> {
    let mut body = Body::new();
    body.field("model", model);
    if request.stream {
        body.field("stream", &true);
        body.field("stream_options", &json!({"include_usage": true}));
    }
    write_messages(wire, request, body.open("messages"));
    if !request.tools.is_empty() && request.tool_choice != ToolChoice::None {
        request.tools.written().append(NAME, body.open("tools"), |bytes| {
            bytes.raw("[");
            TOOLS.write(&request.tools, bytes);
            bytes.raw("]");
        });
        CHOICE.write(&request.tool_choice, &mut body);
    }
    if let Some(schema) = &request.output {
        let into = body.open("response_format");
        into.raw(r#"{"type":"json_schema","json_schema":{"name":"answer","schema":"#);
        into.raw(schema.text());
        // OpenAI enforces the schema only in strict mode; other servers always enforce it.
        into.raw(if is_strict(schema.value()) { r#","strict":true}}"# } else { "}}" });
    }
    let options = &request.options;
    body.optional("temperature", options.temperature);
    body.optional("top_p", options.top_p);
    body.optional(if wire.max_completion_tokens { "max_completion_tokens" } else { "max_tokens" }, options.max_tokens);
    body.optional("stop", Some(&options.stop).filter(|stop| !stop.is_empty()));
    body.finish(&options.extra)
}

fn write_messages(wire: OpenAiChat, request: &ModelRequest, into: &mut Vec<u8>) {
    let name = if wire.send_reasoning { "openai_chat+thoughts" } else { NAME };
    let room: usize = request.messages.iter().map(|message| size(message.body()) + 160).sum();
    into.reserve(room + room / 32 + 2048);
    into.raw("[");
    for message in &request.messages {
        into.comma();
        if size(message.body()) <= MAX_CACHED {
            message.written().append(name, into, |bytes| write_message(message.body(), wire, bytes));
        } else {
            write_message(message.body(), wire, into);
        }
    }
    into.raw("]");
}

/// Returns the approximate size of a message, in bytes.
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
        MessageBody::System { text } => write_role("system", text, into),
        MessageBody::User { parts } => match &parts[..] {
            [Part::Text { text }] => write_role("user", text, into),
            parts => {
                into.raw(r#"{"role":"user","content":"#);
                into.value(&parts.iter().map(part).collect::<Vec<_>>());
            }
        },
        MessageBody::Assistant { text, reasoning, calls, kept } => {
            if text.is_empty() && !calls.is_empty() {
                into.raw(r#"{"role":"assistant","content":null"#);
            } else {
                write_role("assistant", text, into);
            }
            if let (true, false, Some(reasoning)) = (wire.send_reasoning, calls.is_empty(), reasoning) {
                into.string(r#","reasoning_content":"#, reasoning);
            }
            if let Some(kept) = kept.as_ref().filter(|kept| &*kept.format == NAME) {
                into.raw(r#","reasoning_details":"#);
                into.value(&kept.parts);
            }
            write_calls(calls, into);
        }
        MessageBody::Tool { call_id, model_id, text, .. } => {
            into.untrusted(r#"{"role":"tool","content":"#, text);
            into.string(r#","tool_call_id":"#, &wire_id(model_id.as_ref(), *call_id));
        }
        _ => write_role("user", "", into),
    }
    into.raw("}");
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text { text } => json!({"type": "text", "text": text}),
        Part::Image { media_type, data } => json!({"type": "image_url", "image_url": {"url": format!("data:{media_type};base64,{data}")}}),
        _ => Value::Null,
    }
}

fn write_calls(calls: &[SaidCall], into: &mut Vec<u8>) {
    if calls.is_empty() {
        return;
    }
    into.reserve(calls.iter().map(|call| call.arguments.len() + 160).sum());
    into.raw(r#","tool_calls":["#);
    for call in calls {
        into.comma();
        into.string(r#"{"id":"#, &call.wire_id());
        into.string(r#","type":"function","function":{"name":"#, &call.tool);
        into.string(r#","arguments":"#, &call.arguments);
        into.raw("}}");
    }
    into.raw("]");
}
