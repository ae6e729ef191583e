//! What holds for clients of Helve's MCP server: rules for agents, approvals, and that nothing runs which nobody waits for.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::folder::{Project, echo};
use crate::running::until;

/// A client that speaks over stdio, line by line.
struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client {
    fn of(project: &Project, options: &[&str]) -> Self {
        let mut command = project.command(&[&["mcp", "serve", "--stdio"], options].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("helve runs");
        let (input, output) = (child.stdin.take().expect("a pipe"), BufReader::new(child.stdout.take().expect("a pipe")));
        let mut client = Self { child, input, output, next: 0 };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "assistant", "version": "1"}});
        client.ask("initialize", &hello);
        client.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input, "{message}").expect("helve reads");
    }

    fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("a line") > 0, "helve went away");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == id {
                return message;
            }
        }
    }

    fn call(&mut self, tool: &str) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": {"text": "hi"}}))
    }
}

fn questions(project: &Project, state: &str) -> Vec<Value> {
    let all = project.json(&["approvals", "list", "--all", "--json"]);
    all["approvals"].as_array().expect("a list").iter().filter(|approval| approval["state"] == state).cloned().collect()
}

#[test]
fn rules_for_agents_hold_for_clients() {
    let rules = "permissions:\n  - {tool: first, agent: \"*\", permission: deny}\n  - {tool: second, agent: mcp, permission: deny}\n  \
                 - {tool: third, agent: assistant, permission: deny}\n";
    let tools = ["first", "second", "third"].map(|name| (format!("tools/builtin/{name}.yaml"), echo(name)));
    let files: Vec<(&str, &str)> = tools.iter().map(|(path, text)| (path.as_str(), text.as_str())).chain([("helve.yaml", rules)]).collect();
    let project = Project::new(&files);
    assert!(project.run(&["trust", "--yes"]).status.success());
    let mut client = Client::of(&project, &[]);
    for tool in ["first", "second"] {
        let denied = client.call(tool);
        assert_eq!(denied["result"]["isError"], json!(true), "{denied}");
        assert!(denied["result"]["content"][0]["text"].as_str().is_some_and(|text| text.starts_with("permission_denied")), "{denied}");
    }
    let allowed = client.call("third");
    assert_eq!(allowed["result"]["structuredContent"], json!({"text": "hi"}), "what a client calls itself is its own word: {allowed}");
}

#[test]
fn programs_of_a_folder_that_nobody_trusts_wait_for_a_person() {
    let project = Project::new(&[("tools/builtin/shout.yaml", &echo("shout"))]);
    let mut client = Client::of(&project, &[]);
    let call = client.begin("tools/call", &json!({"name": "shout", "arguments": {"text": "hi"}}));
    let asked = until("a question", || questions(&project, "pending").into_iter().next());
    assert_eq!((&asked["tool"], &asked["agent"]), (&json!("shout"), &json!("mcp")));
    // Whoever gives up gets nothing, now or later.
    client.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}}));
    let denied = until("the question is withdrawn", || questions(&project, "denied").into_iter().next());
    assert_eq!(denied["id"], asked["id"]);
    let late = project.run(&["approvals", "approve", asked["id"].as_str().expect("an id")]);
    assert_eq!(late.status.code(), Some(1), "an answer comes too late");
}

#[test]
fn a_tool_that_is_not_there_is_an_error_and_in_a_gateway_a_failed_result() {
    let project = Project::new(&[]);
    let refused = Client::of(&project, &[]).call("nothing");
    assert_eq!(refused["error"]["code"], json!(-32602), "{refused}");
    let failed = Client::of(&project, &["--gateway"]).call("nothing");
    assert_eq!(failed["result"]["isError"], json!(true), "{failed}");
}
