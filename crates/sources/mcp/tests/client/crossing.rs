//! What passes from a client through Helve to a server, in the client's era.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use helve_core::{CallContext, ToolCall};
use helve_mcp::server::ClientRequest;
use helve_mcp::{BackChannel, Downstream, Gateway, McpOptions, Passage};
use helve_mcp_wire::{Era, InputResponses, RpcError};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::live::{Remembered, go_away};
use super::upstream::{Stage, find, serve, serve_at, wait_for};

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
        between: (era == Era::Legacy).then(|| client.clone() as Arc<dyn BackChannel>),
    }
}

fn passage(from: Downstream, mut params: Value) -> Passage {
    let input = InputResponses::take(params.as_object_mut().expect("an object"));
    Passage::new(from, &params, input)
}

fn request(era: Era, client: &Arc<Client>, method: &str, params: Value) -> ClientRequest {
    ClientRequest { method: method.to_owned(), params, from: from(era, client), cancel: CancellationToken::new() }
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
        let cx = CallContext::default().with_extension(passage(from(era, &client), json!({})));
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
        let passage = passage(from(era, client), extra);
        let cx = CallContext::default().with_extension(passage.clone());
        let tool = tool.clone();
        async move { (tool.call(&ToolCall::new("ask", json!({})), &cx).await, passage) }
    };
    // In the older era as a request, while the call holds.
    let client = Arc::new(Client::default());
    let output = call(Era::Legacy, &client, json!({})).await.0.unwrap();
    assert_eq!(output.text, r#"{"action":"accept","content":{"name":"Ada"}}"#);
    assert_eq!(client.0.lock().unwrap()[0].0, "elicitation/create");
    // In the newer one as a result, and the answer with the next request.
    let client = Arc::new(Client::default());
    let (asked, passage) = call(Era::Modern, &client, json!({})).await;
    assert!(asked.is_err());
    let required = passage.take_input_required().expect("an input request").into_value();
    assert_eq!((&required["resultType"], &required["requestState"]), (&json!("input_required"), &json!("half")));
    let answers = json!({"inputResponses": {"who": {"action": "decline"}}, "requestState": "half"});
    assert_eq!(call(Era::Modern, &client, answers).await.0.unwrap().text, r#"{"action":"decline"}"#);
    assert!(client.0.lock().unwrap().is_empty(), "nobody was asked beside");
}

#[tokio::test]
async fn what_a_server_says_between_calls_reaches_the_session_that_it_is_for() {
    let server = serve(&["later"]).await;
    let source = server.source(json!({}), McpOptions::default()).await;
    let gateway = Gateway::new(vec![source.clone()]);
    let (client, other) = (Arc::new(Client::default()), Arc::new(Client::default()));
    gateway.handle(&request(Era::Legacy, &client, "logging/setLevel", json!({"level": "info"}))).await.unwrap().unwrap();
    let mut stranger = request(Era::Legacy, &other, "resources/read", json!({"uri": "a://b"}));
    stranger.from.session = Some("two".into());
    gateway.handle(&stranger).await.unwrap().unwrap();
    let cx = CallContext::default().with_extension(passage(from(Era::Legacy, &client), json!({})));
    find(&source, "later").call(&ToolCall::new("later", json!({})), &cx).await.unwrap();
    server.stage.began.notified().await;
    let answer = server.stage.heard.lock().unwrap().take().unwrap().unwrap();
    assert_eq!(answer["content"]["name"], "Ada");
    let told: Vec<String> = client.0.lock().unwrap().iter().map(|(method, _)| method.clone()).collect();
    assert_eq!(told, ["notifications/message", "elicitation/create"]);
    assert!(other.0.lock().unwrap().is_empty());
}

fn count(stage: &Stage, wanted: &str) -> usize {
    stage.seen.lock().unwrap().iter().filter(|(_, method, _)| method == wanted).count()
}

#[tokio::test]
async fn what_is_watched_is_watched_again_where_the_server_was_gone() {
    let server = serve(&["a"]).await;
    let eras = Arc::new(Remembered(Mutex::new(Some(Era::Legacy))));
    let source = server.source(json!({}), McpOptions { eras: Some(eras), ..McpOptions::default() }).await;
    let (gateway, client) = (Gateway::new(vec![source.clone()]), Arc::new(Client::default()));
    let watch = |method: &str| request(Era::Modern, &client, method, json!({"uri": "a://b"}));
    for _ in 0..2 {
        gateway.handle(&watch("resources/subscribe")).await.unwrap().unwrap();
    }
    assert_eq!(count(&server.stage, "resources/subscribe"), 1, "once for all");
    let address = go_away(&server, &source).await;
    let again = serve_at(&address, &["a", "b"]).await;
    wait_for(&source, &["a", "b"]).await;
    while count(&again.stage, "resources/subscribe") == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    for left in [0, 1] {
        gateway.handle(&watch("resources/unsubscribe")).await.unwrap().unwrap();
        assert_eq!(count(&again.stage, "resources/unsubscribe"), left);
    }
}

#[tokio::test]
async fn a_session_says_again_what_a_server_that_was_gone_has_forgotten() {
    let server = serve(&["a"]).await;
    let source = server.source(json!({}), McpOptions::default()).await;
    let (gateway, client) = (Gateway::new(vec![source.clone()]), Arc::new(Client::default()));
    let ask = async |method: &str, params: Value| gateway.handle(&request(Era::Legacy, &client, method, params)).await.unwrap();
    for uri in ["a://b", "a://c"] {
        ask("resources/subscribe", json!({"uri": uri})).await.unwrap();
    }
    ask("resources/unsubscribe", json!({"uri": "a://c"})).await.unwrap();
    ask("logging/setLevel", json!({"level": "info"})).await.unwrap();
    let address = go_away(&server, &source).await;
    let again = serve_at(&address, &["a", "b"]).await;
    wait_for(&source, &["a", "b"]).await;
    ask("resources/read", json!({"uri": "a://b"})).await.unwrap();
    let seen = again.stage.seen.lock().unwrap();
    let legacy = seen.iter().filter(|(era, ..)| *era == Era::Legacy);
    let said: Vec<_> = legacy.map(|(_, method, params)| (method.as_str(), params["uri"].as_str())).collect();
    assert_eq!(said, [("logging/setLevel", None), ("resources/subscribe", Some("a://b")), ("resources/read", Some("a://b"))]);
}

#[tokio::test]
async fn whoever_goes_on_with_a_call_is_told_of_it() {
    let server = serve(&["ask"]).await;
    let eras = Arc::new(Remembered(Mutex::new(Some(Era::Legacy))));
    let source = server.source(json!({}), McpOptions { eras: Some(eras), ..McpOptions::default() }).await;
    let tool = find(&source, "ask");
    let (first, second) = (Arc::new(Client::default()), Arc::new(Client::default()));
    let call = async |client: &Arc<Client>, extra: Value| {
        let passage = passage(from(Era::Modern, client), extra);
        let cx = CallContext::default().with_extension(passage.clone());
        (tool.call(&ToolCall::new("ask", json!({})), &cx).await, passage)
    };
    let (asked, passage) = call(&first, json!({})).await;
    assert!(asked.is_err());
    let state = passage.take_input_required().expect("an input request").state;
    let output = call(&second, json!({"requestState": state, "inputResponses": {"input": {"action": "decline"}}})).await.0.unwrap();
    assert_eq!(output.text, r#"{"action":"decline"}"#);
    assert!(first.0.lock().unwrap().is_empty());
    assert_eq!(second.0.lock().unwrap()[0].1["message"], "thank you");
}

/// A client whose user thinks for ever.
#[derive(Default)]
struct Thinking {
    asked: tokio::sync::Notify,
    free: Arc<tokio::sync::Notify>,
}

struct OnDrop(Arc<tokio::sync::Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl BackChannel for Thinking {
    fn notify(&self, method: &str, _: Value) {
        panic!("nothing is passed on word for word that names a question: {method}");
    }

    fn ask(&self, _: &str, _: Value) -> BoxFuture<'_, Result<Value, RpcError>> {
        self.asked.notify_one();
        let free = OnDrop(self.free.clone());
        Box::pin(async move {
            let _free = free;
            std::future::pending().await
        })
    }
}

#[tokio::test]
async fn a_server_takes_back_what_it_asked() {
    let server = serve(&["takes-back"]).await;
    let source = server.source(json!({}), McpOptions::default()).await;
    let client = Arc::new(Thinking::default());
    let from = Downstream { channel: client.clone(), between: None, progress_token: None, ..from(Era::Legacy, &Arc::default()) };
    let cx = CallContext::default().with_extension(passage(from, json!({})));
    let (tool, call) = (find(&source, "takes-back"), ToolCall::new("takes-back", json!({})));
    let (output, ()) = tokio::join!(tool.call(&call, &cx), async {
        client.asked.notified().await;
        server.stage.began.notify_one();
        client.free.notified().await;
    });
    assert_eq!(output.unwrap().text, "never mind");
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
    assert!(unknown.unwrap_err().message.contains("unknown prompt `three_greet`"));
}
