//! The tools, resources and prompts that the official conformance suite asks servers for, served by Helve's MCP server over HTTP.
//!
//! `conformance_server PORT` serves them at `http://127.0.0.1:PORT/mcp`. The suite's test puts `helve mcp serve --gateway` before it, so
//! that client, gateway and server are all under test.

mod content;
mod prompts;
mod resources;
mod rounds;
mod tools;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use helve_mcp::Change;
use helve_mcp::server::{Backend, ClientRequest, Server, ServerInfo, ServerOptions};
use helve_mcp_wire::{CODES, Era, RpcError};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// How many changes wait for a client.
const CHANGES: usize = 16;

/// What the suite wants to find.
struct Fixture {
    changes: broadcast::Sender<Change>,
    /// Whether the tool that comes and goes is there.
    listed: AtomicBool,
    /// Signs states that clients send back.
    key: String,
}

impl Fixture {
    async fn answer(&self, request: ClientRequest) -> Result<Value, RpcError> {
        match request.method.as_str() {
            "tools/list" => Ok(self.tools()),
            "tools/call" => self.call(&request).await,
            "resources/list" => Ok(resources::list()),
            "resources/templates/list" => Ok(resources::templates()),
            "resources/read" => resources::read(&request.params),
            "prompts/list" => Ok(prompts::list()),
            "prompts/get" => prompts::get(&request.params),
            "completion/complete" => Ok(prompts::complete(&request.params)),
            // The server keeps levels and subscriptions itself.
            "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => Ok(json!({})),
            method => Err(RpcError { code: CODES.method, message: format!("there is no method `{method}`"), data: None }),
        }
    }
}

impl Backend for Fixture {
    fn about(&self) -> ServerInfo {
        ServerInfo { name: "conformance-server".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned(), instructions: None }
    }

    fn capabilities(&self, era: Era) -> Value {
        let mut all = json!({
            "tools": {"listChanged": true},
            "prompts": {"listChanged": true},
            "resources": {"listChanged": true, "subscribe": true},
            "completions": {},
        });
        if era == Era::Legacy {
            all["logging"] = json!({});
        }
        all
    }

    fn handle(&self, request: ClientRequest) -> BoxFuture<'_, Result<Value, RpcError>> {
        self.answer(request).boxed()
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }
}

/// What a request is refused with that has wrong parameters.
fn invalid(message: impl Into<String>) -> RpcError {
    RpcError { code: CODES.params, message: message.into(), data: None }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok());
    let port: u16 = port.ok_or_else(|| std::io::Error::other("usage: conformance_server PORT"))?;
    let key = helve_mcp::random_id().ok_or_else(|| std::io::Error::other("the system gives no random numbers"))?;
    let fixture = Fixture { changes: broadcast::Sender::new(CHANGES), listed: AtomicBool::new(true), key };
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    Server::new(Arc::new(fixture), ServerOptions::default()).listen(listener, CancellationToken::new()).await
}
