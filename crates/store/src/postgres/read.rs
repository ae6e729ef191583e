//! Read operations: one statement each, without locks.

use std::sync::Arc;

use deadpool_postgres::Pool;
use helve_core::store::{ConversationRecord, Task};
use helve_core::{ConversationId, Digest, Message};
use serde::de::DeserializeOwned;

use super::row::{self, column};
use super::session::{Values, execute, query, values};
use crate::row::{Result, from_json};

pub(super) const TASK: &str = "SELECT body, state, holder, epoch, attempts, updated FROM helve_tasks WHERE id = $1";
pub(super) const TASKS: &str = "SELECT body, state, holder, epoch, attempts, updated FROM helve_tasks
    WHERE ($1::text IS NULL OR state = $1) AND ($2::text IS NULL OR conversation = $2) ORDER BY id DESC LIMIT $3";
pub(super) const UNHEARD: &str =
    "SELECT body, state, holder, epoch, attempts, updated FROM helve_tasks WHERE NOT heard AND conversation IS NOT NULL
    AND state NOT IN ('queued', 'running') AND ($1::text IS NULL OR state = $1) AND ($2::text IS NULL OR conversation = $2)
    ORDER BY id DESC LIMIT $3";
pub(super) const INBOX: &str = "SELECT body, state, holder, epoch, attempts, updated FROM helve_tasks
    WHERE NOT heard AND conversation IS NOT NULL AND conversation = $1 AND state NOT IN ('queued', 'running') ORDER BY updated, id";
pub(super) const APPROVAL: &str = "SELECT body FROM helve_approvals WHERE id = $1";
pub(super) const APPROVALS: &str = "SELECT body FROM helve_approvals
    WHERE ($1::text IS NULL OR run = $1) AND (NOT $2::boolean OR state = 'pending') ORDER BY id DESC LIMIT $3";
pub(super) const RUN: &str = "SELECT body FROM helve_runs WHERE id = $1";
pub(super) const RUNS: &str = "SELECT body FROM helve_runs WHERE ($1::text IS NULL OR state = $1) ORDER BY id DESC LIMIT $2";
pub(super) const EVENTS: &str = "SELECT body FROM helve_events WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3";
/// Reads a conversation and its messages in one statement, so that they are consistent.
const CONVERSATION: &str = "SELECT body, ARRAY(SELECT body FROM helve_messages WHERE conversation = helve_conversations.id ORDER BY place)
    FROM helve_conversations WHERE id = $1";
pub(super) const CONVERSATIONS: &str = "SELECT body FROM helve_conversations ORDER BY updated DESC, id DESC LIMIT $1";
const PUT_BODY: &str = "INSERT INTO helve_bodies (digest, bytes) VALUES ($1, $2) ON CONFLICT DO NOTHING";
const BODY: &str = "SELECT bytes FROM helve_bodies WHERE digest = $1";

/// Returns the records that are stored as JSON in the first column.
pub(super) async fn list<T: DeserializeOwned>(pool: Pool, sql: &'static str, values: Values) -> Result<Vec<T>> {
    row::list(&query(&pool, sql, values).await?)
}

/// Returns the record that is stored as JSON in the first column, for a statement with at most one row.
pub(super) async fn one<T: DeserializeOwned>(pool: Pool, sql: &'static str, values: Values) -> Result<Option<T>> {
    Ok(list(pool, sql, values).await?.pop())
}

pub(super) async fn tasks(pool: Pool, sql: &'static str, values: Values) -> Result<Vec<Task>> {
    row::tasks(&query(&pool, sql, values).await?)
}

pub(super) async fn conversation(pool: Pool, conversation: ConversationId) -> Result<Option<ConversationRecord>> {
    let rows = query(&pool, CONVERSATION, values![conversation.to_string()]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let mut record: ConversationRecord = row::value(row, 0)?;
    let messages = column::<Vec<&str>>(row, 1)?.into_iter().map(from_json::<Message>);
    record.messages = messages.map(|message| message.map(Arc::new)).collect::<Result<_>>()?;
    Ok(Some(record))
}

pub(super) async fn put_body(pool: Pool, digest: Digest, bytes: Vec<u8>) -> Result<Digest> {
    execute(&pool, "put_body", PUT_BODY, values![digest.to_string(), bytes]).await?;
    Ok(digest)
}

pub(super) async fn body(pool: Pool, digest: Digest) -> Result<Option<Vec<u8>>> {
    let rows = query(&pool, BODY, values![digest.to_string()]).await?;
    rows.first().map(|row| column(row, 0)).transpose()
}
