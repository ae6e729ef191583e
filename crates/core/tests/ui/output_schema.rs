#![allow(unused_variables)]

use helve_core::{Output, tool};

/// Answers.
#[tool(output, crate = helve_core)]
async fn nothing() {}

/// Answers.
#[tool(output, crate = helve_core)]
async fn by_hand() -> Result<Output, String> {
    Ok(Output::text(""))
}

fn main() {}
