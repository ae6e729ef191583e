//! `helve runs`: what agents did, and how a run goes on.

use std::process::ExitCode;

use helve::event::{Event, EventData};
use helve::id::{RunId, Timestamp};
use helve::internal::printable;
use helve::store::{RunRecord, RunState};
use serde_json::json;

use crate::cli::records::{Runs, RunsCommand, RunsList};
use crate::cli::{self, Approve, Global};
use crate::failure::Failure;
use crate::table::{Cell, Table, cut};
use crate::terminal::{self, BAD, CAREFUL, FAINT, GOOD, STRONG, styled};
use crate::workspace::Workspace;

/// So many events are read at once.
const PAGE: usize = 1000;

/// Lists, shows, resumes and cancels runs.
pub fn run(command: &Runs, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    match &command.command {
        None => list(&command.list, global, workspace),
        Some(RunsCommand::List(wanted)) => list(wanted, global, workspace),
        Some(RunsCommand::Show { id }) => show(*id, global, workspace),
        Some(RunsCommand::Resume { id }) => {
            let run = cli::Run { prompt: Vec::new(), agent: None, approve: Approve::Ask, resume: Some(*id) };
            super::run::run(&run, global, workspace)
        }
        Some(RunsCommand::Cancel { id }) => cancel(*id, global, workspace),
        Some(RunsCommand::Prune { older_than }) => {
            let store = workspace.store(global)?;
            let count = workspace.block_on(store.prune((*older_than).into()))?;
            say(global, json!({"forgotten": count}), &format!("{count} records forgotten"));
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn say(global: &Global, document: serde_json::Value, words: &str) {
    if global.json { terminal::json(document) } else { terminal::print(words) }
}

fn list(wanted: &RunsList, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let store = workspace.store(global)?;
    let runs = workspace.block_on(store.runs(wanted.state, wanted.limit))?;
    if global.json {
        terminal::json(json!({"runs": runs}));
        return Ok(ExitCode::SUCCESS);
    }
    if runs.is_empty() {
        terminal::note("There are no runs yet. `helve run \"…\"` makes one.");
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["RUN", "STATE", "AGENT", "WHEN", "REQUEST"]);
    for run in &runs {
        table.row(vec![
            Cell::new(&run.id.to_string(), STRONG),
            Cell::new(run.state.name(), style(run.state)),
            Cell::from(run.agent.as_deref().unwrap_or("–")),
            Cell::from(when(run.created).as_str()),
            Cell::from(&*run.input),
        ]);
    }
    table.print();
    Ok(ExitCode::SUCCESS)
}

fn style(state: RunState) -> anstyle::Style {
    match state {
        RunState::Done => GOOD,
        RunState::Failed => BAD,
        RunState::Waiting | RunState::Ready => CAREFUL,
        RunState::Running | RunState::Cancelled => FAINT,
    }
}

/// A time as a person reads it: to the second, in UTC.
pub fn when(time: Timestamp) -> String {
    time.to_string().get(..19).unwrap_or_default().replace('T', " ")
}

fn show(id: RunId, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let store = workspace.store(global)?;
    let (run, events) = workspace.block_on(async {
        let run = store.run(id).await?.ok_or_else(|| helve::store::StoreError::NotFound(format!("run {id}")))?;
        let mut events: Vec<Event> = Vec::new();
        loop {
            let page = store.events(id, events.last().map_or(0, |event| event.seq), PAGE).await?;
            let over = page.len() < PAGE;
            events.extend(page);
            if over {
                break Ok::<_, helve::store::StoreError>((run, events));
            }
        }
    })?;
    if global.json {
        terminal::json(json!({"run": run, "events": events}));
        return Ok(ExitCode::SUCCESS);
    }
    headline(&run);
    for event in &events {
        let since = event.time.duration_since(run.created).as_secs_f64();
        let (what, more) = describe(&event.data);
        let more = cut(&printable::escape_line(&more), terminal::width().saturating_sub(36).max(20));
        terminal::print(&format!("{} {} {more}", styled(FAINT, &format!("{since:>8.2}s")), styled(STRONG, &format!("{what:<18}"))));
    }
    if matches!(run.state, RunState::Ready | RunState::Waiting) {
        terminal::note(&styled(FAINT, &format!("go on with it: helve runs resume {id}")));
    }
    Ok(ExitCode::SUCCESS)
}

fn headline(run: &RunRecord) {
    let agent = run.agent.as_deref().unwrap_or("an agent");
    let line = format!("{} {} by {agent} with {}", run.id, styled(style(run.state), run.state.name()), run.model);
    terminal::print(&line);
    terminal::print(&styled(FAINT, &format!("{} · {}", when(run.created), printable::escape_line(&run.input))));
}

/// An event in a word, and what matters of it.
fn describe(data: &EventData) -> (&'static str, String) {
    match data {
        EventData::RunStarted { input, .. } => ("run started", input.to_string()),
        EventData::ModelRequested { turn, messages, tools, .. } => {
            ("model asked", format!("turn {turn}, {messages} messages, {tools} tools"))
        }
        EventData::ModelResponded { text, calls, .. } if calls.is_empty() => ("model answered", text.to_string()),
        EventData::ModelResponded { calls, .. } => {
            ("model calls", calls.iter().map(|call| format!("{}({})", call.tool, call.arguments)).collect::<Vec<_>>().join(", "))
        }
        EventData::ToolRequested { tool, arguments, .. } => ("call", format!("{tool}({arguments})")),
        EventData::ToolStart { tool, .. } => ("tool started", tool.to_string()),
        EventData::ToolProgress { message, .. } => ("progress", message.clone()),
        EventData::ToolComplete { outcome, .. } => ("call ended", format!("{}: {}", outcome.tool, outcome.text())),
        EventData::PermissionRequest { tool, reason, approval_id, .. } => ("asked", format!("{tool} ({reason}) {approval_id}")),
        EventData::PermissionResult { decision, by, .. } => ("answered", format!("{decision} by {by}")),
        EventData::TaskAccepted { tool, call_id } => ("task accepted", format!("{tool} {call_id}")),
        EventData::TaskFinished { outcome, .. } => ("task ended", format!("{}: {}", outcome.tool, outcome.text())),
        EventData::StrategyChanged { to, reason, .. } => ("strategy", format!("{to}: {reason}")),
        EventData::Notification { message } => ("note", message.clone()),
        EventData::RunWaiting { approvals } => ("waiting", format!("for {} answers", approvals.len())),
        EventData::RunFinished { text, reason, .. } => ("run ended", format!("{}: {text}", reason.name())),
        EventData::RunFailed { error } => ("run failed", error.message.clone()),
        EventData::ToolsChanged { added, removed } => ("tools changed", format!("{} new, {} gone", added.len(), removed.len())),
        _ => ("event", String::new()),
    }
}

fn cancel(id: RunId, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let store = workspace.store(global)?;
    let state = workspace.block_on(helve::agent::cancel_run(&store, id))?;
    let words = match state {
        RunState::Running => format!("{id} is told to stop"),
        state => format!("{id} is {}", state.name()),
    };
    say(global, json!({"run": {"id": id, "state": state}}), &words);
    Ok(ExitCode::SUCCESS)
}
