#![allow(unused_variables)]

use helve_core::tool;

/// Tells the time.
#[tool(timeout = "5 parsecs", crate = helve_core)]
async fn unit() {}

/// Tells the time.
#[tool(timeout = 30, crate = helve_core)]
async fn bare_number() {}

/// Tells the time.
#[tool(cache = "0s", crate = helve_core)]
async fn nothing() {}

/// Tells the time.
#[tool(timeout, crate = helve_core)]
async fn missing() {}

/// Tells the time.
#[tool(idempotent = true, crate = helve_core)]
async fn flag() {}

/// Tells the time.
#[tool(concurrency = 0, crate = helve_core)]
async fn zero() {}

/// Tells the time.
#[tool(permission = "ask", crate = helve_core)]
async fn permission() {}

/// Tells the time.
#[tool(title = "", crate = helve_core)]
async fn empty() {}

/// Tells the time.
#[tool(exclusive, exclusive, crate = helve_core)]
async fn twice() {}

fn main() {}
