//! Tools from closures: for small tools, and for tools that are only known at run time.
//!
//! Run it with `cargo run -p helve --example closure_tool`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use helve::prelude::*;
use serde_json::Value;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sum {
    /// The numbers to add.
    numbers: Vec<i64>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> helve::Result<()> {
    let helve = Helve::new();

    // The schema comes from the type of the arguments.
    let sum = tool_fn("sum", "Adds numbers.", |args: Sum, _| async move { Ok(args.numbers.iter().sum::<i64>()) });
    helve.catalogue().register(sum.idempotent().validate(|args| match args.numbers.len() {
        0 => Err("there is nothing to add".into()),
        _ => Ok(()),
    }))?;

    // Name, description and schema could come from a file or a database.
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    for (tool, word) in [("greet", "Hello"), ("part", "Goodbye")] {
        let say = move |args: Value, _| async move {
            let name = args["name"].as_str().ok_or("who?")?;
            Ok(format!("{word}, {name}!"))
        };
        helve.catalogue().register(tool_fn(tool, format!("Says {word}."), say).schema(schema.clone()))?;
    }

    for (tool, arguments) in [
        ("sum", json!({"numbers": [1, 2, 3]})),
        ("sum", json!({"numbers": []})),
        ("greet", json!({"name": "Ada"})),
        ("part", json!({"name": "Ada"})),
    ] {
        println!("{tool}({arguments})\n  → {}", helve.call(tool, arguments.clone()).await.text());
    }
    Ok(())
}
