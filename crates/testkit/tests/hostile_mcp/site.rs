//! A server over HTTP that says what a test wants, byte for byte.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// One request.
#[derive(Clone)]
pub struct Asked {
    /// The first line and the headers.
    pub head: String,
    /// The message; nothing where there is none.
    pub message: Value,
}

impl Asked {
    pub fn method(&self) -> &str {
        self.message["method"].as_str().unwrap_or_default()
    }

    pub fn is_get(&self) -> bool {
        self.head.starts_with("GET ")
    }

    /// An answer to the request, as a message.
    pub fn result(&self, result: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.message["id"], "result": result})
    }
}

/// What the server does with a request.
pub enum Reply {
    /// A message, with headers of its own.
    Json(Value, &'static str),
    /// These bytes, and then it hangs up.
    Bytes(Vec<u8>),
    /// These bytes, and then the second ones over and over, with a pause between.
    Drip(Vec<u8>, Vec<u8>, Duration),
    /// These bytes, and then the connection breaks.
    Break(Vec<u8>),
}

/// The head of an answer, and the beginning of its body.
pub fn head(first: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {first}\r\n{headers}\r\n\r\n{body}").into_bytes()
}

/// The beginning of a stream of events.
pub fn stream(body: &str) -> Vec<u8> {
    head("200 OK", "Content-Type: text/event-stream\r\nConnection: close", body)
}

/// What a well-behaved server of the older era with one tool says.
pub fn polite(asked: &Asked) -> Reply {
    let result = match asked.method() {
        "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "site"}}),
        "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "well"}]}),
        "notifications/initialized" => return Reply::Bytes(head("202 Accepted", "Content-Length: 0\r\nConnection: close", "")),
        "" if asked.is_get() => return Reply::Bytes(head("405 Method Not Allowed", "Content-Length: 0\r\nConnection: close", "")),
        _ => return Reply::Json(json!({"jsonrpc": "2.0", "id": asked.message["id"], "error": {"code": -32601, "message": "no"}}), ""),
    };
    let session = if asked.method() == "initialize" { "Mcp-Session-Id: one\r\n" } else { "" };
    Reply::Json(asked.result(&result), session)
}

/// A server on this machine. It ends when it is dropped.
pub struct Site {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: JoinHandle<()>,
}

impl Site {
    pub async fn start(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let (asked, script) = (Arc::<Mutex<Vec<Asked>>>::default(), Arc::new(script));
        let noted = asked.clone();
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (script, noted) = (script.clone(), noted.clone());
                tokio::spawn(async move {
                    // A client that hangs up is what many tests are about.
                    let _ = serve(socket, &*script, &noted).await;
                });
            }
        });
        Self { url, asked, task }
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("requests").clone()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut socket: TcpStream, script: &(dyn Fn(&Asked) -> Reply + Send + Sync), noted: &Mutex<Vec<Asked>>) -> std::io::Result<()> {
    while let Some(asked) = read(&mut socket).await? {
        noted.lock().expect("requests").push(asked.clone());
        match script(&asked) {
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
    }
    Ok(())
}

async fn read(socket: &mut TcpStream) -> std::io::Result<Option<Asked>> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if socket.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    while bytes.len() < end + length.unwrap_or(0) {
        if socket.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(Asked { head, message: serde_json::from_slice(&bytes[end..]).unwrap_or_default() }))
}
