//! What a script sees of a request, and what is kept of it.

use helve_testkit::{Call, Failure, ModelServer, Reply, Request, Script, Turn, Wire};
use serde_json::{Value, json};

use crate::client::{WIRES, ask_with, post, send};

/// The same conversation in each wire: instructions, a question, a call, its result. A tool is offered, and a schema asked for.
fn conversation(wire: &str) -> (&'static str, Value) {
    let schema = json!({"type": "object"});
    match wire {
        "chat" => (
            "/v1/chat/completions",
            json!({
                "model": "m",
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": [{"type": "text", "text": "1 + "}, {"type": "text", "text": "2?"}]},
                    {"role": "assistant", "content": null, "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":1}"}}]},
                    {"role": "tool", "tool_call_id": "c1", "content": "3"},
                ],
                "tools": [{"type": "function", "function": {"name": "add", "parameters": {}}}],
                "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
            }),
        ),
        "responses" => (
            "/v1/responses",
            json!({
                "model": "m",
                "instructions": "Be brief.",
                "input": [
                    {"role": "user", "content": [{"type": "input_text", "text": "1 + 2?"}]},
                    {"type": "reasoning", "summary": []},
                    {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{\"a\":1}"},
                    {"type": "function_call_output", "call_id": "c1", "output": "3"},
                ],
                "tools": [{"type": "function", "name": "add", "parameters": {}}],
                "text": {"format": {"type": "json_schema", "name": "x", "schema": schema}},
            }),
        ),
        "anthropic" => (
            "/v1/messages",
            json!({
                "model": "m",
                "system": [{"type": "text", "text": "Be brief."}],
                "messages": [
                    {"role": "user", "content": "1 + 2?"},
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}]},
                    {"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "3"}]}]},
                ],
                "tools": [{"name": "add", "input_schema": {}}],
                "output_config": {"format": {"type": "json_schema", "schema": schema}},
            }),
        ),
        _ => (
            "/v1beta/models/m:generateContent?key=k",
            json!({
                "systemInstruction": {"parts": [{"text": "Be brief."}]},
                "contents": [
                    {"role": "user", "parts": [{"text": "1 + 2?"}]},
                    {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "add", "args": {"a": 1}}}]},
                    {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "add", "response": {"result": 3}}}]},
                ],
                "tools": [{"functionDeclarations": [{"name": "add"}]}],
                "generationConfig": {"responseMimeType": "application/json", "responseSchema": schema},
            }),
        ),
    }
}

#[tokio::test]
async fn a_conversation_reads_the_same_in_every_wire() {
    for wire in WIRES {
        let server = ModelServer::start(Reply::text("3")).await;
        let (path, body) = conversation(wire);
        assert_eq!(post(&server, path, &body).await.status, 200);
        let [request]: [Request; 1] = server.requests().try_into().expect("one request");
        let result = if wire == "gemini" { "{\"result\":3}" } else { "3" };
        let turns = [
            Turn::System("Be brief.".into()),
            Turn::User("1 + 2?".into()),
            Turn::Assistant { text: String::new(), calls: vec![Call::new("add", json!({"a": 1})).with_id("c1")] },
            Turn::Result { id: "c1".into(), tool: "add".into(), text: result.into() },
        ];
        assert_eq!(request.turns, turns, "{wire}");
        assert_eq!((request.user(), request.system().as_str(), request.results()), ("1 + 2?", "Be brief.", vec![result]));
        assert_eq!((request.model.as_str(), request.streaming, request.number), ("m", false, 0), "{wire}");
        assert_eq!((&request.tools[..], &request.schema), (&["add".to_owned()][..], &Some(json!({"type": "object"}))));
        assert_eq!((request.method.as_str(), request.path.as_str(), &request.body), ("POST", path, &body));
        assert_eq!(request.header("Host"), Some("test"));
    }
}

#[tokio::test]
async fn results_of_earlier_questions_are_not_news() {
    let (path, mut body) = conversation("chat");
    let messages = body["messages"].as_array_mut().expect("messages");
    messages.extend([json!({"role": "assistant", "content": "3"}), json!({"role": "user", "content": "Thanks."})]);
    let script = Script::from_fn(|request| Reply::text(format!("{} {}", request.user(), request.results().len())));
    assert_eq!(ask_with(script, path, &body).await.json()["choices"][0]["message"]["content"], "Thanks. 0");
}

#[tokio::test]
async fn a_function_decides_after_the_list() {
    let script = Script::from_fn(|request| match request.results().first() {
        Some(result) => Reply::text(format!("It is {result}.")),
        None => Reply::calls([(request.tools[0].clone(), json!({}))]),
    });
    let server = ModelServer::start(script.reply(Reply::failure(Failure::Rate))).await;
    let (path, with_result) = conversation("chat");
    let mut without = with_result.clone();
    without["messages"].as_array_mut().expect("messages").truncate(2);
    assert_eq!(server.replies_left(), 1);
    assert_eq!(post(&server, path, &without).await.status, 429);
    assert_eq!(server.replies_left(), 0);
    let call = post(&server, path, &without).await.json()["choices"][0]["message"]["tool_calls"][0].clone();
    assert_eq!((&call["function"]["name"], &call["id"]), (&json!("add"), &json!("call_2_1")));
    assert_eq!(post(&server, path, &with_result).await.json()["choices"][0]["message"]["content"], "It is 3.");
    assert_eq!(server.requests().iter().map(|request| request.number).collect::<Vec<_>>(), [0, 1, 2]);
}

#[tokio::test]
async fn a_script_that_panics_says_so() {
    let got = ask_with(Script::from_fn(|_| panic!("no such luck")), "/v1/responses", &json!({})).await;
    assert_eq!((got.status, &got.json()["error"]["message"]), (500, &json!("the script panicked: no such luck")));
}

#[tokio::test]
async fn wrong_requests_are_kept_and_cost_no_reply() {
    let server = ModelServer::start(Reply::text("hi")).await;
    assert_eq!(send(&server, "POST", "/v1/chat/completions", "", "{oops").await.status, 400);
    assert_eq!(send(&server, "POST", "/v1/embeddings", "", "{}").await.status, 404);
    let missing = send(&server, "GET", "/v1/messages", "", "").await;
    assert_eq!((missing.status, &missing.json()["error"]["message"]), (404, &json!("unknown path: GET /v1/messages")));
    let requests = server.requests();
    assert_eq!((&requests[0].body, requests[0].wire), (&json!("{oops"), Wire::OpenAiChat));
    assert_eq!((&requests[2].body, requests[2].wire), (&Value::Null, Wire::Other));
    assert_eq!((requests.len(), server.replies_left()), (3, 1));
    assert_eq!(send(&server, "POST", "/any/base/chat/completions?x=1", "", "{}").await.status, 200);
}
