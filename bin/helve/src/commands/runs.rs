//! `helve runs`: lists, shows, resumes, cancels and prunes runs.

use std::process::ExitCode;

use helve::event::{Event, EventData};
use helve::id::{RunId, Timestamp};
use helve::internal::printable;
use helve::store::{RunRecord, RunState};
use serde_json::json;

use crate::cli::store::{Runs, RunsCommand, RunsList};
use crate::cli::{self, Approve, Global};
use crate::failure::Failure;
use crate::terminal::table::{Cell, Table};
use crate::terminal::{self, BAD, CAREFUL, FAINT, GOOD, STRONG, counted, cut, styled};
use crate::workspace::Workspace;

/// Number of events to read at a time.
const PAGE: usize = 1000;

/// Lists, shows, resumes, cancels and prunes runs.
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
            global.print(json!({"forgotten": count}), &format!("deleted {}", counted(count, "record")));
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn list(wanted: &RunsList, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let store = workspace.store(global)?;
    let runs = workspace.block_on(store.runs(wanted.state, wanted.limit))?;
    if global.json {
        terminal::json(json!({"runs": runs}));
        return Ok(ExitCode::SUCCESS);
    }
    if runs.is_empty() {
        terminal::note("No runs. `helve run \"…\"` starts one.");
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

/// Formats a time in UTC, to the second.
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
        terminal::note_faintly(&format!("resume the run: helve runs resume {id}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn headline(run: &RunRecord) {
    let agent = run.agent.as_deref().unwrap_or("an agent");
    let line = format!("{} {} by {agent} with {}", run.id, styled(style(run.state), run.state.name()), run.model);
    terminal::print(&line);
    terminal::print(&styled(FAINT, &format!("{} · {}", when(run.created), printable::escape_line(&run.input))));
}

/// Returns the label of an event, and its main content.
fn describe(data: &EventData) -> (&'static str, String) {
    match data {
        EventData::RunStarted { input, .. } => ("run started", input.to_string()),
        EventData::ModelRequested { turn, messages, tools, .. } => {
            ("model requested", format!("turn {turn}, {}, {}", counted(*messages, "message"), counted(*tools, "tool")))
        }
        EventData::ModelResponded { text, calls, .. } if calls.is_empty() => ("model responded", text.to_string()),
        EventData::ModelResponded { calls, .. } => {
            ("model calls", calls.iter().map(|call| format!("{}({})", call.tool, call.arguments)).collect::<Vec<_>>().join(", "))
        }
        EventData::ToolRequested { tool, arguments, .. } => ("call", format!("{tool}({arguments})")),
        EventData::ToolStart { tool, .. } => ("tool started", tool.to_string()),
        EventData::ToolProgress { message, .. } => ("progress", message.clone()),
        EventData::ToolComplete { outcome, .. } => ("call ended", format!("{}: {}", outcome.tool, outcome.text())),
        EventData::PermissionRequest { tool, reason, approval_id, .. } => ("approval needed", format!("{tool} ({reason}) {approval_id}")),
        EventData::PermissionResult { decision, by, .. } => ("decision", format!("{decision} by {by}")),
        EventData::TaskAccepted { tool, call_id } => ("task accepted", format!("{tool} {call_id}")),
        EventData::TaskFinished { outcome, .. } => ("task ended", format!("{}: {}", outcome.tool, outcome.text())),
        EventData::StrategyChanged { to, reason, .. } => ("strategy", format!("{to}: {reason}")),
        EventData::Notification { message } => ("note", message.clone()),
        EventData::RunWaiting { approvals } => ("waiting", format!("for {}", counted(approvals.len(), "approval"))),
        EventData::RunFinished { text, reason, .. } => ("run ended", format!("{}: {text}", reason.name())),
        EventData::RunFailed { error } => ("run failed", error.message.clone()),
        EventData::ToolsChanged { added, removed } => ("tools changed", format!("{} added, {} removed", added.len(), removed.len())),
        _ => ("event", String::new()),
    }
}

fn cancel(id: RunId, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let store = workspace.store(global)?;
    let state = workspace.block_on(helve::agent::cancel_run(&store, id))?;
    let words = match state {
        RunState::Running => format!("{id} is being cancelled"),
        state => format!("{id} is {}", state.name()),
    };
    global.print(json!({"run": {"id": id, "state": state}}), &words);
    Ok(ExitCode::SUCCESS)
}
