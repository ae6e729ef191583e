//! `helve mcp remove`: a server goes, with all that is kept for it.

use std::process::ExitCode;

use helve::internal::{printable, suggest};
use serde_json::json;

use crate::cli::Global;
use crate::cli::mcp::Remove;
use crate::failure::Failure;
use crate::terminal::{self, GOOD, styled};
use crate::workspace::Workspace;

/// Removes the server's file, and forgets its login and what was agreed to.
pub fn run(command: &Remove, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let helve = workspace.helve();
    let name = &command.name;
    let storage = |error: &dyn std::fmt::Display| Failure::new("storage", error);
    let Some(file) = workspace.block_on(helve.remove_mcp(name)).map_err(|error| storage(&error))? else {
        let names = helve.mcp_names();
        let near = suggest::nearest(name, names.iter().map(String::as_str)).map(|near| format!("did you mean `{near}`?"));
        let hint = near.unwrap_or_else(|| "`helve mcp list` lists them; a file that cannot be read is removed by hand".to_owned());
        return Err(Failure::new("not_found", format_args!("there is no MCP server `{}`", printable::escape_line(name))).hint(hint));
    };
    workspace.block_on(async { helve.reload() }).map_err(|error| storage(&error))?;
    let file = file.strip_prefix(&workspace.report().root).unwrap_or(&file);
    if global.json {
        terminal::json(json!({"server": name, "file": file}));
    } else {
        terminal::print(&format!("{} {}", styled(GOOD, "removed:"), file.display()));
    }
    Ok(ExitCode::SUCCESS)
}
