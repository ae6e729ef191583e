//! `helve trust`: shows what a folder would run, and asks whether to trust it.

use std::process::ExitCode;

use helve::internal::printable;
use helve::project::{Capability, CapabilityChange, FieldChange, ProjectReport, Trust, TrustChanges};
use serde_json::{Value, json};

use crate::cli::{self, Global};
use crate::failure::Failure;
use crate::terminal::language::is_yes;
use crate::terminal::{self, CAREFUL, FAINT, GOOD, STRONG, styled};
use crate::workspace::Workspace;

/// Trusts the folder after asking, or revokes trust.
pub fn run(command: &cli::Trust, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let report = workspace.report();
    if command.revoke {
        let known = workspace.helve().revoke_trust()?;
        return Ok(say(global, &report, if known { "trust revoked" } else { "was not trusted" }, false));
    }
    match report.trust {
        // The stored decisions cannot be read; storing a decision reports why.
        None => return Ok(workspace.helve().trust().map(|()| ExitCode::FAILURE)?),
        Some(Trust::NotNeeded) => return Ok(say(global, &report, "no trust needed: the folder runs nothing", true)),
        Some(Trust::Trusted) => return Ok(say(global, &report, "already trusted", true)),
        Some(Trust::Partly | Trust::Changed | Trust::Unknown) => {}
    }
    if global.json && !command.yes {
        say(global, &report, "not trusted; review what it would run, then pass --yes", false);
        return Ok(ExitCode::FAILURE);
    }
    if !global.json {
        show(&report, workspace)?;
    }
    if !command.yes && !confirmed()? {
        let message = match report.trust {
            Some(Trust::Partly) => "new and changed items stay untrusted; the rest works as before",
            _ => "the folder is not trusted",
        };
        return Err(Failure::new("permission_denied", message)
            .hint("you can call untrusted tools with `helve tools call`; agents need approval for each call"));
    }
    workspace.helve().trust()?;
    Ok(say(global, &report, "trusted", true))
}

fn confirmed() -> Result<bool, Failure> {
    if !terminal::can_ask() {
        return Err(
            Failure::usage("cannot ask: stdin or stderr is not a terminal").hint("review what it would run with --json, then pass --yes")
        );
    }
    let answer = terminal::ask(&format!("Trust this folder? {}", styled(FAINT, "[y]es / [n]o")));
    Ok(answer.is_some_and(|answer| is_yes(&answer)))
}

fn show(report: &ProjectReport, workspace: &Workspace) -> Result<(), Failure> {
    let folder = styled(STRONG, &printable::escape_line(&report.root.display().to_string()));
    let TrustChanges { changed, missing } = workspace.helve().trust_changes()?;
    let again = matches!(report.trust, Some(Trust::Partly | Trust::Changed));
    if again {
        terminal::note(&format!("{folder} {}", styled(CAREFUL, "has changed since you trusted it:")));
    } else {
        terminal::note(&format!("{folder} would do this on your machine, also when an agent calls it:"));
    }
    for (capability, change) in &changed {
        show_one(capability, again.then_some(change));
    }
    for setting in &missing {
        terminal::note(&format!("  {}  {}", name(setting), styled(CAREFUL, "no longer set")));
    }
    let same = report.capabilities.len() - changed.len();
    if same > 0 {
        terminal::note(&styled(FAINT, &format!("  {} unchanged", terminal::counted(same, "other item"))));
    }
    Ok(())
}

fn show_one(capability: &Capability, change: Option<&CapabilityChange>) {
    let line = format!("  {}  {}", name(capability), printable::escape_line(&capability.what));
    if capability.is_setting && change.is_none() && capability.uncovered.is_empty() {
        return terminal::note_exactly(&format!("{line}  {}", styled(FAINT, &format!("({})", printable::escape_line(&capability.file)))));
    }
    terminal::note_exactly(&line);
    let mut files: Vec<&str> = vec![&capability.file];
    files.extend(capability.files.keys().map(String::as_str).filter(|file| *file != capability.file));
    let about = match change {
        None => files.join(", "),
        Some(CapabilityChange::New) => format!("new: {}", files.join(", ")),
        Some(CapabilityChange::Changed { files, .. }) => format!("changed: {}", files.join(", ")),
    };
    terminal::note(&styled(FAINT, &format!("      {}", printable::escape_line(&about))));
    if let Some(CapabilityChange::Changed { fields, .. }) = change {
        fields.iter().for_each(show_field);
    }
    for gap in &capability.uncovered {
        terminal::note(&format!("      {} {}", styled(CAREFUL, "not covered:"), printable::escape_line(gap)));
    }
}

fn show_field(change: &FieldChange) {
    for (mark, value) in [("-", &change.before), ("+", &change.now)] {
        if let Some(value) = value {
            terminal::note_exactly(&format!("        {mark} {}", printable::escape_line(&format!("{}: {value}", change.field))));
        }
    }
}

fn name(capability: &Capability) -> String {
    styled(STRONG, &printable::escape_line(&capability.name))
}

fn say(global: &Global, report: &ProjectReport, what: &str, trusted: bool) -> ExitCode {
    let folder = printable::escape_line(&report.root.display().to_string());
    if global.json {
        let runs: Vec<Value> = report.capabilities.iter().map(|capability| json!(capability)).collect();
        terminal::json_exactly(
            json!({"folder": folder, "trusted": trusted, "message": what, "waiting": if trusted { json!([]) } else { json!(report.waiting) }, "runs": runs}),
        );
    } else {
        terminal::print(&format!("{} {what}", styled(GOOD, &format!("{folder}:"))));
    }
    ExitCode::SUCCESS
}
