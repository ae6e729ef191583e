//! Functions as an MCP server of your own. A client that knows tasks comes back for what runs in the background; any other waits for it.
//!
//! `cargo run -p helve --features project --example mcp_server` calls them over MCP and ends; with `-- serve` behind it, it stays, for a
//! client of yours.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::path::Path;
use std::time::Duration;

use helve::CancellationToken;
use helve::mcp::McpServing;
use helve::mcp::serve::{Options, Server};
use helve::mcp::{McpDefinition, McpOptions, McpSource};
use helve::prelude::*;
use helve::store::{Record, Worker};
use serde_json::json;
use tokio::net::TcpListener;

/// Greets someone.
#[tool(idempotent)]
async fn greet(
    /// Whom to greet.
    name: String,
) -> String {
    format!("Hello, {name}!")
}

/// Computes for a while.
#[tool(background)]
async fn slow_compute(
    /// How long it takes.
    #[default(1)]
    seconds: u64,
    /// What it is called in the result.
    label: Option<String>,
) -> String {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    format!("{}: computed for {seconds} s", label.as_deref().unwrap_or("done"))
}

/// Fails.
#[tool(background)]
async fn failing_job() -> Result<String, ToolError> {
    Err(ToolError::failed("the job does not work today"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let helve = Helve::new();
    for tool in [greet::tool(), slow_compute::tool(), failing_job::tool()] {
        helve.catalogue().register(tool)?;
    }
    // Calls in the background, and questions to people, are written down; here only for as long as the process lives.
    let record = Record::in_memory();
    helve.executor().use_record(record.clone())?;
    let worker = Worker::new(record, helve.executor().clone(), helve.catalogue().clone(), 4);
    let server = Server::new(helve.mcp_service(McpServing::default())?, Options::default());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    println!("serving MCP at {url}");
    let stop = CancellationToken::new();
    tokio::select! {
        ended = server.listen(listener, stop.clone()) => ended?,
        () = worker.run(stop.clone()) => {}
        called = call(&url), if std::env::args().nth(1).as_deref() != Some("serve") => called?,
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(())
}

/// The other side: the same tools, as those of an MCP server.
async fn call(url: &str) -> Result<(), Box<dyn std::error::Error>> {
    let definition: McpDefinition = serde_json::from_value(json!({"name": "own", "url": url, "prefix": "", "trusted": true}))?;
    let client = Helve::new();
    client.catalogue().add_source(McpSource::connect(&definition, Path::new("."), &McpOptions::default())?);
    client.catalogue().settled().await;
    for (tool, arguments) in [("greet", json!({"name": "Ada"})), ("slow_compute", json!({})), ("failing_job", json!({}))] {
        println!("{tool}: {}", client.call(tool, arguments).await.text());
    }
    Ok(())
}
