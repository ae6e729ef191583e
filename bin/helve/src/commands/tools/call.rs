//! `helve tools call`: one call through all layers, watched by the person who made it.

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

use super::approve::AtTerminal;
use super::arguments;
use crate::cli::{Call, Global};
use crate::commands::show_diagnostics;
use crate::failure::Failure;
use crate::terminal::{self, BAD, CAREFUL, FAINT, GOOD, styled};
use crate::workspace::Workspace;

/// The call waits for a person.
const WAITING: u8 = 3;

/// Calls one tool and says what came of it.
pub fn run(command: &Call, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let call = ToolCall::new(command.name.as_str(), arguments::read(&command.arguments)?);
    // Servers that are slow matter only to calls of their tools.
    workspace.settle_for(&command.name);
    // Rules that cannot be read matter to every call; the mistakes of other tools do not matter to this one.
    let settings = |diagnostic: &Diagnostic| diagnostic.file.as_deref().is_some_and(|file| file.starts_with("helve.y"));
    show_diagnostics(
        &workspace
            .helve()
            .project()
            .unwrap_or_default()
            .diagnostics
            .iter()
            .filter(|diagnostic| settings(diagnostic))
            .cloned()
            .collect::<Vec<_>>(),
    );
    let entry = workspace.helve().catalogue().get(&command.name);
    if let Some(entry) = &entry {
        say_what_it_does(entry, &workspace.helve().project().unwrap_or_default());
    }
    if entry.is_some_and(|entry| entry.spec().rules().mode == Mode::Background) {
        workspace.store(global)?;
    }
    let mut outcome = match workspace.block_on(watch(call, command.yes, workspace.helve())) {
        CallState::Over(outcome) => outcome,
        CallState::Waiting(request) => ask_later(*request, global, workspace)?,
    };
    if command.wait && !matches!(outcome.status, Status::Done(_)) {
        let store = workspace.store(global)?;
        let waited = workspace.block_on(wait(&outcome, &store, workspace.helve()));
        workspace.block_on(store.close())?;
        outcome = waited?;
    }
    Ok(show(&outcome, global, workspace.helve()))
}

/// Says what a tool does that waits for trust: the call is consent to that.
fn say_what_it_does(entry: &Entry, report: &ProjectReport) {
    let file = entry.spec().origin().location.as_deref().filter(|file| report.waiting.contains(*file));
    let does = report.capabilities.iter().find(|capability| file == Some(&*capability.file));
    if let Some(does) = does {
        let what = format!("the folder is not trusted with this tool; this call: {}", printable::escape_line(&does.what));
        terminal::note_exactly(&styled(FAINT, &what));
    }
}

/// Makes the call, shows that it still runs after a second, and cancels it on Ctrl-C.
async fn watch(call: ToolCall, yes: bool, helve: &Helve) -> CallState {
    let (toolkit, cx, name) = (helve.toolkit(), CallContext::default(), printable::escape(&call.tool));
    let person = AtTerminal::new(yes, helve.redactor());
    let mut work = std::pin::pin!(helve.executor().call_with(&toolkit, call, &cx, &person));
    let mut tick = tokio::time::interval(Duration::from_millis(200));
    loop {
        tokio::select! {
            biased;
            state = &mut work => {
                person.clear_progress();
                return state;
            }
            _ = tick.tick(), if terminal::is_watched() => person.show_progress(&name),
            _ = tokio::signal::ctrl_c() => cx.cancellation().cancel(),
        }
    }
}

/// Stores a request that cannot be asked here.
fn ask_later(request: ApprovalRequest, global: &Global, workspace: &Workspace) -> Result<Outcome, Failure> {
    let id = request.id;
    workspace.store(global)?;
    let stored = workspace.block_on(workspace.helve().ask_later(request));
    let outcome = stored.map_err(|error| Failure::new(error.kind().name(), error.message()))?;
    terminal::note(&styled(
        FAINT,
        &format!("not a terminal, so the call waits for approval; decide with: helve approvals approve|deny {id}"),
    ));
    Ok(outcome)
}

/// Waits for the end of a call that was put off, and works on it where nobody else does.
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
                // What runs here goes back to the queue where it may run twice, as when a worker ends.
                stop.cancel();
                if works {
                    work.await;
                }
                let next = match outcome.status {
                    Status::Waiting(id) => format!("helve approvals approve|deny {id}"),
                    _ => format!("helve tasks show|cancel {}", outcome.call_id),
                };
                return Err(Failure::interrupted("nobody waits for the call any more; it is kept").hint(next));
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
            // Further lines are set in, so that no tool can write a line that looks like one of Helve's.
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

/// What a person can do about an error that the tool itself cannot explain.
fn hint(kind: ErrorKind, tool: &str, helve: &Helve) -> Option<String> {
    match kind {
        ErrorKind::UnknownTool => {
            let missing = helve.why_missing(tool).map(|(why, next)| format!("{why}; {next}"));
            Some(missing.unwrap_or_else(|| "`helve tools` lists all tools".to_owned()))
        }
        ErrorKind::InvalidParameters => Some(format!("`helve tools show {tool}` describes the arguments")),
        ErrorKind::InvalidOutput => Some("the tool breaks its own promise; tell its author".to_owned()),
        _ => None,
    }
}
