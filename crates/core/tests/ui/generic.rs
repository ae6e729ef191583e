#![allow(unused_variables)]

use helve_core::tool;

/// Greets.
#[tool(crate = helve_core)]
async fn typed<T: ToString>(name: T) -> String {
    name.to_string()
}

/// Greets.
#[tool(crate = helve_core)]
async fn counted<const N: usize>(names: [String; N]) {}

/// Greets.
#[tool(crate = helve_core)]
async fn hidden(name: impl ToString) -> String {
    name.to_string()
}

fn main() {}
