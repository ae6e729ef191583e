//! `helve backup`: a copy of the store, made while it is used.

use std::path::Path;
use std::process::ExitCode;

use helve::internal::printable;
use serde_json::json;

use crate::cli::Global;
use crate::failure::Failure;
use crate::terminal;
use crate::workspace::Workspace;

/// Copies the store into a new file.
pub fn run(file: &Path, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let store = workspace.store(global)?;
    workspace.block_on(store.backup(file))?;
    let name = file.display().to_string();
    if global.json {
        terminal::json(json!({"file": name}));
    } else {
        terminal::print(&format!("copied to {}", printable::escape_line(&name)));
    }
    Ok(ExitCode::SUCCESS)
}
