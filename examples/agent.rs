//! An agent with tools: a request, tool calls, an answer, and a second turn of the conversation.
//!
//! `cargo run -p helve --features models --example agent` uses a scripted model. With `-- --openrouter` it uses a real one, with the API
//! key in `OPENROUTER_API_KEY`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use helve::model::DynModel;
use helve::prelude::*;

/// Multiplies two numbers.
#[tool(idempotent)]
async fn multiply(
    /// The first factor.
    a: f64,
    /// The second factor.
    b: f64,
) -> f64 {
    a * b
}

/// Divides one number by another.
#[tool(idempotent)]
async fn divide(a: f64, b: f64) -> helve::Result<f64> {
    // The model reads the error and can correct itself.
    if b == 0.0 { Err("division by zero".into()) } else { Ok(a / b) }
}

fn model() -> helve::Result<Arc<dyn DynModel>> {
    if std::env::args().any(|argument| argument == "--openrouter") {
        let key = std::env::var("OPENROUTER_API_KEY")?;
        return Ok(Arc::new(HttpModel::open_router(key, "google/gemini-2.5-flash-lite-preview-09-2025")?));
    }
    let script = ScriptedModel::new()
        .calls([("multiply", json!({"a": 15, "b": 23}))])
        .says("15 * 23 is 345.")
        .calls([("divide", json!({"a": 100, "b": 0}))])
        .calls([("divide", json!({"a": 100, "b": 4}))])
        .says("Nothing can be divided by zero, but 100 / 4 is 25.");
    Ok(Arc::new(script))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> helve::Result<()> {
    let mut agent = Agent::new(model()?).with_options(AgentOptions::default().system_prompt("You are a calculator. Use the tools."));
    agent.register_tools([multiply::tool(), divide::tool()])?;

    println!("{}", agent.run("What is 15 * 23?").await?);

    // The conversation continues, and the answer is streamed.
    let mut stream = agent.run_stream("Divide 100 by 0, or by 4 if that cannot be done").await?;
    while let Some(text) = stream.next_text().await {
        print!("{}", text?);
    }
    println!();
    Ok(())
}
