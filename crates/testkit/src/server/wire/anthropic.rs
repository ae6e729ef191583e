//! Anthropic Messages.

use helve_core::{EndReason, Usage};
use serde_json::{Value, json};

use crate::server::failure::Failure;
use crate::server::output::{Call, ModelOutput};
use crate::server::request::{ParsedRequest, Request, Turn, items, string, words};
use crate::server::sse::Event;

/// Parses a request.
pub(super) fn read(body: &Value) -> ParsedRequest {
    let mut turns = Vec::new();
    if !body["system"].is_null() {
        turns.push(Turn::System(words(&body["system"])));
    }
    for message in items(&body["messages"]) {
        let (content, text) = (&message["content"], words(&message["content"]));
        let of_type = |kind: &'static str| items(content).iter().filter(move |block| block["type"] == kind);
        if message["role"] == "assistant" {
            let call = |block: &Value| Call::new(string(&block["name"]), block["input"].clone()).with_id(string(&block["id"]));
            turns.push(Turn::Assistant { text, calls: of_type("tool_use").map(call).collect() });
            continue;
        }
        let result =
            |block: &Value| Turn::Result { id: string(&block["tool_use_id"]), tool: String::new(), text: words(&block["content"]) };
        let before = turns.len();
        turns.extend(of_type("tool_result").map(result));
        if !text.is_empty() || turns.len() == before {
            turns.push(Turn::User(text));
        }
    }
    let formats = [&body["output_config"]["format"], &body["output_format"]];
    ParsedRequest {
        model: string(&body["model"]),
        streaming: body["stream"] == true,
        turns,
        tools: items(&body["tools"]).iter().map(|tool| string(&tool["name"])).collect(),
        schema: formats.into_iter().find(|format| format["type"] == "json_schema").map(|format| format["schema"].clone()),
    }
}

/// A complete response.
pub(super) fn whole(output: &ModelOutput, request: &Request) -> Value {
    let mut content = Vec::new();
    if !output.reasoning.is_empty() {
        content.push(json!({"type": "thinking", "thinking": output.reasoning, "signature": signature(output)}));
    }
    if !output.text.is_empty() {
        content.push(json!({"type": "text", "text": output.text}));
    }
    content.extend(output.calls.iter().enumerate().map(|(at, call)| block_of(output, request, at, call.value())));
    let mut message = frame(request);
    message["content"] = Value::Array(content);
    message["stop_reason"] = json!(stop_reason(output.end()));
    if let Some(usage) = output.usage() {
        message["usage"] = write_usage(usage, usage.output_tokens);
    }
    message
}

/// A streamed response.
pub(super) fn events(output: &ModelOutput, request: &Request) -> Vec<Event> {
    let mut stream = Stream { output, blocks: 0, events: Vec::new() };
    let mut message = frame(request);
    if let Some(usage) = output.usage() {
        message["usage"] = write_usage(usage, 1);
    }
    stream.send(json!({"type": "message_start", "message": message}));
    stream.send(json!({"type": "ping"}));
    if !output.reasoning.is_empty() {
        let block = stream.start(json!({"type": "thinking", "thinking": "", "signature": ""}));
        for piece in output.pieces(&output.reasoning) {
            stream.delta(block, json!({"type": "thinking_delta", "thinking": piece}));
        }
        stream.delta(block, json!({"type": "signature_delta", "signature": signature(output)}));
        stream.stop(block);
    }
    if !output.text.is_empty() {
        let block = stream.start(json!({"type": "text", "text": ""}));
        for piece in output.pieces(&output.text) {
            stream.delta(block, json!({"type": "text_delta", "text": piece}));
        }
        stream.stop(block);
    }
    // Interleaved calls are open at the same time, so the block of a call follows from its index.
    let first = stream.blocks;
    for piece in output.call_pieces().into_iter().flatten() {
        let block = first + piece.call;
        if piece.opens {
            stream.start(block_of(output, request, piece.call, json!({})));
        }
        if !piece.arguments.is_empty() {
            stream.delta(block, json!({"type": "input_json_delta", "partial_json": piece.arguments}));
        }
        if piece.closes {
            stream.stop(block);
        }
    }
    let mut last = json!({"type": "message_delta", "delta": {"stop_reason": stop_reason(output.end()), "stop_sequence": null}});
    if let Some(usage) = output.usage() {
        last["usage"] = json!({"output_tokens": usage.output_tokens});
    }
    stream.send(last);
    stream.send(json!({"type": "message_stop"}));
    stream.events
}

/// The events of a message, and the number of blocks opened.
struct Stream<'a> {
    output: &'a ModelOutput,
    blocks: usize,
    events: Vec<Event>,
}

impl Stream<'_> {
    fn send(&mut self, data: Value) {
        self.events.push(Event::typed(data));
    }

    fn start(&mut self, content: Value) -> usize {
        let block = self.blocks;
        self.blocks += 1;
        self.send_of(block, json!({"type": "content_block_start", "content_block": content}));
        block
    }

    fn delta(&mut self, block: usize, delta: Value) {
        self.send_of(block, json!({"type": "content_block_delta", "delta": delta}));
    }

    fn stop(&mut self, block: usize) {
        self.send_of(block, json!({"type": "content_block_stop"}));
    }

    fn send_of(&mut self, block: usize, mut data: Value) {
        if self.output.with_index {
            data["index"] = json!(block);
        }
        self.send(data);
    }
}

fn frame(request: &Request) -> Value {
    json!({
        "id": format!("msg_{}", request.number + 1),
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
    })
}

fn block_of(output: &ModelOutput, request: &Request, at: usize, input: Value) -> Value {
    let mut block = json!({"type": "tool_use", "name": output.calls[at].name, "input": input});
    if let Some(id) = output.call_id(at, "toolu", request.number) {
        block["id"] = json!(id);
    }
    block
}

fn signature(output: &ModelOutput) -> &str {
    output.signature.as_deref().unwrap_or("c2lnbmF0dXJl")
}

fn stop_reason(end: EndReason) -> &'static str {
    match end {
        EndReason::Calls => "tool_use",
        EndReason::Length => "max_tokens",
        EndReason::Filter => "refusal",
        _ => "end_turn",
    }
}

fn write_usage(usage: Usage, output: u64) -> Value {
    json!({
        "input_tokens": usage.input_tokens.saturating_sub(usage.cached_tokens),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": output,
    })
}

/// The status and body of an error.
pub(super) fn failure(failure: &Failure) -> (u16, Value) {
    const INVALID: &str = "invalid_request_error";
    let (status, kind, message) = match failure {
        Failure::Auth => (401, "authentication_error", "invalid x-api-key"),
        Failure::Quota => (402, "billing_error", "Your credit balance is too low to access the Anthropic API."),
        Failure::Rate => (429, "rate_limit_error", "This request would exceed your organization's rate limit."),
        Failure::ContextLength => (400, INVALID, "prompt is too long: 200001 tokens > 200000 maximum"),
        Failure::ToolsUnsupported => (400, INVALID, "tools: this model does not support tool use"),
        Failure::UnknownModel => (404, "not_found_error", "model: scripted-model"),
        Failure::Filter => (400, INVALID, "Output blocked by content filtering policy"),
        Failure::Internal => (500, "api_error", "Internal server error"),
        Failure::Overloaded => (529, "overloaded_error", "Overloaded"),
        Failure::Other { status, code, message } => (*status, code.as_str(), message.as_str()),
    };
    (status, json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_scripted"}))
}
