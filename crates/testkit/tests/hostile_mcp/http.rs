//! Servers over HTTP that stream without end, lead elsewhere, or break off.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use helve_core::Outcome;
use helve_mcp::McpSource;
use serde_json::{Value, json};

use crate::site::{Reply, Site, SiteRequest, head, polite, stream};
use crate::stage::{Stage, assert_clean, offered, reports, settle, trouble};

/// A server that is polite but for calls.
pub async fn on_call(script: impl Fn(&SiteRequest) -> Reply + Send + Sync + 'static) -> Site {
    Site::start(move |asked| if asked.method() == "tools/call" { script(asked) } else { polite(asked) }).await
}

/// Connects it under the name `bad`; its calls may take only so long.
pub async fn connect(stage: &Stage, site: &Site, timeout: &str) -> Arc<McpSource> {
    let bad = stage.connect(json!({"name": "bad", "url": site.url, "trusted": true, "timeout": timeout}));
    settle(&bad).await;
    bad
}

/// What becomes of one call.
async fn call(timeout: &str, script: impl Fn(&SiteRequest) -> Reply + Send + Sync + 'static) -> Outcome {
    let (stage, site) = (Stage::new(), on_call(script).await);
    let bad = connect(&stage, &site, timeout).await;
    assert_eq!(offered(&bad), ["bad_echo"], "{:#?}", bad.report());
    let outcome = stage.beside(stage.call("bad_echo", json!({}))).await;
    assert_clean(&outcome.text());
    outcome
}

fn answer(asked: &SiteRequest, text: &str) -> Value {
    asked.result(&json!({"content": [{"type": "text", "text": text}]}))
}

fn json_head(body: &str) -> Vec<u8> {
    head("200 OK", "Content-Type: application/json\r\nConnection: close", body)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_never_gets_its_answer_ends_in_time() {
    let ms = Duration::from_millis;
    let outcome = call("500ms", move |_| Reply::Drip(stream(""), b": still here\n\ndata:\n\n".to_vec(), ms(1))).await;
    assert!(outcome.text().starts_with("timeout: "), "endless stream: {}", outcome.text());
    let outcome = call("500ms", move |_| Reply::Drip(json_head(""), b" ".to_vec(), ms(5))).await;
    assert!(outcome.text().starts_with("timeout: "), "slow body: {}", outcome.text());
    let outcome = call("500ms", move |_| Reply::Drip(b"HTTP/1.1 200 O".to_vec(), b"K".to_vec(), ms(50))).await;
    assert!(outcome.text().starts_with("timeout: "), "slow head: {}", outcome.text());
    let outcome = call("500ms", move |_| Reply::Drip(Vec::new(), Vec::new(), ms(50))).await;
    assert!(outcome.text().starts_with("timeout: "), "nothing: {}", outcome.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_none_are_named() {
    let html = call("20s", |_| Reply::Bytes(head("200 OK", "Content-Type: text/html", "<h1>\u{1b}[31mHello</h1>"))).await;
    assert!(html.text().contains("invalid JSON"), "{}", html.text());
    let packed = head("200 OK", "Content-Type: application/json\r\nContent-Encoding: gzip", "\u{1f}\u{8b}\u{8}");
    let packed = call("20s", move |_| Reply::Bytes(packed.clone())).await;
    assert!(packed.text().contains("invalid JSON"), "nothing is unpacked: {}", packed.text());
    let empty = call("20s", |_| Reply::Bytes(head("202 Accepted", "Content-Length: 0", ""))).await;
    assert!(empty.text().contains("protocol error"), "{}", empty.text());
    let other = call("20s", |asked| {
        let mut message = answer(asked, "for nobody");
        message["id"] = json!(99);
        Reply::Json(message, "")
    })
    .await;
    assert!(other.text().contains("the body holds no response to the request"), "{}", other.text());
    let failed = call("20s", |_| Reply::Bytes(head("500 Oh", "Content-Length: 9", "\u{1b}[31mboom"))).await;
    assert!(failed.text().contains("HTTP 500: \\u{1b}[31mboom"), "{}", failed.text());
    let headers = "X: x\r\n".repeat(200) + "Content-Length: 0";
    let many = call("20s", move |_| Reply::Bytes(head("200 OK", &headers, ""))).await;
    assert!(many.text().contains("invalid HTTP response"), "{}", many.text());
    let long = head("200 OK", &format!("X: {}\r\nContent-Length: 0", "x".repeat(1 << 20)), "");
    let long = call("20s", move |_| Reply::Bytes(long.clone())).await;
    assert!(long.text().contains("invalid HTTP response"), "{}", long.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_is_told() {
    let half = call("20s", |_| Reply::Break(json_head("{\"jsonrpc\":"))).await;
    assert!(half.text().starts_with("interrupted: "), "{}", half.text());
    let short = head("200 OK", "Content-Type: application/json\r\nContent-Length: 1000", "{}");
    let short = call("20s", move |_| Reply::Bytes(short.clone())).await;
    assert!(short.text().starts_with("interrupted: "), "{}", short.text());
    let none = call("20s", |_| Reply::Break(Vec::new())).await;
    assert!(none.text().starts_with("interrupted: "), "{}", none.text());
    let ended = call("20s", |_| Reply::Bytes(stream("data:\n\n"))).await;
    assert!(ended.text().contains("the stream ended before the response"), "{}", ended.text());
}

/// The server has half said its answer; the rest is asked for, and nothing of the first half spoils it.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_inside_an_event_is_taken_up_before_it() {
    let called: Arc<std::sync::Mutex<Option<SiteRequest>>> = Arc::default();
    let site = Site::start(move |asked| {
        let mut called = called.lock().expect("a call");
        if asked.method() == "tools/call" {
            *called = Some(asked.clone());
            return Reply::Break(stream("id: 1\nretry: 1\ndata:\n\nid: 2\ndata: {\"jsonrpc\":"));
        }
        match called.as_ref().filter(|_| asked.is_get()) {
            Some(call) if asked.raw.header("last-event-id") == Some("1") => {
                Reply::Bytes(stream(&format!("id: 2\ndata: {}\n\n", answer(call, "whole"))))
            }
            _ => polite(asked),
        }
    })
    .await;
    let stage = Stage::new();
    let _bad = connect(&stage, &site, "20s").await;
    let outcome = stage.beside(stage.call("bad_echo", json!({}))).await;
    assert_eq!(outcome.text(), "whole");
    let resumed = site.requests().iter().filter(|asked| asked.raw.header("last-event-id").is_some()).count();
    assert_eq!(resumed, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_leads_nowhere() {
    let elsewhere = Site::start(polite).await;
    let moved = |url: &str| head("307 Temporary Redirect", &format!("Location: {url}\r\nContent-Length: 0"), "");
    let to = moved(&elsewhere.url);
    let outcome = call("20s", {
        let to = to.clone();
        move |_| Reply::Bytes(to.clone())
    })
    .await;
    assert!(outcome.text().contains("HTTP 307"), "{}", outcome.text());
    let (stage, site) = (Stage::new(), Site::start(move |_| Reply::Bytes(to.clone())).await);
    let bad = connect(&stage, &site, "20s").await;
    assert!(trouble(&bad).contains("HTTP 307"), "{}", trouble(&bad));
    assert_eq!(elsewhere.requests().len(), 0, "nobody came");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_forgotten_is_begun_anew_once() {
    let calls = AtomicUsize::new(0);
    let site = on_call(move |asked| match calls.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::Bytes(head("404 Not Found", "Content-Length: 0\r\nConnection: close", "")),
        _ => polite(asked),
    })
    .await;
    let stage = Stage::new();
    let _bad = connect(&stage, &site, "20s").await;
    let outcome = stage.beside(stage.call("bad_echo", json!({}))).await;
    assert_eq!(outcome.text(), "well");
    let never = call("20s", |_| Reply::Bytes(head("404 Not Found", "Content-Length: 0\r\nConnection: close", ""))).await;
    assert!(never.text().contains("unreachable: "), "{}", never.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_with_a_strange_name_does_no_harm() {
    for name in ["\u{ff}\u{fe} \u{e9}", "a\"b;c,d", "../../x?y#z", ""] {
        let site = Site::start({
            let name = name.to_owned();
            move |asked| match (asked.method(), polite(asked)) {
                ("initialize", Reply::Json(message, _)) => {
                    let body = message.to_string();
                    let headers = format!(
                        "Mcp-Session-Id: {name}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}",
                        body.len()
                    );
                    Reply::Bytes(head("200 OK", &headers, &body))
                }
                (_, reply) => reply,
            }
        })
        .await;
        let stage = Stage::new();
        let bad = connect(&stage, &site, "20s").await;
        let outcome = stage.call("bad_echo", json!({})).await;
        assert_eq!(outcome.text(), "well", "{name:?}: {:#?}", bad.report());
        let call = site.requests().into_iter().find(|asked| asked.method() == "tools/call").expect("a call");
        assert_eq!(call.raw.headers.iter().filter(|(name, _)| name == "mcp-session-id").count(), 1, "{:?}", call.raw);
    }
}

/// A stream for what the server says by itself, which it ends at once and wants to have back at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_cannot_have_itself_asked_without_a_rest() {
    let site = Site::start(|asked| if asked.is_get() { Reply::Bytes(stream("retry: 0\nid: 1\ndata:\n\n")) } else { polite(asked) }).await;
    let stage = Stage::new();
    let bad = connect(&stage, &site, "20s").await;
    reports(&bad, "connected", |report| report.connected).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let asked = site.requests().iter().filter(|asked| asked.is_get()).count();
    assert!((1..=10).contains(&asked), "{asked} times in a second");
}
