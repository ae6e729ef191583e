#![allow(unused_variables)]

use helve_core::tool;

struct Opaque;

/// Reads.
#[tool(crate = helve_core)]
async fn read(
    /// What to read.
    what: Opaque,
) {}

fn main() {}
