#![allow(unused_variables, dead_code)]

use helve_core::tool;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    name: String,
}

/// Has two sorts of arguments.
#[tool(crate = helve_core)]
async fn both(#[flatten] order: Order, count: u64) {}

/// Has a default.
#[tool(crate = helve_core)]
async fn with_default(
    #[flatten]
    #[default]
    order: Order,
) {
}

fn main() {}
