//! `helve tools`: what there is, what it takes, and what it says.

pub mod approve;
mod arguments;
mod call;
mod check;
pub mod input;
mod list;
mod show;

use std::process::ExitCode;
use std::sync::Arc;

use helve::catalogue::Entry;
use helve::internal::suggest;

use crate::cli::{Global, Tools, ToolsCommand};
use crate::failure::Failure;
use crate::workspace::Workspace;

/// Runs one of the commands about tools.
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
            return Failure::new("unknown_tool", format_args!("there is no tool `{name}` now: {why}")).hint(hint);
        }
        let entries = helve.catalogue().list();
        let hint = match suggest::nearest(name, entries.iter().map(|entry| &**entry.name())) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`helve tools` lists all tools".to_owned(),
        };
        Failure::new("unknown_tool", format_args!("there is no tool `{name}`")).hint(hint)
    })
}
