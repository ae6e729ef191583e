#![allow(unused_variables)]

use helve_core::tool;

/// Counts.
#[tool(crate = helve_core)]
async fn count(#[default(1.5)] from: i64) {}

fn main() {}
