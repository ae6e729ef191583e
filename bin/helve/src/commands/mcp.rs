//! `helve mcp`: manages MCP servers, and serves tools over MCP.

mod add;
mod approve;
mod import;
mod list;
mod login;
mod remove;
mod review;
mod serve;

use std::process::ExitCode;

use crate::cli::Global;
use crate::cli::mcp::{Mcp, McpCommand};
use crate::failure::Failure;
use crate::workspace::Workspace;

/// Runs a subcommand.
pub fn run(mcp: &Mcp, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    match &mcp.command {
        None | Some(McpCommand::List) => Ok(list::run(global, workspace)),
        Some(McpCommand::Add(add)) => add::run(add, global, workspace),
        Some(McpCommand::Approve(approve)) => approve::run(approve, global, workspace),
        Some(McpCommand::Remove(remove)) => remove::run(remove, global, workspace),
        Some(McpCommand::Login(login)) => login::run(login, global, workspace),
        Some(McpCommand::Serve(serve)) => serve::run(serve, global, workspace),
        Some(McpCommand::Import(import)) => import::run(import, global, workspace),
    }
}
