//! What is only read: one statement each, without locks.

use deadpool_postgres::Pool;
use helve_core::store::{Approval, ConversationRecord, RunRecord, RunState, Task, TaskFilter, TaskState};
use helve_core::{ApprovalId, CallId, ConversationId, Digest, Event, Message, RunId, StoreError};
use serde::de::DeserializeOwned;
use tokio_postgres::Row;

use super::record::{self, column, count, list, shared};
use super::session::{Values, ask_one, change_one, values};
use super::trouble::Trouble;

type Read<T> = Result<T, StoreError>;

const TASK: &str = "SELECT body, state, holder, epoch, attempts, updated FROM helve_tasks WHERE id = $1";
const TASKS: &str = "SELECT body, state, holder, epoch, attempts, updated FROM helve_tasks
    WHERE ($1::text IS NULL OR state = $1) AND ($2::text IS NULL OR conversation = $2) ORDER BY id DESC LIMIT $3";
const UNHEARD: &str = "SELECT body, state, holder, epoch, attempts, updated FROM helve_tasks WHERE NOT heard AND conversation IS NOT NULL
    AND state NOT IN ('queued', 'running') AND ($1::text IS NULL OR state = $1) AND ($2::text IS NULL OR conversation = $2)
    ORDER BY id DESC LIMIT $3";
const INBOX: &str = "SELECT body, state, holder, epoch, attempts, updated FROM helve_tasks
    WHERE NOT heard AND conversation IS NOT NULL AND conversation = $1 AND state NOT IN ('queued', 'running') ORDER BY updated, id";
const APPROVAL: &str = "SELECT body FROM helve_approvals WHERE id = $1";
const APPROVALS: &str = "SELECT body FROM helve_approvals
    WHERE ($1::text IS NULL OR run = $1) AND (NOT $2::boolean OR state = 'pending') ORDER BY id DESC LIMIT $3";
const RUN: &str = "SELECT body FROM helve_runs WHERE id = $1";
const RUNS: &str = "SELECT body FROM helve_runs WHERE ($1::text IS NULL OR state = $1) ORDER BY id DESC LIMIT $2";
const EVENTS: &str = "SELECT body FROM helve_events WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3";
/// One statement, so that what was said fits the record beside it.
const CONVERSATION: &str = "SELECT body, ARRAY(SELECT body FROM helve_messages WHERE conversation = helve_conversations.id ORDER BY place)
    FROM helve_conversations WHERE id = $1";
const CONVERSATIONS: &str = "SELECT body FROM helve_conversations ORDER BY updated DESC, id DESC LIMIT $1";
const PUT_BODY: &str = "INSERT INTO helve_bodies (digest, bytes) VALUES ($1, $2) ON CONFLICT DO NOTHING";
const BODY: &str = "SELECT bytes FROM helve_bodies WHERE digest = $1";

async fn rows(pool: &Pool, sql: &'static str, values: Values) -> Read<Vec<Row>> {
    ask_one(pool, sql, values).await.map_err(Trouble::told)
}

async fn one<T: DeserializeOwned>(pool: &Pool, sql: &'static str, id: String) -> Read<Option<T>> {
    Ok(list(&rows(pool, sql, values![id]).await?)?.pop())
}

pub(super) async fn task(pool: &Pool, task: CallId) -> Read<Option<Task>> {
    Ok(record::tasks(&rows(pool, TASK, values![task.to_string()]).await?)?.pop())
}

pub(super) async fn tasks(pool: &Pool, filter: TaskFilter) -> Read<Vec<Task>> {
    let conversation = filter.conversation.map(|id| id.to_string());
    let sql = if filter.unheard { UNHEARD } else { TASKS };
    record::tasks(&rows(pool, sql, values![filter.state.map(TaskState::name), conversation, count(filter.limit)]).await?)
}

pub(super) async fn inbox(pool: &Pool, conversation: ConversationId) -> Read<Vec<Task>> {
    record::tasks(&rows(pool, INBOX, values![conversation.to_string()]).await?)
}

pub(super) async fn approval(pool: &Pool, approval: ApprovalId) -> Read<Option<Approval>> {
    one(pool, APPROVAL, approval.to_string()).await
}

pub(super) async fn approvals(pool: &Pool, run: Option<RunId>, open: bool, limit: usize) -> Read<Vec<Approval>> {
    list(&rows(pool, APPROVALS, values![run.map(|run| run.to_string()), open, count(limit)]).await?)
}

pub(super) async fn run(pool: &Pool, run: RunId) -> Read<Option<RunRecord>> {
    one(pool, RUN, run.to_string()).await
}

pub(super) async fn runs(pool: &Pool, state: Option<RunState>, limit: usize) -> Read<Vec<RunRecord>> {
    list(&rows(pool, RUNS, values![state.map(RunState::name), count(limit)]).await?)
}

pub(super) async fn events(pool: &Pool, run: RunId, after: u64, limit: usize) -> Read<Vec<Event>> {
    list(&rows(pool, EVENTS, values![run.to_string(), count(after), count(limit)]).await?)
}

pub(super) async fn conversation(pool: &Pool, conversation: ConversationId) -> Read<Option<ConversationRecord>> {
    let rows = rows(pool, CONVERSATION, values![conversation.to_string()]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let mut record: ConversationRecord = record::value(row, 0)?;
    let said = column::<Vec<&str>>(row, 1)?.into_iter().map(record::parse::<Message>).collect::<Read<_>>()?;
    record.messages = shared(said);
    Ok(Some(record))
}

pub(super) async fn conversations(pool: &Pool, limit: usize) -> Read<Vec<ConversationRecord>> {
    list(&rows(pool, CONVERSATIONS, values![count(limit)]).await?)
}

pub(super) async fn put_body(pool: &Pool, digest: Digest, bytes: Vec<u8>) -> Read<()> {
    change_one(pool, "put_body", PUT_BODY, values![digest.to_string(), bytes]).await.map(drop).map_err(Trouble::told)
}

pub(super) async fn body(pool: &Pool, digest: Digest) -> Read<Option<Vec<u8>>> {
    let rows = rows(pool, BODY, values![digest.to_string()]).await?;
    rows.first().map(|row| column(row, 0)).transpose()
}
