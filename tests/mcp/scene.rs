//! A project with MCP servers whose tools were agreed to, and Helve in it: as a client of them, or as a server with them behind it.

use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::folder::{Project, stderr};
use crate::running::{Running, until};

/// A project with servers.
pub struct Scene {
    pub project: Project,
    names: Vec<String>,
}

impl Scene {
    pub fn new(files: &[(&str, &str)]) -> Self {
        Self { project: Project::new(files), names: Vec::new() }
    }

    /// Adds a server; its file is JSON, which YAML is too.
    pub fn with(mut self, name: &str, mut file: Value) -> Self {
        file["name"] = json!(name);
        self.project.write(&format!("tools/mcp/{name}.yaml"), file.to_string().as_bytes());
        self.names.push(name.to_owned());
        self
    }

    /// Trusts the folder and agrees to the tools of all servers, however long they take to start.
    pub fn agreed(self) -> Self {
        self.trust();
        for name in &self.names {
            let agreed = self.project.run(&["mcp", "approve", name, "--yes"]);
            assert!(agreed.status.success(), "{name}: {}", stderr(&agreed));
        }
        self
    }

    pub fn trust(&self) {
        let trusted = self.project.run(&["trust", "--yes"]);
        assert!(trusted.status.success(), "{}", stderr(&trusted));
    }

    /// Makes a call that a person has agreed to, and gives its outcome.
    pub fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.project.json(&["tools", "call", "--yes", "--json", tool, &arguments.to_string()])
    }

    /// What a call that goes well says.
    pub fn text(&self, tool: &str, arguments: &Value) -> String {
        let outcome = self.call(tool, arguments);
        assert_eq!(outcome["success"], json!(true), "{tool} {arguments}: {outcome}");
        outcome["text"].as_str().expect("a text").to_owned()
    }

    /// What `helve mcp list` says about a server once it is connected.
    pub fn connected(&self, name: &str) -> Value {
        until("a connection", || Some(self.server(name)).filter(|server| server["connected"] == json!(true)))
    }

    /// What `helve mcp list` says about a server.
    pub fn server(&self, name: &str) -> Value {
        let list = self.project.json(&["mcp", "list", "--json"]);
        let found = list["servers"].as_array().expect("a list").iter().find(|server| server["name"] == name);
        found.unwrap_or_else(|| panic!("{name} is not in {list}")).clone()
    }

    /// The names of the tools that can be called, and what is odd about the project.
    pub fn tools(&self) -> (Vec<String>, String) {
        let list = self.project.json(&["tools", "--json"]);
        let names = list["tools"].as_array().expect("a list").iter().map(|tool| tool["name"].as_str().expect("a name").to_owned());
        (names.collect(), list["diagnostics"].to_string())
    }

    /// Serves the project over HTTP; gives its address.
    pub fn serve(&self, arguments: &[&str]) -> (Running, String) {
        let mut server = Running::start(&mut self.project.command(&[&["mcp", "serve", "--http", "127.0.0.1:0"], arguments].concat()));
        let address = server.wait_for("serving MCP at ", ";");
        (server, address)
    }

    /// The words that serve the project over stdio.
    pub fn stdio(&self) -> Vec<String> {
        let folder = self.project.folder.path().to_string_lossy().into_owned();
        [env!("CARGO_BIN_EXE_helve"), "-C", &folder, "mcp", "serve", "--stdio"].map(str::to_owned).to_vec()
    }

    /// The variables that Helve needs where others start it.
    pub fn variables(&self, command: &mut Command) {
        command.env_remove("HELVE_LOG").env("NO_COLOR", "1").env("HELVE_STATE_DIR", self.project.state.path().join("helve"));
    }

    /// Answers the one question that waits for a person, from beside whoever asked it.
    pub fn approve_what_waits(&self) {
        let id = until("a question", || {
            let list = self.project.json(&["approvals", "--json"]);
            let open = list["approvals"]
                .as_array()
                .unwrap_or_else(|| panic!("no list: {list}"))
                .iter()
                .find(|approval| approval["state"] == "pending");
            open.map(|approval| approval["id"].as_str().expect("an id").to_owned())
        });
        let approved = self.project.run(&["approvals", "approve", &id]);
        assert!(approved.status.success(), "{}", stderr(&approved));
    }
}

/// An empty folder.
pub fn folder() -> TempDir {
    TempDir::new().expect("a folder")
}
