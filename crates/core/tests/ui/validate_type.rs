#![allow(unused_variables)]

use helve_core::tool;

fn check(a: &String) -> bool {
    a.is_empty()
}

/// Has a check for something else.
#[tool(validate = check, crate = helve_core)]
async fn other_type(a: i64) {}

fn main() {}
