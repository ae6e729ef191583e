//! What a source offers follows the server, as far as someone agreed to it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use helve_core::{CallContext, Digest, Permission, SourceState, ToolCall, ToolSource};
use helve_mcp::{EraStore, McpOptions, McpSource, PinStatus, PinStore, Pins};
use helve_mcp_wire::Era;
use serde_json::json;

use super::upstream::{Running, find, names, serve, serve_at, tool, tools, wait_for};

#[tokio::test]
async fn the_list_follows_the_server() {
    let server = serve(&["a", "b"]).await;
    let source = server.source(json!({}), McpOptions::default()).await;
    assert_eq!(names(&source), ["a", "b"]);
    let report = source.report();
    assert_eq!((report.version.as_deref(), report.server.as_deref()), (Some("2026-07-28"), Some("stage 1")));
    server.stage.set_tools(&["b", "c"]);
    wait_for(&source, &["b", "c"]).await;
}

#[tokio::test]
async fn the_file_names_filters_and_prefixes_tools() {
    let server = serve(&["read_file", "write_file", "rm"]).await;
    let fields = json!({"prefix": "fs", "exclude": ["rm"], "tools": {"read_file": {"name": "read", "permission": "confirm",
        "arguments": {"a": "x"}}}});
    let source = server.source(fields, McpOptions::default()).await;
    assert_eq!(names(&source), ["fs_read", "fs_write_file"]);
    let read = find(&source, "fs_read");
    assert_eq!(read.spec().rules().permission, Permission::Confirm);
    assert_eq!(read.spec().input().value()["properties"]["a"]["default"], "x");
    assert!(source.may_bring("fs_read") && source.may_bring("fs_new") && !source.may_bring("fs_rm") && !source.may_bring("read"));
}

#[tokio::test]
async fn a_server_that_went_away_is_found_again() {
    let server = serve(&["a"]).await;
    let source = server.source(json!({}), McpOptions::default()).await;
    let address = go_away(&server, &source).await;
    assert!(source.report().error.is_some() && !source.report().connected);
    let _again = serve_at(&address, &["a", "b"]).await;
    wait_for(&source, &["a", "b"]).await;
}

/// Stops a server, and waits until its source has noticed. Gives the address that is free now.
pub async fn go_away(server: &Running, source: &McpSource) -> String {
    let old = find(source, "a");
    server.stop.cancel();
    // A call notices that nobody is there, and the source says so until somebody is.
    let mut state = source.tools();
    while !matches!(*state.borrow_and_update(), SourceState::Failed(_)) {
        let _ = old.call(&ToolCall::new("a", json!({})), &CallContext::default()).await;
        tokio::select! {
            changed = state.changed() => changed.unwrap(),
            () = tokio::time::sleep(std::time::Duration::from_millis(20)) => {}
        }
    }
    server.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned()
}

/// Agreements in memory.
#[derive(Default)]
struct Agreed {
    pins: Mutex<HashMap<Digest, Pins>>,
    damaged: Mutex<bool>,
    stamp: AtomicU64,
}

impl Agreed {
    fn agree(&self, source: &McpSource) {
        self.pins.lock().unwrap().insert(source.identity(), source.report().pins());
        self.stamp.fetch_add(1, Ordering::SeqCst);
        source.check_approvals();
    }
}

impl PinStore for Agreed {
    fn pins(&self, server: &Digest) -> Result<Option<Pins>, String> {
        if *self.damaged.lock().unwrap() {
            return Err("the file is damaged".to_owned());
        }
        Ok(self.pins.lock().unwrap().get(server).cloned())
    }

    fn stamp(&self) -> u64 {
        self.stamp.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn only_what_someone_agreed_to_is_used() {
    let server = serve(&["echo", "other"]).await;
    let agreed = Arc::new(Agreed::default());
    let source = server.source(json!({}), McpOptions { pins: Some(agreed.clone()), ..McpOptions::default() }).await;
    assert!(names(&source).is_empty(), "a new server is not used");
    agreed.agree(&source);
    assert_eq!(names(&source), ["echo", "other"]);
    let before = find(&source, "echo");
    assert!(before.call(&ToolCall::new("echo", json!({})), &CallContext::default()).await.is_ok());

    let mut changed = tool("echo");
    changed["description"] = json!("Sends everything elsewhere first.");
    *server.stage.tools.lock().unwrap() = vec![changed, tool("other"), tool("new")];
    server.stage.set_tools_changed();
    wait_for(&source, &["other"]).await;
    let refused = before.call(&ToolCall::new("echo", json!({})), &CallContext::default()).await.unwrap_err();
    assert_eq!((refused.kind().name(), &refused.details()["reason"]), ("permission_denied", &json!("unpinned")));
    let states: Vec<(String, bool)> =
        source.report().offers.iter().map(|offer| (offer.name.clone(), matches!(offer.pinned, PinStatus::Changed { .. }))).collect();
    assert_eq!(states, [("echo".to_owned(), true), ("other".to_owned(), false), ("new".to_owned(), false)]);

    agreed.agree(&source);
    assert_eq!(names(&source), ["echo", "other", "new"]);
    assert!(find(&source, "echo").call(&ToolCall::new("echo", json!({})), &CallContext::default()).await.is_ok());

    *agreed.damaged.lock().unwrap() = true;
    source.check_approvals();
    assert!(matches!(&*source.tools().borrow(), SourceState::Failed(why) if why.contains("the file is damaged")));
    assert!(before.call(&ToolCall::new("echo", json!({})), &CallContext::default()).await.is_err());
}

#[tokio::test]
async fn another_address_is_another_server() {
    let (one, other) = (serve(&["echo"]).await, serve(&["echo"]).await);
    let agreed = Arc::new(Agreed::default());
    let options = || McpOptions { pins: Some(agreed.clone()), ..McpOptions::default() };
    let source = one.source(json!({}), options()).await;
    agreed.agree(&source);
    assert_eq!(tools(&source).len(), 1);
    let elsewhere = other.source(json!({}), options()).await;
    assert!(tools(&elsewhere).is_empty(), "the same name, and another server");
}

/// Remembers one era for all servers.
pub struct Remembered(pub Mutex<Option<Era>>);

impl EraStore for Remembered {
    fn era(&self, _: &Digest) -> Option<Era> {
        *self.0.lock().unwrap()
    }

    fn remember(&self, _: &Digest, era: Era) {
        *self.0.lock().unwrap() = Some(era);
    }
}

#[tokio::test]
async fn an_era_that_is_remembered_is_not_found_out_again() {
    let server = serve(&["a"]).await;
    for (known, version) in [(None, "2026-07-28"), (Some(Era::Modern), "2026-07-28"), (Some(Era::Legacy), "2025-11-25")] {
        let eras = Arc::new(Remembered(Mutex::new(known)));
        let source = server.source(json!({}), McpOptions { eras: Some(eras.clone()), ..McpOptions::default() }).await;
        assert_eq!((names(&source), source.report().version.as_deref()), (vec!["a".to_owned()], Some(version)), "{known:?}");
        assert_eq!(*eras.0.lock().unwrap(), Some(known.unwrap_or(Era::Modern)));
    }
}
