//! Functions as an MCP server. A client that supports tasks fetches the result of a background call later; any other waits for it.
//!
//! `cargo run -p helve --features mcp --example mcp_server` calls the tools over MCP and exits. With `-- serve` it keeps running, for your
//! own client.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use helve::CancellationToken;
use helve::mcp::{Mcp, McpServing};
use helve::prelude::*;
use helve::store::StoreHandle;
use tokio::net::TcpListener;

/// Greets a person.
#[tool(idempotent)]
async fn greet(
    /// The name of the person.
    name: String,
) -> String {
    format!("Hello, {name}!")
}

/// Runs for some seconds.
#[tool(background)]
async fn slow_compute(
    /// Duration in seconds.
    #[default(1)]
    seconds: u64,
    /// A label for the result.
    label: Option<String>,
) -> String {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    format!("{}: computed for {seconds} s", label.as_deref().unwrap_or("done"))
}

/// Always fails.
#[tool(background)]
async fn failing_job() -> Result<String, ToolError> {
    Err(ToolError::failed("the job does not work today"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> helve::Result<()> {
    // Background calls and approval requests need a store; this one lives only as long as the process.
    let tools = [greet::tool(), slow_compute::tool(), failing_job::tool()];
    let helve = Helve::builder().tools(tools).store_handle(StoreHandle::in_memory()).workers(4).build().await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    println!("serving MCP at {url}");
    tokio::select! {
        ended = helve.serve_http(McpServing::new().named("example", "1.0"), listener, CancellationToken::new()) => ended?,
        called = call(&url), if std::env::args().nth(1).as_deref() != Some("serve") => called?,
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(())
}

/// The client: the same tools, called over MCP.
async fn call(url: &str) -> helve::Result<()> {
    let client = Helve::builder().source(Mcp::http("own", url).prefix("").trusted().connect().await?).build().await?;
    for (tool, arguments) in [("greet", json!({"name": "Ada"})), ("slow_compute", json!({})), ("failing_job", json!({}))] {
        println!("{tool}: {}", client.call(tool, arguments).await.text());
    }
    Ok(())
}
