//! The program of the first design, with its four-method `Tool` in a `Box`: it must go on compiling, and working.

#![allow(clippy::expect_used, reason = "a test that goes wrong should stop")]

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

#[tokio::test]
async fn the_first_program_works() -> Result<(), Box<dyn std::error::Error>> {
    let model = ScriptedModel::new()
        .calls([("calculator", json!({"a": 15, "b": 23, "operation": "mul"}))])
        .says("15 * 23 is 345.")
        .calls([("calculator", json!({"a": 100, "b": 0, "operation": "div"}))])
        .says("That cannot be done.");
    let mut agent = Agent::new(model.clone()).with_options(AgentOptions {
        system_prompt: Some("You are a helpful assistant with access to tools.".into()),
        tool_choice: ToolChoice::Auto,
        ..Default::default()
    });
    agent.register_tool(Box::new(CalculatorTool))?;

    let response = agent.run("What is 15 * 23?").await?;
    assert_eq!(response.to_string(), "15 * 23 is 345.");

    let mut stream = agent.run_stream("Divide 100 by 0").await?;
    let mut said = String::new();
    while let Some(chunk) = stream.next_text().await {
        said.push_str(&chunk?);
    }
    assert_eq!(said, "That cannot be done.");
    drop(stream);

    let last = model.requests().pop().expect("the model was asked");
    let read = format!("{:?}", last.messages);
    assert!(read.contains("345") && read.contains("failed: Division by zero"), "{read}");
    Ok(())
}
