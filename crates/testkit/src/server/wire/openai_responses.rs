//! `OpenAI` Responses.

use helve_core::{EndReason, Usage};
use serde_json::{Value, json};

use crate::server::output::{Call, ModelOutput};
use crate::server::request::{ParsedRequest, Request, Turn, items, string, words};
use crate::server::sse::Event;

/// Parses a request.
pub(super) fn read(body: &Value) -> ParsedRequest {
    let mut turns = Vec::new();
    if let Some(instructions) = body["instructions"].as_str() {
        turns.push(Turn::System(instructions.to_owned()));
    }
    match &body["input"] {
        Value::String(text) => turns.push(Turn::User(text.clone())),
        input => items(input).iter().for_each(|item| read_item(item, &mut turns)),
    }
    let format = &body["text"]["format"];
    ParsedRequest {
        model: string(&body["model"]),
        streaming: body["stream"] == true,
        turns,
        tools: items(&body["tools"]).iter().map(|tool| string(&tool["name"])).collect(),
        schema: match format["type"].as_str() {
            Some("json_schema") => Some(format["schema"].clone()),
            Some("json_object") => Some(json!({})),
            _ => None,
        },
    }
}

/// Text and calls of one response are separate items here; adjacent ones become one turn.
fn read_item(item: &Value, turns: &mut Vec<Turn>) {
    let (said, called) = match (item["type"].as_str(), item["role"].as_str()) {
        (Some("function_call"), _) => {
            let call = Call::raw(string(&item["name"]), string(&item["arguments"]));
            (String::new(), Some(call.with_id(string(&item["call_id"]))))
        }
        (Some("function_call_output"), _) => {
            let (id, text) = (string(&item["call_id"]), words(&item["output"]));
            return turns.push(Turn::Result { id, tool: String::new(), text });
        }
        (_, Some("assistant")) => (words(&item["content"]), None),
        (_, Some("system" | "developer")) => return turns.push(Turn::System(words(&item["content"]))),
        (_, Some(_)) => return turns.push(Turn::User(words(&item["content"]))),
        (_, None) => return,
    };
    if let Some(Turn::Assistant { text, calls }) = turns.last_mut() {
        text.push_str(&said);
        calls.extend(called);
    } else {
        turns.push(Turn::Assistant { text: said, calls: called.into_iter().collect() });
    }
}

/// A complete response.
pub(super) fn whole(model_output: &ModelOutput, request: &Request) -> Value {
    let mut output = Vec::new();
    if !model_output.reasoning.is_empty() {
        output.push(reasoning_item(model_output, request, json!([{"type": "summary_text", "text": model_output.reasoning}])));
    }
    if !model_output.text.is_empty() {
        output.push(message_item(request, "completed", json!([text_part(&model_output.text)])));
    }
    let call = |(at, call): (usize, &Call)| call_item(model_output, request, at, "completed", &call.arguments);
    output.extend(model_output.calls.iter().enumerate().map(call));
    finished(model_output, request, output)
}

/// A streamed response.
pub(super) fn events(model_output: &ModelOutput, request: &Request) -> Vec<Event> {
    let mut stream = Stream { model_output, sent: Vec::new(), output: Vec::new() };
    stream.send(json!({"type": "response.created", "response": frame(request, "in_progress")}));
    stream.send(json!({"type": "response.in_progress", "response": frame(request, "in_progress")}));
    if !model_output.reasoning.is_empty() {
        stream.reasoning(request);
    }
    if !model_output.text.is_empty() {
        stream.text(request);
    }
    stream.calls(request);
    let response = finished(model_output, request, stream.output.clone());
    let kind = if response["status"] == "incomplete" { "response.incomplete" } else { "response.completed" };
    stream.send(json!({"type": kind, "response": response}));
    stream.sent.into_iter().map(Event::typed).collect()
}

/// The events of an error: `error`, with the error nested as the provider sends it, not flat as documented; then `response.failed`.
pub(super) fn failure_events(error: &Value, request: &Request, after: usize) -> Vec<Event> {
    let mut response = frame(request, "failed");
    let code = if error["code"].is_null() { &error["type"] } else { &error["code"] };
    response["error"] = json!({"code": code, "message": error["message"]});
    vec![
        Event::typed(json!({"type": "error", "sequence_number": after, "error": error})),
        Event::typed(json!({"type": "response.failed", "sequence_number": after + 1, "response": response})),
    ]
}

/// The events sent, and the completed items.
struct Stream<'a> {
    model_output: &'a ModelOutput,
    sent: Vec<Value>,
    output: Vec<Value>,
}

impl Stream<'_> {
    fn send(&mut self, mut data: Value) {
        data["sequence_number"] = json!(self.sent.len());
        self.sent.push(data);
    }

    /// Sends an event about an item; `rest` has the fields of its kind.
    fn send_of(&mut self, item: &Value, output_index: usize, kind: &str, rest: Value) {
        let mut data = json!({"type": kind});
        if !item["id"].is_null() {
            data["item_id"] = item["id"].clone();
        }
        if self.model_output.with_index {
            data["output_index"] = json!(output_index);
        }
        if let (Value::Object(data), Value::Object(rest)) = (&mut data, rest) {
            data.extend(rest);
        }
        self.send(data);
    }

    fn send_item(&mut self, item: &Value, output_index: usize, kind: &str) {
        let mut data = json!({"type": kind, "item": item});
        if self.model_output.with_index {
            data["output_index"] = json!(output_index);
        }
        self.send(data);
    }

    fn reasoning(&mut self, request: &Request) {
        let (at, text) = (self.output.len(), &self.model_output.reasoning);
        let item = reasoning_item(self.model_output, request, json!([]));
        let part = |text: &str| json!({"summary_index": 0, "part": {"type": "summary_text", "text": text}});
        self.send_item(&item, at, "response.output_item.added");
        self.send_of(&item, at, "response.reasoning_summary_part.added", part(""));
        for piece in self.model_output.pieces(text) {
            self.send_of(&item, at, "response.reasoning_summary_text.delta", json!({"summary_index": 0, "delta": piece}));
        }
        self.send_of(&item, at, "response.reasoning_summary_text.done", json!({"summary_index": 0, "text": text}));
        self.send_of(&item, at, "response.reasoning_summary_part.done", part(text));
        self.done(reasoning_item(self.model_output, request, json!([{"type": "summary_text", "text": text}])), at);
    }

    fn text(&mut self, request: &Request) {
        let (at, text) = (self.output.len(), &self.model_output.text);
        let item = message_item(request, "in_progress", json!([]));
        let part = |text: &str| json!({"content_index": 0, "part": text_part(text)});
        self.send_item(&item, at, "response.output_item.added");
        self.send_of(&item, at, "response.content_part.added", part(""));
        for piece in self.model_output.pieces(text) {
            self.send_of(&item, at, "response.output_text.delta", json!({"content_index": 0, "delta": piece, "logprobs": []}));
        }
        self.send_of(&item, at, "response.output_text.done", json!({"content_index": 0, "text": text, "logprobs": []}));
        self.send_of(&item, at, "response.content_part.done", part(text));
        self.done(message_item(request, "completed", json!([text_part(text)])), at);
    }

    fn calls(&mut self, request: &Request) {
        let first = self.output.len();
        // Interleaved calls end in a different order than they start, and the output lists them in the order they started.
        let mut done = vec![Value::Null; self.model_output.calls.len()];
        for piece in self.model_output.call_pieces().into_iter().flatten() {
            let (at, arguments) = (first + piece.call, &self.model_output.calls[piece.call].arguments);
            let item = call_item(self.model_output, request, piece.call, "in_progress", "");
            if piece.opens {
                self.send_item(&item, at, "response.output_item.added");
            }
            if !piece.arguments.is_empty() {
                self.send_of(&item, at, "response.function_call_arguments.delta", json!({"delta": piece.arguments}));
            }
            if piece.closes {
                let name = &self.model_output.calls[piece.call].name;
                self.send_of(&item, at, "response.function_call_arguments.done", json!({"name": name, "arguments": arguments}));
                done[piece.call] = call_item(self.model_output, request, piece.call, "completed", arguments);
                self.send_item(&done[piece.call], at, "response.output_item.done");
            }
        }
        self.output.extend(done);
    }

    fn done(&mut self, item: Value, at: usize) {
        self.send_item(&item, at, "response.output_item.done");
        self.output.push(item);
    }
}

fn frame(request: &Request, status: &str) -> Value {
    json!({
        "id": format!("resp_{}", request.number + 1),
        "object": "response",
        "created_at": 1_735_689_600,
        "status": status,
        "error": null,
        "incomplete_details": null,
        "model": request.model,
        "output": [],
        "parallel_tool_calls": true,
        "usage": null,
    })
}

fn finished(model_output: &ModelOutput, request: &Request, output: Vec<Value>) -> Value {
    let incomplete = match model_output.end() {
        EndReason::Length => Some("max_output_tokens"),
        EndReason::Filter => Some("content_filter"),
        _ => None,
    };
    let mut response = frame(request, if incomplete.is_some() { "incomplete" } else { "completed" });
    response["output"] = Value::Array(output);
    if let Some(reason) = incomplete {
        response["incomplete_details"] = json!({"reason": reason});
    }
    if let Some(usage) = model_output.usage() {
        response["usage"] = write_usage(usage);
    }
    response
}

fn reasoning_item(model_output: &ModelOutput, request: &Request, summary: Value) -> Value {
    let mut item = json!({"id": format!("rs_{}", request.number + 1), "type": "reasoning", "summary": summary});
    if let Some(signature) = &model_output.signature {
        item["encrypted_content"] = json!(signature);
    }
    item
}

fn message_item(request: &Request, status: &str, content: Value) -> Value {
    let id = format!("msg_{}", request.number + 1);
    json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content})
}

fn call_item(model_output: &ModelOutput, request: &Request, at: usize, status: &str, arguments: &str) -> Value {
    let mut item = json!({"type": "function_call", "status": status, "name": model_output.calls[at].name, "arguments": arguments});
    if let Some(call_id) = model_output.call_id(at, "call", request.number) {
        item["id"] = json!(format!("fc_{}_{}", request.number + 1, at + 1));
        item["call_id"] = json!(call_id);
    }
    item
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn write_usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    })
}
