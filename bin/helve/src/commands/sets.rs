//! `helve sets`: lists tool sets and their tools.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::show_diagnostics;
use crate::cli::Global;
use crate::terminal::table::{Cell, Table};
use crate::terminal::{self, STRONG};
use crate::workspace::Workspace;

/// Lists all tool sets.
pub fn run(global: &Global, workspace: &Workspace) -> ExitCode {
    let diagnostics = workspace.diagnostics();
    let catalogue = workspace.helve().catalogue();
    let tools =
        |set: &str| -> Vec<String> { catalogue.set(set).unwrap_or_default().iter().map(|entry| entry.name().to_string()).collect() };
    let sets = catalogue.sets();
    if global.json {
        let list: Vec<Value> =
            sets.iter().map(|set| json!({"name": set.name, "description": set.description, "tools": tools(&set.name)})).collect();
        terminal::json(json!({"sets": list, "diagnostics": diagnostics}));
        return ExitCode::SUCCESS;
    }
    let mut table = Table::new(&["NAME", "DESCRIPTION", "TOOLS"]);
    for set in &sets {
        table.row(vec![
            Cell::new(&set.name, STRONG),
            Cell::from(set.description.as_str()),
            Cell::from(tools(&set.name).join(", ").as_str()),
        ]);
    }
    if sets.is_empty() {
        terminal::note("No tool sets: add one in tool_sets/*.yaml, or create a sample project with `helve init`.");
    } else {
        table.print();
    }
    show_diagnostics(&diagnostics);
    ExitCode::SUCCESS
}
