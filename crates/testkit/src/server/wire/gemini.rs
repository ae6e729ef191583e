//! Gemini's `generateContent` and `streamGenerateContent`. A call has no id unless the script sets one, and is never split.

use helve_core::{EndReason, Usage};
use serde_json::{Value, json};

use crate::server::failure::Failure;
use crate::server::output::{Call, CallPieces, ModelOutput};
use crate::server::request::{ParsedRequest, Request, Turn, items, string, words};
use crate::server::sse::Event;
use crate::server::wire::Wire;

/// Parses a request.
pub(super) fn read(path: &str, body: &Value) -> ParsedRequest {
    let mut turns = Vec::new();
    let system = &body["systemInstruction"];
    if !system.is_null() {
        turns.push(Turn::System(words(&system["parts"])));
    }
    for content in items(&body["contents"]) {
        read_content(content, &mut turns);
    }
    let configuration = &body["generationConfig"];
    let schemas = [&configuration["responseJsonSchema"], &configuration["responseSchema"]];
    let any_json = || (configuration["responseMimeType"] == "application/json").then(|| json!({}));
    let declared = |tool: &Value| items(&tool["functionDeclarations"]).iter().map(|it| string(&it["name"])).collect::<Vec<_>>();
    let (model, method) = path.rsplit('/').next().and_then(|name| name.split_once(':')).unwrap_or_default();
    ParsedRequest {
        model: model.to_owned(),
        streaming: method.starts_with("streamGenerateContent"),
        turns,
        tools: items(&body["tools"]).iter().flat_map(declared).collect(),
        schema: schemas.into_iter().find(|schema| !schema.is_null()).cloned().or_else(any_json),
    }
}

fn read_content(content: &Value, turns: &mut Vec<Turn>) {
    let (parts, text) = (items(&content["parts"]), words(&content["parts"]));
    let of_kind = |kind: &'static str| parts.iter().map(move |part| &part[kind]).filter(|value| !value.is_null());
    if content["role"] == "model" {
        let call =
            |call: &Value| Call { id: call["id"].as_str().map(str::to_owned), ..Call::new(string(&call["name"]), call["args"].clone()) };
        turns.push(Turn::Assistant { text, calls: of_kind("functionCall").map(call).collect() });
        return;
    }
    let result =
        |result: &Value| Turn::Result { id: string(&result["id"]), tool: string(&result["name"]), text: result["response"].to_string() };
    let before = turns.len();
    turns.extend(of_kind("functionResponse").map(result));
    if !text.is_empty() || turns.len() == before {
        turns.push(Turn::User(text));
    }
}

/// Returns whether the client wants a stream as a JSON array instead of server-sent events.
pub(in crate::server) fn wants_array(request: &Request) -> bool {
    let query = request.path.split_once('?').map_or("", |(_, query)| query);
    request.wire == Wire::Gemini && request.streaming && !query.split('&').any(|pair| pair == "alt=sse")
}

/// A complete response.
pub(super) fn whole(output: &ModelOutput, request: &Request) -> Value {
    let mut parts = Vec::new();
    if !output.reasoning.is_empty() {
        parts.push(json!({"text": output.reasoning, "thought": true}));
    }
    if !output.text.is_empty() {
        parts.push(json!({"text": output.text}));
    }
    parts.extend(calls(output));
    frame(output, request, parts, Some(output.end()))
}

/// A streamed response.
pub(super) fn events(output: &ModelOutput, request: &Request) -> Vec<Event> {
    let mut chunks: Vec<Vec<Value>> = Vec::new();
    chunks.extend(output.pieces(&output.reasoning).iter().map(|piece| vec![json!({"text": piece, "thought": true})]));
    chunks.extend(output.pieces(&output.text).iter().map(|piece| vec![json!({"text": piece})]));
    let calls = calls(output);
    if output.call_pieces == CallPieces::Together {
        chunks.push(calls);
    } else {
        chunks.extend(calls.into_iter().map(|call| vec![call]));
    }
    chunks.retain(|parts| !parts.is_empty());
    let mut events: Vec<Event> = chunks.into_iter().map(|parts| Event::data(frame(output, request, parts, None))).collect();
    events.push(Event::data(frame(output, request, vec![json!({"text": ""})], Some(output.end()))));
    events
}

/// The calls as parts. The first one carries the signature, as at the provider.
fn calls(output: &ModelOutput) -> Vec<Value> {
    let part = |(at, call): (usize, &Call)| {
        let mut part = json!({"functionCall": {"name": call.name, "args": call.value()}});
        if let Some(id) = call.id.as_ref().filter(|_| output.with_ids) {
            part["functionCall"]["id"] = json!(id);
        }
        if let Some(signature) = output.signature.as_ref().filter(|_| at == 0) {
            part["thoughtSignature"] = json!(signature);
        }
        part
    };
    output.calls.iter().enumerate().map(part).collect()
}

fn frame(output: &ModelOutput, request: &Request, parts: Vec<Value>, end: Option<EndReason>) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}});
    if let Some(end) = end {
        candidate["finishReason"] = json!(finish(end));
    }
    if output.with_index {
        candidate["index"] = json!(0);
    }
    let mut frame = json!({"candidates": [candidate]});
    if let Some(usage) = output.usage() {
        frame["usageMetadata"] = write_usage(usage);
    }
    frame["modelVersion"] = json!(request.model);
    frame["responseId"] = json!(format!("response-{}", request.number + 1));
    frame
}

fn finish(end: EndReason) -> &'static str {
    match end {
        EndReason::Length => "MAX_TOKENS",
        EndReason::Filter => "SAFETY",
        _ => "STOP",
    }
}

fn write_usage(usage: Usage) -> Value {
    let mut written = json!({
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": usage.output_tokens,
        "totalTokenCount": usage.input_tokens + usage.output_tokens,
    });
    if usage.cached_tokens > 0 {
        written["cachedContentTokenCount"] = json!(usage.cached_tokens);
    }
    written
}

/// The status and body of an error.
pub(super) fn failure(failure: &Failure) -> (u16, Value) {
    const INVALID: &str = "INVALID_ARGUMENT";
    let (status, kind, message) = match failure {
        Failure::Auth => (400, INVALID, "API key not valid. Please pass a valid API key."),
        Failure::Quota => (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details."),
        Failure::Rate => (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
        Failure::ContextLength => (400, INVALID, "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576)."),
        Failure::ToolsUnsupported => (400, INVALID, "Function calling is not enabled for models/scripted-model"),
        Failure::UnknownModel => (404, "NOT_FOUND", "models/scripted-model is not found for API version v1beta."),
        Failure::Filter => return (200, json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})),
        Failure::Internal => (500, "INTERNAL", "An internal error has occurred. Please retry."),
        Failure::Overloaded => (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
        Failure::Other { status, code, message } => (*status, code.as_str(), message.as_str()),
    };
    let mut error = json!({"code": status, "message": message, "status": kind});
    if *failure == Failure::Auth {
        let kind = "type.googleapis.com/google.rpc.ErrorInfo";
        error["details"] = json!([{"@type": kind, "reason": "API_KEY_INVALID", "domain": "googleapis.com"}]);
    }
    (status, json!({"error": error}))
}
