//! Answers that come at once, compared with what the providers document.

use helve_core::{EndReason, Usage};
use helve_testkit::{Call, ModelServer, Reply};
use serde_json::{Value, json};

use crate::client::{WIRES, ask, send};

fn everything() -> Reply {
    Reply::calls([("add", json!({"a": 1, "b": 2}))]).with_text("Let me see.").with_reasoning("Hm.").with_signature("proof")
}

async fn body(wire: &str, reply: Reply) -> Value {
    let got = ask(wire, false, reply).await;
    assert_eq!((got.status, got.complete), (200, true));
    assert!(got.head.contains("content-type: application/json"), "{}", got.head);
    got.json()
}

#[tokio::test]
async fn chat() {
    let expected = json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_735_689_600,
        "model": "m",
        "service_tier": "default",
        "system_fingerprint": null,
        "choices": [{
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "Let me see.",
                "refusal": null,
                "reasoning_content": "Hm.",
                "tool_calls": [{"id": "call_1_1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":1,\"b\":2}"}}],
            },
            "logprobs": null,
            "finish_reason": "tool_calls",
        }],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "prompt_tokens_details": {"cached_tokens": 0}},
    });
    assert_eq!(body("chat", everything()).await, expected);
    let message =
        &body("chat", Reply::calls([("now", json!({}))]).with_reasoning("Hm.").with_reasoning_field()).await["choices"][0]["message"];
    assert_eq!((&message["content"], &message["reasoning"]), (&Value::Null, &json!("Hm.")));
}

#[tokio::test]
async fn responses() {
    let expected = json!({
        "id": "resp_1",
        "object": "response",
        "created_at": 1_735_689_600,
        "status": "completed",
        "error": null,
        "incomplete_details": null,
        "model": "m",
        "output": [
            {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "proof"},
            {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
             "content": [{"type": "output_text", "text": "Let me see.", "annotations": [], "logprobs": []}]},
            {"id": "fc_1_1", "type": "function_call", "status": "completed", "call_id": "call_1_1", "name": "add",
             "arguments": "{\"a\":1,\"b\":2}"},
        ],
        "parallel_tool_calls": true,
        "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
                  "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15},
    });
    assert_eq!(body("responses", everything()).await, expected);
    let cut = body("responses", Reply::text("a").with_end(EndReason::Length)).await;
    assert_eq!((&cut["status"], &cut["incomplete_details"]["reason"]), (&json!("incomplete"), &json!("max_output_tokens")));
}

#[tokio::test]
async fn anthropic() {
    let expected = json!({
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "proof"},
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "toolu_1_1", "name": "add", "input": {"a": 1, "b": 2}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": null,
        "usage": {"input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 5},
    });
    assert_eq!(body("anthropic", everything()).await, expected);
}

#[tokio::test]
async fn gemini() {
    let expected = json!({
        "candidates": [{
            "content": {
                "parts": [
                    {"text": "Hm.", "thought": true},
                    {"text": "Let me see."},
                    {"functionCall": {"name": "add", "args": {"a": 1, "b": 2}}, "thoughtSignature": "proof"},
                ],
                "role": "model",
            },
            "finishReason": "STOP",
            "index": 0,
        }],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": "m",
        "responseId": "response-1",
    });
    assert_eq!(body("gemini", everything()).await, expected);
}

#[tokio::test]
async fn every_end_has_its_word() {
    let expected = [
        ("chat", "/choices/0/finish_reason", ["stop", "tool_calls", "length", "content_filter"]),
        ("responses", "/status", ["completed", "completed", "incomplete", "incomplete"]),
        ("anthropic", "/stop_reason", ["end_turn", "tool_use", "max_tokens", "refusal"]),
        ("gemini", "/candidates/0/finishReason", ["STOP", "STOP", "MAX_TOKENS", "SAFETY"]),
    ];
    for (wire, pointer, words) in expected {
        for (end, word) in [EndReason::Stop, EndReason::Calls, EndReason::Length, EndReason::Filter].into_iter().zip(words) {
            let got = body(wire, Reply::text("a").with_end(end)).await;
            assert_eq!(got.pointer(pointer), Some(&json!(word)), "{wire} {end:?}");
        }
    }
}

#[tokio::test]
async fn usage_is_told_or_not() {
    let usage = Usage { input_tokens: 100, cached_tokens: 40, output_tokens: 7, cost: Some(0.5) };
    let of = async |wire: &'static str, key: &'static str| {
        assert!(body(wire, Reply::text("a").without_usage()).await[key].is_null(), "{wire}");
        body(wire, Reply::text("a").with_usage(usage)).await[key].clone()
    };
    let chat = of("chat", "usage").await;
    assert_eq!((&chat["prompt_tokens_details"]["cached_tokens"], &chat["cost"]), (&json!(40), &json!(0.5)));
    assert_eq!(of("responses", "usage").await["input_tokens_details"]["cached_tokens"], 40);
    let anthropic = of("anthropic", "usage").await;
    assert_eq!((&anthropic["input_tokens"], &anthropic["cache_read_input_tokens"]), (&json!(60), &json!(40)));
    assert_eq!(of("gemini", "usageMetadata").await["cachedContentTokenCount"], 40);
}

#[tokio::test]
async fn arguments_and_ids_may_be_wrong() {
    let calls = || Reply::calls([Call::raw("a", "{\"x\":").with_id("same"), Call::raw("b", "").with_id("same")]);
    let chat = body("chat", calls()).await["choices"][0]["message"]["tool_calls"].clone();
    assert_eq!((&chat[0]["function"]["arguments"], &chat[1]["function"]["arguments"]), (&json!("{\"x\":"), &json!("")));
    assert_eq!((&chat[0]["id"], &chat[1]["id"]), (&json!("same"), &json!("same")));
    let anthropic = body("anthropic", calls()).await["content"].clone();
    assert_eq!((&anthropic[0]["input"], &anthropic[1]["input"], &anthropic[1]["id"]), (&json!("{\"x\":"), &json!({}), &json!("same")));
    let gemini = body("gemini", calls()).await["candidates"][0]["content"]["parts"].clone();
    assert_eq!((&gemini[0]["functionCall"]["args"], &gemini[0]["functionCall"]["id"]), (&json!("{\"x\":"), &json!("same")));
    for wire in WIRES {
        let text = body(wire, calls().without_ids()).await.to_string();
        assert!(!text.contains("same"), "{wire}: {text}");
    }
}

#[tokio::test]
async fn models_are_listed_in_the_shape_of_who_is_asked() {
    let script = helve_testkit::Script::new().with_models(["one", "two"]).reply(Reply::text("unused"));
    let server = ModelServer::start(script).await;
    let list = async |path: &'static str, headers: &'static str| send(&server, "GET", path, headers, "").await.json();
    let openai = list("/v1/models", "").await;
    assert_eq!(
        (&openai["object"], &openai["data"][1]["id"], &openai["data"][1]["object"]),
        (&json!("list"), &json!("two"), &json!("model"))
    );
    let anthropic = list("/v1/models?limit=20", "anthropic-version: 2023-06-01\r\n").await;
    assert_eq!(
        (&anthropic["data"][0]["type"], &anthropic["last_id"], &anthropic["has_more"]),
        (&json!("model"), &json!("two"), &json!(false))
    );
    let gemini = list("/v1beta/models", "x-goog-api-key: k\r\n").await;
    assert_eq!(gemini["models"][0]["name"], "models/one");
    assert_eq!(list("/v1beta/models?key=k", "").await, gemini);
    assert_eq!((server.requests().len(), server.replies_left()), (4, 1), "lists are kept, and cost no reply");
}
