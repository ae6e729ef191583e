//! An MCP server over HTTP whose bytes a test controls.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use helve_testkit::{RawRequest, RawServer};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// One request.
#[derive(Clone)]
pub struct SiteRequest {
    /// The request as it was sent.
    pub raw: RawRequest,
    /// The body as a message; null if there is none.
    pub message: Value,
}

impl From<RawRequest> for SiteRequest {
    fn from(raw: RawRequest) -> Self {
        Self { message: serde_json::from_str(&raw.body).unwrap_or_default(), raw }
    }
}

impl SiteRequest {
    pub fn method(&self) -> &str {
        self.message["method"].as_str().unwrap_or_default()
    }

    pub fn is_get(&self) -> bool {
        self.raw.line.starts_with("GET ")
    }

    /// A response to the request, as a message.
    pub fn result(&self, result: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.message["id"], "result": result})
    }
}

/// What the server does with a request.
pub enum Reply {
    /// A message, with additional headers.
    Json(Value, &'static str),
    /// These bytes, then the connection closes.
    Bytes(Vec<u8>),
    /// The first bytes, then the second ones over and over, with a pause in between.
    Drip(Vec<u8>, Vec<u8>, Duration),
    /// These bytes, then the connection is reset.
    Break(Vec<u8>),
}

/// The head of a response, and the start of its body.
pub fn head(first: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {first}\r\n{headers}\r\n\r\n{body}").into_bytes()
}

/// The start of an event stream.
pub fn stream(body: &str) -> Vec<u8> {
    head("200 OK", "Content-Type: text/event-stream\r\nConnection: close", body)
}

/// The replies of a well-behaved legacy server with one tool.
pub fn polite(request: &SiteRequest) -> Reply {
    let result = match request.method() {
        "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "site"}}),
        "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "well"}]}),
        "notifications/initialized" => return Reply::Bytes(head("202 Accepted", "Content-Length: 0\r\nConnection: close", "")),
        "" if request.is_get() => return Reply::Bytes(head("405 Method Not Allowed", "Content-Length: 0\r\nConnection: close", "")),
        _ => return Reply::Json(json!({"jsonrpc": "2.0", "id": request.message["id"], "error": {"code": -32601, "message": "no"}}), ""),
    };
    let session = if request.method() == "initialize" { "Mcp-Session-Id: one\r\n" } else { "" };
    Reply::Json(request.result(&result), session)
}

/// A server on loopback that serves any number of requests per connection. It ends when it is dropped.
pub struct Site {
    pub url: String,
    requests: Arc<Mutex<Vec<SiteRequest>>>,
    _server: RawServer,
}

impl Site {
    pub async fn start(script: impl Fn(&SiteRequest) -> Reply + Send + Sync + 'static) -> Self {
        let (requests, script) = (Arc::<Mutex<Vec<SiteRequest>>>::default(), Arc::new(script));
        let recorded = requests.clone();
        let server = RawServer::start(move |first, stream| {
            let (script, recorded) = (script.clone(), recorded.clone());
            async move {
                // Many tests are about clients that disconnect.
                let _ = serve(first, stream, &*script, &recorded).await;
            }
        })
        .await;
        Self { url: server.url("/mcp"), requests, _server: server }
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<SiteRequest> {
        self.requests.lock().expect("requests").clone()
    }
}

async fn serve(
    first: RawRequest,
    mut socket: TcpStream,
    script: &(dyn Fn(&SiteRequest) -> Reply + Send + Sync),
    recorded: &Mutex<Vec<SiteRequest>>,
) -> std::io::Result<()> {
    let mut next = Some(first);
    while let Some(request) = next {
        let request = SiteRequest::from(request);
        recorded.lock().expect("requests").push(request.clone());
        match script(&request) {
            Reply::Json(message, headers) => {
                let body = message.to_string();
                let headers = format!("{headers}Content-Type: application/json\r\nContent-Length: {}", body.len());
                socket.write_all(&head("200 OK", &headers, &body)).await?;
            }
            Reply::Bytes(bytes) => {
                socket.write_all(&bytes).await?;
                return socket.shutdown().await;
            }
            Reply::Drip(first, again, every) => {
                socket.write_all(&first).await?;
                loop {
                    socket.write_all(&again).await?;
                    tokio::time::sleep(every).await;
                }
            }
            Reply::Break(bytes) => {
                socket.write_all(&bytes).await?;
                socket.flush().await?;
                tokio::time::sleep(Duration::from_millis(50)).await;
                return socket.set_zero_linger();
            }
        }
        next = RawRequest::read(&mut socket).await;
    }
    Ok(())
}
