//! What is sent. A message is written once; a later turn only appends.

use helve_core::{GenerateOptions, MessageBody, ModelRequest, ModelTools, Part, SaidCall, ToolChoice, wire_id};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::OpenAiChat;
use crate::wire::string;

pub(super) fn write(wire: OpenAiChat, model: &str, request: &ModelRequest) -> Vec<u8> {
    let mut body = Vec::with_capacity(4096);
    body.extend_from_slice(b"{\"model\":");
    string(&mut body, model);
    if request.stream {
        body.extend_from_slice(b",\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    }
    body.extend_from_slice(b",\"messages\":[");
    let name = if wire.thoughts_back { "openai_chat+thoughts" } else { "openai_chat" };
    for (place, message) in request.messages.iter().enumerate() {
        if place > 0 {
            body.push(b',');
        }
        message.written().append(name, &mut body, |bytes| write_message(message.body(), wire, bytes));
    }
    body.push(b']');
    if !request.tools.is_empty() && request.tool_choice != ToolChoice::None {
        body.extend_from_slice(b",\"tools\":");
        request.tools.written().append("openai_chat", &mut body, |bytes| write_tools(&request.tools, bytes));
        if request.tool_choice != ToolChoice::Auto {
            field(&mut body, "tool_choice", &choice(&request.tool_choice));
        }
    }
    if let Some(schema) = &request.output {
        body.extend_from_slice(b",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"answer\",\"schema\":");
        body.extend_from_slice(schema.text().as_bytes());
        body.extend_from_slice(b"}}");
    }
    write_options(wire, &request.options, &mut body);
    body.push(b'}');
    body
}

fn write_message(message: &MessageBody, wire: OpenAiChat, into: &mut Vec<u8>) {
    match message {
        MessageBody::System { text } => open(into, "system", text),
        MessageBody::User { parts } => match &parts[..] {
            [Part::Text { text }] => open(into, "user", text),
            parts => {
                into.extend_from_slice(b"{\"role\":\"user\",\"content\":");
                json_value(into, &parts.iter().map(part).collect::<Vec<_>>());
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
                field(into, "reasoning_details", &kept.parts);
            }
            write_calls(calls, into);
        }
        MessageBody::Tool { call_id, model_id, text, .. } => {
            open(into, "tool", text);
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
    for (place, call) in calls.iter().enumerate() {
        into.extend_from_slice(if place == 0 { b",\"tool_calls\":[{\"id\":" } else { b",{\"id\":" });
        string(into, &call.wire_id());
        into.extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
        string(into, &call.tool);
        into.extend_from_slice(b",\"arguments\":");
        into.reserve(call.arguments.len() + 64);
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
        into.extend_from_slice(if place == 0 { b"" } else { b"," });
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

fn write_options(wire: OpenAiChat, options: &GenerateOptions, into: &mut Vec<u8>) {
    if let Some(temperature) = options.temperature {
        field(into, "temperature", &temperature);
    }
    if let Some(top_p) = options.top_p {
        field(into, "top_p", &top_p);
    }
    if let Some(most) = options.max_tokens {
        field(into, if wire.max_completion_tokens { "max_completion_tokens" } else { "max_tokens" }, &most);
    }
    if !options.stop.is_empty() {
        field(into, "stop", &options.stop);
    }
    write_extra(&options.extra, into);
}

/// Fields for one provider, as they are. What Helve itself writes cannot be replaced.
pub(crate) fn write_extra(extra: &Map<String, Value>, into: &mut Vec<u8>) {
    for (name, value) in
        extra.iter().filter(|(name, _)| !matches!(name.as_str(), "model" | "messages" | "tools" | "stream" | "input" | "contents"))
    {
        field(into, name, value);
    }
}

fn field(into: &mut Vec<u8>, name: &str, value: &impl Serialize) {
    into.push(b',');
    string(into, name);
    into.push(b':');
    json_value(into, value);
}

fn json_value(into: &mut Vec<u8>, value: &impl Serialize) {
    // Writing plain values to memory cannot fail.
    let _ = serde_json::to_writer(into, value);
}
