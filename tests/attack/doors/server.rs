//! Helve as a server that is spoken to in raw bytes, and a server that answers Helve as no proper one does.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use serde_json::{Value, json};

use super::running::{LONGEST, Running};
use crate::folder::Project;

const VERSION: &str = "2026-07-28";

/// `helve mcp serve --http`.
pub struct Served {
    pub address: SocketAddr,
    _process: Running,
}

impl Served {
    pub fn start(project: &Project, arguments: &[&str]) -> Self {
        let mut process = Running::start(&mut project.command(&[&["mcp", "serve", "--http", "127.0.0.1:0"], arguments].concat()));
        let place = process.wait_for("serving MCP at http://", "/mcp");
        Self { address: place.parse().unwrap_or_else(|_| panic!("no address: {place}")), _process: process }
    }

    /// A connection from an address of this machine, as if it were another one.
    pub fn connect(&self, last: u8) -> TcpStream {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let address = self.address;
        // Nothing is driven by the runtime that a test may be in already.
        let connect = move || {
            runtime.block_on(async {
                let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
                socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).expect("an address");
                socket.connect(address).await.and_then(tokio::net::TcpStream::into_std).expect("a connection")
            })
        };
        let stream = thread::spawn(connect).join().expect("a connection");
        stream.set_nonblocking(false).expect("blocking");
        stream.set_read_timeout(Some(LONGEST / 4)).expect("a timeout");
        stream
    }

    /// Sends bytes, and gives the status and all that is said until the server hangs up or the answer is whole.
    pub fn send_from(&self, last: u8, bytes: &str) -> (String, String) {
        let mut stream = self.connect(last);
        stream.write_all(bytes.as_bytes()).expect("a request");
        let mut answer = Vec::new();
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut piece) {
            answer.extend_from_slice(&piece[..count]);
            if is_whole(&answer) && !bytes.contains("transfer-encoding") {
                break;
            }
        }
        let answer = String::from_utf8_lossy(&answer).into_owned();
        (answer.split(' ').nth(1).unwrap_or("nothing").to_owned(), answer)
    }
}

/// Whether an answer with a length has it.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    length.is_some_and(|length| body.len() >= length)
}

/// A call over HTTP, as bytes.
pub fn call(client: &str, tool: &str, arguments: &str) -> String {
    let body = message(1, tool, arguments, client);
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         mcp-protocol-version: {VERSION}\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A call of the newer era. The arguments are taken as they are written.
pub fn message(id: u32, tool: &str, arguments: &str, client: &str) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": client, "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{meta}}}}}"#)
}

/// An MCP server whose calls all have one result, written as it stands.
pub struct StrangeServer(SocketAddr);

impl StrangeServer {
    pub fn start(tools: &[&str], result: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let tools: Vec<Value> =
            tools.iter().map(|name| json!({"name": name, "description": "Does.", "inputSchema": {"type": "object"}})).collect();
        let (tools, result) = (json!({"tools": tools}).to_string(), result.to_owned());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = answer(stream, &tools, &result);
            }
        });
        Self(address)
    }

    /// The file of a project that names it `strange`.
    pub fn file(&self) -> String {
        format!("name: strange\nurl: \"http://{}/mcp\"\n", self.0)
    }
}

/// Answers one request of the older era.
fn answer(stream: TcpStream, tools: &str, result: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let about = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"strange","version":"0"}}"#;
    let said = match message["method"].as_str() {
        Some("initialize") => format!(r#""result":{about}"#),
        Some("tools/list") => format!(r#""result":{tools}"#),
        Some("tools/call") => format!(r#""result":{result}"#),
        _ => r#""error":{"code":-32601,"message":"no such method"}"#.to_owned(),
    };
    let (status, body) = match &message["id"] {
        Value::Null => ("202 Accepted", String::new()),
        id => ("200 OK", format!(r#"{{"jsonrpc":"2.0","id":{id},{said}}}"#)),
    };
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    reader.into_inner().write_all(format!("{head}{body}").as_bytes())
}
