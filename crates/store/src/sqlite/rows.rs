//! Rows in SQLite. What is looked for has columns; everything else is one JSON text.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use helve_core::store::{Approval, ConversationRecord, Rows, RunRecord, RunState, Task};
use helve_core::{ApprovalId, CallId, ConversationId, Digest, Event, HolderId, Message, RunId, StoreError};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, Params, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::clock;
use super::known::Known;
use super::process::Process;
use super::{place, tasks};

type Row<T> = Result<T, StoreError>;

/// Open requests that end by themselves: at a time, or with the process that waits for the answer.
const MAY_BE_OVER: &str = "SELECT body FROM approvals WHERE state = 'pending' AND (expires IS NOT NULL OR asker IS NOT NULL) ORDER BY id";

/// Rows inside one transaction.
pub(super) struct SqliteRows<'a>(pub(super) &'a Connection, pub(super) &'a Known);

/// What the engine's failure means.
pub(super) fn engine(error: &rusqlite::Error) -> StoreError {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    match error.sqlite_error_code() {
        Some(DatabaseCorrupt | NotADatabase) => StoreError::Damaged(error.to_string()),
        _ => StoreError::Unavailable(error.to_string()),
    }
}

pub(super) fn text(value: &impl Serialize) -> Row<String> {
    serde_json::to_string(value).map_err(|error| StoreError::Conflict(format!("it cannot be written as JSON: {error}")))
}

/// Larger rows lie beside the table, so that lists and indexes stay small. In the row stands this mark and their digest; no JSON text begins so.
pub(super) const LARGE: usize = 64 << 10;
pub(super) const ELSEWHERE: char = '@';

fn value<T: DeserializeOwned>(text: &str) -> Row<T> {
    serde_json::from_str(text).map_err(|error| StoreError::Damaged(format!("a row cannot be read: {error}")))
}

impl<'a> SqliteRows<'a> {
    pub(super) fn new(connection: &'a Connection, known: &'a Known) -> Self {
        Self(connection, known)
    }

    /// Reads everything as it was at one moment: what is large lies in two tables, and what was said in many rows.
    pub(super) fn at_one_moment<T>(&mut self, read: impl FnOnce(&mut Self) -> Row<T>) -> Row<T> {
        let moment = self.0.unchecked_transaction().map_err(|error| engine(&error))?;
        let value = read(self)?;
        moment.commit().map_err(|error| engine(&error))?;
        Ok(value)
    }

    pub(super) fn execute(&self, sql: &str, params: impl Params) -> Row<usize> {
        self.0.prepare_cached(sql).and_then(|mut statement| statement.execute(params)).map_err(|error| engine(&error))
    }

    /// A row's text, or where it lies if it is large.
    pub(super) fn written(&self, value: &impl Serialize) -> Row<String> {
        self.placed(text(value)?)
    }

    /// The text itself, or where it lies if it is large.
    pub(super) fn placed(&self, text: String) -> Row<String> {
        if text.len() <= LARGE {
            return Ok(text);
        }
        let digest = Digest::of([text.as_bytes()]);
        self.put_body(digest, text.as_bytes(), false)?;
        Ok(format!("{ELSEWHERE}{digest}"))
    }

    /// What a row's text says.
    pub(super) fn understood<T: DeserializeOwned>(&self, body: &str) -> Row<T> {
        let Some(digest) = body.strip_prefix(ELSEWHERE) else { return value(body) };
        let damaged = || StoreError::Damaged(format!("the body {digest} of a row is missing"));
        let bytes = self.body(digest.parse().map_err(|_| damaged())?)?.ok_or_else(damaged)?;
        value(std::str::from_utf8(&bytes).map_err(|_| damaged())?)
    }

    fn one<T: DeserializeOwned>(&self, sql: &str, params: impl Params) -> Row<Option<T>> {
        let read = |mut statement: rusqlite::CachedStatement<'_>| statement.query_row(params, |row| row.get::<_, String>(0)).optional();
        let found = self.0.prepare_cached(sql).and_then(read).map_err(|error| engine(&error))?;
        found.map(|body| self.understood(&body)).transpose()
    }

    fn list<T: DeserializeOwned>(&self, sql: &str, params: impl Params) -> Row<Vec<T>> {
        let mut statement = self.0.prepare_cached(sql).map_err(|error| engine(&error))?;
        let mut rows = statement.query(params).map_err(|error| engine(&error))?;
        let mut list = Vec::new();
        while let Some(row) = rows.next().map_err(|error| engine(&error))? {
            list.push(self.understood(row.get_ref(0).and_then(|body| Ok(body.as_str()?)).map_err(|error| engine(&error))?)?);
        }
        Ok(list)
    }

    pub(super) fn keep_holder(&self, holder: HolderId, lease: Duration) -> Row<()> {
        let until = clock::since_boot().saturating_add(i64::try_from(lease.as_millis()).unwrap_or(i64::MAX));
        let sql = "INSERT INTO holders (id, boot, until, namespace, process, started) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            ON CONFLICT (id) DO UPDATE SET boot = ?2, until = ?3";
        let this = Process::this();
        let (namespace, number, started) = match &this {
            Some(this) => (Some(&this.namespace), Some(this.number), Some(&this.started)),
            None => (None, None, None),
        };
        self.execute(sql, params![holder.to_string(), clock::boot(), until, namespace, number, started]).map(drop)
    }

    pub(super) fn forget_holder(&self, holder: HolderId) -> Row<()> {
        self.execute("DELETE FROM holders WHERE id = ?1", [holder.to_string()]).map(drop)
    }

    /// This process gives tasks out from now on. Whoever did so before is dead, or gave it up.
    pub(super) fn begin_to_claim(&mut self, holder: HolderId) -> Row<()> {
        self.execute("DELETE FROM holders WHERE claims = 1 AND id <> ?1", [holder.to_string()])?;
        self.execute("UPDATE holders SET claims = 1 WHERE id = ?1", [holder.to_string()]).map(drop)
    }

    pub(super) fn approvals(&self, run: Option<RunId>, open: bool, limit: usize) -> Row<Vec<Approval>> {
        let sql = "SELECT body FROM approvals WHERE (?1 IS NULL OR run = ?1) AND (?2 = 0 OR state = 'pending') ORDER BY id DESC LIMIT ?3";
        self.list(sql, params![run.map(|run| run.to_string()), open, count(limit)])
    }

    pub(super) fn runs(&self, state: Option<RunState>, limit: usize) -> Row<Vec<RunRecord>> {
        let sql = "SELECT body FROM runs WHERE (?1 IS NULL OR state = ?1) ORDER BY id DESC LIMIT ?2";
        self.list(sql, params![state.map(RunState::name), count(limit)])
    }

    pub(super) fn events(&self, run: RunId, after: u64, limit: usize) -> Row<Vec<Event>> {
        let sql = "SELECT body FROM events WHERE run = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
        self.list(sql, params![run.to_string(), i64::try_from(after).unwrap_or(i64::MAX), count(limit)])
    }

    pub(super) fn whole_conversation(&mut self, conversation: ConversationId) -> Row<Option<ConversationRecord>> {
        let Some(mut record) = self.conversation(conversation)? else { return Ok(None) };
        let messages: Vec<Message> =
            self.list("SELECT body FROM messages WHERE conversation = ?1 ORDER BY place", [conversation.to_string()])?;
        record.messages = messages.into_iter().map(Arc::new).collect();
        Ok(Some(record))
    }

    pub(super) fn conversations(&self, limit: usize) -> Row<Vec<ConversationRecord>> {
        self.list("SELECT body FROM conversations ORDER BY updated DESC, id DESC LIMIT ?1", [count(limit)])
    }

    /// Keeps a body: for as long as a row refers to it, or for good.
    pub(super) fn put_body(&self, digest: Digest, bytes: &[u8], for_good: bool) -> Row<()> {
        let sql = "INSERT INTO bodies (digest, kept, bytes) VALUES (?1, ?2, ?3) ON CONFLICT (digest) DO UPDATE SET kept = max(kept, ?2)";
        self.execute(sql, params![digest.to_string(), for_good, bytes]).map(drop)
    }

    pub(super) fn body(&self, digest: Digest) -> Row<Option<Vec<u8>>> {
        let found = self.0.query_row("SELECT bytes FROM bodies WHERE digest = ?1", [digest.to_string()], |row| row.get(0)).optional();
        found.map_err(|error| engine(&error))
    }

    /// Writes a copy of everything into a new file.
    pub(super) fn copy_to(&self, file: &Path) -> Row<()> {
        let file = place::prepare_copy(file)?;
        let copied = match file.to_str() {
            Some(name) => self.execute("VACUUM INTO ?1", [name]).map(drop),
            None => Err(StoreError::Conflict(format!("the name {} cannot be used", file.display()))),
        };
        if copied.is_err() {
            // An empty file would be taken for a copy.
            let _ = std::fs::remove_file(&file);
        }
        copied
    }

    /// Forgets rows that are older, and what belongs to each of them. Says how many there were.
    fn forget(&self, sql: &str, params: impl Params, parts: &[&str]) -> Row<usize> {
        let mut statement = self.0.prepare_cached(sql).map_err(|error| engine(&error))?;
        let ids = statement.query_map(params, |row| row.get::<_, String>(0)).and_then(Iterator::collect::<Result<Vec<String>, _>>);
        let ids = ids.map_err(|error| engine(&error))?;
        for id in &ids {
            for part in parts {
                self.execute(part, [id])?;
            }
        }
        Ok(ids.len())
    }

    pub(super) fn prune(&self, age: Duration) -> Row<usize> {
        let before = SignedDuration::try_from(age).ok().and_then(|age| self.now().checked_sub(age).ok()).unwrap_or(Timestamp::MIN);
        let mut gone = tasks::forget(self, before)?;
        let before = before.as_millisecond();
        let over = "DELETE FROM runs WHERE state IN ('done', 'failed', 'cancelled') AND updated < ?1 RETURNING id";
        gone += self.forget(over, [before], &["DELETE FROM events WHERE run = ?1", "DELETE FROM snapshots WHERE run = ?1"])?;
        gone += self.execute("DELETE FROM approvals WHERE answered < ?1", [before])?;
        let open: Vec<Approval> = self.list("SELECT body FROM approvals WHERE state = 'pending'", [])?;
        let asked: Vec<ConversationId> = open.iter().filter_map(|approval| approval.request.caller.conversation).collect();
        let silent =
            "DELETE FROM conversations WHERE updated < ?1 AND id NOT IN (SELECT conversation FROM runs WHERE conversation IS NOT NULL)
            AND id NOT IN (SELECT conversation FROM tasks WHERE conversation IS NOT NULL)
            AND id NOT IN (SELECT value FROM json_each(?2)) RETURNING id";
        gone += self.forget(silent, params![before, text(&asked)?], &["DELETE FROM messages WHERE conversation = ?1"])?;
        let referred = ["tasks", "approvals", "runs", "snapshots", "events", "conversations", "messages"]
            .map(|table| format!("SELECT body FROM {table} WHERE body >= '@' AND body < 'A'"))
            .join(" UNION ALL ");
        let referred = format!("{referred} UNION ALL SELECT outcome FROM tasks WHERE outcome >= '@' AND outcome < 'A'");
        self.execute(&format!("DELETE FROM bodies WHERE kept = 0 AND '@' || digest NOT IN ({referred})"), [])?;
        Ok(gone)
    }
}

pub(super) fn count<T: TryInto<i64>>(number: T) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

impl Rows for SqliteRows<'_> {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn task(&mut self, task: CallId) -> Row<Option<Task>> {
        tasks::one(self, task)
    }

    fn add_task(&mut self, task: &Task) -> Row<bool> {
        tasks::add(self, task)
    }

    fn put_task(&mut self, task: &Task) -> Row<()> {
        tasks::put(self, task)
    }

    fn due_tasks(&mut self, limit: usize, tools: Option<&[Digest]>) -> Row<Vec<Task>> {
        tasks::due(self, limit, tools)
    }

    fn running_tasks(&mut self) -> Row<Vec<Task>> {
        tasks::running(self)
    }

    fn approval(&mut self, approval: ApprovalId) -> Row<Option<Approval>> {
        self.one("SELECT body FROM approvals WHERE id = ?1", [approval.to_string()])
    }

    fn put_approval(&mut self, approval: &Approval) -> Row<()> {
        let sql = "INSERT INTO approvals (id, run, state, expires, answered, body, asker) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            ON CONFLICT (id) DO UPDATE SET state = ?3, expires = ?4, answered = ?5, body = ?6, asker = ?7";
        let request = &approval.request;
        let row = params![
            request.id.to_string(),
            request.caller.run.map(|run| run.to_string()),
            approval.state.name(),
            request.expires_at.map(Timestamp::as_millisecond),
            approval.decided_at.map(Timestamp::as_millisecond),
            self.written(approval)?,
            approval.asker.map(|holder| holder.to_string()),
        ];
        self.execute(sql, row).map(drop)
    }

    fn open_approvals(&mut self, run: Option<RunId>) -> Row<Vec<Approval>> {
        match run {
            Some(run) => self.list("SELECT body FROM approvals WHERE state = 'pending' AND run = ?1 ORDER BY id", [run.to_string()]),
            None => self.list(MAY_BE_OVER, []),
        }
    }

    fn run(&mut self, run: RunId) -> Row<Option<RunRecord>> {
        self.one("SELECT body FROM runs WHERE id = ?1", [run.to_string()])
    }

    fn put_run(&mut self, run: &RunRecord) -> Row<()> {
        let sql = "INSERT INTO runs (id, state, updated, body, conversation) VALUES (?1, ?2, ?3, ?4, ?5)
            ON CONFLICT (id) DO UPDATE SET state = ?2, updated = ?3, body = ?4";
        let (id, conversation) = (run.id.to_string(), run.conversation_id.to_string());
        self.execute(sql, params![id, run.state.name(), run.updated.as_millisecond(), self.written(run)?, conversation]).map(drop)
    }

    fn running_runs(&mut self) -> Row<Vec<RunRecord>> {
        self.list("SELECT body FROM runs WHERE state = 'running' ORDER BY id", [])
    }

    fn snapshot(&mut self, run: RunId) -> Row<Option<Value>> {
        self.one("SELECT body FROM snapshots WHERE run = ?1", [run.to_string()])
    }

    fn put_snapshot(&mut self, run: RunId, snapshot: Option<&Value>) -> Row<()> {
        match snapshot {
            Some(snapshot) => {
                let sql = "INSERT INTO snapshots (run, body) VALUES (?1, ?2) ON CONFLICT (run) DO UPDATE SET body = ?2";
                self.execute(sql, params![run.to_string(), self.written(snapshot)?]).map(drop)
            }
            None => self.execute("DELETE FROM snapshots WHERE run = ?1", [run.to_string()]).map(drop),
        }
    }

    fn add_event(&mut self, event: &Event) -> Row<()> {
        let seq = i64::try_from(event.seq).unwrap_or(i64::MAX);
        self.execute(
            "INSERT INTO events (run, seq, body) VALUES (?1, ?2, ?3)",
            params![event.run_id.to_string(), seq, self.written(event)?],
        )
        .map(drop)
    }

    fn conversation(&mut self, conversation: ConversationId) -> Row<Option<ConversationRecord>> {
        self.one("SELECT body FROM conversations WHERE id = ?1", [conversation.to_string()])
    }

    fn put_conversation(&mut self, conversation: &ConversationRecord) -> Row<()> {
        let sql =
            "INSERT INTO conversations (id, updated, body) VALUES (?1, ?2, ?3) ON CONFLICT (id) DO UPDATE SET updated = ?2, body = ?3";
        self.execute(sql, params![conversation.id.to_string(), conversation.updated.as_millisecond(), self.written(conversation)?])
            .map(drop)
    }

    fn add_message(&mut self, conversation: ConversationId, place: usize, message: &Message) -> Row<()> {
        let sql = "INSERT INTO messages (conversation, place, body) VALUES (?1, ?2, ?3)";
        self.execute(sql, params![conversation.to_string(), count(place), self.written(message)?]).map(drop)
    }

    fn is_gone(&mut self, holder: HolderId) -> Row<bool> {
        let sql = "SELECT namespace, process, started FROM holders WHERE id = ?1 AND boot = ?2 AND until > ?3";
        let row = params![holder.to_string(), clock::boot(), clock::since_boot()];
        let process = |row: &rusqlite::Row<'_>| -> rusqlite::Result<Option<Process>> {
            let (namespace, number, started): (Option<String>, Option<u32>, Option<String>) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(namespace.zip(number).zip(started).map(|((namespace, number), started)| Process { namespace, number, started }))
        };
        let found = self.0.prepare_cached(sql).and_then(|mut statement| statement.query_row(row, process).optional());
        Ok(match found.map_err(|error| engine(&error))? {
            None => true,
            Some(process) => process.is_some_and(|process| process.is_gone()),
        })
    }
}
