//! `helve tools`: the catalogue.

use std::process::ExitCode;

use helve::Helve;
use helve::catalogue::{Entry, View};
use helve::permission::Permission;
use serde_json::{Value, json};

use crate::cli::Global;
use crate::commands::show_diagnostics;
use crate::terminal::table::{Cell, Table};
use crate::terminal::{self, BAD, CAREFUL, FAINT, STRONG};
use crate::workspace::Workspace;

/// Prints all tools, and the project's errors and warnings.
pub fn run(global: &Global, workspace: &Workspace) -> ExitCode {
    let diagnostics = workspace.diagnostics();
    let snapshot = workspace.helve().catalogue().snapshot(&View::default());
    if global.json {
        let tools: Vec<Value> = snapshot.iter().map(|entry| describe(entry, workspace.helve())).collect();
        terminal::json(json!({"tools": tools, "diagnostics": diagnostics}));
        return ExitCode::SUCCESS;
    }
    let mut table = Table::new(&["NAME", "SOURCE", "PERMISSION", "MODE", "DESCRIPTION"]);
    for entry in snapshot.iter() {
        let rules = entry.spec().rules();
        let permission = workspace.helve().executor().permission(entry);
        table.row(vec![
            Cell::new(entry.name(), STRONG),
            Cell::new(entry.source().as_str(), FAINT),
            Cell::new(permission.name(), permission_style(permission)),
            rules.mode.name().into(),
            Cell::from(&**entry.spec().description()),
        ]);
    }
    table.print();
    show_diagnostics(&diagnostics);
    ExitCode::SUCCESS
}

/// Returns one tool as JSON.
pub fn describe(entry: &Entry, helve: &Helve) -> Value {
    let spec = entry.spec();
    json!({
        "name": entry.name(),
        "model_name": entry.model_name(),
        "title": spec.title(),
        "description": spec.description(),
        "source": entry.source(),
        "kind": spec.origin().kind,
        "permission": helve.executor().permission(entry),
        "mode": spec.rules().mode,
        "parameters": spec.input().value(),
        "output": spec.output().map(helve::tool::Schema::value),
        "duplicates": entry.duplicates(),
    })
}

pub fn permission_style(permission: Permission) -> anstyle::Style {
    match permission {
        Permission::Auto => anstyle::Style::new(),
        Permission::Confirm => CAREFUL,
        Permission::Deny => BAD,
    }
}
