//! Reads and writes rows in SQLite. Values that queries search for have columns; everything else is one JSON text.

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

use super::cache::TaskCache;
use super::clock;
use super::process::Process;
use super::{paths, tasks};
use crate::row::{Result, count, from_json, to_json};

/// Selects pending approval requests that may end without a decision: they can expire, or the process that waits for the decision can end.
const MAY_HAVE_ENDED: &str =
    "SELECT body FROM approvals WHERE state = 'pending' AND (expires IS NOT NULL OR asker IS NOT NULL) ORDER BY id";

/// The rows of a database, with a cache of tasks.
pub(super) struct SqliteRows<'a>(pub(super) &'a Connection, pub(super) &'a TaskCache);

/// Converts an error of SQLite.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(super) fn engine(error: rusqlite::Error) -> StoreError {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    match error.sqlite_error_code() {
        Some(DatabaseCorrupt | NotADatabase) => StoreError::Damaged(error.to_string()),
        _ => StoreError::Unavailable(error.to_string()),
    }
}

/// Maximum size of a body in its row, in bytes. Larger bodies are offloaded to the table `bodies`, so that other tables stay small.
pub(super) const MAX_INLINE: usize = 64 << 10;
/// The prefix of the digest that refers to an offloaded body. No JSON text begins with this character.
pub(super) const OFFLOADED: char = '@';

impl SqliteRows<'_> {
    /// Runs `read` in one transaction, so that its results are consistent: a large body is in two tables, and a conversation in many rows.
    pub(super) fn at_one_moment<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let moment = self.0.unchecked_transaction().map_err(engine)?;
        let value = read(self)?;
        moment.commit().map_err(engine)?;
        Ok(value)
    }

    pub(super) fn execute(&self, sql: &str, params: impl Params) -> Result<usize> {
        self.0.prepare_cached(sql).and_then(|mut statement| statement.execute(params)).map_err(engine)
    }

    /// Serialises a value as the text of a row. Offloads the text if it is large, and returns the reference to it.
    pub(super) fn encode(&self, value: &impl Serialize) -> Result<String> {
        self.offload(to_json(value)?)
    }

    /// Returns a short text unchanged. Offloads a large text, and returns the reference to it.
    pub(super) fn offload(&self, text: String) -> Result<String> {
        if text.len() <= MAX_INLINE {
            return Ok(text);
        }
        let digest = Digest::of([text.as_bytes()]);
        self.put_body(digest, text.as_bytes(), false)?;
        Ok(format!("{OFFLOADED}{digest}"))
    }

    /// Deserialises the text of a row, which may refer to an offloaded body.
    pub(super) fn decode<T: DeserializeOwned>(&self, body: &str) -> Result<T> {
        let Some(digest) = body.strip_prefix(OFFLOADED) else { return from_json(body) };
        let damaged = || StoreError::Damaged(format!("the body {digest} of a row is missing"));
        let bytes = self.body(digest.parse().map_err(|_| damaged())?)?.ok_or_else(damaged)?;
        from_json(std::str::from_utf8(&bytes).map_err(|_| damaged())?)
    }

    fn one<T: DeserializeOwned>(&self, sql: &str, params: impl Params) -> Result<Option<T>> {
        let read = |mut statement: rusqlite::CachedStatement<'_>| statement.query_row(params, |row| row.get::<_, String>(0)).optional();
        let found = self.0.prepare_cached(sql).and_then(read).map_err(engine)?;
        found.map(|body| self.decode(&body)).transpose()
    }

    fn list<T: DeserializeOwned>(&self, sql: &str, params: impl Params) -> Result<Vec<T>> {
        let mut statement = self.0.prepare_cached(sql).map_err(engine)?;
        let mut rows = statement.query(params).map_err(engine)?;
        let mut list = Vec::new();
        while let Some(row) = rows.next().map_err(engine)? {
            list.push(self.decode(row.get_ref(0).and_then(|body| Ok(body.as_str()?)).map_err(engine)?)?);
        }
        Ok(list)
    }

    pub(super) fn keep_holder(&self, holder: HolderId, lease: Duration) -> Result<()> {
        let until = clock::since_boot().saturating_add(i64::try_from(lease.as_millis()).unwrap_or(i64::MAX));
        let sql = "INSERT INTO holders (id, boot, until, namespace, process, started) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            ON CONFLICT (id) DO UPDATE SET boot = ?2, until = ?3";
        let this = Process::this();
        let (namespace, pid, started) = match &this {
            Some(this) => (Some(&this.namespace), Some(this.pid), Some(&this.started)),
            None => (None, None, None),
        };
        self.execute(sql, params![holder.to_string(), clock::boot(), until, namespace, pid, started]).map(drop)
    }

    pub(super) fn forget_holder(&self, holder: HolderId) -> Result<()> {
        self.execute("DELETE FROM holders WHERE id = ?1", [holder.to_string()]).map(drop)
    }

    /// Records that this process claims tasks from now on, and deletes the lease of the process that did so before.
    pub(super) fn start_claiming(&mut self, holder: HolderId) -> Result<()> {
        self.execute("DELETE FROM holders WHERE claims = 1 AND id <> ?1", [holder.to_string()])?;
        self.execute("UPDATE holders SET claims = 1 WHERE id = ?1", [holder.to_string()]).map(drop)
    }

    pub(super) fn approvals(&self, run: Option<RunId>, open: bool, limit: usize) -> Result<Vec<Approval>> {
        let sql = "SELECT body FROM approvals WHERE (?1 IS NULL OR run = ?1) AND (?2 = 0 OR state = 'pending') ORDER BY id DESC LIMIT ?3";
        self.list(sql, params![run.map(|run| run.to_string()), open, count(limit)])
    }

    pub(super) fn runs(&self, state: Option<RunState>, limit: usize) -> Result<Vec<RunRecord>> {
        let sql = "SELECT body FROM runs WHERE (?1 IS NULL OR state = ?1) ORDER BY id DESC LIMIT ?2";
        self.list(sql, params![state.map(RunState::name), count(limit)])
    }

    pub(super) fn events(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<Event>> {
        let sql = "SELECT body FROM events WHERE run = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
        self.list(sql, params![run.to_string(), count(after), count(limit)])
    }

    pub(super) fn whole_conversation(&mut self, conversation: ConversationId) -> Result<Option<ConversationRecord>> {
        let Some(mut record) = self.conversation(conversation)? else { return Ok(None) };
        let messages: Vec<Message> =
            self.list("SELECT body FROM messages WHERE conversation = ?1 ORDER BY place", [conversation.to_string()])?;
        record.messages = messages.into_iter().map(Arc::new).collect();
        Ok(Some(record))
    }

    pub(super) fn conversations(&self, limit: usize) -> Result<Vec<ConversationRecord>> {
        self.list("SELECT body FROM conversations ORDER BY updated DESC, id DESC LIMIT ?1", [count(limit)])
    }

    /// Stores a body permanently, or as long as a row refers to the body.
    pub(super) fn put_body(&self, digest: Digest, bytes: &[u8], permanent: bool) -> Result<()> {
        let sql = "INSERT INTO bodies (digest, kept, bytes) VALUES (?1, ?2, ?3) ON CONFLICT (digest) DO UPDATE SET kept = max(kept, ?2)";
        self.execute(sql, params![digest.to_string(), permanent, bytes]).map(drop)
    }

    pub(super) fn body(&self, digest: Digest) -> Result<Option<Vec<u8>>> {
        let found = self.0.query_row("SELECT bytes FROM bodies WHERE digest = ?1", [digest.to_string()], |row| row.get(0)).optional();
        found.map_err(engine)
    }

    /// Writes a backup to a new file.
    pub(super) fn copy_to(&self, file: &Path) -> Result<()> {
        let file = paths::prepare_copy(file)?;
        let copied = match file.to_str() {
            Some(name) => self.execute("VACUUM INTO ?1", [name]).map(drop),
            None => Err(StoreError::Conflict(format!("the file name {} is not valid UTF-8", file.display()))),
        };
        if copied.is_err() {
            // Do not leave an empty file that could be mistaken for a backup.
            let _ = std::fs::remove_file(&file);
        }
        copied
    }

    /// Deletes rows with `sql`, and runs each statement in `parts` with the id of each deleted row. Returns the number of deleted rows.
    fn delete(&self, sql: &str, params: impl Params, parts: &[&str]) -> Result<usize> {
        let mut statement = self.0.prepare_cached(sql).map_err(engine)?;
        let ids = statement.query_map(params, |row| row.get::<_, String>(0)).and_then(Iterator::collect::<rusqlite::Result<Vec<String>>>);
        let ids = ids.map_err(engine)?;
        for id in &ids {
            for part in parts {
                self.execute(part, [id])?;
            }
        }
        Ok(ids.len())
    }

    pub(super) fn prune(&self, age: Duration) -> Result<usize> {
        let before = SignedDuration::try_from(age).ok().and_then(|age| self.now().checked_sub(age).ok()).unwrap_or(Timestamp::MIN);
        let mut deleted = tasks::delete(self, before)?;
        let before = before.as_millisecond();
        let ended = "DELETE FROM runs WHERE state IN ('done', 'failed', 'cancelled') AND updated < ?1 RETURNING id";
        deleted += self.delete(ended, [before], &["DELETE FROM events WHERE run = ?1", "DELETE FROM snapshots WHERE run = ?1"])?;
        deleted += self.execute("DELETE FROM approvals WHERE answered < ?1", [before])?;
        let open: Vec<Approval> = self.list("SELECT body FROM approvals WHERE state = 'pending'", [])?;
        let pending: Vec<ConversationId> = open.iter().filter_map(|approval| approval.request.caller.conversation).collect();
        let silent =
            "DELETE FROM conversations WHERE updated < ?1 AND id NOT IN (SELECT conversation FROM runs WHERE conversation IS NOT NULL)
            AND id NOT IN (SELECT conversation FROM tasks WHERE conversation IS NOT NULL)
            AND id NOT IN (SELECT value FROM json_each(?2)) RETURNING id";
        deleted += self.delete(silent, params![before, to_json(&pending)?], &["DELETE FROM messages WHERE conversation = ?1"])?;
        let referred = ["tasks", "approvals", "runs", "snapshots", "events", "conversations", "messages"]
            .map(|table| format!("SELECT body FROM {table} WHERE body >= '@' AND body < 'A'"))
            .join(" UNION ALL ");
        let referred = format!("{referred} UNION ALL SELECT outcome FROM tasks WHERE outcome >= '@' AND outcome < 'A'");
        self.execute(&format!("DELETE FROM bodies WHERE kept = 0 AND '@' || digest NOT IN ({referred})"), [])?;
        Ok(deleted)
    }
}

impl Rows for SqliteRows<'_> {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn task(&mut self, task: CallId) -> Result<Option<Task>> {
        tasks::one(self, task)
    }

    fn add_task(&mut self, task: &Task) -> Result<bool> {
        tasks::add(self, task)
    }

    fn put_task(&mut self, task: &Task) -> Result<()> {
        tasks::put(self, task)
    }

    fn due_tasks(&mut self, limit: usize, tools: Option<&[Digest]>) -> Result<Vec<Task>> {
        tasks::due(self, limit, tools)
    }

    fn running_tasks(&mut self) -> Result<Vec<Task>> {
        tasks::running(self)
    }

    fn approval(&mut self, approval: ApprovalId) -> Result<Option<Approval>> {
        self.one("SELECT body FROM approvals WHERE id = ?1", [approval.to_string()])
    }

    fn put_approval(&mut self, approval: &Approval) -> Result<()> {
        let sql = "INSERT INTO approvals (id, run, state, expires, answered, body, asker) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            ON CONFLICT (id) DO UPDATE SET state = ?3, expires = ?4, answered = ?5, body = ?6, asker = ?7";
        let request = &approval.request;
        let row = params![
            request.id.to_string(),
            request.caller.run.map(|run| run.to_string()),
            approval.state.name(),
            request.expires_at.map(Timestamp::as_millisecond),
            approval.decided_at.map(Timestamp::as_millisecond),
            self.encode(approval)?,
            approval.asker.map(|holder| holder.to_string()),
        ];
        self.execute(sql, row).map(drop)
    }

    fn open_approvals(&mut self, run: Option<RunId>) -> Result<Vec<Approval>> {
        match run {
            Some(run) => self.list("SELECT body FROM approvals WHERE state = 'pending' AND run = ?1 ORDER BY id", [run.to_string()]),
            None => self.list(MAY_HAVE_ENDED, []),
        }
    }

    fn run(&mut self, run: RunId) -> Result<Option<RunRecord>> {
        self.one("SELECT body FROM runs WHERE id = ?1", [run.to_string()])
    }

    fn put_run(&mut self, run: &RunRecord) -> Result<()> {
        let sql = "INSERT INTO runs (id, state, updated, body, conversation) VALUES (?1, ?2, ?3, ?4, ?5)
            ON CONFLICT (id) DO UPDATE SET state = ?2, updated = ?3, body = ?4";
        let (id, conversation) = (run.id.to_string(), run.conversation_id.to_string());
        self.execute(sql, params![id, run.state.name(), run.updated.as_millisecond(), self.encode(run)?, conversation]).map(drop)
    }

    fn running_runs(&mut self) -> Result<Vec<RunRecord>> {
        self.list("SELECT body FROM runs WHERE state = 'running' ORDER BY id", [])
    }

    fn snapshot(&mut self, run: RunId) -> Result<Option<Value>> {
        self.one("SELECT body FROM snapshots WHERE run = ?1", [run.to_string()])
    }

    fn put_snapshot(&mut self, run: RunId, snapshot: Option<&Value>) -> Result<()> {
        match snapshot {
            Some(snapshot) => {
                let sql = "INSERT INTO snapshots (run, body) VALUES (?1, ?2) ON CONFLICT (run) DO UPDATE SET body = ?2";
                self.execute(sql, params![run.to_string(), self.encode(snapshot)?]).map(drop)
            }
            None => self.execute("DELETE FROM snapshots WHERE run = ?1", [run.to_string()]).map(drop),
        }
    }

    fn add_event(&mut self, event: &Event) -> Result<()> {
        self.execute(
            "INSERT INTO events (run, seq, body) VALUES (?1, ?2, ?3)",
            params![event.run_id.to_string(), count(event.seq), self.encode(event)?],
        )
        .map(drop)
    }

    fn conversation(&mut self, conversation: ConversationId) -> Result<Option<ConversationRecord>> {
        self.one("SELECT body FROM conversations WHERE id = ?1", [conversation.to_string()])
    }

    fn put_conversation(&mut self, conversation: &ConversationRecord) -> Result<()> {
        let sql =
            "INSERT INTO conversations (id, updated, body) VALUES (?1, ?2, ?3) ON CONFLICT (id) DO UPDATE SET updated = ?2, body = ?3";
        self.execute(sql, params![conversation.id.to_string(), conversation.updated.as_millisecond(), self.encode(conversation)?]).map(drop)
    }

    fn add_message(&mut self, conversation: ConversationId, place: usize, message: &Message) -> Result<()> {
        let sql = "INSERT INTO messages (conversation, place, body) VALUES (?1, ?2, ?3)";
        self.execute(sql, params![conversation.to_string(), count(place), self.encode(message)?]).map(drop)
    }

    fn is_gone(&mut self, holder: HolderId) -> Result<bool> {
        let sql = "SELECT namespace, process, started FROM holders WHERE id = ?1 AND boot = ?2 AND until > ?3";
        let row = params![holder.to_string(), clock::boot(), clock::since_boot()];
        let process = |row: &rusqlite::Row<'_>| -> rusqlite::Result<Option<Process>> {
            let (namespace, pid, started): (Option<String>, Option<u32>, Option<String>) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(namespace.zip(pid).zip(started).map(|((namespace, pid), started)| Process { namespace, pid, started }))
        };
        let found = self.0.prepare_cached(sql).and_then(|mut statement| statement.query_row(row, process).optional());
        Ok(match found.map_err(engine)? {
            None => true,
            Some(process) => process.is_some_and(|process| process.is_gone()),
        })
    }
}
