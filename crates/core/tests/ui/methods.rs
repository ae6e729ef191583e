#![allow(unused_variables)]

use helve_core::tool;

struct Greeter;

impl Greeter {
    /// Greets.
    #[tool(crate = helve_core)]
    async fn greet(&self, name: String) -> String {
        name
    }
}

fn main() {}
