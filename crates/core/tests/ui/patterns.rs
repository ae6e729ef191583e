#![allow(unused_variables)]

use helve_core::tool;

/// Adds.
#[tool(crate = helve_core)]
async fn add((a, b): (i64, i64)) -> i64 {
    a + b
}

/// Adds.
#[tool(crate = helve_core)]
async fn ignore(_: i64) {}

/// Adds.
#[tool(crate = helve_core)]
async fn nameless(__: i64) {}

fn main() {}
