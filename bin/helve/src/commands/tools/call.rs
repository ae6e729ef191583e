//! `helve tools call`: runs one call through all layers.

use std::process::ExitCode;
use std::time::Duration;

use helve::catalogue::Entry;
use helve::executor::CallState;
use helve::internal::printable;
use helve::permission::ApprovalRequest;
use helve::project::{Diagnostic, ProjectReport};
use helve::store::StoreHandle;
use helve::tool::{ErrorKind, Mode, Status};
use helve::{CallContext, CancellationToken, Helve, Outcome, ToolCall};

use super::approver::CallApprover;
use super::arguments;
use crate::cli::{Call, Global};
use crate::commands::show_diagnostics;
use crate::failure::Failure;
use crate::terminal::{self, BAD, CAREFUL, FAINT, GOOD, styled};
use crate::workspace::Workspace;

/// Exit status of a call that waits for approval.
const WAITING: u8 = 3;

/// Calls one tool and prints the result.
pub fn run(command: &Call, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let call = ToolCall::new(command.name.as_str(), arguments::read(&command.arguments)?);
    workspace.settle_for(&command.name);
    let report = workspace.helve().project().unwrap_or_default();
    // Errors in the settings affect every call; errors of other tools do not affect this one.
    let in_settings = |diagnostic: &&Diagnostic| diagnostic.file.as_deref().is_some_and(|file| file.starts_with("helve.y"));
    show_diagnostics(&report.diagnostics.iter().filter(in_settings).cloned().collect::<Vec<_>>());
    let entry = workspace.helve().catalogue().get(&command.name);
    if let Some(entry) = &entry {
        note_untrusted(entry, &report);
    }
    if entry.is_some_and(|entry| entry.spec().rules().mode == Mode::Background) {
        workspace.store(global)?;
    }
    let mut outcome = match workspace.block_on(watch(call, command.yes, workspace.helve())) {
        CallState::Over(outcome) => outcome,
        CallState::Waiting(request) => store_request(*request, global, workspace)?,
    };
    if command.wait && !matches!(outcome.status, Status::Done(_)) {
        let store = workspace.store(global)?;
        let waited = workspace.block_on(wait(&outcome, &store, workspace.helve()));
        workspace.block_on(store.close())?;
        outcome = waited?;
    }
    Ok(show(&outcome, global, workspace.helve()))
}

/// Prints what a call to an untrusted tool does. By typing the command, the person consents to the call.
fn note_untrusted(entry: &Entry, report: &ProjectReport) {
    let file = entry.spec().origin().location.as_deref().filter(|file| report.waiting.contains(*file));
    if let Some(capability) = report.capabilities.iter().find(|capability| file == Some(&*capability.file)) {
        let what = format!("warning: the tool is not trusted; your call runs it anyway: {}", printable::escape_line(&capability.what));
        terminal::note_exactly(&styled(FAINT, &what));
    }
}

/// Runs the call, shows its progress, and cancels it on Ctrl-C.
async fn watch(call: ToolCall, yes: bool, helve: &Helve) -> CallState {
    let (toolkit, cx, name) = (helve.toolkit(), CallContext::default(), printable::escape(&call.tool));
    let approver = CallApprover::new(yes, helve.redactor());
    let mut work = std::pin::pin!(helve.executor().call_with(&toolkit, call, &cx, &approver));
    let mut tick = tokio::time::interval(Duration::from_millis(200));
    loop {
        tokio::select! {
            biased;
            state = &mut work => {
                approver.clear_progress();
                return state;
            }
            _ = tick.tick(), if terminal::is_watched() => approver.show_progress(&name),
            _ = tokio::signal::ctrl_c() => cx.cancellation().cancel(),
        }
    }
}

/// Stores the approval request, because there is no terminal to ask on.
fn store_request(request: ApprovalRequest, global: &Global, workspace: &Workspace) -> Result<Outcome, Failure> {
    let id = request.id;
    workspace.store(global)?;
    let stored = workspace.block_on(workspace.helve().ask_later(request));
    let outcome = stored.map_err(|error| Failure::new(error.kind().name(), error.message()))?;
    terminal::note_faintly(&format!(
        "no terminal to ask on, so the call waits for approval:\n  approve: helve approvals approve {id}\n  \
         deny:    helve approvals deny {id}"
    ));
    Ok(outcome)
}

/// Waits until a background call ends. Runs the call in this process unless another worker does.
async fn wait(outcome: &Outcome, store: &StoreHandle, helve: &Helve) -> Result<Outcome, Failure> {
    let stop = CancellationToken::new();
    let _end = stop.clone().drop_guard();
    let worker = helve.task_worker(store, 1);
    let mut work = std::pin::pin!(worker.run(stop.clone()));
    let mut ended = std::pin::pin!(store.end_of(outcome));
    let mut works = true;
    loop {
        tokio::select! {
            ended = &mut ended => return Ok(ended?),
            () = &mut work, if works => works = false,
            _ = tokio::signal::ctrl_c() => {
                // A task that runs here returns to the queue if it is idempotent, as when a worker stops.
                stop.cancel();
                if works {
                    work.await;
                }
                let next = match outcome.status {
                    Status::Waiting(id) => format!("decide with `helve approvals approve {id}` or `helve approvals deny {id}`"),
                    _ => format!("see `helve tasks show {id}`; stop it with `helve tasks cancel {id}`", id = outcome.call_id),
                };
                return Err(Failure::interrupted("stopped waiting; the call stays in the store").hint(next));
            }
        }
    }
}

fn show(outcome: &Outcome, global: &Global, helve: &Helve) -> ExitCode {
    if global.json {
        terminal::json(serde_json::json!(outcome));
    } else {
        show_to_person(outcome, helve);
    }
    match outcome.status {
        Status::Done(Ok(_)) | Status::Accepted => ExitCode::SUCCESS,
        Status::Done(Err(_)) => ExitCode::FAILURE,
        Status::Waiting(_) => ExitCode::from(WAITING),
    }
}

fn show_to_person(outcome: &Outcome, helve: &Helve) {
    match &outcome.status {
        Status::Done(Ok(output)) => {
            terminal::print(&printable::escape(&output.text));
            if terminal::is_watched() {
                let cached = if output.metadata.contains_key("cached") { ", cached" } else { "" };
                let line = format!("{} in {:.1?}{cached}", printable::escape(&outcome.tool), outcome.duration);
                terminal::note(&format!("{} {}", styled(GOOD, "✓"), styled(FAINT, &line)));
            }
        }
        Status::Done(Err(error)) => {
            // Indents further lines, so that a tool cannot imitate Helve's own output.
            let message = printable::escape(error.message()).replace('\n', "\n  ");
            terminal::note(&format!("{} {message}", styled(BAD, &format!("{}:", error.kind()))));
            if let Some(hint) = hint(error.kind(), &outcome.tool, helve) {
                terminal::note(&format!("{} {}", styled(CAREFUL, "hint:"), printable::escape(&hint)));
            }
        }
        Status::Accepted => terminal::print(&format!("{} as task {}", styled(GOOD, "accepted"), outcome.call_id)),
        Status::Waiting(approval) => terminal::print(&format!("{} for approval {approval}", styled(CAREFUL, "waiting"))),
    }
}

/// Returns a hint for errors that do not come from the tool itself.
fn hint(kind: ErrorKind, tool: &str, helve: &Helve) -> Option<String> {
    match kind {
        ErrorKind::UnknownTool => {
            let missing = helve.why_missing(tool).map(|(why, next)| format!("{why}; {next}"));
            Some(missing.unwrap_or_else(|| "`helve tools` lists all tools".to_owned()))
        }
        ErrorKind::InvalidParameters => Some(format!("`helve tools show {tool}` describes the arguments")),
        ErrorKind::InvalidOutput => Some("the result does not match the tool's output schema; report this to the tool's author".to_owned()),
        _ => None,
    }
}
