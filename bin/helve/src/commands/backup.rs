//! `helve backup`: a copy of the record, made while it is used.

use std::path::Path;
use std::process::ExitCode;

use helve::internal::printable;
use serde_json::json;

use crate::cli::Global;
use crate::failure::Failure;
use crate::terminal;
use crate::workspace::Workspace;

/// Copies the record into a new file.
pub fn run(file: &Path, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let record = workspace.record(global)?;
    workspace.block_on(record.store().backup(file))?;
    let name = file.display().to_string();
    if global.json {
        terminal::json(json!({"file": name}));
    } else {
        terminal::print(&format!("copied to {}", printable::escape_line(&name)));
    }
    Ok(ExitCode::SUCCESS)
}
