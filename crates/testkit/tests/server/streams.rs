//! Answers that come as streams, compared with what the providers document.

use helve_core::{EndReason, Usage};
use helve_testkit::{Call, CallPieces, Reply};
use serde_json::{Value, json};

use crate::client::{WIRES, ask_with, question, stream};

fn names(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(name, _)| name.as_str()).collect()
}

fn two_calls() -> Reply {
    Reply::calls([("add", json!({"a": 1})), ("now", json!({"b": 2}))])
}

fn chat_deltas(data: &[Value]) -> Vec<Value> {
    data.iter().filter(|chunk| chunk.is_object()).map(|chunk| chunk["choices"][0]["delta"].clone()).collect()
}

#[tokio::test]
async fn chat() {
    let got = stream("chat", Reply::calls([("add", json!({"a": 1}))]).with_text("Hello").with_reasoning("Hm.")).await;
    assert!(got.complete && got.chunks.len() >= 9, "each event is a chunk of its own");
    let data = got.data();
    assert_eq!(data.last(), Some(&json!("[DONE]")));
    let expected = [
        json!({"role": "assistant", "content": ""}),
        json!({"reasoning_content": "Hm."}),
        json!({"content": "Hell"}),
        json!({"content": "o"}),
        json!({"tool_calls": [{"index": 0, "id": "call_1_1", "type": "function", "function": {"name": "add", "arguments": ""}}]}),
        json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"a\""}}]}),
        json!({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}),
        json!({}),
    ];
    assert_eq!(chat_deltas(&data), expected);
    let last = json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_735_689_600, "model": "m", "service_tier": "default",
        "system_fingerprint": null,
        "choices": [{"index": 0, "delta": {}, "logprobs": null, "finish_reason": "tool_calls"}],
    });
    assert_eq!(data[7], last);
    assert!(data[..7].iter().all(|chunk| chunk["choices"][0]["finish_reason"].is_null()));
}

#[tokio::test]
async fn chat_tells_the_usage_when_asked_or_forced() {
    let (path, mut body) = question("chat", true);
    let usage = |data: &[Value]| data.iter().rev().nth(1).map(|chunk| (chunk["choices"].clone(), chunk["usage"]["total_tokens"].clone()));
    let silent = ask_with(Reply::text("a"), &path, &body).await.data();
    assert!(silent.iter().all(|chunk| chunk.get("usage").is_none()));
    let forced = ask_with(Reply::text("a").with_usage(Usage { input_tokens: 1, output_tokens: 2, ..Usage::default() }), &path, &body).await;
    assert_eq!(usage(&forced.data()), Some((json!([]), json!(3))));
    body["stream_options"] = json!({"include_usage": true});
    let asked = ask_with(Reply::text("a"), &path, &body).await.data();
    assert_eq!((usage(&asked), asked[0].get("usage")), (Some((json!([]), json!(15))), Some(&Value::Null)));
    let never = ask_with(Reply::text("a").without_usage(), &path, &body).await.data();
    assert_eq!(never.len(), 4);
}

#[tokio::test]
async fn chat_cuts_and_labels_calls_in_ugly_ways() {
    let call_deltas = async |reply: Reply| -> Vec<Value> {
        chat_deltas(&stream("chat", reply).await.data())
            .into_iter()
            .map(|delta| delta["tool_calls"].clone())
            .filter(Value::is_array)
            .collect()
    };
    let indexes = |deltas: &[Value]| deltas.iter().map(|delta| delta[0]["index"].clone()).collect::<Value>();
    let interleaved = call_deltas(two_calls().with_call_pieces(CallPieces::Interleaved)).await;
    assert_eq!(indexes(&interleaved), json!([0, 1, 0, 1, 0, 1]));
    let whole = call_deltas(two_calls().with_call_pieces(CallPieces::Whole)).await;
    assert_eq!((whole.len(), &whole[1][0]["function"]), (2, &json!({"name": "now", "arguments": "{\"b\":2}"})));
    let together = call_deltas(two_calls().with_call_pieces(CallPieces::Together)).await;
    assert_eq!((together.len(), &together[0][1]["index"], &together[0][1]["id"]), (1, &json!(1), &json!("call_1_2")));
    let bare = call_deltas(two_calls().without_ids().without_index()).await;
    assert!(bare.iter().all(|delta| delta[0].get("id").is_none() && delta[0].get("index").is_none()));
    assert_eq!(bare[0][0]["function"]["name"], "add");
    let empty = call_deltas(Reply::calls([Call::raw("now", "")])).await;
    assert_eq!((empty.len(), &empty[0][0]["function"]["arguments"]), (1, &json!("")));
    let broken = call_deltas(Reply::calls([Call::raw("a", "{\"x\":")]).with_pieces_of(100)).await;
    assert_eq!(broken[1][0]["function"]["arguments"], "{\"x\":");
    let thought = stream("chat", Reply::text("a").with_reasoning("Hm").with_reasoning_field()).await.data();
    assert_eq!(thought[1]["choices"][0]["delta"], json!({"reasoning": "Hm"}));
}

#[tokio::test]
async fn responses() {
    let reply = Reply::calls([("add", json!({"a": 1}))]).with_text("Hello").with_reasoning("Hm.");
    let events = stream("responses", reply).await.events();
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(names(&events), expected);
    for (at, (name, data)) in events.iter().enumerate() {
        assert_eq!((&data["type"], &data["sequence_number"]), (&json!(name), &json!(at)));
    }
    let delta = json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 1, "content_index": 0, "delta": "Hell",
                       "logprobs": [], "sequence_number": 10});
    assert_eq!(events[10].1, delta);
    let added =
        json!({"id": "fc_1_1", "type": "function_call", "status": "in_progress", "call_id": "call_1_1", "name": "add", "arguments": ""});
    assert_eq!((&events[15].1["item"], &events[15].1["output_index"]), (&added, &json!(2)));
    let delta = json!({"type": "response.function_call_arguments.delta", "item_id": "fc_1_1", "output_index": 2, "delta": "{\"a\"",
                       "sequence_number": 16});
    assert_eq!(events[16].1, delta);
    let response = &events[20].1["response"];
    assert_eq!((&response["status"], &response["output"][2]["arguments"]), (&json!("completed"), &json!("{\"a\":1}")));
    assert_eq!(response["usage"]["total_tokens"], 15);
    let cut = stream("responses", Reply::text("a").with_end(EndReason::Length)).await.events();
    assert_eq!(names(&cut).last(), Some(&"response.incomplete"));
}

#[tokio::test]
async fn responses_keeps_interleaved_calls_in_order() {
    let calls = [Call::raw("long", "{\"a\": 12345}"), Call::raw("short", "{}")];
    let events = stream("responses", Reply::calls(calls).with_call_pieces(CallPieces::Interleaved)).await.events();
    let done: Vec<_> =
        events.iter().filter(|(name, _)| name == "response.output_item.done").map(|(_, data)| &data["output_index"]).collect();
    assert_eq!(done, [1, 0]);
    let response = &events.last().expect("an end").1["response"];
    assert_eq!((&response["output"][0]["name"], &response["output"][1]["name"]), (&json!("long"), &json!("short")));
}

#[tokio::test]
async fn anthropic() {
    let reply = Reply::calls([("add", json!({"a": 1}))]).with_text("Hello").with_reasoning("Hm.");
    let events = stream("anthropic", reply).await.events();
    let expected = [
        json!({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1}}}),
        json!({"type": "ping"}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2lnbmF0dXJl"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Hell"}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "o"}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "content_block_start", "index": 2,
               "content_block": {"type": "tool_use", "id": "toolu_1_1", "name": "add", "input": {}}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{\"a\""}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ":1}"}}),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ];
    for (event, expected) in events.iter().zip(&expected) {
        assert_eq!((&json!(event.0), &event.1), (&expected["type"], expected));
    }
    assert_eq!(events.len(), expected.len());
    let silent = stream("anthropic", Reply::text("a").without_usage().without_index()).await.data();
    assert!(silent.iter().all(|data| data.get("usage").is_none() && data["message"].get("usage").is_none() && data.get("index").is_none()));
}

#[tokio::test]
async fn gemini() {
    let reply = two_calls().with_text("Hello").with_reasoning("Hm.");
    let data = stream("gemini", reply.clone()).await.data();
    let parts: Vec<_> = data.iter().map(|chunk| chunk["candidates"][0]["content"]["parts"].clone()).collect();
    let expected = [
        json!([{"text": "Hm.", "thought": true}]),
        json!([{"text": "Hell"}]),
        json!([{"text": "o"}]),
        json!([{"functionCall": {"name": "add", "args": {"a": 1}}}]),
        json!([{"functionCall": {"name": "now", "args": {"b": 2}}}]),
        json!([{"text": ""}]),
    ];
    assert_eq!(parts, expected);
    let last = json!({
        "candidates": [{"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": "m",
        "responseId": "response-1",
    });
    assert_eq!(data[5], last);
    assert!(data[..5].iter().all(|chunk| chunk["candidates"][0].get("finishReason").is_none()));
    let together = stream("gemini", reply.with_call_pieces(CallPieces::Together)).await.data();
    assert_eq!(together[3]["candidates"][0]["content"]["parts"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn gemini_streams_an_array_where_no_events_are_asked_for() {
    let (path, body) = question("gemini", true);
    let got = ask_with(Reply::text("Hello"), path.trim_end_matches("?alt=sse"), &body).await;
    assert!(got.head.contains("content-type: application/json") && got.chunks.len() >= 4, "{got:?}");
    assert_eq!(got.json().as_array().map(Vec::len), Some(3));
}

#[tokio::test]
async fn an_answer_without_words_is_an_answer() {
    for wire in WIRES {
        assert!(!stream(wire, Reply::text("")).await.events().is_empty(), "{wire}");
    }
}
