//! The older era over HTTP: a handshake, and a session.

use std::time::Duration;

use helve_mcp::Change;
use helve_mcp::server::ServerOptions;
use serde_json::json;

use super::client::{House, LEGACY, call, initialize, request, soon};

#[tokio::test]
async fn a_session_is_begun_used_and_ended() {
    let house = House::open(ServerOptions::default()).await;
    let answer = house.post(&[("mcp-protocol-version", LEGACY), ("mcp-method", "initialize")], &initialize(LEGACY)).await;
    let session = answer.header("mcp-session-id").unwrap().to_owned();
    assert!(session.len() == 32 && session.bytes().all(|byte| byte.is_ascii_hexdigit()), "{session}");
    let result = answer.json().await["result"].take();
    assert_eq!((&result["protocolVersion"], &result["instructions"]), (&json!(LEGACY), &json!("Play.")));
    assert_eq!(result["serverInfo"], json!({"name": "stage", "version": "1.2.3"}));
    assert!(result["capabilities"]["logging"].is_object() && result.get("resultType").is_none() && result.get("_meta").is_none());

    let pong = house.legacy(&session, &request(2, "ping", json!({}))).await.json().await;
    assert_eq!(pong, json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    let list = house.legacy(&session, &json!({"jsonrpc": "2.0", "id": "three", "method": "tools/list"})).await.json().await;
    assert_eq!(list["id"], "three");
    assert!(list["result"].get("ttlMs").is_none() && list["result"].get("resultType").is_none());
    let odd = list["result"]["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "list_data").unwrap();
    assert_eq!((&odd["inputSchema"], odd.get("outputSchema")), (&json!({"type": "object"}), None));
    let called = house.legacy(&session, &call(4, "list_data", json!({}))).await.json().await;
    assert_eq!(called["result"], json!({"content": []}));
    let unknown = house.legacy(&session, &request(5, "server/discover", json!({}))).await;
    assert_eq!((unknown.status, unknown.json().await["error"]["code"].as_i64()), (200, Some(-32601)));
    let broken = house.legacy(&session, &call(6, "panic", json!({}))).await;
    assert_eq!((broken.status, broken.json().await["error"]["code"].as_i64()), (200, Some(-32603)));

    let own = [("mcp-session-id", session.as_str())];
    assert_eq!(house.send("DELETE /mcp", &own, "").await.status, 204);
    assert_eq!(house.stage.seen(), [format!("ended {session}")]);
    assert_eq!(house.legacy(&session, &request(7, "ping", json!({}))).await.status, 404);
    assert_eq!(house.send("DELETE /mcp", &own, "").await.status, 404);
}

#[tokio::test]
async fn the_version_is_agreed_upon() {
    let house = House::open(ServerOptions::default()).await;
    for (asked, given) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("2026-07-28", LEGACY),
        ("1999-01-01", LEGACY),
    ] {
        let answer = house.post(&[], &initialize(asked)).await.json().await;
        assert_eq!(answer["result"]["protocolVersion"], given, "{asked}");
    }
    let without = house.post(&[], &request(1, "initialize", json!({}))).await;
    assert_eq!(without.header("mcp-session-id"), None);
    assert_eq!(without.json().await["error"]["code"], -32602);
}

#[tokio::test]
async fn requests_need_their_session() {
    let house = House::open(ServerOptions::default()).await;
    let session = house.session().await;
    let ping = request(2, "ping", json!({}));
    let missing = house.post(&[], &ping).await;
    assert_eq!((missing.status, missing.json().await["id"].as_i64()), (400, Some(2)));
    assert_eq!(house.post(&[("mcp-session-id", "0123")], &ping).await.status, 404);
    assert_eq!(house.post(&[("mcp-session-id", &session)], &ping).await.status, 200, "the version may be left out");
    let odd = house.post(&[("mcp-session-id", &session), ("mcp-protocol-version", "nonsense")], &ping).await;
    assert_eq!(odd.status, 400);
    assert_eq!(house.send("GET /mcp", &[("accept", "text/event-stream")], "").await.status, 400);
    assert_eq!(house.stream("0123", &[]).await.status, 404);
    assert_eq!(house.send("GET /mcp", &[("mcp-session-id", &session), ("accept", "application/json")], "").await.status, 406);
    assert_eq!(house.send("DELETE /mcp", &[], "").await.status, 400);
}

#[tokio::test]
async fn a_client_is_asked_while_its_call_runs() {
    let house = House::open(ServerOptions::default()).await;
    let session = house.session().await;
    let mut stream = house.legacy(&session, &call(2, "test_elicitation", json!({"message": "Well?"}))).await;
    let asked = stream.event().await.unwrap();
    assert_eq!((&asked["method"], &asked["params"]["message"]), (&json!("elicitation/create"), &json!("Well?")));
    // Another session cannot answer for this one, and a stranger's id is nobody's.
    let other = house.session().await;
    let forged = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "cancel"}});
    assert_eq!(house.legacy(&other, &forged).await.status, 202);
    assert_eq!(house.legacy(&session, &json!({"jsonrpc": "2.0", "id": 999, "result": {}})).await.status, 202);
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {"username": "me"}}});
    let taken = house.legacy(&session, &answer).await;
    assert_eq!((taken.status, taken.text().await.as_str()), (202, ""));
    let last = stream.event().await.unwrap();
    assert_eq!(last["id"], 2);
    assert!(last["result"]["content"][0]["text"].as_str().unwrap().contains(r#""username":"me""#), "{last}");
    assert_eq!(stream.event().await, None);
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_not() {
    let house = House::open(ServerOptions::default()).await;
    let session = house.session().await;
    let headers = [("mcp-session-id", session.as_str()), ("accept", "application/json")];
    let answer = house.post(&headers, &call(2, "test_elicitation", json!({}))).await.json().await;
    assert_eq!(answer["error"]["code"], -32600, "it reads no stream");
    let poor = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": LEGACY, "capabilities": {}}});
    let poor = house.post(&[], &poor).await.header("mcp-session-id").unwrap().to_owned();
    let answer = house.legacy(&poor, &call(2, "test_elicitation", json!({}))).await.json().await;
    assert_eq!(answer["error"]["code"], -32601, "it lacks the capability");
    // A question ends with its session.
    let mut stream = house.legacy(&session, &call(3, "test_elicitation", json!({}))).await;
    assert_eq!(stream.event().await.unwrap()["method"], "elicitation/create");
    assert_eq!(house.send("DELETE /mcp", &[("mcp-session-id", &session)], "").await.status, 204);
    while stream.event().await.is_some() {}
}

#[tokio::test]
async fn logs_come_when_a_level_was_set() {
    let house = House::open(ServerOptions::default()).await;
    let session = house.session().await;
    let logs = async || {
        let answer = house.legacy(&session, &call(2, "test_tool_with_logging", json!({}))).await;
        if answer.is_stream() { answer.events().await.len() - 1 } else { 0 }
    };
    assert_eq!(logs().await, 0);
    for (level, count) in [("debug", 3), ("warning", 1)] {
        let set = house.legacy(&session, &request(3, "logging/setLevel", json!({"level": level}))).await.json().await;
        assert_eq!(set["result"], json!({}));
        assert_eq!(logs().await, count, "{level}");
    }
    let wrong = house.legacy(&session, &request(3, "logging/setLevel", json!({"level": "loud"}))).await.json().await;
    assert_eq!(wrong["error"]["code"], -32602);
}

#[tokio::test]
async fn a_request_is_cancelled_by_saying_so_and_not_by_leaving() {
    let house = House::open(ServerOptions::default()).await;
    let session = house.session().await;
    let mut wait = call(7, "wait", json!({}));
    wait["params"]["_meta"] = json!({"progressToken": 1});
    let mut stream = house.legacy(&session, &wait).await;
    assert!(stream.event().await.is_some());
    drop(stream);
    for id in [json!(8), json!("7"), json!(null)] {
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        assert_eq!(house.legacy(&session, &cancel).await.status, 202);
    }
    assert_eq!(house.stage.seen(), ["waiting"]);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    assert_eq!(house.legacy(&session, &cancel).await.status, 202);
    soon(house.stage.wait_for("cancelled")).await;
    // Whoever still waits gets no answer.
    let mut stream = house.legacy(&session, &wait).await;
    assert!(stream.event().await.is_some());
    house.legacy(&session, &cancel).await;
    assert_eq!(stream.event().await, None);
}

#[tokio::test]
async fn changes_come_on_the_stream_of_the_session() {
    let house = House::open(ServerOptions::default()).await;
    let session = house.session().await;
    let mut stream = house.stream(&session, &[]).await;
    assert!(stream.is_stream());
    assert_eq!(house.stream(&session, &[]).await.status, 409, "one at a time");
    for (method, uri) in [("subscribe", "test://a"), ("subscribe", "test://b"), ("unsubscribe", "test://b")] {
        let answer = house.legacy(&session, &request(2, &format!("resources/{method}"), json!({"uri": uri}))).await.json().await;
        assert_eq!(answer["result"], json!({}));
    }
    let refused = house.legacy(&session, &request(2, "resources/subscribe", json!({"uri": "test://refused"}))).await.json().await;
    assert_eq!(refused["error"]["code"], -32602);
    for uri in ["test://b", "test://refused", "test://a"] {
        house.stage.change(Change::Resource(uri.to_owned()));
    }
    let event = stream.event().await.unwrap();
    assert_eq!(event, json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "test://a"}}));
    house.stage.change(Change::Tools);
    let event = stream.raw_event().await.unwrap();
    assert!(event.starts_with("id: 2\n") && event.contains("notifications/tools/list_changed"), "{event}");
    // Who comes back is told what was missed, and takes the place of the broken stream.
    house.stage.change(Change::Prompts);
    let mut again = house.stream(&session, &[("last-event-id", "1")]).await;
    assert_eq!(again.event().await.unwrap()["method"], "notifications/tools/list_changed");
    assert_eq!(again.event().await.unwrap()["method"], "notifications/prompts/list_changed");
    while stream.event().await.is_some() {}
    // What is told to a session ends with it.
    assert_eq!(house.send("DELETE /mcp", &[("mcp-session-id", &session)], "").await.status, 204);
    assert_eq!(again.event().await, None);
}

#[tokio::test]
async fn the_session_that_was_idle_longest_makes_room() {
    let house = House::open(ServerOptions { max_sessions: 2, ..ServerOptions::default() }).await;
    let (first, second) = (house.session().await, house.session().await);
    let mut wait = call(7, "wait", json!({}));
    wait["params"]["_meta"] = json!({"progressToken": 1});
    let mut busy = house.legacy(&first, &wait).await;
    assert!(busy.event().await.is_some());
    // The first is older, but busy.
    let third = house.session().await;
    assert_eq!(house.stage.seen(), ["waiting".to_owned(), format!("ended {second}")]);
    assert_eq!(house.legacy(&second, &request(2, "ping", json!({}))).await.status, 404);
    let mut also_busy = house.legacy(&third, &wait).await;
    assert!(also_busy.event().await.is_some());
    let refused = house.post(&[], &initialize(LEGACY)).await;
    assert_eq!((refused.status, refused.header("mcp-session-id")), (503, None));
}

#[tokio::test]
async fn a_session_in_which_nothing_happens_ends() {
    let house = House::open(ServerOptions { idle: Duration::from_millis(20), ..ServerOptions::default() }).await;
    let session = house.post(&[], &initialize(LEGACY)).await.header("mcp-session-id").unwrap().to_owned();
    soon(house.stage.wait_for(&format!("ended {session}"))).await;
    assert_eq!(house.legacy(&session, &request(2, "ping", json!({}))).await.status, 404);
}

#[tokio::test]
async fn who_listens_is_asked_between_requests() {
    let house = House::open(ServerOptions::default()).await;
    let session = house.session().await;
    assert_eq!(house.legacy(&session, &call(2, "between", json!({}))).await.json().await["id"], 2);
    soon(house.stage.wait_for("The client does not listen, so it cannot receive requests")).await;
    let mut stream = house.stream(&session, &[]).await;
    assert_eq!(house.legacy(&session, &call(3, "between", json!({}))).await.json().await["id"], 3);
    let asked = stream.event().await.unwrap();
    assert_eq!(asked["method"], "elicitation/create", "no logs: it did not say that it wants any");
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "cancel"}});
    assert_eq!(house.legacy(&session, &answer).await.status, 202);
    soon(house.stage.wait_for(r#"{"action":"cancel"}"#)).await;
}
