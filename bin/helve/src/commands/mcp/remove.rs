//! `helve mcp remove`: removes an MCP server.

use std::process::ExitCode;

use helve::internal::printable;
use serde_json::json;

use crate::cli::Global;
use crate::cli::mcp::Remove;
use crate::failure::Failure;
use crate::terminal::{GOOD, styled};
use crate::workspace::Workspace;

/// Removes the server's file, its login and its approved tools.
pub fn run(command: &Remove, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let helve = workspace.helve();
    let name = &command.name;
    let storage = |error: &dyn std::fmt::Display| Failure::new("storage", error);
    let Some(file) = workspace.block_on(helve.remove_mcp(name)).map_err(|error| storage(&error))? else {
        let names = helve.mcp_names();
        let otherwise = "`helve mcp list` lists servers; delete an invalid file by hand";
        return Err(Failure::new("not_found", format_args!("there is no MCP server `{}`", printable::escape_line(name))).suggest(
            name,
            names.iter().map(String::as_str),
            otherwise,
        ));
    };
    workspace.block_on(async { helve.reload() }).map_err(|error| storage(&error))?;
    let file = file.strip_prefix(&workspace.report().root).unwrap_or(&file);
    global.print(json!({"server": name, "file": file}), &format!("{} {}", styled(GOOD, "removed:"), file.display()));
    Ok(ExitCode::SUCCESS)
}
