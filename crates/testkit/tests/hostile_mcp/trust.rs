//! Servers that change what a person agreed to, or take the name of another's tool.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use helve_core::{CallContext, Digest, DynTool, ErrorKind, SourceState, ToolCall, ToolSource};
use helve_mcp::{McpSource, PinStatus, PinStore, Pins};
use helve_tools::View;
use serde_json::json;

use crate::stage::{Stage, described, offered, program, reports, server, settle};

/// What a test has agreed to.
#[derive(Default)]
struct Agreed(Mutex<Option<Pins>>, AtomicU64);

impl Agreed {
    /// Agrees to what a server offers now.
    fn to(&self, source: &McpSource) {
        *self.0.lock().expect("pins") = Some(source.report().pins());
        self.1.fetch_add(1, Ordering::Relaxed);
        source.check_approvals();
    }
}

impl PinStore for Agreed {
    fn pins(&self, _: &Digest) -> Result<Option<Pins>, String> {
        Ok(self.0.lock().expect("pins").clone())
    }

    fn stamp(&self) -> u64 {
        self.1.load(Ordering::Relaxed)
    }
}

/// A tool as someone holds it who looked at the list earlier.
fn held(source: &McpSource, name: &str) -> Arc<dyn DynTool> {
    let state = source.tools().borrow().clone();
    let SourceState::Ready(tools) = state else { panic!("no tools: {:#?}", source.report()) };
    tools.as_slice().iter().find(|tool| &**tool.spec().name() == name).expect("the tool").clone()
}

async fn assert_refused(tool: &Arc<dyn DynTool>) {
    let error = tool.call(&ToolCall::new("x", json!({})), &CallContext::default()).await.expect_err("a refusal");
    assert_eq!((error.kind(), &error.details()["reason"]), (ErrorKind::PermissionDenied, &json!("unpinned")), "{error:?}");
    assert!(error.message().contains("`bad`"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_changes_after_it_was_agreed_to_is_hidden_and_refused() {
    let (agreed, words) = (Arc::new(Agreed::default()), tempfile::NamedTempFile::new().expect("a file"));
    fs::write(words.path(), "Good.").expect("written");
    let stage = Stage::with_pins(agreed.clone());
    let bad = stage.bad("written", &[words.path().to_str().expect("a path")]).await;
    assert_eq!(offered(&bad), [""; 0], "nobody agreed to anything");
    agreed.to(&bad);
    let echo = held(&bad, "bad_echo");
    assert!(stage.call("bad_echo", json!({})).await.is_success());

    fs::write(words.path(), "Evil.").expect("written");
    assert!(stage.call("bad_change", json!({})).await.is_success());
    let report = reports(&bad, "changed", |report| report.withheld().count() == 1).await;
    assert!(matches!(&report.offers[0].pinned, PinStatus::Changed { was, .. } if was["description"] == "Good."), "{report:#?}");
    reports(&bad, "without the tool", |_| offered(&bad) == ["bad_change", "bad_mark"]).await;
    assert_refused(&echo).await;

    // What was agreed to is good again.
    fs::write(words.path(), "Good.").expect("written");
    assert!(stage.call("bad_change", json!({})).await.is_success());
    reports(&bad, "as it was", |report| report.withheld().count() == 0).await;
    reports(&bad, "offering the tool", |_| offered(&bad).len() == 3).await;
    assert!(echo.call(&ToolCall::new("x", json!({})), &CallContext::default()).await.is_ok());
}

/// The call is on its way while the server is away, and must not reach what comes back in its place.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_changes_between_two_connections_is_refused_to_those_who_waited() {
    let (agreed, folder) = (Arc::new(Agreed::default()), tempfile::tempdir().expect("a folder"));
    let (words, gate) = (folder.path().join("words"), folder.path().join("gate"));
    let open = |words_say: &str| {
        fs::write(&words, words_say).expect("written");
        fs::write(&gate, "").expect("written");
    };
    open("Good.");
    let stage = Stage::with_pins(agreed.clone());
    let script = format!("until [ -e '{}' ]; do sleep 0.02; done; exec '{}' written '{}'", gate.display(), program(), words.display());
    let bad = stage.connect(described("bad", &["sh", "-c", &script]));
    settle(&bad).await;
    agreed.to(&bad);
    let (echo, mark) = (held(&bad, "bad_echo"), held(&bad, "bad_mark"));
    let call = ToolCall::new("x", json!({}));
    let marked = mark.call(&call, &CallContext::default()).await.expect("the mark").text;
    fs::remove_file(&gate).expect("removed");
    crate::processes::kill(&marked);
    // Until the client knows that the server is gone, a call is lost with it; then it waits.
    let lost = tokio::time::timeout(Duration::from_secs(3), echo.call(&call, &CallContext::default())).await;
    assert!(!matches!(lost, Ok(Ok(_))), "{lost:?}");
    let waiting: Vec<_> = (0..50)
        .map(|_| {
            let echo = echo.clone();
            tokio::spawn(async move { assert_refused(&echo).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    open("Evil.");
    for waits in waiting {
        waits.await.expect("the call is refused");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_flips_is_used_only_while_it_is_the_one_agreed_to() {
    let agreed = Arc::new(Agreed::default());
    let stage = Stage::with_pins(agreed.clone());
    let bad = stage.bad("flips", &[]).await;
    let good = reports(&bad, "good", |report| report.offers.iter().any(|offer| offer.definition["description"] == "good")).await;
    *agreed.0.lock().expect("pins") = Some(good.pins());
    agreed.1.fetch_add(1, Ordering::Relaxed);
    for _ in 0..3 {
        reports(&bad, "evil", |report| report.offers[0].definition["description"] == "evil" && !report.offers[0].pinned.is_same()).await;
        reports(&bad, "good", |report| report.offers[0].definition["description"] == "good" && report.offers[0].pinned.is_same()).await;
    }
    // Whatever is on offer at any moment says what was agreed to.
    for _ in 0..200 {
        if let SourceState::Ready(tools) = &*bad.tools().borrow() {
            assert!(tools.as_slice().iter().all(|tool| &**tool.spec().description() != "evil"));
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_another_source_has_stays_with_it() {
    let stage = Stage::new();
    let plain = |name: &str| {
        let mut server = server(name, "good", &[]);
        server["prefix"] = json!("");
        server
    };
    let (first, second) = (stage.connect(plain("first")), stage.connect(plain("second")));
    settle(&first).await;
    settle(&second).await;
    let snapshot = stage.catalogue.snapshot(&View::default());
    assert_eq!(snapshot.get("echo").expect("a tool").source().as_str(), "mcp:first");
    let report = snapshot.sources().find(|report| report.source.as_str() == "mcp:second").expect("a report");
    assert!(report.displaced.iter().any(|displaced| &*displaced.name == "echo" && displaced.by.as_str() == "mcp:first"), "{report:?}");
    drop(first);
}
