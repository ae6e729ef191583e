//! The server over pipes, in both eras.

use std::io;
use std::sync::Arc;

use helve_mcp::Change;
use helve_mcp::server::{Server, ServerOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, duplex};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::backend::Stage;
use super::client::{LEGACY, MODERN, call, initialize, modern, request, soon};

/// The other end of the pipes.
struct Client {
    stage: Arc<Stage>,
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
    stop: CancellationToken,
    running: JoinHandle<io::Result<()>>,
}

impl Client {
    fn start(options: ServerOptions) -> Self {
        let (input, reader) = duplex(1 << 16);
        let (writer, output) = duplex(1 << 16);
        let (stage, stop) = (Stage::new(), CancellationToken::new());
        let (server, token) = (Server::new(stage.clone(), options), stop.clone());
        let running = tokio::spawn(async move { server.stdio(reader, writer, token).await });
        Self { stage, input, output: BufReader::new(output).lines(), stop, running }
    }

    async fn write(&mut self, line: &str) {
        soon(self.input.write_all(format!("{line}\n").as_bytes())).await.unwrap();
    }

    async fn send(&mut self, message: &Value) {
        self.write(&message.to_string()).await;
    }

    async fn modern(&mut self, id: i64, method: &str, params: Value) {
        let (_, message) = modern(id, method, params);
        self.send(&message).await;
    }

    /// The next message; nothing at the end.
    async fn next(&mut self) -> Option<Value> {
        let line = soon(self.output.next_line()).await.unwrap()?;
        Some(serde_json::from_str(&line).unwrap())
    }

    async fn hear(&mut self) -> Value {
        self.next().await.expect("the server is gone")
    }

    /// Closes the way in, and waits for the end.
    async fn finish(mut self) -> (Vec<Value>, io::Result<()>) {
        self.input.shutdown().await.unwrap();
        let mut rest = Vec::new();
        while let Some(message) = self.next().await {
            rest.push(message);
        }
        (rest, soon(self.running).await.unwrap())
    }
}

#[tokio::test]
async fn one_pipe_speaks_both_eras() {
    let mut client = Client::start(ServerOptions::default());
    client.modern(1, "server/discover", json!({})).await;
    assert_eq!(client.hear().await["result"]["supportedVersions"], json!([MODERN]));
    client.send(&request(2, "ping", json!({}))).await;
    assert_eq!(client.hear().await, json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    client.send(&request(3, "tools/list", json!({}))).await;
    assert_eq!(client.hear().await["error"]["code"], -32600, "neither era");
    client.send(&initialize(LEGACY)).await;
    assert_eq!(client.hear().await["result"]["protocolVersion"], LEGACY);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    client.send(&request(4, "tools/list", json!({}))).await;
    assert!(client.hear().await["result"].get("ttlMs").is_none());
    client.modern(5, "tools/list", json!({})).await;
    assert_eq!(client.hear().await["result"]["ttlMs"], 0);
    for (id, method) in [(6, "initialize"), (7, "logging/setLevel"), (8, "unknown")] {
        client.modern(id, method, json!({})).await;
        let answer = client.hear().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32601)), "{method}");
    }
    client.send(&request(9, "server/discover", json!({}))).await;
    assert_eq!(client.hear().await["error"]["code"], -32602, "no `_meta`");
    client.send(&call(10, "panic", json!({}))).await;
    assert_eq!(client.hear().await["error"]["code"], -32603);
    let stage = client.stage.clone();
    let (rest, ended) = client.finish().await;
    assert!(rest.is_empty() && ended.is_ok());
    assert!(matches!(&stage.seen()[..], [ended] if ended.starts_with("ended ")), "{:?}", stage.seen());
}

#[tokio::test]
async fn a_client_is_asked_and_told() {
    let mut client = Client::start(ServerOptions::default());
    client.send(&initialize(LEGACY)).await;
    client.hear().await;
    client.send(&call(2, "test_sampling", json!({"prompt": "p"}))).await;
    let asked = client.hear().await;
    assert_eq!(asked["method"], "sampling/createMessage");
    // Other requests are answered meanwhile.
    client.send(&request(3, "ping", json!({}))).await;
    assert_eq!(client.hear().await["id"], 3);
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"content": {"text": "said"}}})).await;
    assert_eq!(client.hear().await["result"]["content"][0]["text"], "LLM response: \"said\"");
    client.stage.change(Change::Tools);
    assert_eq!(client.hear().await["method"], "notifications/tools/list_changed");
    client.stage.change(Change::Resource("test://a".to_owned()));
    client.send(&request(4, "resources/subscribe", json!({"uri": "test://a"}))).await;
    assert_eq!(client.hear().await["id"], 4, "nobody had subscribed");
    client.stage.change(Change::Resource("test://a".to_owned()));
    assert_eq!(client.hear().await["params"]["uri"], "test://a");
}

#[tokio::test]
async fn what_is_cancelled_is_not_answered() {
    let mut client = Client::start(ServerOptions::default());
    client.modern(1, "tools/call", json!({"name": "wait", "_meta": {"progressToken": 1}})).await;
    assert_eq!(client.hear().await["method"], "notifications/progress");
    client.modern(2, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})).await;
    assert_eq!(client.hear().await["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 2);
    client.stage.change(Change::Tools);
    assert_eq!(client.hear().await["method"], "notifications/tools/list_changed");
    for id in [1, 2] {
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})).await;
    }
    soon(client.stage.wait_for("cancelled")).await;
    client.modern(3, "server/discover", json!({})).await;
    assert_eq!(client.hear().await["id"], 3);
    client.stage.change(Change::Tools);
    let (rest, ended) = client.finish().await;
    assert!(rest.is_empty() && ended.is_ok(), "{rest:?}");
}

#[tokio::test]
async fn nothing_is_told_behind_an_answer() {
    let mut client = Client::start(ServerOptions::default());
    client.modern(1, "tools/call", json!({"name": "late", "_meta": {"progressToken": 1}})).await;
    assert_eq!(client.hear().await["result"]["content"][0]["text"], "done");
    soon(client.stage.wait_for("over")).await;
    let (rest, ended) = client.finish().await;
    assert!(rest.is_empty() && ended.is_ok(), "{rest:?}");
}

#[tokio::test]
async fn what_runs_at_the_end_is_finished_or_ended() {
    let mut client = Client::start(ServerOptions { grace: std::time::Duration::from_millis(50), ..ServerOptions::default() });
    client.modern(1, "subscriptions/listen", json!({"notifications": {}})).await;
    client.hear().await;
    client.modern(2, "tools/call", json!({"name": "wait"})).await;
    client.modern(3, "tools/call", json!({"name": "test_simple_text"})).await;
    assert_eq!(client.hear().await["id"], 3);
    let stage = client.stage.clone();
    let (rest, ended) = client.finish().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!((&rest[0]["id"], &rest[0]["result"]["resultType"]), (&json!(1), &json!("complete")));
    assert!(ended.is_ok());
    assert_eq!(stage.seen(), ["waiting", "cancelled"]);
    // The owner can end it too.
    let client = Client::start(ServerOptions::default());
    client.stop.cancel();
    soon(client.running).await.unwrap().unwrap();
}

#[tokio::test]
async fn nonsense_is_answered_for_a_while() {
    let mut client = Client::start(ServerOptions { max_line: 1_000, max_garbage: 5, ..ServerOptions::default() });
    let long = "x".repeat(5_000);
    for (line, code, id) in [
        ("Hello!", -32700, None),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, None),
        (r#"{"id":7,"method":3}"#, -32600, Some(json!(7))),
        (long.as_str(), -32600, None),
    ] {
        client.write(line).await;
        let answer = client.hear().await;
        assert_eq!((answer["error"]["code"].as_i64(), answer.get("id").cloned()), (Some(code), id), "{line}");
    }
    client.send(&request(1, "ping", json!({}))).await;
    assert_eq!(client.hear().await["result"], json!({}), "it still listens");
    client.write("{").await;
    assert_eq!(client.hear().await["error"]["code"], -32700);
    assert_eq!(client.next().await, None);
    assert_eq!(soon(client.running).await.unwrap().map_err(|error| error.kind()), Err(io::ErrorKind::InvalidData));
}

#[tokio::test]
async fn a_flood_of_requests_is_bounded() {
    let mut client =
        Client::start(ServerOptions { max_requests: 2, grace: std::time::Duration::from_millis(10), ..ServerOptions::default() });
    for id in 1..=3 {
        client.modern(id, "tools/call", json!({"name": "wait"})).await;
    }
    let answer = client.hear().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(3), &json!(-32000)));
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})).await;
    soon(client.stage.wait_for("cancelled")).await;
}

#[tokio::test]
async fn a_client_is_told_and_asked_between_its_requests() {
    let mut client = Client::start(ServerOptions::default());
    client.send(&initialize(LEGACY)).await;
    client.hear().await;
    client.send(&request(2, "logging/setLevel", json!({"level": "warning"}))).await;
    client.hear().await;
    client.send(&call(3, "between", json!({}))).await;
    assert_eq!(client.hear().await["id"], 3);
    let told = client.hear().await;
    assert_eq!((&told["method"], &told["params"]["level"]), (&json!("notifications/message"), &json!("error")));
    let asked = client.hear().await;
    assert_eq!(asked["method"], "elicitation/create");
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}})).await;
    soon(client.stage.wait_for(r#"{"action":"decline"}"#)).await;
    let (rest, ended) = client.finish().await;
    assert!(rest.is_empty() && ended.is_ok());
}
