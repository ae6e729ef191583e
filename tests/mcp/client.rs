//! A client of Helve's MCP server that speaks over stdio, line by line, in either era.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::folder::Project;

/// A client.
pub struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
    /// What every request of the newer era says of the client.
    about: Option<Value>,
    /// What the client was asked.
    pub asked: Vec<Value>,
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client {
    /// One of the older era, who cannot be asked anything.
    pub fn of(project: &Project, options: &[&str]) -> Self {
        let mut client = Self::start(project, options, None);
        client.greet(&json!({}));
        client
    }

    /// One whose user has a name.
    pub fn with_user(project: &Project, options: &[&str], modern: bool) -> Self {
        let able = json!({"elicitation": {}});
        let mut client = Self::start(project, options, modern.then(|| about(&able)));
        if !modern {
            client.greet(&able);
        }
        client
    }

    /// One of the newer era that comes back for tasks.
    pub fn with_tasks(project: &Project, options: &[&str]) -> Self {
        let able = json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
        Self::start(project, options, Some(about(&able)))
    }

    fn start(project: &Project, options: &[&str], about: Option<Value>) -> Self {
        let mut command = project.command(&[&["mcp", "serve", "--stdio"], options].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("helve runs");
        let (input, output) = (child.stdin.take().expect("a pipe"), BufReader::new(child.stdout.take().expect("a pipe")));
        Self { child, input, output, next: 0, about, asked: Vec::new() }
    }

    fn greet(&mut self, able: &Value) {
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": able, "clientInfo": {"name": "assistant", "version": "1"}});
        self.ask("initialize", &hello);
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    pub fn say(&mut self, message: &Value) {
        writeln!(self.input, "{message}").expect("helve reads");
    }

    pub fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let (id, mut params) = (self.next, params.clone());
        if let Some(about) = &self.about {
            params["_meta"] = about.clone();
        }
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        self.answer_to(id)
    }

    /// Waits for an answer. What the user is asked meanwhile, they answer.
    pub fn answer_to(&mut self, id: u64) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("a line") > 0, "helve went away");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["method"] == "elicitation/create" {
                self.asked.push(message["params"].clone());
                self.say(&json!({"jsonrpc": "2.0", "id": message["id"], "result": user()}));
            } else if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    pub fn call(&mut self, tool: &str) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": {"text": "hi"}}))
    }
}

/// What every request of the newer era says of the client.
fn about(able: &Value) -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": able,
        "io.modelcontextprotocol/clientInfo": {"name": "assistant", "version": "1"}})
}

/// What the user answers.
pub fn user() -> Value {
    json!({"action": "accept", "content": {"name": "Ada"}})
}
