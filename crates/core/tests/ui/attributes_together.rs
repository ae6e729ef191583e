#![allow(unused_variables)]

use helve_core::tool;

/// Tells the time.
#[tool(retries = 3, crate = helve_core)]
async fn retries() {}

/// Tells the time.
#[tool(cache_per_caller, crate = helve_core)]
async fn cache() {}

/// Tells the time.
#[tool(priority = 3, crate = helve_core)]
async fn priority() {}

/// Tells the time.
#[tool(background, priority = 11, crate = helve_core)]
async fn too_much() {}

fn main() {}
