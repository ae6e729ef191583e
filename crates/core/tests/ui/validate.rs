#![allow(unused_variables)]

use helve_core::tool;

/// Has no value to check with.
#[tool(validate = self.check, crate = helve_core)]
async fn without_self(a: i64) {}

/// Is not a path.
#[tool(validate = "check", crate = helve_core)]
async fn as_text(a: i64) {}

fn main() {}
