//! What a transaction put, as few statements: one for each table and kind of change, however many rows there are.
//!
//! What is new is inserted and nothing else. If somebody made the same row in between, the server refuses, and the transaction
//! begins again with that row loaded.

use helve_core::StoreError;
use helve_core::store::{Approval, ConversationRecord, RunRecord, Task};
use jiff::Timestamp;

use super::draft::Draft;
use super::record::{count, text};
use super::session::{Step, Values, values};

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

/// What must be sent so that the draft is the record; nothing where it changes nothing.
pub(super) fn steps(draft: &Draft) -> Result<Vec<Step>, StoreError> {
    let mut steps = Vec::new();
    let mut both = |[new, old]: [&'static str; 2], rows: [Option<Values>; 2]| {
        steps.extend([new, old].into_iter().zip(rows).filter_map(|(sql, rows)| rows.map(|rows| Step(sql, rows))));
    };
    both([NEW_RUNS, RUNS], columns(draft.runs.written(), runs)?);
    both([NEW_CONVERSATIONS, CONVERSATIONS], columns(draft.conversations.written(), conversations)?);
    both([NEW_APPROVALS, APPROVALS], columns(draft.approvals.written(), approvals)?);
    both([NEW_TASKS, TASKS], columns(draft.tasks.written(), tasks)?);
    let (mut kept, mut bodies, mut gone) = (Vec::new(), Vec::new(), Vec::new());
    for (run, snapshot) in draft.snapshots.changes() {
        match snapshot {
            Some(snapshot) => {
                kept.push(run.to_string());
                bodies.push(text(snapshot)?);
            }
            None => gone.push(run.to_string()),
        }
    }
    if !kept.is_empty() {
        steps.push(Step(SNAPSHOTS, values![kept, bodies]));
    }
    if !gone.is_empty() {
        steps.push(Step(NO_SNAPSHOTS, values![gone]));
    }
    let events = &draft.events.kept;
    if !events.is_empty() {
        let runs: Vec<String> = events.iter().map(|event| event.run_id.to_string()).collect();
        let seqs: Vec<i64> = events.iter().map(|event| count(event.seq)).collect();
        steps.push(Step(EVENTS, values![runs, seqs, bodies_of(events)?]));
    }
    let said = &draft.messages.kept;
    if !said.is_empty() {
        let conversations: Vec<String> = said.iter().map(|(conversation, ..)| conversation.to_string()).collect();
        let places: Vec<i64> = said.iter().map(|(_, place, _)| count(*place)).collect();
        let bodies = said.iter().map(|(.., message)| text(message)).collect::<Result<Vec<String>, _>>()?;
        steps.push(Step(MESSAGES, values![conversations, places, bodies]));
    }
    Ok(steps)
}

/// Rows that are new and rows that are old, as columns; nothing where there are none.
fn columns<T>((new, old): (Vec<&T>, Vec<&T>), columns: fn(&[&T]) -> Result<Values, StoreError>) -> Result<[Option<Values>; 2], StoreError> {
    let some = |rows: Vec<&T>| if rows.is_empty() { Ok(None) } else { columns(&rows).map(Some) };
    Ok([some(new)?, some(old)?])
}

fn tasks(rows: &[&Task]) -> Result<Values, StoreError> {
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
        each(rows, |task| task.heard),
        each(rows, |task| task.updated.as_microsecond()),
        bodies_of(rows)?,
    ])
}

fn approvals(rows: &[&Approval]) -> Result<Values, StoreError> {
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

fn runs(rows: &[&RunRecord]) -> Result<Values, StoreError> {
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

fn conversations(rows: &[&ConversationRecord]) -> Result<Values, StoreError> {
    Ok(values![
        each(rows, |conversation| conversation.id.to_string()),
        each(rows, |conversation| conversation.updated.as_microsecond()),
        bodies_of(rows)?,
    ])
}

fn each<T, C>(rows: &[&T], column: impl Fn(&T) -> C) -> Vec<C> {
    rows.iter().map(|row| column(row)).collect()
}

fn bodies_of<T: serde::Serialize>(rows: &[T]) -> Result<Vec<String>, StoreError> {
    rows.iter().map(text).collect()
}
