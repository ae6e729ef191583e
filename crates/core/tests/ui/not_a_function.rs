#![allow(unused_variables)]

use helve_core::tool;

/// Holds tools.
#[tool(crate = helve_core)]
struct Toolbox;

/// Holds tools.
#[tool(crate = helve_core)]
const HAMMERS: usize = 3;

trait Swing {
    /// Swings.
    #[tool(crate = helve_core)]
    fn swing();
}

fn main() {}
