//! The newer era over HTTP: each request stands for itself.

use helve_mcp::server::ServerOptions;
use serde_json::{Value, json};

use super::client::{House, MODERN, call, meta, modern, soon};

/// Posts a message with headers that may be wrong; the status and the answer.
async fn post(house: &House, headers: &[(&str, &str)], message: &Value) -> (u16, Value) {
    let answer = house.post(headers, message).await;
    (answer.status, answer.json().await)
}

fn refused((status, answer): (u16, Value), id: i64) -> (u16, i64) {
    assert_eq!(answer["id"], id, "{answer}");
    (status, answer["error"]["code"].as_i64().unwrap())
}

#[tokio::test]
async fn the_server_says_what_it_is() {
    let house = House::open(ServerOptions::default()).await;
    let answer = house.modern("server/discover", json!({})).await;
    assert_eq!((answer.status, answer.header("content-type"), answer.header("mcp-session-id")), (200, Some("application/json"), None));
    let result = answer.json().await["result"].take();
    assert_eq!(result["supportedVersions"], json!([MODERN]));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"], json!({"name": "stage", "version": "1.2.3"}));
    assert_eq!((&result["instructions"], &result["resultType"], &result["ttlMs"]), (&json!("Play."), &json!("complete"), &json!(0)));
    assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
}

#[tokio::test]
async fn what_is_missing_or_does_not_agree_is_refused() {
    let house = House::open(ServerOptions::default()).await;
    let version = ("mcp-protocol-version", MODERN);
    let headers = [version, ("mcp-method", "server/discover")];
    let discover = |meta: Value| json!({"jsonrpc": "2.0", "id": 9, "method": "server/discover", "params": {"_meta": meta}});
    let without = |key: &str| {
        let mut meta = meta();
        meta.as_object_mut().unwrap().remove(&format!("io.modelcontextprotocol/{key}"));
        meta
    };
    let with = |key: &str, value: Value| {
        let mut meta = meta();
        meta[format!("io.modelcontextprotocol/{key}")] = value;
        meta
    };
    // What `_meta` must have.
    let bare = json!({"jsonrpc": "2.0", "id": 9, "method": "server/discover", "params": {}});
    assert_eq!(refused(post(&house, &headers, &bare).await, 9), (400, -32602));
    let none = json!({"jsonrpc": "2.0", "id": 9, "method": "server/discover"});
    assert_eq!(refused(post(&house, &headers, &none).await, 9), (400, -32602));
    for key in ["protocolVersion", "clientCapabilities"] {
        assert_eq!(refused(post(&house, &headers, &discover(without(key))).await, 9), (400, -32602), "{key}");
    }
    assert_eq!(refused(post(&house, &headers, &discover(with("clientCapabilities", json!([])))).await, 9), (400, -32602));
    assert_eq!(refused(post(&house, &headers, &discover(with("logLevel", json!("loud")))).await, 9), (400, -32602));
    assert_eq!(post(&house, &headers, &discover(without("clientInfo"))).await.0, 200, "clients need not say who they are");
    // Versions.
    let strange = discover(with("protocolVersion", json!("v999.0.0")));
    let (status, answer) = post(&house, &[("mcp-protocol-version", "v999.0.0"), ("mcp-method", "server/discover")], &strange).await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32022)));
    assert_eq!(answer["error"]["data"], json!({"supported": [MODERN], "requested": "v999.0.0"}));
    assert_eq!(refused(post(&house, &headers, &strange).await, 9), (400, -32020), "header and body");
    assert_eq!(refused(post(&house, &headers[1..], &discover(meta())).await, 9), (400, -32020), "no header");
    assert_eq!(refused(post(&house, &[version, version, headers[1]], &discover(meta())).await, 9), (400, -32020), "twice");
    // Methods.
    assert_eq!(refused(post(&house, &[version], &discover(meta())).await, 9), (400, -32020));
    for wrong in ["tools/list", "SERVER/DISCOVER"] {
        assert_eq!(refused(post(&house, &[version, ("mcp-method", wrong)], &discover(meta())).await, 9), (400, -32020), "{wrong}");
    }
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "unknown/method"] {
        let (headers, message) = modern(5, method, json!({}));
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(refused(post(&house, &headers, &message).await, 5), (404, -32601), "{method}");
    }
    assert!(house.stage.seen().is_empty(), "what is gone does not reach the backend");
}

#[tokio::test]
async fn headers_say_what_the_body_says() {
    let house = House::open(ServerOptions::default()).await;
    let send = async |headers: &[(&str, &str)], tool: &str, arguments: Value| {
        let mut message = call(3, tool, arguments);
        message["params"]["_meta"] = meta();
        let mut all = vec![("mcp-protocol-version", MODERN), ("mcp-method", "tools/call")];
        all.extend(headers);
        let (status, answer) = post(&house, &all, &message).await;
        (status, answer["error"]["code"].as_i64())
    };
    let mismatch = (400, Some(-32020));
    assert_eq!(send(&[("mcp-name", "test_simple_text")], "test_simple_text", json!({})).await, (200, None));
    assert_eq!(send(&[("MCP-NAME", "  =?base64?dGVzdF9zaW1wbGVfdGV4dA==?=  ")], "test_simple_text", json!({})).await, (200, None));
    for wrong in [&[][..], &[("mcp-name", "other")], &[("mcp-name", "=?base64?!?=")]] {
        assert_eq!(send(wrong, "test_simple_text", json!({})).await, mismatch, "{wrong:?}");
    }
    // Nothing is known of a tool's headers before its list was given out.
    let name = ("mcp-name", "regional");
    assert_eq!(send(&[name], "regional", json!({"region": "north"})).await, (200, None));
    house.modern("tools/list", json!({})).await;
    assert_eq!(send(&[name], "regional", json!({"region": "north"})).await, mismatch);
    assert_eq!(send(&[name, ("mcp-param-region", "south")], "regional", json!({"region": "north"})).await, mismatch);
    assert_eq!(send(&[name, ("mcp-param-region", "north")], "regional", json!({"region": "north"})).await, (200, None));
    assert_eq!(send(&[name], "regional", json!({"region": null})).await, (200, None));
}

#[tokio::test]
async fn errors_pass_with_their_status_and_panics_take_nobody_down() {
    let house = House::open(ServerOptions::default()).await;
    for (tool, status, code) in [
        ("test_missing_capability", 400, -32021),
        ("there_is_none", 400, -32602),
        ("panic", 200, -32603),
        ("no_object", 200, -32603),
        ("ask_modern", 400, -32600),
    ] {
        let answer = house.modern("tools/call", json!({"name": tool})).await;
        assert_eq!(refused((answer.status, answer.json().await), 1), (status, code), "{tool}");
    }
    let answer = house.modern("tools/call", json!({"name": "test_missing_capability"})).await.json().await;
    assert_eq!(answer["error"]["data"]["requiredCapabilities"], json!({"sampling": {}}));
    assert_eq!(house.modern("tools/call", json!({"name": "test_simple_text"})).await.status, 200, "it still answers");
    let answer = house.modern("tools/call", json!({"name": "test_elicitation"})).await.json().await;
    assert_eq!(answer["result"]["resultType"], "input_required");
}

#[tokio::test]
async fn what_is_told_before_the_answer_makes_it_a_stream() {
    let house = House::open(ServerOptions::default()).await;
    let params = json!({"name": "test_tool_with_progress", "_meta": {"progressToken": "mine"}});
    let answer = house.modern("tools/call", params.clone()).await;
    assert_eq!((answer.status, answer.header("x-accel-buffering")), (200, Some("no")));
    let events = answer.events().await;
    let progress: Vec<_> = events.iter().filter(|event| event["method"] == "notifications/progress").collect();
    assert_eq!(progress.len(), 3, "{events:?}");
    assert!(progress.iter().all(|event| event["params"]["progressToken"] == "mine"));
    assert_eq!(events.last().unwrap()["result"]["content"][0]["text"], "done");
    // Changes are for those who listen.
    assert!(!house.modern("tools/call", json!({"name": "change_now"})).await.is_stream());
    // Nobody asked for progress, or can read a stream: then it is an answer.
    assert!(!house.modern("tools/call", json!({"name": "test_tool_with_progress"})).await.is_stream());
    let (headers, message) = modern(1, "tools/call", params);
    let mut headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    headers.push(("accept", "application/json"));
    assert_eq!(house.post(&headers, &message).await.json().await["result"]["content"][0]["text"], "done");
    headers.pop();
    headers.push(("accept", "text/event-stream"));
    assert_eq!(house.post(&headers, &message).await.events().await.len(), 4);
}

#[tokio::test]
async fn logs_come_only_from_the_level_on_that_was_asked_for() {
    let house = House::open(ServerOptions::default()).await;
    let logs = async |meta: Value| {
        let answer = house.modern("tools/call", json!({"name": "test_tool_with_logging", "_meta": meta})).await;
        if answer.is_stream() { answer.events().await.len() - 1 } else { 0 }
    };
    assert_eq!(logs(json!({})).await, 0);
    assert_eq!(logs(json!({"io.modelcontextprotocol/logLevel": "debug"})).await, 3);
    assert_eq!(logs(json!({"io.modelcontextprotocol/logLevel": "warning"})).await, 1);
    assert_eq!(logs(json!({"io.modelcontextprotocol/logLevel": "error"})).await, 0);
}

#[tokio::test]
async fn who_goes_away_has_cancelled() {
    let house = House::open(ServerOptions::default()).await;
    // Before the head of the answer is there.
    let (headers, message) = modern(1, "tools/call", json!({"name": "wait"}));
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    tokio::select! {
        _ = house.post(&headers, &message) => panic!("there is no answer"),
        () = house.stage.wait_for("waiting") => {}
    }
    soon(house.stage.wait_for("cancelled")).await;
    // And in the middle of a stream.
    let house = House::open(ServerOptions::default()).await;
    let mut answer = house.modern("tools/call", json!({"name": "wait", "_meta": {"progressToken": 1}})).await;
    assert_eq!(answer.event().await.unwrap()["params"]["progress"], 0);
    assert!(!house.stage.seen().contains(&"cancelled".to_owned()));
    drop(answer);
    soon(house.stage.wait_for("cancelled")).await;
}

#[tokio::test]
async fn a_slow_reader_misses_news_but_not_the_answer() {
    let house = House::open(ServerOptions { queue: 4, ..ServerOptions::default() }).await;
    let answer = house.modern("tools/call", json!({"name": "burst", "_meta": {"progressToken": "p"}})).await;
    let events = answer.events().await;
    assert!(events.len() < 5_001, "nothing was dropped");
    assert_eq!(events.last().unwrap()["result"]["content"][0]["text"], "burst");
}

#[tokio::test]
async fn who_reads_nothing_at_all_is_cut_off() {
    let house = House::open(ServerOptions { stall: std::time::Duration::from_millis(20), ..ServerOptions::default() }).await;
    let answer = house.modern("tools/call", json!({"name": "pour", "_meta": {"progressToken": 1}})).await;
    assert!(answer.is_stream());
    soon(house.stage.wait_for("cancelled")).await;
}

#[tokio::test]
async fn one_request_too_many_is_refused() {
    let house = House::open(ServerOptions { max_requests: 1, ..ServerOptions::default() }).await;
    let mut first = house.modern("tools/call", json!({"name": "wait", "_meta": {"progressToken": 1}})).await;
    assert!(first.event().await.is_some());
    let second = house.modern("tools/list", json!({})).await;
    assert_eq!(refused((second.status, second.json().await), 1), (503, -32000));
    drop(first);
    soon(house.stage.wait_for("cancelled")).await;
}

#[tokio::test]
async fn no_client_takes_all_places() {
    let house = House::open(ServerOptions { max_requests: 16, ..ServerOptions::default() }).await;
    let ask = |client: &'static str, tool: &'static str| {
        let meta = json!({"progressToken": 1, "io.modelcontextprotocol/clientInfo": {"name": client, "version": "0"}});
        house.modern("tools/call", json!({"name": tool, "_meta": meta}))
    };
    let mut held = Vec::new();
    for _ in 0..8 {
        let mut answer = ask("greedy", "wait").await;
        assert!(answer.event().await.is_some());
        held.push(answer);
    }
    let refused = ask("greedy", "wait").await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    assert_eq!(refused.json().await["error"]["code"], -32000);
    let mut other = ask("other", "wait").await;
    assert!(other.is_stream() && other.event().await.is_some());
    held.clear();
    soon(house.stage.wait_for("cancelled")).await;
}

#[tokio::test]
async fn a_silent_answer_becomes_a_stream_with_signs_of_life() {
    let keep_alive = std::time::Duration::from_millis(5);
    let house = House::open(ServerOptions { keep_alive, ..ServerOptions::default() }).await;
    let mut answer = house.modern("tools/call", json!({"name": "wait"})).await;
    assert!(answer.is_stream());
    assert_eq!(answer.chunk().await.as_deref(), Some(":\n\n"));
    assert_eq!(answer.chunk().await.as_deref(), Some(":\n\n"));
}

#[tokio::test]
async fn notifications_are_taken_and_answers_are_not() {
    let house = House::open(ServerOptions::default()).await;
    let version = [("mcp-protocol-version", MODERN)];
    let told = house.post(&version, &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})).await;
    assert_eq!((told.status, told.text().await.as_str()), (202, ""));
    assert_eq!(post(&house, &version, &json!({"jsonrpc": "2.0", "id": 1, "result": {}})).await.0, 400);
}
