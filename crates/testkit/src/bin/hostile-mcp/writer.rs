//! Writes messages to standard output, including far too large ones.

use std::io::{self, StdoutLock, Write};

use serde_json::{Value, json};

/// Standard output, one message per line.
pub struct Writer(StdoutLock<'static>);

impl Writer {
    pub fn new() -> Self {
        Self(io::stdout().lock())
    }

    /// Writes a message.
    pub fn say(&mut self, message: &Value) -> io::Result<()> {
        self.line(&message.to_string())
    }

    /// Writes a line.
    pub fn line(&mut self, line: &str) -> io::Result<()> {
        self.bytes(line.as_bytes())?;
        self.bytes(b"\n")
    }

    /// Writes bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)?;
        self.0.flush()
    }

    /// Sends the result of a request.
    pub fn answer(&mut self, id: &Value, result: &Value) -> io::Result<()> {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    /// Sends an error response.
    pub fn refuse(&mut self, id: &Value, code: i64, message: &str) -> io::Result<()> {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: &Value) -> io::Result<()> {
        self.say(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    /// Sends a result that is generated while it is written: a head, a repeated part, and a tail.
    pub fn repeat(&mut self, id: &Value, head: &str, again: &str, bytes: usize, tail: &str) -> io::Result<()> {
        self.bytes(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{head}"#).as_bytes())?;
        self.fill(again, bytes)?;
        self.line(&format!("{tail}}}"))
    }

    /// Writes the same text until this many bytes are written.
    pub fn fill(&mut self, again: &str, bytes: usize) -> io::Result<()> {
        let piece = again.repeat((64 << 10) / again.len() + 1);
        for _ in 0..bytes / piece.len() {
            self.0.write_all(piece.as_bytes())?;
        }
        self.bytes(again.repeat(bytes % piece.len() / again.len()).as_bytes())
    }
}
