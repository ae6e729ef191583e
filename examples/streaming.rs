//! A tool and a streamed answer.
//!
//! Run it with `cargo run -p helve --all-features --example streaming`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use helve::prelude::*;

/// Adds two numbers.
#[tool(idempotent)]
async fn add(
    /// The first number.
    a: i64,
    /// The second number.
    #[default(1)]
    b: i64,
) -> i64 {
    a + b
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> helve::Result<()> {
    let model = ScriptedModel::new().calls([("add", json!({"a": 2, "b": 3}))]).says("2 + 3 is 5.");
    let mut agent = Agent::new(model).tool(add::tool())?;
    let mut stream = agent.run_stream("What is 2 + 3?").await?;
    while let Some(text) = stream.next_text().await {
        print!("{}", text?);
    }
    println!();
    Ok(())
}
