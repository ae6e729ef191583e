//! The commands, one file for each; and the output of diagnostics, which many of them print.

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

use helve::internal::printable;
use helve::project::{Diagnostic, Severity};

use crate::terminal::{self, BAD, CAREFUL, FAINT, styled};
use crate::workspace::Workspace;

/// Prints errors and warnings of a project on stderr.
fn show_diagnostics(diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        terminal::note(&in_colour(diagnostic));
    }
}

/// Prints the errors of a project on stderr, and tools that are not approved, which the agent cannot use.
fn show_errors(workspace: &Workspace) {
    let errors = workspace.diagnostics().into_iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    show_diagnostics(&errors.collect::<Vec<_>>());
    show_withheld(workspace);
}

/// Prints on stderr which MCP servers have tools that are not approved.
fn show_withheld(workspace: &Workspace) {
    for server in workspace.helve().mcp_servers().iter().filter(|server| server.withheld().next().is_some()) {
        let name = printable::escape_line(&server.name);
        let count = terminal::counted(server.withheld().count(), "new or changed tool");
        terminal::note(&format!(
            "{} MCP server {name}: {count} not approved\n  {} review with `helve mcp approve {name}`",
            styled(CAREFUL, "note:"),
            styled(CAREFUL, "hint:")
        ));
    }
}

/// Formats a diagnostic for people: severity, position, message, the line, and a hint.
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
        text.extend(["\n  ", &styled(FAINT, &format!("{line} |")), " ", snippet]);
    }
    if let Some(hint) = &diagnostic.hint {
        text.extend(["\n  ", &styled(CAREFUL, "hint:"), " ", &printable::escape_line(hint)]);
    }
    text
}
