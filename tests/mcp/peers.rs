//! The servers and clients of others, if they are there.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Names their folder; see `scripts/mcp-peers`.
const VARIABLE: &str = "HELVE_TEST_MCP";

/// Where the servers and clients are.
pub struct Peers(PathBuf);

impl Peers {
    /// Nothing, and a word about it, where they are not installed.
    pub fn find(test: &str) -> Option<Self> {
        let folder = std::env::var_os(VARIABLE);
        if folder.is_none() {
            helve_testkit::skip(test, format!("{VARIABLE} is not set (scripts/mcp-peers prints what it names)"));
        }
        folder.map(|folder| Self(folder.into()))
    }

    /// A file in their folder, which must be there.
    fn file(&self, path: &str) -> String {
        let file = self.0.join(path);
        assert!(file.exists(), "{} is not there: run scripts/mcp-peers", file.display());
        file.to_string_lossy().into_owned()
    }

    /// A package of node, as a command.
    fn node(&self, script: &str) -> Vec<String> {
        vec![self.file("node"), self.file(&format!("node_modules/@modelcontextprotocol/{script}"))]
    }

    /// The server that shows everything which the protocol has; over stdio, or `streamableHttp` or `sse`.
    pub fn everything(&self, transport: &str) -> Vec<String> {
        [self.node("server-everything/dist/index.js"), vec![transport.to_owned()]].concat()
    }

    pub fn filesystem(&self, folder: &str) -> Vec<String> {
        [self.node("server-filesystem/dist/index.js"), vec![folder.to_owned()]].concat()
    }

    pub fn memory(&self) -> Vec<String> {
        self.node("server-memory/dist/index.js")
    }

    pub fn sequential_thinking(&self) -> Vec<String> {
        self.node("server-sequential-thinking/dist/index.js")
    }

    /// One of the servers in Python: `git`, `time` or `fetch`.
    pub fn python_server(&self, name: &str, arguments: &[&str]) -> Vec<String> {
        let program = self.file(&format!("python/bin/mcp-server-{name}"));
        std::iter::once(program).chain(arguments.iter().map(ToString::to_string)).collect()
    }

    pub fn time(&self) -> Vec<String> {
        self.python_server("time", &["--local-timezone", "UTC"])
    }

    /// The official conformance suite.
    pub fn conformance(&self) -> Command {
        command(&self.node("conformance/dist/index.js"))
    }

    /// The command line of the MCP Inspector. It keeps nothing in the home folder.
    pub fn inspector(&self, home: &TempDir) -> Command {
        let mut inspector = command(&self.node("inspector/clients/launcher/build/index.js"));
        inspector.arg("--cli").env("MCP_CATALOG_PATH", home.path().join("catalogue.json"));
        inspector
    }

    /// One of the scripts in `tests/mcp/clients`. Those for node find their packages from a folder that has them.
    pub fn client(&self, script: &str, home: &TempDir) -> Command {
        let clients = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/mcp/clients");
        if script.ends_with("py") {
            let mut client = Command::new(self.file("python/bin/python"));
            client.arg("-B").arg(clients.join(script));
            return client;
        }
        for file in ["walk.mjs", script] {
            std::fs::copy(clients.join(file), home.path().join(file)).expect("a copy");
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(self.file("node_modules"), home.path().join("node_modules")).expect("a link");
        let mut client = Command::new(self.file("node"));
        client.arg(home.path().join(script));
        client
    }
}

fn command(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// The file of a server that is a program and is trusted.
pub fn program(words: &[String]) -> Value {
    json!({"command": words, "trusted": true})
}
