//! `helve agents`: lists agents and the tools they may use.

use std::process::ExitCode;

use helve::Helve;
use helve::catalogue::View;
use helve::project::ProjectAgent;
use serde_json::{Value, json};

use super::show_diagnostics;
use crate::cli::Global;
use crate::terminal::table::{Cell, Table};
use crate::terminal::{self, STRONG};
use crate::workspace::Workspace;

/// Lists all agents.
pub fn run(global: &Global, workspace: &Workspace) -> ExitCode {
    let report = workspace.report();
    if global.json {
        let list: Vec<Value> = report.agents.iter().map(|agent| describe(agent, workspace.helve())).collect();
        terminal::json(json!({"agents": list, "diagnostics": report.diagnostics}));
        return ExitCode::SUCCESS;
    }
    let mut table = Table::new(&["NAME", "MODEL", "DESCRIPTION", "TOOLS"]);
    for agent in &report.agents {
        let model = agent.file.model.as_deref().unwrap_or("default");
        let tools = tools(agent, workspace.helve()).join(", ");
        table.row(vec![
            Cell::new(&agent.file.name, STRONG),
            Cell::from(model),
            Cell::from(agent.file.description.as_str()),
            Cell::from(tools.as_str()),
        ]);
    }
    if report.agents.is_empty() {
        terminal::note("No agents: add one in agents/*.yaml, or create a sample project with `helve init`.");
    } else {
        table.print();
    }
    show_diagnostics(&report.diagnostics);
    ExitCode::SUCCESS
}

fn tools(agent: &ProjectAgent, helve: &Helve) -> Vec<String> {
    let toolkit = helve.catalogue().toolkit(&agent.selection, &View::default()).unwrap_or_default();
    toolkit.list().map(|entry| entry.name().to_string()).collect()
}

fn describe(agent: &ProjectAgent, helve: &Helve) -> Value {
    let file = &agent.file;
    json!({
        "name": file.name,
        "description": file.description,
        "model": file.model,
        "tools": tools(agent, helve),
        "tool_sets": file.tool_sets,
        "subagents": file.subagents,
        "file": agent.location,
    })
}
