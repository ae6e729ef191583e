#![allow(unused_variables)]

use helve_core::tool;

#[derive(serde::Deserialize, schemars::JsonSchema, Default)]
struct Secretive {}

/// Reads.
#[tool(crate = helve_core)]
async fn read(#[default] what: Secretive) {}

fn main() {}
