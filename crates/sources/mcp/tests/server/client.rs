//! A client that writes HTTP byte by byte, so that it can do what no proper client does.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use helve_mcp::server::{Server, ServerOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::backend::Stage;

pub const MODERN: &str = "2026-07-28";
pub const LEGACY: &str = "2025-11-25";

/// Nothing here takes long; what hangs should fail.
pub async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("it hangs")
}

/// A server on a port of its own.
pub struct House {
    pub stage: Arc<Stage>,
    pub address: SocketAddr,
    pub stop: CancellationToken,
    pub running: JoinHandle<std::io::Result<()>>,
}

impl House {
    pub async fn open(options: ServerOptions) -> Self {
        let stage = Stage::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (server, stop) = (Server::new(stage.clone(), options), CancellationToken::new());
        let token = stop.clone();
        let running = tokio::spawn(async move { server.listen(listener, token).await });
        Self { stage, address, stop, running }
    }

    /// Sends a request as it stands, and reads the head of the answer.
    pub async fn send(&self, verb: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let usual = [("host", format!("127.0.0.1:{}", self.address.port())), ("content-length", body.len().to_string())];
        let usual = usual.iter().filter(|(name, _)| !headers.iter().any(|(other, _)| other == name));
        let all = usual.map(|(name, value)| (*name, value.as_str())).chain(headers.iter().copied());
        let head: Vec<_> = all.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = head.concat();
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(format!("{verb} HTTP/1.1\r\n{head}\r\n{body}").as_bytes()).await.unwrap();
        soon(Answer::read(stream)).await
    }

    /// Posts a message with the usual headers and these.
    pub async fn post(&self, headers: &[(&str, &str)], message: &Value) -> Answer {
        let mut all = vec![("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        all.retain(|(name, _)| !headers.iter().any(|(other, _)| other == name));
        all.extend(headers);
        self.send("POST /mcp", &all, &message.to_string()).await
    }

    /// A request of the newer era, with the headers that it must have.
    pub async fn modern(&self, method: &str, params: Value) -> Answer {
        let (headers, message) = modern(1, method, params);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.post(&headers, &message).await
    }

    /// Begins a session of the older era; its id.
    pub async fn session(&self) -> String {
        let answer = self.post(&[], &initialize(LEGACY)).await;
        assert_eq!(answer.status, 200);
        let session = answer.header("mcp-session-id").unwrap().to_owned();
        let done = self.legacy(&session, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        assert_eq!((done.status, done.text().await.as_str()), (202, ""));
        session
    }

    /// A message in a session of the older era.
    pub async fn legacy(&self, session: &str, message: &Value) -> Answer {
        self.post(&[("mcp-session-id", session), ("mcp-protocol-version", LEGACY)], message).await
    }

    /// The stream of a session that belongs to no request.
    pub async fn stream(&self, session: &str, more: &[(&str, &str)]) -> Answer {
        let mut headers = vec![("accept", "text/event-stream"), ("mcp-session-id", session)];
        headers.extend(more);
        self.send("GET /mcp", &headers, "").await
    }
}

/// What the newer era wants in `_meta`.
pub fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// A request of the newer era, and its headers.
pub fn modern(id: i64, method: &str, mut params: Value) -> (Vec<(&'static str, String)>, Value) {
    let mut all = meta();
    for (key, value) in params["_meta"].take().as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    params["_meta"] = all;
    let mut headers = vec![("mcp-protocol-version", MODERN.to_owned()), ("mcp-method", method.to_owned())];
    if let Some(name) = helve_mcp_wire::name_of(method, Some(&params)) {
        headers.push(("mcp-name", name.to_owned()));
    }
    (headers, json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

pub fn initialize(version: &str) -> Value {
    let params = json!({"protocolVersion": version, "capabilities": {"elicitation": {}, "sampling": {}}, "clientInfo": {"name": "test", "version": "0"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

pub fn request(id: i64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub fn call(id: i64, tool: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({"name": tool, "arguments": arguments}))
}

/// An answer whose head was read.
pub struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    reader: BufReader<TcpStream>,
    /// What is left of events that came together.
    rest: String,
}

impl Answer {
    async fn read(stream: TcpStream) -> Self {
        let mut reader = BufReader::new(stream);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).await.unwrap();
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_owned());
        }
        let status = lines.first().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or_default();
        let headers = lines.iter().skip(1).filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
        Self { status, headers, reader, rest: String::new() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    /// The whole body of an answer that is no stream.
    pub async fn text(mut self) -> String {
        let length = self.header("content-length").and_then(|length| length.parse().ok()).unwrap_or_default();
        let mut body = vec![0; length];
        soon(self.reader.read_exact(&mut body)).await.unwrap();
        String::from_utf8(body).unwrap()
    }

    pub async fn json(self) -> Value {
        assert!(!self.is_stream(), "it is a stream");
        let text = self.text().await;
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}"))
    }

    /// The next piece of a stream; nothing at its end.
    pub async fn chunk(&mut self) -> Option<String> {
        let mut size = String::new();
        soon(self.reader.read_line(&mut size)).await.ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        let mut chunk = vec![0; size + 2];
        soon(self.reader.read_exact(&mut chunk)).await.ok()?;
        chunk.truncate(size);
        Some(String::from_utf8(chunk).unwrap()).filter(|chunk| !chunk.is_empty())
    }

    /// The next event of a stream as it stands; comments are passed over.
    pub async fn raw_event(&mut self) -> Option<String> {
        // Signs of life are no events: the whole must not take long.
        soon(self.next_event()).await
    }

    async fn next_event(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.rest.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.rest = rest;
                if !event.starts_with(':') {
                    return Some(event);
                }
                continue;
            }
            let chunk = self.chunk().await?;
            self.rest += &chunk;
        }
    }

    /// The next message of a stream.
    pub async fn event(&mut self) -> Option<Value> {
        let event = self.raw_event().await?;
        let data = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or_else(|| panic!("no data: {event}"));
        Some(serde_json::from_str(data).unwrap())
    }

    /// All messages of a stream, to its end.
    pub async fn events(mut self) -> Vec<Value> {
        assert!(self.is_stream(), "it is no stream: {}", self.status);
        let mut events = Vec::new();
        while let Some(event) = self.event().await {
            events.push(event);
        }
        events
    }
}
