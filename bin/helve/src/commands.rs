//! One file for each command.

pub mod agents;
pub mod approvals;
pub mod backup;
pub mod chat;
pub mod completions;
pub mod demo;
pub mod init;
pub mod mcp;
pub mod models;
pub mod parse;
pub mod prompt;
pub mod run;
pub mod runs;
pub mod schema;
pub mod sets;
pub mod tasks;
pub mod tools;
pub mod trust;
pub mod worker;

use std::fmt::Write;

use helve::internal::printable;
use helve::project::{Diagnostic, Severity};

use crate::terminal::{self, BAD, CAREFUL, FAINT, styled};
use crate::workspace::Workspace;

/// Shows what is wrong with a project, on stderr.
fn show_diagnostics(diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        terminal::note(&in_colour(diagnostic));
    }
}

/// Shows what could not be read of a project, on stderr: whoever runs it should know that something is missing.
fn show_errors(workspace: &Workspace) {
    let errors = workspace.diagnostics().into_iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    show_diagnostics(&errors.collect::<Vec<_>>());
    show_withheld(workspace);
}

/// Shows which tools of servers nobody has seen yet, on stderr. That is no mistake, and still something is missing.
fn show_withheld(workspace: &Workspace) {
    for server in workspace.helve().mcp_servers().iter().filter(|server| server.withheld().next().is_some()) {
        let name = printable::escape_line(&server.name);
        let count = match server.withheld().count() {
            1 => "1 tool of the MCP server is".to_owned(),
            count => format!("{count} tools of the MCP server are"),
        };
        let note = format!("{name}: {count} new or changed, and not used");
        terminal::note(&format!(
            "{} {note}\n  {} look at them with `helve mcp approve {name}`",
            styled(CAREFUL, "note:"),
            styled(CAREFUL, "hint:")
        ));
    }
}

/// A diagnostic as a person reads it: what, where, the line, what would be right.
fn in_colour(diagnostic: &Diagnostic) -> String {
    let style = if diagnostic.severity == Severity::Error { BAD } else { CAREFUL };
    let place = diagnostic.file.as_deref().map(|file| {
        let line = diagnostic.line.map(|line| format!(":{line}")).unwrap_or_default();
        format!("{}{line}: ", printable::escape_line(file))
    });
    let mut text = format!(
        "{} {}{}",
        styled(style, &format!("{}:", diagnostic.severity)),
        place.unwrap_or_default(),
        printable::escape_line(&diagnostic.message)
    );
    if let (Some(snippet), Some(line)) = (&diagnostic.snippet, diagnostic.line) {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n  {} {snippet}", styled(FAINT, &format!("{line} |")));
    }
    if let Some(hint) = &diagnostic.hint {
        let _ = write!(text, "\n  {} {}", styled(CAREFUL, "hint:"), printable::escape_line(hint));
    }
    text
}
