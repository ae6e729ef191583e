#![allow(unused_variables)]

use helve_core::{CallContext, tool};

/// Greets.
#[tool(crate = helve_core)]
async fn text(name: &str) -> String {
    name.to_owned()
}

/// Greets.
#[tool(crate = helve_core)]
async fn nested(names: Vec<&str>, numbers: &[i64], path: Option<&std::path::Path>) {}

/// Greets.
#[tool(crate = helve_core)]
async fn lifetime(name: std::borrow::Cow<'_, str>) {}

/// Greets.
#[tool(crate = helve_core)]
async fn changes(cx: &mut CallContext) {}

/// Greets.
#[tool(crate = helve_core)]
async fn borrowed(cx: &CallContext) -> Option<&str> {
    cx.caller().agent.as_deref()
}

fn main() {}
