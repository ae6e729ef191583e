//! Turns a draft into statements: one for each table and kind of change, however many rows there are.
//!
//! If another transaction has inserted the same row in the meantime, the insert fails with a conflict, and the transaction is retried
//! with that row loaded.

use helve_core::store::{Approval, ConversationRecord, RunRecord, Task};
use jiff::Timestamp;

use super::draft::Draft;
use super::session::{Query, Values, values};
use crate::row::{Result, count, to_json};

const NEW_TASKS: &str = "INSERT INTO helve_tasks
    (id, state, rank, due, definition, conversation, run, holder, epoch, attempts, cancelling, heard, updated, body)
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::bigint[], $10::bigint[], $11::boolean[], $12::boolean[], $13::bigint[], $14::text[])";
const TASKS: &str =
    "UPDATE helve_tasks AS old SET state = new.state, rank = new.rank, due = new.due, holder = new.holder, epoch = new.epoch,
    attempts = new.attempts, cancelling = new.cancelling, heard = new.heard, updated = new.updated, body = new.body
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::bigint[], $10::bigint[], $11::boolean[], $12::boolean[], $13::bigint[], $14::text[])
    AS new (id, state, rank, due, definition, conversation, run, holder, epoch, attempts, cancelling, heard, updated, body)
    WHERE old.id = new.id";
const NEW_APPROVALS: &str = "INSERT INTO helve_approvals (id, run, state, expires, answered, asker, conversation, body)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[])";
const APPROVALS: &str =
    "UPDATE helve_approvals AS old SET state = new.state, expires = new.expires, answered = new.answered, body = new.body
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[])
    AS new (id, run, state, expires, answered, asker, conversation, body) WHERE old.id = new.id";
const NEW_RUNS: &str = "INSERT INTO helve_runs (id, state, conversation, holder, cancelling, updated, body)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::boolean[], $6::bigint[], $7::text[])";
const RUNS: &str = "UPDATE helve_runs AS old
    SET state = new.state, holder = new.holder, cancelling = new.cancelling, updated = new.updated, body = new.body
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::boolean[], $6::bigint[], $7::text[])
    AS new (id, state, conversation, holder, cancelling, updated, body) WHERE old.id = new.id";
const NEW_CONVERSATIONS: &str =
    "INSERT INTO helve_conversations (id, updated, body) SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[])";
const CONVERSATIONS: &str = "UPDATE helve_conversations AS old SET updated = new.updated, body = new.body
    FROM unnest($1::text[], $2::bigint[], $3::text[]) AS new (id, updated, body) WHERE old.id = new.id";
const SNAPSHOTS: &str = "INSERT INTO helve_snapshots (run, body) SELECT * FROM unnest($1::text[], $2::text[])
    ON CONFLICT (run) DO UPDATE SET body = excluded.body";
const NO_SNAPSHOTS: &str = "DELETE FROM helve_snapshots WHERE run = ANY($1::text[])";
const EVENTS: &str = "INSERT INTO helve_events (run, seq, body) SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[])";
const MESSAGES: &str = "INSERT INTO helve_messages (conversation, place, body) SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[])";

/// Returns the statements that write the draft to the database. The list is empty if nothing has changed.
pub(super) fn queries(draft: &Draft) -> Result<Vec<Query>> {
    let mut queries = Vec::new();
    let mut both = |[new, old]: [&'static str; 2], rows: [Option<Values>; 2]| {
        queries.extend([new, old].into_iter().zip(rows).filter_map(|(sql, rows)| rows.map(|rows| Query(sql, rows))));
    };
    both([NEW_RUNS, RUNS], columns(draft.runs.written(), runs)?);
    both([NEW_CONVERSATIONS, CONVERSATIONS], columns(draft.conversations.written(), conversations)?);
    both([NEW_APPROVALS, APPROVALS], columns(draft.approvals.written(), approvals)?);
    both([NEW_TASKS, TASKS], columns(draft.tasks.written(), tasks)?);
    let (mut kept, mut bodies, mut removed) = (Vec::new(), Vec::new(), Vec::new());
    for (run, snapshot) in draft.snapshots.changes() {
        match snapshot {
            Some(snapshot) => {
                kept.push(run.to_string());
                bodies.push(to_json(snapshot)?);
            }
            None => removed.push(run.to_string()),
        }
    }
    if !kept.is_empty() {
        queries.push(Query(SNAPSHOTS, values![kept, bodies]));
    }
    if !removed.is_empty() {
        queries.push(Query(NO_SNAPSHOTS, values![removed]));
    }
    let events = &draft.events.rows;
    if !events.is_empty() {
        let runs: Vec<String> = events.iter().map(|event| event.run_id.to_string()).collect();
        let seqs: Vec<i64> = events.iter().map(|event| count(event.seq)).collect();
        queries.push(Query(EVENTS, values![runs, seqs, bodies_of(events)?]));
    }
    let messages = &draft.messages.rows;
    if !messages.is_empty() {
        let conversations: Vec<String> = messages.iter().map(|(conversation, ..)| conversation.to_string()).collect();
        let places: Vec<i64> = messages.iter().map(|(_, place, _)| count(*place)).collect();
        let bodies = messages.iter().map(|(.., message)| to_json(message)).collect::<Result<Vec<String>>>()?;
        queries.push(Query(MESSAGES, values![conversations, places, bodies]));
    }
    Ok(queries)
}

/// Returns the columns of the rows to insert and of the rows to update; `None` if there are no such rows.
fn columns<T>((new, old): (Vec<&T>, Vec<&T>), columns: fn(&[&T]) -> Result<Values>) -> Result<[Option<Values>; 2]> {
    let some = |rows: Vec<&T>| if rows.is_empty() { Ok(None) } else { columns(&rows).map(Some) };
    Ok([some(new)?, some(old)?])
}

fn tasks(rows: &[&Task]) -> Result<Values> {
    Ok(values![
        each(rows, |task| task.id.to_string()),
        each(rows, |task| task.state.name()),
        each(rows, Task::rank),
        each(rows, |task| task.due.as_microsecond()),
        each(rows, |task| task.definition.to_string()),
        each(rows, |task| task.caller.conversation.map(|id| id.to_string())),
        each(rows, |task| task.caller.run.map(|id| id.to_string())),
        each(rows, |task| task.holder.map(|id| id.to_string())),
        each(rows, |task| count(task.epoch)),
        each(rows, |task| i64::from(task.attempts)),
        each(rows, |task| task.cancelling),
        each(rows, |task| task.read),
        each(rows, |task| task.updated.as_microsecond()),
        bodies_of(rows)?,
    ])
}

fn approvals(rows: &[&Approval]) -> Result<Values> {
    Ok(values![
        each(rows, |approval| approval.request.id.to_string()),
        each(rows, |approval| approval.request.caller.run.map(|id| id.to_string())),
        each(rows, |approval| approval.state.name()),
        each(rows, |approval| approval.request.expires_at.map(Timestamp::as_microsecond)),
        each(rows, |approval| approval.decided_at.map(Timestamp::as_microsecond)),
        each(rows, |approval| approval.asker.map(|id| id.to_string())),
        each(rows, |approval| approval.request.caller.conversation.map(|id| id.to_string())),
        bodies_of(rows)?,
    ])
}

fn runs(rows: &[&RunRecord]) -> Result<Values> {
    Ok(values![
        each(rows, |run| run.id.to_string()),
        each(rows, |run| run.state.name()),
        each(rows, |run| run.conversation_id.to_string()),
        each(rows, |run| run.holder.map(|id| id.to_string())),
        each(rows, |run| run.cancelling),
        each(rows, |run| run.updated.as_microsecond()),
        bodies_of(rows)?,
    ])
}

fn conversations(rows: &[&ConversationRecord]) -> Result<Values> {
    Ok(values![
        each(rows, |conversation| conversation.id.to_string()),
        each(rows, |conversation| conversation.updated.as_microsecond()),
        bodies_of(rows)?,
    ])
}

fn each<T, C>(rows: &[&T], column: impl Fn(&T) -> C) -> Vec<C> {
    rows.iter().map(|row| column(row)).collect()
}

fn bodies_of<T: serde::Serialize>(rows: &[T]) -> Result<Vec<String>> {
    rows.iter().map(to_json).collect()
}
