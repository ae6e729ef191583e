//! `helve tools`: lists, describes, calls and checks tools.

mod approver;
mod arguments;
mod call;
mod check;
mod list;
mod show;

use std::process::ExitCode;
use std::sync::Arc;

use helve::catalogue::Entry;

use crate::cli::{Global, Tools, ToolsCommand};
use crate::failure::Failure;
use crate::workspace::Workspace;

/// Runs a subcommand.
pub fn run(tools: &Tools, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    match &tools.command {
        None | Some(ToolsCommand::List) => Ok(list::run(global, workspace)),
        Some(ToolsCommand::Show { name }) => show::run(name, global, workspace),
        Some(ToolsCommand::Call(call)) => call::run(call, global, workspace),
        Some(ToolsCommand::Check) => Ok(check::run(global, workspace)),
    }
}

fn find(name: &str, workspace: &Workspace) -> Result<Arc<Entry>, Failure> {
    workspace.settle_for(name);
    let helve = workspace.helve();
    helve.catalogue().get(name).ok_or_else(|| {
        if let Some((why, hint)) = helve.why_missing(name) {
            return Failure::new("unknown_tool", format_args!("the tool `{name}` is not available: {why}")).hint(hint);
        }
        let entries = helve.catalogue().list();
        let known = entries.iter().map(|entry| &**entry.name());
        Failure::new("unknown_tool", format_args!("there is no tool `{name}`")).suggest(name, known, "`helve tools` lists all tools")
    })
}
