#![allow(unused_variables)]

use helve_core::tool;

struct Silent;

/// Fails.
#[tool(crate = helve_core)]
async fn fail() -> Result<String, Silent> {
    Err(Silent)
}

fn main() {}
