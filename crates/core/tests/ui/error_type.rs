#![allow(unused_variables)]

use helve_core::tool;

struct Silent;

/// Fails.
#[tool(crate = helve_core)]
async fn fail() -> Result<String, Silent> {
    Err(Silent)
}

type Alias<T> = Result<T, Silent>;

/// Fails.
#[tool(crate = helve_core)]
fn alias() -> Alias<String> {
    Err(Silent)
}

fn main() {}
