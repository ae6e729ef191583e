//! HTTP tools against servers on loopback that behave, and that do not.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

mod credentials;
mod definitions;
mod failures;
mod remote;
mod responses;

use std::sync::Arc;

use helve_core::{DynTool, Redactor};
use helve_fetch::Fetch;
use helve_http::HttpDefinition;
use helve_testkit::toolkit;
use helve_testkit::{RawServer, within};
use helve_tools::{Executor, ExecutorOptions};
use serde_json::{Value, json};

/// A secret that only the right server may see.
const CANARY: &str = "canary-0123456789";

/// A definition with all required fields.
fn definition(url: &str, more: &Value) -> HttpDefinition {
    let mut whole = json!({"name": "ask", "description": "Asks.", "api_url": url, "timeout": "5s"});
    whole.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    serde_json::from_value(whole).expect("a definition")
}

fn tool(url: &str, more: &Value, redactor: &Redactor) -> Arc<dyn DynTool> {
    definition(url, more).tool("tools/native/ask.yaml", &Fetch::default(), redactor).expect("a tool")
}

/// Calls the tool through the executor, and checks that the outcome shows no secrets.
async fn call(url: &str, more: &Value, arguments: Value) -> Value {
    let redactor = Redactor::default();
    let toolkit = toolkit([tool(url, more, &redactor)]);
    // The executor has no redactor here: everything but results must be clean when it leaves the tool.
    let executor = Executor::new(ExecutorOptions::default());
    let outcome = within(helve_testkit::call(&executor, &toolkit, "ask", arguments)).await;
    if outcome["success"] == json!(false) {
        assert!(!outcome.to_string().contains("canary"), "{outcome}");
    }
    outcome
}

/// Calls a tool of a server with a single response.
async fn call_once(answer: Vec<u8>, more: &Value) -> Value {
    let server = RawServer::responding([answer]).await;
    call(&server.url("/"), more, json!({})).await
}
