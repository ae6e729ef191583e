//! What can be typed about MCP: servers whose tools are used, and the catalogue as a server.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Args)]
pub struct Mcp {
    #[command(subcommand)]
    pub command: Option<McpCommand>,
}

impl Mcp {
    /// Whether it is only about what is written down.
    pub fn needs_no_server(&self) -> bool {
        matches!(self.command, Some(McpCommand::Remove(_) | McpCommand::Import(_)))
    }
}

#[derive(Subcommand)]
pub enum McpCommand {
    /// List the project's MCP servers and how far they are (the default)
    List,
    /// Add a server: a program, or an address
    #[command(after_help = ADD_HELP)]
    Add(Add),
    /// Remove a server: its file, what was agreed to, and the login at its address
    Remove(Remove),
    /// Look at the tools of servers that are new or have changed, and agree to them
    Approve(Approve),
    /// Log in at a server that wants to know who asks
    Login(Login),
    /// Take over servers from the file of another client: Claude Desktop, Cursor, VS Code
    #[command(after_help = IMPORT_HELP)]
    Import(Import),
    /// Serve the catalogue to MCP clients
    #[command(after_help = SERVE_HELP)]
    Serve(Serve),
}

const ADD_HELP: &str = "\
Examples:
  helve mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  helve mcp add time --trusted -- mcp-server-time --local-timezone UTC
  helve mcp add docs --url https://example.com/mcp

The server is written to tools/mcp/NAME.yaml, connected, and its tools are shown before they are used.";

#[derive(Args)]
pub struct Add {
    /// The name of the server; names of its tools begin with it
    pub name: String,
    /// The address of the server
    #[arg(long, value_name = "URL", conflicts_with = "program")]
    pub url: Option<String>,
    /// A header of every request, as `Name: value`
    #[arg(long, value_name = "HEADER", requires = "url")]
    pub header: Vec<String>,
    /// A variable of the program: `NAME` passes one through, `NAME=value` sets it
    #[arg(long, value_name = "VARIABLE", conflicts_with = "url")]
    pub env: Vec<String>,
    /// What the names of its tools begin with; empty for nothing
    #[arg(long, value_name = "TEXT")]
    pub prefix: Option<String>,
    /// Believe what the server says about its tools: those that only read need not be confirmed
    #[arg(long)]
    pub trusted: bool,
    /// Agree to its tools without being asked
    #[arg(short, long)]
    pub yes: bool,
    /// The program that is the server, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub program: Vec<String>,
}

#[derive(Args)]
pub struct Remove {
    /// The server
    pub name: String,
}

#[derive(Args)]
pub struct Approve {
    /// The server; left out, all
    pub name: Option<String>,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
}

#[derive(Args)]
pub struct Login {
    /// The server
    pub name: String,
    /// Forget the login instead
    #[arg(long)]
    pub forget: bool,
}

const IMPORT_HELP: &str = "\
Examples:
  helve mcp import .cursor/mcp.json
  helve mcp import ~/.config/Claude/claude_desktop_config.json files github

Each server becomes a file in tools/mcp. Values of secret variables are not copied: they are read from the environment.";

#[derive(Args)]
pub struct Import {
    /// The file; left out, the places where other clients keep theirs are looked through
    pub file: Option<PathBuf>,
    /// Only these servers
    #[arg(requires = "file")]
    pub names: Vec<String>,
}

const SERVE_HELP: &str = "\
Examples:
  helve mcp serve --stdio
  helve mcp serve --http 127.0.0.1:8931 --set everyday

Over HTTP the path is /mcp. HELVE_MCP_TOKEN, if set, is the bearer token that clients must send; an address that others can reach needs one.";

#[derive(Args)]
pub struct Serve {
    /// Speak on stdin and stdout (the default)
    #[arg(long, conflicts_with = "http")]
    pub stdio: bool,
    /// Listen on an address, such as 127.0.0.1:8931
    #[arg(long, value_name = "ADDR")]
    pub http: Option<String>,
    /// A name by which clients reach this machine, besides those of `allowed_hosts` in helve.yaml
    #[arg(long, value_name = "NAME", requires = "http")]
    pub host: Vec<String>,
    /// Only the tools of this set; may be given several times
    #[arg(long, value_name = "NAME")]
    pub set: Vec<String>,
    /// Also pass on resources, prompts, completion and requests of the servers behind
    #[arg(long)]
    pub gateway: bool,
}
