//! What passes from a client through Helve to a server, in the client's era.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use helve_core::{CallContext, Digest, ToolCall};
use helve_mcp::serve::Incoming;
use helve_mcp::{BackChannel, Downstream, Gateway, McpOptions, Passage, PinStore, Pins};
use helve_mcp_wire::{Era, RpcError};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::upstream::{find, serve};

/// A client that remembers what it was told and answers what it is asked.
#[derive(Default)]
struct Client(Mutex<Vec<(String, Value)>>);

impl BackChannel for Client {
    fn notify(&self, method: &str, params: Value) {
        self.0.lock().unwrap().push((method.to_owned(), params));
    }

    fn ask(&self, method: &str, params: Value) -> BoxFuture<'_, Result<Value, RpcError>> {
        self.0.lock().unwrap().push((method.to_owned(), params));
        Box::pin(std::future::ready(Ok(json!({"action": "accept", "content": {"name": "Ada"}}))))
    }
}

fn from(era: Era, client: &Arc<Client>) -> Downstream {
    Downstream {
        era,
        session: (era == Era::Legacy).then(|| "one".into()),
        capabilities: Arc::new(json!({"elicitation": {}})),
        client: Some(Arc::new(json!({"name": "them", "version": "7"}))),
        log_level: None,
        progress_token: Some(json!("mine")),
        channel: client.clone(),
    }
}

fn request(era: Era, client: &Arc<Client>, method: &str, params: Value) -> Incoming {
    Incoming { method: method.to_owned(), params, from: from(era, client), cancel: CancellationToken::new() }
}

#[tokio::test]
async fn a_server_sees_the_era_and_the_name_of_the_client() {
    let server = serve(&["echo"]).await;
    let source = server.source(json!({}), McpOptions::default()).await;
    let gateway = Gateway::new(vec![source]);
    for era in [Era::Modern, Era::Legacy] {
        let client = Arc::new(Client::default());
        let read = gateway.handle(&request(era, &client, "resources/read", json!({"uri": "a://b"}))).await.unwrap().unwrap();
        assert_eq!(read["contents"][0]["text"], "hello");
        let missing = gateway.handle(&request(era, &client, "resources/read", json!({"uri": "a://c"}))).await.unwrap().unwrap_err();
        assert_eq!(missing.message, "no such resource", "in the server's own words");
        let seen = server.stage.seen.lock().unwrap();
        let (spoken, ..) = seen.iter().rfind(|(_, method, _)| method == "resources/read").unwrap();
        assert_eq!(*spoken, era);
    }
    assert!(gateway.handle(&request(Era::Modern, &Arc::default(), "what/ever", json!({}))).await.is_none());
}

#[tokio::test]
async fn progress_comes_under_the_name_that_the_client_gave() {
    let server = serve(&["progress"]).await;
    let source = server.source(json!({}), McpOptions::default()).await;
    for era in [Era::Modern, Era::Legacy] {
        let client = Arc::new(Client::default());
        let cx = CallContext::default().with_brought(Arc::new(Passage { from: from(era, &client), extra: Map::new() }));
        find(&source, "progress").call(&ToolCall::new("progress", json!({})), &cx).await.unwrap();
        let told = client.0.lock().unwrap();
        assert_eq!((told[0].0.as_str(), &told[0].1["progressToken"]), ("notifications/progress", &json!("mine")), "{era:?}");
    }
}

#[tokio::test]
async fn questions_reach_the_client_in_its_era() {
    let server = serve(&["ask"]).await;
    let source = server.source(json!({}), McpOptions::default()).await;
    let tool = find(&source, "ask");
    let call = |era: Era, client: &Arc<Client>, extra: Value| {
        let Value::Object(extra) = extra else { panic!("an object") };
        let cx = CallContext::default().with_brought(Arc::new(Passage { from: from(era, client), extra }));
        let tool = tool.clone();
        async move { tool.call(&ToolCall::new("ask", json!({})), &cx).await }
    };
    // In the older era as a request, while the call holds.
    let client = Arc::new(Client::default());
    let output = call(Era::Legacy, &client, json!({})).await.unwrap();
    assert_eq!(output.text, r#"{"action":"accept","content":{"name":"Ada"}}"#);
    assert_eq!(client.0.lock().unwrap()[0].0, "elicitation/create");
    // In the newer one as a result, and the answer with the next request.
    let client = Arc::new(Client::default());
    let asked = call(Era::Modern, &client, json!({})).await.unwrap_err();
    let said = &asked.details()["mcp"]["result"];
    assert_eq!((&said["resultType"], &said["requestState"]), (&json!("input_required"), &json!("half")));
    let answers = json!({"inputResponses": {"who": {"action": "decline"}}, "requestState": "half"});
    assert_eq!(call(Era::Modern, &client, answers).await.unwrap().text, r#"{"action":"decline"}"#);
    assert!(client.0.lock().unwrap().is_empty(), "nobody was asked beside");
}

#[tokio::test]
async fn prompts_have_the_prefix_of_their_server() {
    let (one, two) = (serve(&[]).await, serve(&[]).await);
    let sources = vec![
        one.source(json!({"name": "one", "prefix": "one"}), McpOptions::default()).await,
        two.source(json!({"name": "two", "prefix": "two"}), McpOptions::default()).await,
    ];
    let (gateway, client) = (Gateway::new(sources), Arc::new(Client::default()));
    let list = gateway.handle(&request(Era::Modern, &client, "prompts/list", json!({}))).await.unwrap().unwrap();
    let names: Vec<&str> = list["prompts"].as_array().unwrap().iter().filter_map(|prompt| prompt["name"].as_str()).collect();
    assert_eq!(names, ["one_greet", "two_greet"]);
    let got = gateway.handle(&request(Era::Modern, &client, "prompts/get", json!({"name": "two_greet"}))).await.unwrap().unwrap();
    assert_eq!(got["description"], "greet");
    assert!(one.stage.seen.lock().unwrap().iter().all(|(_, method, _)| method != "prompts/get"), "only its own server is asked");
    let unknown = gateway.handle(&request(Era::Modern, &client, "prompts/get", json!({"name": "three_greet"}))).await.unwrap();
    assert!(unknown.unwrap_err().message.contains("there is no prompt `three_greet`"));
}

/// Nobody has agreed to anything.
struct Nothing;

impl PinStore for Nothing {
    fn pins(&self, _: &Digest) -> Result<Option<Pins>, String> {
        Ok(None)
    }

    fn stamp(&self) -> u64 {
        0
    }
}

#[tokio::test]
async fn what_nobody_agreed_to_is_not_reached_by_its_name() {
    let server = serve(&["echo"]).await;
    let source = server.source(json!({}), McpOptions { pins: Some(Arc::new(Nothing)), ..McpOptions::default() }).await;
    let (gateway, client) = (Gateway::new(vec![source]), Arc::new(Client::default()));
    let call = |name: &str| request(Era::Modern, &client, "tools/call", json!({"name": name, "arguments": {}}));
    assert!(gateway.unknown_tool(&call("echo")).await.is_none());
    let passed = gateway.unknown_tool(&call("nothing")).await.expect("the server answers");
    assert_eq!(passed.unwrap_err().message, "unknown tool");
}
