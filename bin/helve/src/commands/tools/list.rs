//! `helve tools`: the catalogue.

use std::process::ExitCode;

use helve::{Entry, Helve, Permission, Snapshot, View};
use serde_json::{Value, json};

use crate::cli::Global;
use crate::table::{Cell, Table};
use crate::terminal::{self, BAD, CAREFUL, FAINT, STRONG};

/// Prints all tools and what is wrong with their sources.
pub fn run(global: &Global, helve: &Helve) -> ExitCode {
    let snapshot = helve.catalogue().snapshot(&View::default());
    let warnings = warnings(&snapshot);
    if global.json {
        let tools: Vec<Value> = snapshot.iter().map(|entry| describe(entry)).collect();
        let diagnostics: Vec<Value> = warnings
            .iter()
            .map(|message| json!({"severity": "warning", "file": null, "line": null, "message": message, "hint": null}))
            .collect();
        terminal::print(&json!({"tools": tools, "diagnostics": diagnostics}).to_string());
        return ExitCode::SUCCESS;
    }
    let mut table = Table::new(&["NAME", "SOURCE", "PERMISSION", "MODE", "DESCRIPTION"]);
    for entry in snapshot.iter() {
        let rules = entry.spec().rules();
        table.row(vec![
            Cell::new(entry.name(), STRONG),
            Cell::new(entry.source().as_str(), FAINT),
            Cell::new(rules.permission.name(), permission_style(rules.permission)),
            rules.mode.name().into(),
            Cell::from(&**entry.spec().description()),
        ]);
    }
    for line in table.lines(terminal::width()) {
        terminal::print(&line);
    }
    for warning in warnings {
        terminal::note(&format!("{} {}", terminal::styled(CAREFUL, "warning:"), helve::printable::escape(&warning)));
    }
    ExitCode::SUCCESS
}

/// One tool in the shape of the contract.
pub fn describe(entry: &Entry) -> Value {
    let spec = entry.spec();
    json!({
        "name": entry.name(),
        "model_name": entry.model_name(),
        "title": spec.title(),
        "description": spec.description(),
        "source": entry.source(),
        "kind": spec.origin().kind,
        "permission": spec.rules().permission,
        "mode": spec.rules().mode,
        "parameters": spec.input().value(),
        "output": spec.output().map(helve::Schema::value),
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

fn warnings(snapshot: &Snapshot) -> Vec<String> {
    let mut warnings = Vec::new();
    for report in snapshot.sources() {
        if let Some(trouble) = &report.trouble {
            warnings.push(format!("source `{}` has no tools now: {trouble}", report.source));
        }
        for displaced in &report.displaced {
            warnings.push(format!(
                "`{}` of `{}` is not used: `{}` already has a tool of this name",
                displaced.name, report.source, displaced.by
            ));
        }
    }
    warnings
}
