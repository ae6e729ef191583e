#![allow(unused_variables)]

use helve_core::{CallContext, tool};

/// Looks around.
#[tool(crate = helve_core)]
async fn twice(one: &CallContext, two: CallContext) {}

/// Looks around.
#[tool(crate = helve_core)]
async fn defaulted(#[default] cx: &CallContext) {}

fn main() {}
