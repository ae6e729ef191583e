//! `OpenAI` Chat Completions. The Responses wire has the same errors.

use helve_core::{EndReason, Usage};
use serde_json::{Value, json};

use crate::server::failure::Failure;
use crate::server::output::{Call, CallPiece, ModelOutput, Tokens};
use crate::server::request::{ParsedRequest, Request, Turn, items, string, words};
use crate::server::sse::Event;

/// Parses a request.
pub(super) fn read(body: &Value) -> ParsedRequest {
    let turn = |message: &Value| {
        let text = words(&message["content"]);
        match message["role"].as_str() {
            Some("system" | "developer") => Turn::System(text),
            Some("assistant") => Turn::Assistant { text, calls: items(&message["tool_calls"]).iter().map(read_call).collect() },
            Some("tool") => Turn::Result { id: string(&message["tool_call_id"]), tool: string(&message["name"]), text },
            _ => Turn::User(text),
        }
    };
    let format = &body["response_format"];
    ParsedRequest {
        model: string(&body["model"]),
        streaming: body["stream"] == true,
        turns: items(&body["messages"]).iter().map(turn).collect(),
        tools: items(&body["tools"]).iter().map(|tool| string(&tool["function"]["name"])).collect(),
        schema: match format["type"].as_str() {
            Some("json_schema") => Some(format["json_schema"]["schema"].clone()),
            Some("json_object") => Some(json!({})),
            _ => None,
        },
    }
}

fn read_call(call: &Value) -> Call {
    let function = &call["function"];
    Call { id: call["id"].as_str().map(str::to_owned), ..Call::raw(string(&function["name"]), string(&function["arguments"])) }
}

/// A complete response.
pub(super) fn whole(output: &ModelOutput, request: &Request) -> Value {
    let content = if output.text.is_empty() && !output.calls.is_empty() { Value::Null } else { json!(output.text) };
    let mut message = json!({"role": "assistant", "content": content, "refusal": null});
    if !output.reasoning.is_empty() {
        message[output.reasoning_field] = json!(output.reasoning);
    }
    if !output.calls.is_empty() {
        let call = |(at, call): (usize, &Call)| {
            let mut written = json!({"type": "function", "function": {"name": call.name, "arguments": call.arguments}});
            if let Some(id) = output.call_id(at, "call", request.number) {
                written["id"] = json!(id);
            }
            written
        };
        message["tool_calls"] = output.calls.iter().enumerate().map(call).collect();
    }
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish(output.end())});
    let mut body = frame(request, "chat.completion", json!([choice]));
    if let Some(usage) = output.usage() {
        body["usage"] = write_usage(usage);
    }
    body
}

/// A streamed response.
pub(super) fn events(output: &ModelOutput, request: &Request) -> Vec<Event> {
    let asked = request.body["stream_options"]["include_usage"] == true;
    let usage = match output.tokens {
        Tokens::AsRequested(usage) => Some(usage).filter(|_| asked),
        Tokens::Always(usage) => Some(usage),
        Tokens::Never => None,
    };
    let chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        let mut chunk = frame(request, "chat.completion.chunk", json!([choice]));
        if usage.is_some() && asked {
            chunk["usage"] = Value::Null;
        }
        Event::data(chunk)
    };
    let only_calls = output.text.is_empty() && !output.calls.is_empty();
    let mut events = vec![chunk(json!({"role": "assistant", "content": if only_calls { Value::Null } else { json!("") }}), None)];
    events.extend(output.pieces(&output.reasoning).iter().map(|piece| chunk(json!({output.reasoning_field: piece}), None)));
    events.extend(output.pieces(&output.text).iter().map(|piece| chunk(json!({"content": piece}), None)));
    for pieces in output.call_pieces() {
        let deltas: Value = pieces.iter().map(|piece| call_delta(output, request, piece)).collect();
        events.push(chunk(json!({"tool_calls": deltas}), None));
    }
    events.push(chunk(json!({}), Some(finish(output.end()))));
    if let Some(usage) = usage {
        let mut last = frame(request, "chat.completion.chunk", json!([]));
        last["usage"] = write_usage(usage);
        events.push(Event::data(last));
    }
    events.push(Event { name: String::new(), data: "[DONE]".to_owned() });
    events
}

fn call_delta(output: &ModelOutput, request: &Request, piece: &CallPiece) -> Value {
    let mut delta = json!({});
    if output.with_index {
        delta["index"] = json!(piece.call);
    }
    if piece.opens {
        if let Some(id) = output.call_id(piece.call, "call", request.number) {
            delta["id"] = json!(id);
        }
        delta["type"] = json!("function");
        delta["function"]["name"] = json!(output.calls[piece.call].name);
    }
    delta["function"]["arguments"] = json!(piece.arguments);
    delta
}

fn frame(request: &Request, object: &str, choices: Value) -> Value {
    json!({
        "id": format!("chatcmpl-{}", request.number + 1),
        "object": object,
        "created": 1_735_689_600,
        "model": request.model,
        "service_tier": "default",
        "system_fingerprint": null,
        "choices": choices,
    })
}

fn finish(end: EndReason) -> &'static str {
    match end {
        EndReason::Calls => "tool_calls",
        EndReason::Length => "length",
        EndReason::Filter => "content_filter",
        _ => "stop",
    }
}

fn write_usage(usage: Usage) -> Value {
    let mut written = json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    });
    if let Some(cost) = usage.cost {
        written["cost"] = json!(cost);
    }
    written
}

/// The status and body of an error.
pub(super) fn failure(failure: &Failure) -> (u16, Value) {
    const INVALID: &str = "invalid_request_error";
    let (status, kind, code, message) = match failure {
        Failure::Auth => (401, INVALID, Some("invalid_api_key"), "Incorrect API key provided: sk-te**st."),
        Failure::Quota => {
            let message = "You exceeded your current quota, please check your plan and billing details.";
            (429, "insufficient_quota", Some("insufficient_quota"), message)
        }
        Failure::Rate => (429, "requests", Some("rate_limit_exceeded"), "Rate limit reached for requests. Please try again in 20s."),
        Failure::ContextLength => {
            let message = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.";
            (400, INVALID, Some("context_length_exceeded"), message)
        }
        Failure::ToolsUnsupported => (400, "api_error", None, "scripted-model does not support tools"),
        Failure::UnknownModel => (404, INVALID, Some("model_not_found"), "The model does not exist or you do not have access to it."),
        Failure::Filter => (400, INVALID, Some("content_policy_violation"), "The request was rejected by the safety system."),
        Failure::Internal => (500, "server_error", None, "The server had an error while processing your request. Sorry about that!"),
        Failure::Overloaded => (503, "server_error", Some("overloaded"), "The engine is currently overloaded, please try again later."),
        Failure::Other { status, code, message } => (*status, code.as_str(), Some(code.as_str()), message.as_str()),
    };
    (status, json!({"error": {"message": message, "type": kind, "param": null, "code": code}}))
}
