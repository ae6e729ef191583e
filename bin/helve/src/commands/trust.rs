//! `helve trust`: a person decides whether a folder may run what it describes, after seeing it.

use std::process::ExitCode;

use helve::{ProjectReport, Trust, printable};
use serde_json::json;

use crate::cli::{self, Global};
use crate::failure::Failure;
use crate::terminal::{self, CAREFUL, FAINT, GOOD, STRONG, styled};
use crate::workspace::Workspace;

/// Shows what the folder would run and asks.
pub fn run(command: &cli::Trust, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let report = workspace.report();
    let cannot = |error| Failure::new("storage", error);
    if command.revoke {
        let known = workspace.helve().revoke_trust().map_err(cannot)?;
        return Ok(say(global, &report, if known { "not trusted any more" } else { "was not trusted" }, false));
    }
    match report.trust {
        // What is wrong shows when the decision is to be kept.
        None => return workspace.helve().trust().map_err(cannot).map(|()| ExitCode::FAILURE),
        Some(Trust::NotNeeded) => return Ok(say(global, &report, "nothing here would run, so there is nothing to trust", true)),
        Some(Trust::Trusted) => return Ok(say(global, &report, "already trusted", true)),
        Some(Trust::Changed | Trust::Unknown) => {}
    }
    if global.json && !command.yes {
        say(global, &report, "not trusted; look at what would run, then pass --yes", false);
        return Ok(ExitCode::FAILURE);
    }
    if !global.json {
        show(&report);
    }
    if !command.yes && !agreed()? {
        return Err(Failure::new("permission_denied", "the folder is not trusted")
            .hint("its commands can be called by you; agents must ask each time"));
    }
    workspace.helve().trust().map_err(cannot)?;
    Ok(say(global, &report, "trusted", true))
}

fn agreed() -> Result<bool, Failure> {
    if !terminal::can_ask() {
        return Err(Failure::usage("there is no terminal to ask on").hint("look at what would run, then pass --yes"));
    }
    let answer = terminal::ask(&format!("Trust this folder? {}", styled(FAINT, "[y]es / [n]o")));
    Ok(answer.is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes" | "是" | "好")))
}

fn show(report: &ProjectReport) {
    let folder = styled(STRONG, &printable::escape_line(&report.root.display().to_string()));
    if report.trust == Some(Trust::Changed) {
        terminal::note(&styled(CAREFUL, "This folder was trusted before, and has changed."));
    }
    terminal::note(&format!("{folder} would do this on your machine, also when an agent asks:"));
    for runnable in &report.runnables {
        terminal::note_exactly(&format!(
            "  {}  {}",
            styled(STRONG, &printable::escape(&runnable.name)),
            printable::escape_line(&runnable.what)
        ));
        terminal::note(&styled(FAINT, &format!("      {}, {}", printable::escape(&runnable.file), &runnable.digest.to_string()[..16])));
    }
}

fn say(global: &Global, report: &ProjectReport, what: &str, trusted: bool) -> ExitCode {
    if global.json {
        let folder = printable::escape_line(&report.root.display().to_string());
        terminal::json_exactly(json!({"folder": folder, "trusted": trusted, "message": what, "runs": report.runnables}));
    } else {
        terminal::print(&format!("{} {what}", styled(GOOD, &format!("{}:", printable::escape_line(&report.root.display().to_string())))));
    }
    ExitCode::SUCCESS
}
