#![allow(unused_variables)]

use helve_core::tool;

#[derive(serde::Serialize)]
struct Unsaid {}

/// Answers.
#[tool(output, crate = helve_core)]
async fn answer() -> Result<Unsaid, String> {
    Ok(Unsaid {})
}

fn main() {}
