//! An agent with one tool: a question, a call, an answer.
//!
//! `cargo run -p helve --features models --example agent` plays a scripted model. With `-- --openrouter` it asks a real one, with the key
//! in `OPEN_ROUTER_API_KEY`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use helve::DynModel;
use helve::prelude::*;
use serde_json::{Value, json};

struct CalculatorTool;

impl Tool for CalculatorTool {
    fn name(&self) -> &str {
        "calculator"
    }

    fn description(&self) -> &str {
        "Perform arithmetic operations"
    }

    fn parameters_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "a": {"type": "number"},
                "b": {"type": "number"},
                "operation": {"type": "string", "enum": ["add", "sub", "mul", "div"]}
            },
            "required": ["a", "b", "operation"]
        })
    }

    async fn execute(&self, params: &Value) -> ToolResult {
        let a = params["a"].as_f64().unwrap_or(0.0);
        let b = params["b"].as_f64().unwrap_or(0.0);
        let result = match params["operation"].as_str().unwrap_or("add") {
            "add" => a + b,
            "sub" => a - b,
            "mul" => a * b,
            "div" if b == 0.0 => return ToolResult::error("Division by zero"),
            "div" => a / b,
            other => return ToolResult::error(format!("Unknown operation {other}")),
        };
        ToolResult::success(result.to_string())
    }
}

fn model() -> Result<Arc<dyn DynModel>, Box<dyn std::error::Error>> {
    if std::env::args().any(|argument| argument == "--openrouter") {
        let key = std::env::var("OPEN_ROUTER_API_KEY")?;
        return Ok(Arc::new(HttpModel::open_router(key, "google/gemini-2.5-flash-lite-preview-09-2025")?));
    }
    let script = ScriptedModel::new()
        .calls([("calculator", json!({"a": 15, "b": 23, "operation": "mul"}))])
        .says("15 * 23 is 345.")
        .calls([("calculator", json!({"a": 100, "b": 4, "operation": "div"}))])
        .calls([("calculator", json!({"a": 25, "b": 25, "operation": "add"}))])
        .says("100 / 4 is 25, and 25 more is 50.");
    Ok(Arc::new(script))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut agent = Agent::new(model()?).with_options(AgentOptions {
        system_prompt: Some("You are a helpful assistant with access to tools.".into()),
        tool_choice: ToolChoice::Auto,
        ..Default::default()
    });
    agent.register_tool(Box::new(CalculatorTool))?;

    let response = agent.run("What is 15 * 23?").await?;
    println!("{response}");

    // The conversation goes on, and the words are shown as they come.
    let mut stream = agent.run_stream("Calculate 100 / 4 and then add 25").await?;
    while let Some(chunk) = stream.next_text().await {
        match chunk {
            Ok(content) => print!("{content}"),
            Err(error) => println!("Error: {error}"),
        }
    }
    println!();
    Ok(())
}
