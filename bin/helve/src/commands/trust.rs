//! `helve trust`: a person decides whether a folder may do what it describes, after seeing it.

use std::process::ExitCode;

use helve::internal::printable;
use helve::project::{Capability, CapabilityChange, FieldChange, ProjectReport, Trust, TrustChanges};
use serde_json::{Value, json};

use crate::cli::{self, Global};
use crate::failure::Failure;
use crate::terminal::{self, CAREFUL, FAINT, GOOD, STRONG, styled};
use crate::workspace::Workspace;

/// Shows what the folder would do and asks.
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
        Some(Trust::Partly | Trust::Changed | Trust::Unknown) => {}
    }
    if global.json && !command.yes {
        say(global, &report, "not trusted; look at what it would do, then pass --yes", false);
        return Ok(ExitCode::FAILURE);
    }
    if !global.json {
        show(&report, workspace)?;
    }
    if !command.yes && !agreed()? {
        let message = match report.trust {
            Some(Trust::Partly) => "what is new or has changed still waits; the rest works as before",
            _ => "the folder is not trusted",
        };
        return Err(
            Failure::new("permission_denied", message).hint("you can call what waits with `helve tools call`; agents ask each time")
        );
    }
    workspace.helve().trust().map_err(cannot)?;
    Ok(say(global, &report, "trusted", true))
}

fn agreed() -> Result<bool, Failure> {
    if !terminal::can_ask() {
        return Err(Failure::usage("there is no terminal to ask on").hint("look at what it would do, then pass --yes"));
    }
    let answer = terminal::ask(&format!("Trust this folder? {}", styled(FAINT, "[y]es / [n]o")));
    Ok(answer.is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes" | "是" | "好")))
}

fn show(report: &ProjectReport, workspace: &Workspace) -> Result<(), Failure> {
    let folder = styled(STRONG, &printable::escape_line(&report.root.display().to_string()));
    let TrustChanges { changed, missing } = workspace.helve().trust_changes().map_err(|error| Failure::new("storage", error))?;
    let again = matches!(report.trust, Some(Trust::Partly | Trust::Changed));
    if again {
        terminal::note(&format!("{folder} {}", styled(CAREFUL, "has changed since it was trusted:")));
    } else {
        terminal::note(&format!("{folder} would do this on your machine, also when an agent asks:"));
    }
    for (capability, change) in &changed {
        show_one(capability, again.then_some(change));
    }
    for setting in &missing {
        terminal::note(&format!("  {}  {}", name(setting), styled(CAREFUL, "no longer set")));
    }
    let same = report.capabilities.len() - changed.len();
    if same > 0 {
        terminal::note(&styled(FAINT, &format!("  the other {same} as before")));
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
    for (mark, said) in [("-", &change.before), ("+", &change.now)] {
        if let Some(said) = said {
            terminal::note_exactly(&format!("        {mark} {}", printable::escape_line(&format!("{}: {said}", change.field))));
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
