//! `helve tools check`: loads the project and reports errors and warnings.

use std::process::ExitCode;

use helve::project::Severity;
use serde_json::json;

use crate::cli::Global;
use crate::commands::in_colour;
use crate::terminal::{self, GOOD, counted, styled};
use crate::workspace::Workspace;

/// Prints every diagnostic. Returns a failure if there are errors.
pub fn run(global: &Global, workspace: &Workspace) -> ExitCode {
    let report = workspace.report();
    let errors = report.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
    if global.json {
        terminal::json(json!({"diagnostics": report.diagnostics}));
    } else {
        for diagnostic in &report.diagnostics {
            terminal::print(&in_colour(diagnostic));
        }
        let tools = workspace.helve().catalogue().list().len();
        let sets = workspace.helve().catalogue().sets().len();
        let (agents, warnings) = (report.agents.len(), report.diagnostics.len() - errors);
        let mark = if errors == 0 { styled(GOOD, "✓ ") } else { String::new() };
        let found = [counted(tools, "tool"), counted(sets, "set"), counted(agents, "agent")].join(", ");
        terminal::print(&format!("{mark}{found}; {}, {}", counted(errors, "error"), counted(warnings, "warning")));
    }
    if errors > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
