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

type Alias<T> = Result<T, String>;

/// Hides.
#[tool(crate = helve_core)]
async fn alias() -> Alias<Opaque> {
    Ok(Opaque)
}

fn main() {}
