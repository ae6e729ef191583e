//! What the server says, and ways to say far too much.

use std::io::{self, StdoutLock, Write};

use serde_json::{Value, json};

/// Standard output, where every message is a line.
pub struct Mouth(StdoutLock<'static>);

impl Mouth {
    pub fn new() -> Self {
        Self(io::stdout().lock())
    }

    /// Says one message.
    pub fn say(&mut self, message: &Value) -> io::Result<()> {
        self.line(&message.to_string())
    }

    /// Writes one line, whatever it is.
    pub fn line(&mut self, line: &str) -> io::Result<()> {
        self.bytes(line.as_bytes())?;
        self.bytes(b"\n")
    }

    /// Writes bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)?;
        self.0.flush()
    }

    /// Answers a request.
    pub fn answer(&mut self, id: &Value, result: &Value) -> io::Result<()> {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    /// Refuses a request.
    pub fn refuse(&mut self, id: &Value, code: i64, message: &str) -> io::Result<()> {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
    }

    /// Tells of something.
    pub fn notify(&mut self, method: &str, params: &Value) -> io::Result<()> {
        self.say(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    /// Answers with a result that is written in place: a beginning, the same thing over and over, and an end.
    pub fn repeat(&mut self, id: &Value, head: &str, again: &str, bytes: usize, tail: &str) -> io::Result<()> {
        self.bytes(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{head}"#).as_bytes())?;
        self.fill(again, bytes)?;
        self.line(&format!("{tail}}}"))
    }

    /// Writes the same thing until so many bytes are written.
    pub fn fill(&mut self, again: &str, bytes: usize) -> io::Result<()> {
        let piece = again.repeat((64 << 10) / again.len() + 1);
        for _ in 0..bytes / piece.len() {
            self.0.write_all(piece.as_bytes())?;
        }
        self.bytes(again.repeat(bytes % piece.len() / again.len()).as_bytes())
    }
}
