#![allow(unused_variables)]

use helve_core::{Output, tool};

#[derive(serde::Serialize)]
struct Unsaid {}

/// Answers.
#[tool(output, crate = helve_core)]
async fn nothing() {}

/// Answers.
#[tool(output, crate = helve_core)]
async fn by_hand() -> Result<Output, String> {
    Ok(Output::text(""))
}

/// Answers.
#[tool(output, crate = helve_core)]
async fn alias() -> std::fmt::Result {
    Ok(())
}

fn main() {}
