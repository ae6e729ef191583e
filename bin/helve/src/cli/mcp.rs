//! Command-line options of `helve mcp`: managing MCP servers, and serving tools over MCP.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Args)]
pub struct Mcp {
    #[command(subcommand)]
    pub command: Option<McpCommand>,
}

impl Mcp {
    /// Returns whether the command works only on files, so that Helve need not connect to servers.
    pub fn needs_no_server(&self) -> bool {
        matches!(self.command, Some(McpCommand::Remove(_) | McpCommand::Import(_)))
    }
}

#[derive(Subcommand)]
pub enum McpCommand {
    /// List the project's MCP servers and their state (the default)
    List,
    /// Add a server: a command or a URL
    #[command(after_help = ADD_HELP)]
    Add(Add),
    /// Remove a server: its file, its approved tools and its login
    Remove(Remove),
    /// Review new and changed tools, and approve them
    Approve(Approve),
    /// Log in to a server (OAuth)
    Login(Login),
    /// Import servers from Claude Desktop, Cursor or VS Code
    #[command(after_help = IMPORT_HELP)]
    Import(Import),
    /// Serve your tools to MCP clients
    #[command(after_help = SERVE_HELP)]
    Serve(Serve),
}

const ADD_HELP: &str = "\
Examples:
  helve mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  helve mcp add time --trusted -- mcp-server-time --local-timezone UTC
  helve mcp add docs --url https://example.com/mcp

Writes tools/mcp/NAME.yaml, connects to the server, and shows its tools for approval.";

#[derive(Args)]
pub struct Add {
    /// Name of the server; also the prefix of its tools' names
    pub name: String,
    /// URL of the server
    #[arg(long, value_name = "URL", conflicts_with = "program")]
    pub url: Option<String>,
    /// HTTP header for every request, as `Name: value`
    #[arg(long, value_name = "HEADER", requires = "url")]
    pub header: Vec<String>,
    /// Environment variable: `NAME` passes it through, `NAME=value` sets it
    #[arg(long, value_name = "VARIABLE", conflicts_with = "url")]
    pub env: Vec<String>,
    /// Prefix of the tools' names; may be empty
    #[arg(long, value_name = "TEXT")]
    pub prefix: Option<String>,
    /// Trust the server's annotations: its read-only tools need no approval
    #[arg(long)]
    pub trusted: bool,
    /// Approve the server's tools without asking
    #[arg(short, long)]
    pub yes: bool,
    /// Command that starts the server, with arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub program: Vec<String>,
}

#[derive(Args)]
pub struct Remove {
    /// Name of the server
    pub name: String,
}

#[derive(Args)]
pub struct Approve {
    /// Name of the server; all servers if omitted
    pub name: Option<String>,
    /// Approve without asking
    #[arg(short, long)]
    pub yes: bool,
}

#[derive(Args)]
pub struct Login {
    /// Name of the server
    pub name: String,
    /// Log out
    #[arg(long)]
    pub forget: bool,
}

const IMPORT_HELP: &str = "\
Examples:
  helve mcp import .cursor/mcp.json
  helve mcp import ~/.config/Claude/claude_desktop_config.json files github

Each server becomes a file in tools/mcp. Secret values are not copied; set them in the environment.";

#[derive(Args)]
pub struct Import {
    /// File; searched in the usual places of these clients if omitted
    pub file: Option<PathBuf>,
    /// Import only these servers
    #[arg(requires = "file")]
    pub names: Vec<String>,
}

const SERVE_HELP: &str = "\
Examples:
  helve mcp serve --stdio
  helve mcp serve --http 127.0.0.1:8931 --set everyday

Over HTTP the path is /mcp. If HELVE_MCP_TOKEN is set, clients must send it as a bearer token; required unless the address is a loopback address.";

#[derive(Args)]
pub struct Serve {
    /// Serve on stdin and stdout (the default)
    #[arg(long, conflicts_with = "http")]
    pub stdio: bool,
    /// Serve over HTTP on this address, such as 127.0.0.1:8931
    #[arg(long, value_name = "ADDR")]
    pub http: Option<String>,
    /// Allowed Host header, besides `allowed_hosts` in helve.yaml; repeatable
    #[arg(long, value_name = "NAME", requires = "http")]
    pub host: Vec<String>,
    /// Serve only the tools of this set; repeatable
    #[arg(long, value_name = "NAME")]
    pub set: Vec<String>,
    /// Also forward resources, prompts, completions and input requests of the project's MCP servers
    #[arg(long)]
    pub gateway: bool,
}
