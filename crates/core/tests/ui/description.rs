#![allow(unused_variables)]

use helve_core::tool;

#[tool(crate = helve_core)]
async fn missing() {}

///
#[tool(crate = helve_core)]
async fn blank() {}

#[doc = include_str!("description.rs")]
#[tool(crate = helve_core)]
async fn included() {}

fn main() {}
