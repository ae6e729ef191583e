//! A client that knows just enough HTTP to see what was really sent.

use std::time::Duration;

use helve_testkit::{ModelServer, Reply, Script};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The wires, as `question` calls them.
pub const WIRES: [&str; 4] = ["chat", "responses", "anthropic", "gemini"];

/// What came back.
#[derive(Debug)]
pub struct Got {
    pub status: u16,
    /// The head, in lower case.
    pub head: String,
    /// The body as it was cut on the wire; one chunk where it was not.
    pub chunks: Vec<Vec<u8>>,
    /// Whether the body ended as it had promised.
    pub complete: bool,
}

impl Got {
    pub fn bytes(&self) -> Vec<u8> {
        self.chunks.concat()
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.bytes()).expect("a body of text")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes()).expect("a body of JSON")
    }

    /// The events of a stream as pairs of a name and data; what is no JSON is a string.
    pub fn events(&self) -> Vec<(String, Value)> {
        assert!(self.head.contains("content-type: text/event-stream"), "{}", self.head);
        let text = self.text().replace("\r\n", "\n");
        let blocks = text.split("\n\n").filter(|block| block.lines().any(|line| !line.starts_with(':')));
        let event = |block: &str| {
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim_start);
            let data = field("data").unwrap_or_default();
            (field("event").unwrap_or_default().to_owned(), serde_json::from_str(data).unwrap_or_else(|_| json!(data)))
        };
        blocks.map(event).collect()
    }

    /// The data of the events.
    pub fn data(&self) -> Vec<Value> {
        self.events().into_iter().map(|(_, data)| data).collect()
    }
}

/// The path and the body of a plain question.
pub fn question(wire: &str, streaming: bool) -> (String, Value) {
    let messages = json!([{"role": "user", "content": "hello"}]);
    match wire {
        "chat" => ("/v1/chat/completions".into(), json!({"model": "m", "stream": streaming, "messages": messages})),
        "responses" => ("/v1/responses".into(), json!({"model": "m", "stream": streaming, "input": "hello"})),
        "anthropic" => ("/v1/messages".into(), json!({"model": "m", "stream": streaming, "max_tokens": 9, "messages": messages})),
        "gemini" => {
            let method = if streaming { "streamGenerateContent?alt=sse" } else { "generateContent" };
            let contents = json!({"contents": [{"role": "user", "parts": [{"text": "hello"}]}]});
            (format!("/v1beta/models/m:{method}"), contents)
        }
        other => panic!("no wire is called {other}"),
    }
}

/// Asks a server that has this one reply.
pub async fn ask(wire: &str, streaming: bool, reply: Reply) -> Got {
    let server = ModelServer::start(reply).await;
    let (path, body) = question(wire, streaming);
    post(&server, &path, &body).await
}

/// The same, for a stream.
pub async fn stream(wire: &str, reply: Reply) -> Got {
    ask(wire, true, reply).await
}

/// A server with this script, asked once with this body.
pub async fn ask_with(script: impl Into<Script>, path: &str, body: &Value) -> Got {
    post(&ModelServer::start(script).await, path, body).await
}

pub async fn post(server: &ModelServer, path: &str, body: &Value) -> Got {
    send(server, "POST", path, "", &body.to_string()).await
}

/// Sends a request and reads until the connection is closed.
pub async fn send(server: &ModelServer, method: &str, path: &str, headers: &str, body: &str) -> Got {
    let mut connection = open(server, method, path, headers, body).await;
    let mut bytes = Vec::new();
    let read = timeout(Duration::from_secs(20), connection.read_to_end(&mut bytes)).await;
    read.expect("an answer in time").expect("bytes until the end");
    parse(&bytes)
}

/// Sends a request and reads nothing.
pub async fn open(server: &ModelServer, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
    let mut connection = TcpStream::connect(server.origin().trim_start_matches("http://")).await.expect("a connection");
    let length = body.len();
    let request = format!("{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}");
    connection.write_all(request.as_bytes()).await.expect("a request that is sent");
    connection
}

pub fn parse(bytes: &[u8]) -> Got {
    let split = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&bytes[..split]).to_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let body = &bytes[split + 4..];
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    let whole = length.map(|length| (vec![body.to_vec()], body.len() == length));
    let (chunks, complete) = whole.unwrap_or_else(|| dechunk(body));
    Got { status, head, chunks, complete }
}

fn dechunk(mut body: &[u8]) -> (Vec<Vec<u8>>, bool) {
    let mut chunks = Vec::new();
    while let Some(line) = body.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&body[..line]).ok().and_then(|size| usize::from_str_radix(size, 16).ok()).expect("a size");
        if size == 0 {
            return (chunks, true);
        }
        let Some(chunk) = body.get(line + 2..line + 2 + size) else { break };
        chunks.push(chunk.to_vec());
        body = &body[line + 4 + size..];
    }
    (chunks, false)
}
