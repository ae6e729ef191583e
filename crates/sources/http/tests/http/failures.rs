//! Servers that fail, stall or break the protocol.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use helve_core::{CallContext, Redactor, ToolCall};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{CANARY, call, call_once, tool};
use helve_testkit::{RawServer, raw_response, raw_response_with, within};

#[tokio::test]
async fn statuses_have_kinds() {
    for (status, kind) in [
        ("401 Unauthorized", "permission_denied"),
        ("403 Forbidden", "permission_denied"),
        ("404 Not Found", "failed"),
        ("408 Request Timeout", "timeout"),
        ("418 Teapot", "failed"),
        ("429 Too Many Requests", "rate_limited"),
        ("500 Internal Server Error", "failed"),
        ("503 Service Unavailable", "failed"),
        ("304 Not Modified", "failed"),
    ] {
        let outcome = call_once(raw_response(status, "text/plain", &format!("no {CANARY} \u{1b}[31m")), &auth()).await;
        let number: u16 = status[..3].parse().expect("a number");
        assert_eq!((&outcome["error"]["kind"], &outcome["error"]["details"]["status"]), (&json!(kind), &json!(number)), "{outcome}");
        let message = outcome["error"]["message"].as_str().expect("a message");
        assert!(message.starts_with(&format!("127.0.0.1 responded with {number}")), "{message}");
        assert!(number == 304 || message.ends_with(": no [REDACTED] \\u{1b}[31m"), "{message}");
    }
    let denied = call_once(raw_response("403 Forbidden", "text/plain", ""), &json!({})).await;
    assert_eq!(denied["error"]["details"]["reason"], "policy");
}

fn auth() -> serde_json::Value {
    json!({"auth_method": {"type": "bearer", "token": CANARY}})
}

#[tokio::test]
async fn waits_are_passed_on() {
    let seconds = call_once(raw_response_with("429 Too Many Requests", "retry-after: 17\r\n", ""), &json!({})).await;
    assert_eq!(seconds["error"]["details"]["retry_after_ms"], json!(17_000));
    let date =
        call_once(raw_response_with("429 Too Many Requests", "retry-after: Fri, 01 Jan 2100 00:00:00 GMT\r\n", ""), &json!({})).await;
    assert!(date["error"]["details"]["retry_after_ms"].as_u64().is_some_and(|wait| wait > 1_000_000), "{date}");
}

#[tokio::test]
async fn transient_failures_of_idempotent_tools_are_tried_again() {
    let good = || raw_response("200 OK", "application/json", "{\"n\":1}");
    let retried = json!({"idempotent": true, "retries": 2});
    for first in [
        raw_response("503 Service Unavailable", "text/plain", ""),
        raw_response("502 Bad Gateway", "text/plain", ""),
        raw_response_with("429 Too Many Requests", "retry-after: 0\r\n", ""),
        Vec::new(),
    ] {
        let server = RawServer::responding([first, good()]).await;
        let outcome = call(&server.url("/"), &retried, json!({})).await;
        assert_eq!((&outcome["data"], &outcome["metadata"]), (&json!({"n": 1}), &json!({"status": 200, "attempts": 2})), "{outcome}");
    }
    // Statuses in `retry_on` are retried too; other failures, and tools that are not idempotent, are not.
    let failing = || raw_response("500 Internal Server Error", "text/plain", "");
    for (more, requests) in [
        (json!({"idempotent": true, "retries": 2, "retry_on": [500]}), 2),
        (retried, 1),
        (json!({"idempotent": false, "retries": 2, "retry_on": [500]}), 1),
    ] {
        let server = RawServer::responding([failing(), good()]).await;
        let outcome = call(&server.url("/"), &more, json!({})).await;
        assert_eq!(server.requests().len(), requests, "{more}: {outcome}");
        assert_eq!(outcome["success"], json!(requests == 2));
    }
}

#[tokio::test]
async fn no_answer_has_kinds_too() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
    let nobody = call(&format!("http://{closed}/?key={CANARY}"), &json!({}), json!({})).await;
    assert_eq!(nobody["error"]["kind"], "unreachable", "{nobody}");
    let many = "x-another: header\r\n".repeat(100_000);
    for (bytes, words) in [
        (Vec::new(), "closed the connection before the response was complete"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort".to_vec(), "closed the connection before the response was complete"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n".to_vec(), "invalid HTTP response"),
        (format!("HTTP/1.1 200 OK\r\n{many}\r\n").into_bytes(), "invalid HTTP response"),
        (raw_response_with("302 Found", "location: /\r\n", ""), "redirected more than 5 times"),
        (raw_response_with("302 Found", "location: file:///etc/passwd\r\n", ""), "unsupported URL scheme `file:`"),
    ] {
        let outcome = call_once(bytes, &auth()).await;
        let error = &outcome["error"];
        assert!(error["kind"] == "failed" && error["message"].as_str().is_some_and(|text| text.contains(words)), "{words}: {outcome}");
    }
    let inside = call_once(raw_response_with("302 Found", "location: http://localhost/\r\n", ""), &auth()).await;
    assert_eq!((&inside["error"]["kind"], &inside["error"]["details"]["reason"]), (&json!("permission_denied"), &json!("policy")));
    // Bytes beyond the announced length are not read.
    let long = call_once(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nlonger".to_vec(), &json!({})).await;
    assert_eq!(long["text"], json!("long"));
}

#[tokio::test]
async fn size_is_limited() {
    let written = Arc::new(AtomicU64::new(0));
    let count = written.clone();
    let (stopped, mut stops) = mpsc::channel(1);
    let server = RawServer::start(move |_, mut stream| {
        let (count, stopped) = (count.clone(), stopped.clone());
        async move {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n").await;
            let chunk = vec![b'['; 1 << 16];
            while count.load(Ordering::Relaxed) < 1 << 30 && stream.write_all(&chunk).await.is_ok() {
                count.fetch_add(chunk.len() as u64, Ordering::Relaxed);
            }
            let _ = stopped.send(()).await;
        }
    })
    .await;
    let outcome = call(&server.url("/"), &json!({"max_bytes": 50_000}), json!({})).await;
    assert!(outcome["error"]["message"].as_str().is_some_and(|text| text.ends_with("is larger than 50000 bytes")), "{outcome}");
    within(stops.recv()).await;
    assert!(written.load(Ordering::Relaxed) < 32 << 20);
    // A million nested brackets are within the size limit and end in an error, not in a stack overflow.
    let deep = call_once(raw_response("200 OK", "application/json", &"[".repeat(1_000_000)), &json!({})).await;
    assert_eq!(deep["error"]["kind"], "failed", "{deep}");
}

#[tokio::test]
async fn time_is_limited() {
    for server in [RawServer::silent().await, RawServer::dripping().await] {
        let outcome = call(&server.url("/"), &json!({"timeout": "200ms"}), json!({})).await;
        assert_eq!(outcome["error"]["kind"], "timeout", "{outcome}");
    }
}

#[tokio::test]
async fn cancelling_closes_the_connection() {
    let (reports, mut reported) = mpsc::channel(4);
    let server = RawServer::start(move |_, mut stream| {
        let reports = reports.clone();
        async move {
            let _ = reports.send("asked").await;
            assert!(stream.read_u8().await.is_err());
            let _ = reports.send("closed").await;
        }
    })
    .await;
    let cancel = CancellationToken::new();
    let work = tokio::spawn({
        let tool = tool(&server.url("/"), &json!({}), &Redactor::default());
        let cx = CallContext::default().with_cancel(cancel.clone());
        async move { tool.call(&ToolCall::new("ask", json!({})), &cx).await }
    });
    assert_eq!(within(reported.recv()).await, Some("asked"));
    cancel.cancel();
    let result = within(work).await.expect("no panic");
    assert_eq!(result.expect_err("cancelled").kind(), helve_core::ErrorKind::Cancelled);
    assert_eq!(within(reported.recv()).await, Some("closed"));
}
