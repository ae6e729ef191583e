#![allow(unused_variables)]

use helve_core::tool;

/// Counts.
#[tool(crate = helve_core)]
async fn optional(#[default(3)] count: Option<i64>) {}

/// Counts.
#[tool(crate = helve_core)]
async fn twice(#[default(3)] #[default(4)] count: i64) {}

/// Counts.
#[tool(crate = helve_core)]
async fn empty(#[default()] count: i64) {}

/// Counts.
#[tool(crate = helve_core)]
async fn conditional(#[cfg(unix)] count: i64) {}

fn main() {}
