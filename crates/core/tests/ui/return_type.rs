#![allow(unused_variables)]

use helve_core::tool;

struct Opaque;

/// Hides.
#[tool(crate = helve_core)]
async fn value() -> Opaque {
    Opaque
}

/// Hides.
#[tool(crate = helve_core)]
fn result() -> Result<Opaque, std::fmt::Error> {
    Ok(Opaque)
}

fn main() {}
