//! Calls: what they give, how they fail, and that they can be stopped and followed.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use helve_core::{CallContext, CallId, EventData, Observer, Redactor, ToolCall};
use helve_mcp::McpOptions;
use helve_mcp_wire::Era;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::live::Remembered;
use super::upstream::{find, serve};

#[tokio::test]
async fn results_and_failures_come_as_what_they_are() {
    let server = serve(&["echo", "fails", "unknown"]).await;
    let source = server.source(json!({}), McpOptions::default()).await;
    let cx = CallContext::default();
    let output = find(&source, "echo").call(&ToolCall::new("echo", json!({"a": "ü"})), &cx).await.unwrap();
    assert_eq!(output.text, r#"{"a":"ü"}"#);
    let failed = find(&source, "fails").call(&ToolCall::new("fails", json!({})), &cx).await.unwrap_err();
    assert_eq!((failed.kind().name(), failed.message()), ("failed", "the disk is full"));
    let refused = find(&source, "unknown").call(&ToolCall::new("unknown", json!({})), &cx).await.unwrap_err();
    assert_eq!(refused.kind().name(), "invalid_parameters");
    assert_eq!(refused.details()["mcp"]["error"]["data"], json!({"known": ["echo"]}), "in the words of the server");
}

#[tokio::test]
async fn a_call_that_is_cancelled_is_cancelled_at_the_server() {
    let server = serve(&["slow"]).await;
    let source = server.source(json!({}), McpOptions::default()).await;
    let cancel = CancellationToken::new();
    let (tool, cx) = (find(&source, "slow"), CallContext::default().with_cancel(cancel.clone()));
    let call = tokio::spawn(async move { tool.call(&ToolCall::new("slow", json!({})), &cx).await });
    server.stage.began.notified().await;
    cancel.cancel();
    assert_eq!(call.await.unwrap().unwrap_err().kind().name(), "cancelled");
    server.stage.cancelled.notified().await;
}

#[derive(Default)]
struct Heard(Mutex<Vec<(Option<f64>, String)>>);

impl Observer for Heard {
    fn observe(&self, event: EventData) {
        if let EventData::ToolProgress { fraction, message, .. } = event {
            self.0.lock().unwrap().push((fraction, message));
        }
    }
}

#[tokio::test]
async fn progress_of_a_call_is_told() {
    let server = serve(&["progress"]).await;
    let source = server.source(json!({}), McpOptions::default()).await;
    let heard = Arc::new(Heard::default());
    let cx = CallContext::default().with_observer(heard.clone()).for_call(CallId::mint(), &Redactor::default());
    find(&source, "progress").call(&ToolCall::new("progress", json!({})), &cx).await.unwrap();
    assert_eq!(*heard.0.lock().unwrap(), [(Some(0.25), "a quarter".to_owned())]);
}

#[tokio::test]
async fn a_stream_that_said_all_leaves_its_connection_to_the_next_call() {
    let mut server = serve(&["progress"]).await;
    let connections = server.count_connections().await;
    let source = server.source(json!({}), McpOptions::default()).await;
    let (tool, before) = (find(&source, "progress"), connections.load(Ordering::Relaxed));
    for _ in 0..20 {
        tool.call(&ToolCall::new("progress", json!({})), &CallContext::default()).await.unwrap();
    }
    let more = connections.load(Ordering::Relaxed) - before;
    assert!(more <= 3, "{more} connections for 20 calls, one after the other");
}

#[tokio::test]
async fn a_question_of_the_server_ends_the_call_for_now() {
    let server = serve(&["ask"]).await;
    let source = server.source(json!({}), McpOptions::default()).await;
    let (tool, call) = (find(&source, "ask"), ToolCall::new("ask", json!({})));
    let asked = tool.call(&call, &CallContext::default()).await.unwrap_err();
    let needed = asked.input().expect("a question").clone();
    assert_eq!(needed.requests[0].message, "Who?");
    let answered = tool.call(&call, &CallContext::default().with_given(Some(needed.give(&json!({"name": "Ada"}))))).await.unwrap();
    assert_eq!(answered.text, r#"{"action":"accept","content":{"name":"Ada","polite":true}}"#);
    let declined = tool.call(&call, &CallContext::default().with_given(Some(needed.decline()))).await.unwrap();
    assert_eq!(declined.text, r#"{"action":"decline"}"#);
}

#[tokio::test]
async fn a_call_that_nobody_goes_on_with_is_cancelled_at_the_server() {
    let server = serve(&["ask"]).await;
    let eras = Arc::new(Remembered(Mutex::new(Some(Era::Legacy))));
    let source = server.source(json!({}), McpOptions { eras: Some(eras), ..McpOptions::default() }).await;
    let (tool, call) = (find(&source, "ask"), ToolCall::new("ask", json!({})));
    let asked = tool.call(&call, &CallContext::default().asking()).await.unwrap_err();
    tool.forget(&call, &asked.input().unwrap().state);
    server.stage.cancelled.notified().await;
}
