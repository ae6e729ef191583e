//! Client and server of the Model Context Protocol: this program starts itself as a server and calls its tools.
//!
//! Run it with `cargo run -p helve --all-features --example mcp`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use helve::mcp::{Mcp, McpServing};
use helve::prelude::*;

/// Greets a person.
#[tool(idempotent)]
fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> helve::Result<()> {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        let helve = Helve::builder().tool(greet::tool()).build().await?;
        return Ok(helve.serve_stdio(McpServing::new().named("greeter", "1.0").instructions("Greets people.")).await?);
    }
    if let Err(missing) = Mcp::command("missing", ["no-such-program"]).connect().await {
        println!("{missing}");
    }

    let program = std::env::current_exe()?.display().to_string();
    let greeter = Mcp::command("greeter", [program.as_str(), "serve"]).trusted().connect().await?;
    let helve = Helve::builder().source(greeter).build().await?;
    println!("{}", helve.call("greeter_greet", json!({"name": "Ada"})).await.text());
    Ok(())
}
