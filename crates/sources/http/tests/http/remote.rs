//! Remote tool servers: a list at one URL, `/execute` below it.

use std::sync::Arc;

use helve_core::authored::FieldError;
use helve_core::{Permission, Redactor, SourceState, ToolKind, ToolList, ToolSource};
use helve_fetch::Fetch;
use helve_http::{RemoteDefinition, RemoteSource};
use helve_testkit::toolkit;
use helve_tools::{Executor, ExecutorOptions};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::CANARY;
use helve_testkit::{RawServer, raw_response, within};

fn definition(url: &str, more: &Value) -> RemoteDefinition {
    let mut whole = json!({"name": "lab", "mcp_server_url": url, "mcp_api_key": CANARY, "permission": "auto", "timeout": "5s"});
    whole.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    serde_json::from_value(whole).expect("a definition")
}

fn connect(url: &str, more: &Value) -> Result<Arc<RemoteSource>, FieldError> {
    RemoteSource::connect(&definition(url, more), &Fetch::default(), &Redactor::default())
}

async fn ready(source: &RemoteSource) -> ToolList {
    let mut states = source.tools();
    let state = within(states.wait_for(|state| matches!(state, SourceState::Ready(_)))).await.expect("the source lives").clone();
    let SourceState::Ready(list) = state else { panic!("it is ready") };
    list
}

async fn failed(source: &RemoteSource) -> String {
    let mut states = source.tools();
    let state = within(states.wait_for(|state| matches!(state, SourceState::Failed(_)))).await.expect("the source lives").clone();
    let SourceState::Failed(why) = state else { panic!("it failed") };
    why.to_string()
}

fn names(list: &ToolList) -> Vec<String> {
    list.as_slice().iter().map(|tool| tool.spec().name().to_string()).collect()
}

fn listing() -> Value {
    json!({"tools": [
        {"name": "add", "description": "Adds; see `mix`.", "parameters": [{"name": "a", "type": "integer"}, {"name": "b", "type": "integer"}]},
        {"name": "mix", "description": "Mixes.", "input_schema": {"type": "object", "properties": {"x": {"type": "string"}}}},
        {"name": "rest", "inputSchema": {"type": "object"}},
        {"name": "none"},
        {"description": "no name"},
        {"name": "bad name"},
        {"name": "bad_schema", "parameters": {"type": "objekt"}},
        {"name": "x".repeat(300)},
        "no tool",
        {"name": "add", "description": "again"},
    ]})
}

/// Lists tools, and responds to calls with this body.
async fn server(executed: &'static str) -> RawServer {
    RawServer::start(move |seen, mut stream| async move {
        let bytes = match seen.line.as_str() {
            "GET /tools HTTP/1.1" => raw_response("200 OK", "application/json", &listing().to_string()),
            "POST /tools/execute HTTP/1.1" => raw_response("200 OK", "application/json", executed),
            _ => raw_response("404 Not Found", "text/plain", ""),
        };
        let _ = stream.write_all(&bytes).await;
    })
    .await
}

async fn call(source: &RemoteSource, tool: &str, arguments: Value) -> Value {
    let toolkit = toolkit(ready(source).await.as_slice().iter().cloned());
    within(helve_testkit::call(&Executor::new(ExecutorOptions::default()), &toolkit, tool, arguments)).await
}

#[tokio::test]
async fn tools_are_listed_and_called() {
    let server = server(r#"{"output": {"sum": 3}}"#).await;
    let source = connect(&server.url("/tools"), &json!({})).expect("a source");
    assert_eq!(source.id().as_str(), "mcp:lab");
    let list = ready(&source).await;
    assert_eq!(names(&list), ["lab_add", "lab_mix", "lab_rest", "lab_none"]);
    let add = list.as_slice()[0].spec();
    assert_eq!((add.origin().kind, &**add.description()), (ToolKind::Mcp, "Adds; see `lab_mix`."));
    assert_eq!(add.input().value()["required"], json!(["a", "b"]));
    let outcome = call(&source, "lab_add", json!({"a": "1", "b": 2})).await;
    assert_eq!((&outcome["data"], &outcome["metadata"]), (&json!({"sum": 3}), &json!({"status": 200})), "{outcome}");
    let seen = server.requests();
    let posted = seen.last().expect("a request");
    assert_eq!(posted.body, r#"{"name":"add","parameters":{"a":1,"b":2}}"#);
    assert!(seen.iter().all(|seen| seen.header("x-api-key") == Some(CANARY)));
    let wrong = call(&source, "lab_add", json!({"a": "x"})).await;
    assert_eq!(wrong["error"]["kind"], "invalid_parameters");
}

#[tokio::test]
async fn answers_of_every_form() {
    for (executed, success, text) in [
        (r#"{"output": "words", "error": null}"#, true, "words"),
        (r#"{"output": null}"#, true, ""),
        (r#"{"output": [1]}"#, true, "[1]"),
        (r#"{"error": "no such row"}"#, false, "failed: no such row"),
        (r#"{"output": 1, "error": {"message": "canary-0123456789 is wrong"}}"#, false, "failed: [REDACTED] is wrong"),
        (r#"{"result": 1}"#, false, "failed: the server sent an invalid response: neither `output` nor `error`: {\"result\": 1}"),
        ("<p>", false, "failed: the server sent an invalid response: not valid JSON: expected value at line 1 column 1: <p>"),
    ] {
        let server = server(executed).await;
        let source = connect(&server.url("/tools/"), &json!({"mcp_server_url": server.url("/tools")})).expect("a source");
        let outcome = call(&source, "lab_none", json!({})).await;
        assert_eq!((&outcome["success"], &outcome["text"]), (&json!(success), &json!(text)), "{executed}");
    }
}

#[tokio::test]
async fn a_server_may_come_later() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let source = connect(&format!("http://{address}/tools"), &json!({})).expect("a source");
    assert!(matches!(*source.tools().borrow(), SourceState::Connecting));
    let why = failed(&source).await;
    assert!(why.contains("cannot be reached") && !why.contains("canary"), "{why}");
    let listener = TcpListener::bind(address).await.expect("the same port");
    let body = json!({"tools": [{"name": "late"}]}).to_string();
    let _server = RawServer::on(listener, move |_, mut stream| {
        let bytes = raw_response("200 OK", "application/json", &body);
        async move {
            let _ = stream.write_all(&bytes).await;
        }
    });
    assert_eq!(names(&ready(&source).await), ["lab_late"]);
}

#[tokio::test]
async fn lists_that_are_none_fail_and_say_why() {
    for (bytes, why) in [
        (raw_response("401 Unauthorized", "text/plain", CANARY), "127.0.0.1 responded with 401 Unauthorized: [REDACTED]"),
        (raw_response("200 OK", "text/html", "<p>hi</p>"), "invalid tool list"),
        (raw_response("200 OK", "application/json", r#"{"tools": {}}"#), "invalid tool list: `tools` is not a list"),
        (raw_response("200 OK", "application/json", "7"), "invalid tool list: `tools` is not a list"),
        (raw_response("200 OK", "application/json", &"[".repeat(5 << 20)), "the response from"),
    ] {
        let server = RawServer::responding([bytes]).await;
        let source = connect(&server.url("/"), &json!({})).expect("a source");
        let said = failed(&source).await;
        assert!(said.starts_with(why), "{said}");
    }
}

#[tokio::test]
async fn a_list_without_end_is_cut() {
    let many: Vec<Value> = (0..1_500).map(|number| json!({"name": format!("t{number}")})).collect();
    let server = RawServer::responding([raw_response("200 OK", "application/json", &json!(many).to_string())]).await;
    let source = connect(&server.url("/"), &json!({"prefix": ""})).expect("a source");
    let names = names(&ready(&source).await);
    assert_eq!((names.len(), names[999].as_str()), (1_000, "t999"));
}

#[tokio::test]
async fn names_are_filtered_and_prefixed() {
    let server = server("{}").await;
    let more =
        json!({"prefix": "far", "include": ["a*", "m*", "none"], "exclude": ["n*"], "permission": null, "mcp_api_key_header": "X-Other"});
    let source = connect(&server.url("/tools"), &more).expect("a source");
    let list = ready(&source).await;
    assert_eq!(names(&list), ["far_add", "far_mix"]);
    // A tool of an untrusted server needs confirmation.
    assert_eq!(list.as_slice()[0].spec().rules().permission, Permission::Confirm);
    assert_eq!(server.requests()[0].header("x-other"), Some(CANARY));
    for (name, may) in
        [("far_add", true), ("far_any", true), ("far_none", false), ("far_other", false), ("far", false), ("far_", false), ("add", false)]
    {
        assert_eq!(source.may_bring(name), may, "{name}");
    }
}

#[tokio::test]
async fn dropping_the_source_ends_its_task() {
    let server = RawServer::responding([raw_response("503 Service Unavailable", "text/plain", "")]).await;
    let source = connect(&server.url("/"), &json!({})).expect("a source");
    failed(&source).await;
    let mut states = source.tools();
    states.mark_unchanged();
    drop(source);
    // The state can no longer change, because its task is gone.
    assert!(within(states.changed()).await.is_err());
}

#[tokio::test]
async fn mistakes_are_found_where_they_are() {
    for (more, path) in [
        (json!({"mcp_server_url": "ws://a.example"}), "/mcp_server_url"),
        (json!({"mcp_server_url": "https://me@a.example"}), "/mcp_server_url"),
        (json!({"mcp_api_key": ""}), "/mcp_api_key"),
        (json!({"mcp_api_key_header": "Host"}), "/mcp_api_key_header"),
    ] {
        assert_eq!(connect("https://a.example", &more).err().map(|error| error.path).as_deref(), Some(path), "{more}");
    }
}
