//! `helve backup`: copies the store while it is in use.

use std::path::Path;
use std::process::ExitCode;

use helve::internal::printable;
use serde_json::json;

use crate::cli::Global;
use crate::failure::Failure;
use crate::workspace::Workspace;

/// Copies the store to a new file.
pub fn run(file: &Path, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let store = workspace.store(global)?;
    workspace.block_on(store.backup(file))?;
    let name = file.display().to_string();
    global.print(json!({"file": name}), &format!("copied to {}", printable::escape_line(&name)));
    Ok(ExitCode::SUCCESS)
}
