#![allow(unused_variables)]

use helve_core::tool;

#[derive(serde::Deserialize)]
struct Unsaid {}

/// Reads.
#[tool(crate = helve_core)]
async fn read(what: Vec<Unsaid>) {}

fn main() {}
