//! Reads and writes tasks in SQLite. The body of a task is written once, when the task is accepted. The state of a task is in columns.

use std::sync::Arc;
use std::time::Duration;

use helve_core::store::{Consent, NewTask, Rows, Task, TaskFilter, TaskState};
use helve_core::{CallId, Caller, ConversationId, Digest, ToolCall};
use jiff::Timestamp;
use rusqlite::types::FromSql;
use rusqlite::{Params, params};
use serde::{Deserialize, Serialize};

use super::rows::{MAX_INLINE, SqliteRows, engine};
use crate::row::{Result, count, damaged, moment, task_state, to_json};

/// Selects the columns of a task, in the order that [`read`] expects.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, body, state, holder, epoch, attempts, cancelling, heard, late, due, updated, progress, outcome, definition FROM tasks ",
            $rest
        )
    };
}

/// The body of a new task: the fields that never change, without the id and the definition.
#[derive(Serialize)]
struct NewTaskBody<'a> {
    call: &'a ToolCall,
    tool: &'a str,
    caller: &'a Caller,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    sets: &'a [Arc<str>],
    #[serde(skip_serializing_if = "Option::is_none")]
    consent: Option<&'a Consent>,
    idempotent: bool,
    priority: i8,
    max_attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_of: Option<CallId>,
    created: Timestamp,
}

/// The deserialised body of a stored task.
#[derive(Deserialize)]
struct TaskBody {
    call: ToolCall,
    tool: Arc<str>,
    caller: Caller,
    #[serde(default)]
    sets: Arc<[Arc<str>]>,
    consent: Option<Consent>,
    idempotent: bool,
    priority: i8,
    max_attempts: u32,
    retry_of: Option<CallId>,
    created: Timestamp,
}

impl TaskBody {
    fn task(self, definition: Digest) -> Task {
        let task = NewTask {
            call: self.call,
            tool: self.tool,
            definition,
            caller: self.caller,
            sets: self.sets,
            consent: self.consent,
            idempotent: self.idempotent,
            priority: self.priority,
            delay: Duration::ZERO,
            max_attempts: self.max_attempts,
        };
        Task { retry_of: self.retry_of, ..Task::new(task, self.created) }
    }
}

const ADD: &str =
    "INSERT INTO tasks (id, state, rank, due, definition, conversation, epoch, attempts, cancelling, heard, late, updated, body)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, 0, 0, 0, ?7, ?8) ON CONFLICT (id) DO NOTHING";
const PUT: &str = "UPDATE tasks SET state = ?2, rank = ?3, due = ?4, holder = ?5, epoch = ?6, attempts = ?7, cancelling = ?8, heard = ?9,
    late = ?10, updated = ?11, progress = ?12, outcome = ?13 WHERE id = ?1";

pub(super) fn one(rows: &SqliteRows<'_>, task: CallId) -> Result<Option<Task>> {
    Ok(list(rows, select!("WHERE id = ?1"), [task.to_string()])?.pop())
}

pub(super) fn add(rows: &SqliteRows<'_>, task: &Task) -> Result<bool> {
    let text = to_json(&NewTaskBody {
        call: &task.call,
        tool: &task.tool,
        caller: &task.caller,
        sets: &task.sets,
        consent: task.consent.as_ref(),
        idempotent: task.idempotent,
        priority: task.priority,
        max_attempts: task.max_attempts,
        retry_of: task.retry_of,
        created: task.created,
    })?;
    // A large body is written before its row. If the task already exists, no body must be left without a row.
    if text.len() > MAX_INLINE && one(rows, task.id)?.is_some() {
        return Ok(false);
    }
    let body = rows.offload(text)?;
    let row = params![
        task.id.to_string(),
        task.state.name(),
        task.rank(),
        task.due.as_microsecond(),
        task.definition.to_string(),
        task.caller.conversation.map(|id| id.to_string()),
        task.updated.as_microsecond(),
        body,
    ];
    let new = rows.execute(ADD, row)? > 0;
    if new {
        rows.1.insert(&body, task);
    }
    Ok(new)
}

pub(super) fn put(rows: &SqliteRows<'_>, task: &Task) -> Result<()> {
    let row = params![
        task.id.to_string(),
        task.state.name(),
        task.rank(),
        task.due.as_microsecond(),
        task.holder.map(|id| id.to_string()),
        count(task.epoch),
        task.attempts,
        task.cancelling,
        task.read,
        task.late,
        task.updated.as_microsecond(),
        task.progress.as_ref().map(to_json).transpose()?,
        task.outcome.as_ref().map(|outcome| rows.encode(outcome)).transpose()?,
    ];
    if task.state.is_over() {
        rows.1.remove(task.id);
    }
    rows.execute(PUT, row).map(drop)
}

pub(super) fn due(rows: &SqliteRows<'_>, limit: usize, tools: Option<&[Digest]>) -> Result<Vec<Task>> {
    let now = rows.now().as_microsecond();
    match tools {
        None => list(rows, select!("WHERE state = 'queued' AND due <= ?1 ORDER BY rank LIMIT ?2"), params![now, count(limit)]),
        Some(tools) => {
            let sql =
                select!("WHERE state = 'queued' AND due <= ?1 AND definition IN (SELECT value FROM json_each(?3)) ORDER BY rank LIMIT ?2");
            list(rows, sql, params![now, count(limit), to_json(&tools)?])
        }
    }
}

pub(super) fn running(rows: &SqliteRows<'_>) -> Result<Vec<Task>> {
    list(rows, select!("WHERE state = 'running' ORDER BY id"), [])
}

pub(super) fn some(rows: &SqliteRows<'_>, filter: &TaskFilter) -> Result<Vec<Task>> {
    let conversation = filter.conversation.map(|id| id.to_string());
    // Use a separate statement for unread results, so that SQLite uses their index.
    let sql = if filter.unread {
        select!(
            "WHERE heard = 0 AND conversation IS NOT NULL AND state <> 'queued' AND state <> 'running' AND (?1 IS NULL OR state = ?1)
            AND (?2 IS NULL OR conversation = ?2) ORDER BY id DESC LIMIT ?3"
        )
    } else {
        select!("WHERE (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR conversation = ?2) ORDER BY id DESC LIMIT ?3")
    };
    list(rows, sql, params![filter.state.map(TaskState::name), conversation, count(filter.limit)])
}

pub(super) fn inbox(rows: &SqliteRows<'_>, conversation: ConversationId) -> Result<Vec<Task>> {
    let sql = select!("WHERE heard = 0 AND conversation = ?1 AND state <> 'queued' AND state <> 'running' ORDER BY updated, id");
    list(rows, sql, [conversation.to_string()])
}

pub(super) fn delete(rows: &SqliteRows<'_>, before: Timestamp) -> Result<usize> {
    rows.execute("DELETE FROM tasks WHERE state NOT IN ('queued', 'running') AND updated < ?1", [before.as_microsecond()])
}

fn list(rows: &SqliteRows<'_>, sql: &str, params: impl Params) -> Result<Vec<Task>> {
    let mut statement = rows.0.prepare_cached(sql).map_err(engine)?;
    let mut found = statement.query(params).map_err(engine)?;
    let mut list = Vec::new();
    while let Some(row) = found.next().map_err(engine)? {
        list.push(read(rows, row)?);
    }
    Ok(list)
}

fn read(rows: &SqliteRows<'_>, row: &rusqlite::Row<'_>) -> Result<Task> {
    let id = text(row, 0)?.unwrap_or_default().parse().map_err(|error| damaged(&error))?;
    let body = text(row, 1)?.unwrap_or_default();
    let mut task = if let Some(task) = rows.1.get(id, body) {
        task
    } else {
        let definition = text(row, 13)?.unwrap_or_default().parse().map_err(|error| damaged(&error))?;
        let task = rows.decode::<TaskBody>(body)?.task(definition);
        rows.1.insert(body, &task);
        task
    };
    task.state = task_state(text(row, 2)?)?;
    task.holder = text(row, 3)?.map(str::parse).transpose().map_err(|error| damaged(&error))?;
    (task.epoch, task.attempts, task.cancelling) = (column::<i64>(row, 4)?.unsigned_abs(), column(row, 5)?, column(row, 6)?);
    (task.read, task.late) = (column(row, 7)?, column(row, 8)?);
    (task.due, task.updated) = (moment(column(row, 9)?)?, moment(column(row, 10)?)?);
    task.progress = text(row, 11)?.map(|text| rows.decode(text)).transpose()?;
    task.outcome = text(row, 12)?.map(|text| rows.decode(text)).transpose()?;
    Ok(task)
}

fn column<T: FromSql>(row: &rusqlite::Row<'_>, index: usize) -> Result<T> {
    row.get(index).map_err(engine)
}

fn text<'a>(row: &'a rusqlite::Row<'_>, index: usize) -> Result<Option<&'a str>> {
    row.get_ref(index).and_then(|value| Ok(value.as_str_or_null()?)).map_err(engine)
}
