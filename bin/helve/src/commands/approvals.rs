//! `helve approvals`: lists, shows and decides approval requests.

use std::process::ExitCode;
use std::sync::Arc;

use helve::id::ApprovalId;
use helve::internal::json::{self, JsonLimits};
use helve::internal::printable;
use helve::permission::{DecideError, Verdict};
use helve::store::{Approval, ApprovalState, DecisionRecord, StoreError};
use serde_json::{Value, json};

use super::runs::when;
use crate::cli::Global;
use crate::cli::store::{Approvals, ApprovalsCommand};
use crate::failure::Failure;
use crate::terminal::table::{Cell, Table};
use crate::terminal::{self, CAREFUL, FAINT, STRONG, styled};
use crate::workspace::Workspace;

/// Maximum number of approval requests to list.
const LISTED: usize = 200;

/// Lists, shows and decides approval requests.
pub fn run(command: &Approvals, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let store = workspace.store(global)?;
    let store = store.inner();
    match &command.command {
        None => list(&workspace.block_on(store.approvals(None, true, LISTED))?, global),
        Some(ApprovalsCommand::List { all }) => list(&workspace.block_on(store.approvals(None, !all, LISTED))?, global),
        Some(ApprovalsCommand::Show { id }) => {
            let found = workspace.block_on(store.approval(*id))?.ok_or_else(|| StoreError::NotFound(format!("approval {id}")))?;
            if global.json { terminal::json(found.for_programs()) } else { show(&found) }
        }
        Some(ApprovalsCommand::Approve { id, always, arguments }) => {
            let arguments = arguments.as_deref().map(read).transpose()?;
            return decide(*id, DecisionRecord { always: *always, arguments, ..decision(Verdict::Approve) }, global, workspace);
        }
        Some(ApprovalsCommand::Deny { id, reason }) => {
            return decide(*id, DecisionRecord { reason: reason.clone(), ..decision(Verdict::Deny) }, global, workspace);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn decision(verdict: Verdict) -> DecisionRecord {
    let by = ["USER", "LOGNAME", "USERNAME"].iter().find_map(helve::internal::environment::var).filter(|name| !name.is_empty());
    DecisionRecord { verdict, by: by.map_or_else(|| Arc::from("user"), Into::into), reason: None, always: false, arguments: None }
}

fn read(text: &str) -> Result<Value, Failure> {
    let value = json::parse(text.as_bytes(), JsonLimits::ARGUMENTS)
        .map_err(|error| Failure::usage(format_args!("the arguments are invalid: {error}")))?;
    if value.is_object() { Ok(value) } else { Err(Failure::usage("the arguments must be a JSON object")) }
}

fn decide(id: ApprovalId, decision: DecisionRecord, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    workspace.store(global)?;
    if decision.arguments.is_some() {
        // The arguments are checked against the tool's schema, and the tool may belong to an MCP server.
        workspace.settle();
    }
    match workspace.block_on(workspace.helve().decide_with(id, decision)) {
        Ok(approval) => {
            let state = approval.state.name();
            global.print(json!({"approval": approval.for_programs()}), &format!("{} {state}", approval.request.tool));
            let next = match (approval.request.caller.run, state) {
                (Some(run), _) => Some(format!("resume the run: helve runs resume {run}")),
                (None, "approved") if approval.asker.is_some() => Some("the client is still connected; the call runs now".to_owned()),
                (None, "approved") => Some("a running worker runs the call; without one: helve worker --until-empty".to_owned()),
                _ => None,
            };
            if let Some(next) = next.filter(|_| !global.json) {
                terminal::note_faintly(&next);
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(DecideError::TooLate(approval)) if approval.asker.is_some() && approval.state == ApprovalState::Cancelled => Err(Failure::new(
            "conflict",
            format_args!("approval request {id} was cancelled: the client that made the call has disconnected"),
        )
        .hint("the client must send the call again")),
        Err(DecideError::TooLate(approval)) => {
            let by = approval.decision.as_ref().map(|decision| format!(" by {}", printable::escape_line(&decision.by))).unwrap_or_default();
            Err(Failure::new("conflict", format_args!("approval request {id} is already {}{by}", approval.state.name())))
        }
        Err(DecideError::Unknown(_)) => Err(StoreError::NotFound(format!("approval {id}")).into()),
        Err(DecideError::Store(error)) => Err(error.into()),
        Err(error) => Err(Failure::new("invalid_parameters", error).hint(format_args!("helve approvals show {id}"))),
    }
}

fn list(approvals: &[Approval], global: &Global) {
    if global.json {
        terminal::json(json!({"approvals": approvals.iter().map(Approval::for_programs).collect::<Vec<_>>()}));
        return;
    }
    if approvals.is_empty() {
        terminal::note("No approvals are pending.");
        return;
    }
    let mut table = Table::new(&["APPROVAL", "STATE", "TOOL", "WHEN", "ARGUMENTS"]);
    for approval in approvals {
        let request = &approval.request;
        table.row(vec![
            Cell::new(&request.id.to_string(), STRONG),
            Cell::new(approval.state.name(), CAREFUL),
            Cell::from(&*request.tool),
            Cell::from(when(request.asked_at).as_str()),
            match &request.input {
                Some(needed) => Cell::from(needed.summary().as_str()),
                None => Cell::from(request.call.arguments.to_string().as_str()),
            },
        ]);
    }
    table.print();
    terminal::note_faintly("show one: helve approvals show ID; decide: helve approvals approve ID, or helve approvals deny ID");
}

fn show(approval: &Approval) {
    let request = &approval.request;
    terminal::print(&format!("{} {}", styled(STRONG, &request.id.to_string()), styled(CAREFUL, approval.state.name())));
    let arguments = serde_json::to_string_pretty(&request.call.arguments).unwrap_or_default();
    terminal::print(&format!("{} {}", printable::escape_line(&request.tool), printable::escape(&arguments)));
    terminal::print(&styled(FAINT, &printable::escape_line(&request.reason)));
    if let Some(needed) = &request.input {
        for request in &needed.requests {
            terminal::print(&printable::escape(&request.message));
            request.url.iter().for_each(|url| terminal::print(&printable::escape_line(url)));
        }
        let schema = serde_json::to_string_pretty(&needed.schema()).unwrap_or_default();
        terminal::print(&format!("{} {}", styled(FAINT, "schema of --arguments:"), printable::escape(&schema)));
    }
    terminal::print(&styled(FAINT, &format!("requested {}", when(request.asked_at))));
    if let Some(decision) = &approval.decision {
        terminal::print(&styled(FAINT, &printable::escape_line(&format!("decided by {}", decision.by))));
    }
}
