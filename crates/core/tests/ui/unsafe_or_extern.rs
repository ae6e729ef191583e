#![allow(unused_variables)]

use helve_core::tool;

/// Jumps.
#[tool(crate = helve_core)]
unsafe fn jump() {}

/// Jumps.
#[tool(crate = helve_core)]
extern "C" fn foreign() {}

fn main() {}
