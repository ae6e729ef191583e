//! A tool written by hand: a type that implements `Tool`, registered and called.
//!
//! Run it with `cargo run -p helve --example calculator`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

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

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let helve = Helve::new();
    helve.catalogue().register(CalculatorTool)?;

    for arguments in [
        json!({"a": 15, "b": 23, "operation": "mul"}),
        json!({"a": "100", "b": 4, "operation": "div"}),
        json!({"a": 1, "b": 0, "operation": "div"}),
        json!({"a": 1, "operation": "ad"}),
    ] {
        let outcome = helve.call("calculator", arguments.clone()).await;
        println!("calculator({arguments}) → {}", outcome.text());
    }
    Ok(())
}
