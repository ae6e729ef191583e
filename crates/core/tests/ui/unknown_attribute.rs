#![allow(unused_variables)]

use helve_core::tool;

/// Tells the time.
#[tool(timout = "5s", crate = helve_core)]
async fn near() {}

/// Tells the time.
#[tool(colour = "red", crate = helve_core)]
async fn far() {}

/// Tells the time.
#[tool("near", crate = helve_core)]
async fn no_attribute() {}

fn main() {}
