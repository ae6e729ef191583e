//! `helve tools call`: one call through all layers, watched by the person who made it.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use helve::{Admission, CallContext, Diagnostic, ErrorKind, Helve, Outcome, Prepared, Question, Status, ToolCall, printable};

use super::{approve, arguments};
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
    if workspace.helve().catalogue().get(&command.name).is_none() {
        workspace.settle();
    }
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
    let outcome = workspace.block_on(settle(call, command.yes, workspace.helve()));
    Ok(show(&outcome, global))
}

async fn settle(call: ToolCall, yes: bool, helve: &Helve) -> Outcome {
    let toolkit = helve.toolkit();
    let (cx, executor) = (CallContext::default(), helve.executor());
    let mut grant = None;
    let mut asked = call;
    loop {
        return match executor.admit(&toolkit, asked, &cx, grant.take()).await {
            Admission::Ready(prepared) => attempt(prepared, &cx, helve).await,
            Admission::Answered(outcome) | Admission::Accepted(outcome) => outcome,
            Admission::Waiting(question) if yes => {
                grant = Some(approve::beforehand(&question));
                asked = question.call;
                continue;
            }
            Admission::Waiting(question) if terminal::can_ask() => {
                grant = Some(approve::ask(&question, helve.redactor(), &mut terminal::ask));
                asked = question.call;
                continue;
            }
            Admission::Waiting(question) => waiting(&question),
        };
    }
}

fn waiting(question: &Question) -> Outcome {
    terminal::error(
        "the call must be approved and there is no terminal to ask on",
        Some("call it again with --yes to approve it; this question is not kept"),
    );
    Outcome { call_id: question.call.id, tool: question.tool.clone(), status: Status::Waiting(question.id), duration: Duration::ZERO }
}

/// Runs the call, shows that it still runs after a second, and cancels it on Ctrl-C.
async fn attempt(prepared: Prepared, cx: &CallContext, helve: &Helve) -> Outcome {
    let begun = Instant::now();
    let name = printable::escape(prepared.entry().name());
    let mut work = std::pin::pin!(helve.executor().attempt(prepared, cx));
    let mut tick = tokio::time::interval_at(tokio::time::Instant::now() + Duration::from_secs(1), Duration::from_millis(200));
    let mut shown = false;
    loop {
        tokio::select! {
            outcome = &mut work => {
                if shown {
                    terminal::progress("");
                }
                return outcome;
            }
            _ = tick.tick(), if terminal::is_watched() => {
                shown = true;
                terminal::progress(&format!("{name} … {:.0} s (Ctrl-C cancels)", begun.elapsed().as_secs_f64()));
            }
            _ = tokio::signal::ctrl_c() => cx.cancelled().cancel(),
        }
    }
}

fn show(outcome: &Outcome, global: &Global) -> ExitCode {
    if global.json {
        terminal::json(serde_json::json!(outcome));
    } else {
        show_to_person(outcome);
    }
    match outcome.status {
        Status::Done(Ok(_)) | Status::Accepted => ExitCode::SUCCESS,
        Status::Done(Err(_)) => ExitCode::FAILURE,
        Status::Waiting(_) => ExitCode::from(WAITING),
    }
}

fn show_to_person(outcome: &Outcome) {
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
            terminal::note(&format!("{} {}", styled(BAD, &format!("{}:", error.kind())), printable::escape(error.message())));
            if let Some(hint) = hint(error.kind(), &outcome.tool) {
                terminal::note(&format!("{} {}", styled(CAREFUL, "hint:"), printable::escape(&hint)));
            }
        }
        Status::Accepted => terminal::print(&format!("{} as task {}", styled(GOOD, "accepted"), outcome.call_id)),
        Status::Waiting(approval) => terminal::print(&format!("{} for approval {approval}", styled(CAREFUL, "waiting"))),
    }
}

/// What a person can do about an error that the tool itself cannot explain.
fn hint(kind: ErrorKind, tool: &str) -> Option<String> {
    match kind {
        ErrorKind::UnknownTool => Some("`helve tools` lists all tools".to_owned()),
        ErrorKind::InvalidParameters => Some(format!("`helve tools show {tool}` describes the arguments")),
        ErrorKind::InvalidOutput => Some("the tool breaks its own promise; tell its author".to_owned()),
        _ => None,
    }
}
