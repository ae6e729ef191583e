#![allow(unused_variables)]

use helve_core::tool;

/// Tells the time.
#[tool(name = "get time", crate = helve_core)]
async fn space() {}

/// Tells the time.
#[tool(crate = helve_core)]
async fn 时间() {}

/// Tells the time.
#[tool(crate = helve_core)]
async fn a_name_that_goes_on_and_on_until_no_model_would_take_it_any_more_at_all() {}

/// Tells the time.
#[tool(crate = helve_core)]
async fn same(zone: String, _zone: String) {}

fn main() {}
