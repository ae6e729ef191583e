//! `helve tasks`: lists, shows, cancels and retries background calls.

use std::process::ExitCode;

use helve::id::CallId;
use helve::internal::printable;
use helve::store::{CancelResult, Store, StoreError, Task, TaskFilter, TaskState};
use serde_json::{Value, json};

use super::runs::when;
use crate::cli::Global;
use crate::cli::store::{Tasks, TasksCommand, TasksList};
use crate::failure::Failure;
use crate::terminal::table::{Cell, Table};
use crate::terminal::{self, BAD, CAREFUL, FAINT, GOOD, STRONG, styled};
use crate::workspace::Workspace;

/// Lists, shows, cancels and retries tasks.
pub fn run(command: &Tasks, global: &Global, workspace: &Workspace) -> Result<ExitCode, Failure> {
    let store = workspace.store(global)?;
    let store = store.inner();
    match &command.command {
        None => list(&workspace.block_on(store.tasks(filter(&command.list)))?, global),
        Some(TasksCommand::List(wanted)) => list(&workspace.block_on(store.tasks(filter(wanted)))?, global),
        Some(TasksCommand::Show { id }) => show(&find(&**store, *id, workspace)?, global),
        Some(TasksCommand::Cancel { id }) => {
            let words = match workspace.block_on(store.cancel_task(*id))? {
                CancelResult::Done => "cancelled".to_owned(),
                CancelResult::Requested => "being cancelled: Helve has asked its worker to stop the task".to_owned(),
                CancelResult::TooLate(state) => {
                    return Err(Failure::new("conflict", format_args!("task {id} has already ended: {}", state.name())));
                }
            };
            global.print(json!({"task": describe(&find(&**store, *id, workspace)?)}), &words);
        }
        Some(TasksCommand::Retry { id }) => {
            let again = workspace.block_on(store.retry_task(*id))?;
            global.print(json!({"task": describe(&again)}), &format!("queued again as {}", again.id));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn filter(wanted: &TasksList) -> TaskFilter {
    TaskFilter::default().state(wanted.state).limit(wanted.limit)
}

fn find(store: &dyn Store, id: CallId, workspace: &Workspace) -> Result<Task, Failure> {
    workspace.block_on(store.task(id))?.ok_or_else(|| StoreError::NotFound(format!("task {id}")).into())
}

/// Returns a task as JSON.
fn describe(task: &Task) -> Value {
    json!({
        "id": task.id,
        "tool": task.tool,
        "state": task.state,
        "arguments": task.call.arguments,
        "attempts": task.attempts,
        "max_attempts": task.max_attempts,
        "priority": task.priority,
        "progress": task.progress,
        "outcome": task.outcome,
        "run_id": task.caller.run,
        "conversation_id": task.caller.conversation,
        "agent": task.caller.agent,
        "retry_of": task.retry_of,
        "created": task.created,
        "due": task.due,
        "updated": task.updated,
    })
}

fn list(tasks: &[Task], global: &Global) {
    if global.json {
        terminal::json(json!({"tasks": tasks.iter().map(describe).collect::<Vec<_>>()}));
        return;
    }
    if tasks.is_empty() {
        terminal::note("No tasks. Calls to tools with `mode: background` become tasks.");
        return;
    }
    let mut table = Table::new(&["TASK", "STATE", "TOOL", "ATTEMPTS", "WHEN", "RESULT"]);
    for task in tasks {
        let result = match (&task.outcome, &task.progress) {
            (Some(outcome), _) => outcome.text().into_owned(),
            (None, Some(progress)) => progress.message.clone(),
            (None, None) => String::new(),
        };
        table.row(vec![
            Cell::new(&task.id.to_string(), STRONG),
            Cell::new(task.state.name(), style(task.state)),
            Cell::from(&*task.tool),
            Cell::from(task.attempts.to_string().as_str()),
            Cell::from(when(task.created).as_str()),
            Cell::from(result.as_str()),
        ]);
    }
    table.print();
    if tasks.iter().any(|task| task.state == TaskState::Queued) {
        terminal::note_faintly("`helve worker --until-empty` runs queued tasks.");
    }
}

fn style(state: TaskState) -> anstyle::Style {
    match state {
        TaskState::Done => GOOD,
        TaskState::Failed | TaskState::Dead => BAD,
        TaskState::Queued => CAREFUL,
        TaskState::Running | TaskState::Cancelled => FAINT,
    }
}

fn show(task: &Task, global: &Global) {
    if global.json {
        terminal::json(describe(task));
        return;
    }
    let line =
        |name: &str, value: &str| terminal::print(&format!("{} {}", styled(FAINT, &format!("{name:<10}")), printable::escape(value)));
    terminal::print(&format!("{} {}", styled(STRONG, &task.id.to_string()), styled(style(task.state), task.state.name())));
    line("tool", &task.tool);
    line("arguments", &task.call.arguments.to_string());
    line("attempts", &format!("{} of {}", task.attempts, task.max_attempts));
    line("accepted", &when(task.created));
    if let Some(run) = task.caller.run {
        line("run", &run.to_string());
    }
    if let Some(progress) = &task.progress {
        line("progress", &progress.message);
    }
    if let Some(outcome) = &task.outcome {
        line("result", &outcome.text());
    }
}
