//! Leases, recovery and forgetting. The clock of leases is the server's: processes on many machines share it.

use std::collections::BTreeSet;
use std::time::Duration;

use deadpool_postgres::Pool;
use helve_core::store::{Progress, RecoveryReport, Stop, transact};
use helve_core::{CallId, HolderId, StoreError};
use tokio_postgres::Row;

use super::keys::{Keys, id};
use super::record::{column, count};
use super::session::{Session, Step, ask, change_one, values};
use super::transaction::write_one;
use super::trouble::Trouble;
use crate::crash;

/// So much is recovered in one transaction at most.
const PART: usize = 256;

const KEEP: &str = "INSERT INTO helve_holders (id, until) VALUES ($1, clock_timestamp() + $2::bigint * interval '1 millisecond')
    ON CONFLICT (id) DO UPDATE SET until = excluded.until";
const LEAVE: &str = "DELETE FROM helve_holders WHERE id = $1";
const STOP_TASKS: &str = "SELECT id FROM helve_tasks WHERE state = 'running' AND holder = $1 AND cancelling ORDER BY id";
const STOP_RUNS: &str = "SELECT id FROM helve_runs WHERE state = 'running' AND holder = $1 AND cancelling ORDER BY id";

const LOST_TASKS: &str = "SELECT id, holder FROM helve_tasks WHERE state = 'running' AND holder IS DISTINCT FROM $2 AND NOT EXISTS
    (SELECT FROM helve_holders WHERE id = helve_tasks.holder AND until > clock_timestamp()) LIMIT $1";
const LOST_RUNS: &str = "SELECT id, holder FROM helve_runs WHERE state = 'running' AND holder IS DISTINCT FROM $2 AND NOT EXISTS
    (SELECT FROM helve_holders WHERE id = helve_runs.holder AND until > clock_timestamp()) LIMIT $1";
const EXPIRED: &str = "SELECT id FROM helve_approvals WHERE state = 'pending' AND expires IS NOT NULL
    AND expires <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint LIMIT $1";
const LOST_APPROVALS: &str = "SELECT id, asker FROM helve_approvals WHERE state = 'pending' AND asker IS NOT NULL AND asker <> $2
    AND NOT EXISTS (SELECT FROM helve_holders WHERE id = helve_approvals.asker AND until > clock_timestamp()) LIMIT $1";
/// Who left long ago is as gone as who was never there.
const OLD_HOLDERS: &str = "DELETE FROM helve_holders WHERE until < clock_timestamp() - interval '1 day'";
const OLD_MARKS: &str = "DELETE FROM helve_marks WHERE made < clock_timestamp() - interval '1 day'";

/// Rows that somebody works with are left for the next time.
const OLD_RUNS: &str = "DELETE FROM helve_runs WHERE id IN (SELECT id FROM helve_runs WHERE state IN ('done', 'failed', 'cancelled')
    AND updated < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - $1::bigint ORDER BY id FOR UPDATE SKIP LOCKED) RETURNING id";
const OLD_APPROVALS: &str = "DELETE FROM helve_approvals WHERE id IN (SELECT id FROM helve_approvals WHERE
    answered < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - $1::bigint ORDER BY id FOR UPDATE SKIP LOCKED) RETURNING 1";
const OLD_TASKS: &str = "DELETE FROM helve_tasks WHERE id IN (SELECT id FROM helve_tasks WHERE state NOT IN ('queued', 'running')
    AND updated < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - $1::bigint ORDER BY id FOR UPDATE SKIP LOCKED) RETURNING 1";
const OLD_CONVERSATIONS: &str = "DELETE FROM helve_conversations WHERE id IN (SELECT id FROM helve_conversations AS old WHERE
    updated < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - $1::bigint
    AND NOT EXISTS (SELECT FROM helve_runs WHERE conversation = old.id) AND NOT EXISTS (SELECT FROM helve_tasks WHERE conversation = old.id)
    AND NOT EXISTS (SELECT FROM helve_approvals WHERE state = 'pending' AND conversation = old.id)
    ORDER BY id FOR UPDATE SKIP LOCKED) RETURNING id";
const MESSAGES_OF: &str = "DELETE FROM helve_messages WHERE conversation = ANY($1::text[])";
const EVENTS_OF: &str = "DELETE FROM helve_events WHERE run = ANY($1::text[])";
const SNAPSHOTS_OF: &str = "DELETE FROM helve_snapshots WHERE run = ANY($1::text[])";

/// Renews a lease, which waits for nobody. Then tells how far tasks are, and says what to stop.
pub(super) async fn keep(pool: &Pool, holder: HolderId, lease: Duration, progress: &[(CallId, Progress)]) -> Result<Stop, StoreError> {
    // The server adds intervals only within bounds; a century is as good as for ever.
    let lease = count(lease.as_millis()).min(3_155_760_000_000);
    change_one(pool, "keep", KEEP, values![holder.to_string(), lease]).await.map_err(Trouble::told)?;
    if !progress.is_empty() {
        let keys = Keys { tasks: progress.iter().map(|(task, _)| *task).collect(), ..Keys::default() };
        write_one(pool, "progress", keys, progress, |draft, progress| transact::progress(draft, holder, progress)).await?;
    }
    let stops = vec![Step(STOP_TASKS, values![holder.to_string()]), Step(STOP_RUNS, values![holder.to_string()])];
    let stops = ask(pool, stops).await.map_err(Trouble::told)?;
    let [tasks, runs] = &stops[..] else { return Ok(Stop::default()) };
    Ok(Stop {
        tasks: tasks.iter().map(|row| id(row, 0)).collect::<Result<_, _>>()?,
        runs: runs.iter().map(|row| id(row, 0)).collect::<Result<_, _>>()?,
    })
}

/// A process ends well.
pub(super) async fn leave(pool: &Pool, holder: HolderId) -> Result<(), StoreError> {
    change_one(pool, "leave", LEAVE, values![holder.to_string()]).await.map(drop).map_err(Trouble::told)
}

/// Takes what processes held that are gone. Several may do so at once: what is found is looked at again under its locks.
pub(super) async fn recover(pool: &Pool, asking: HolderId) -> Result<RecoveryReport, StoreError> {
    let mut sum = RecoveryReport::default();
    loop {
        let (keys, more) = lost(pool, asking).await?;
        if keys.is_empty() {
            return Ok(sum);
        }
        let part = write_one(pool, "recover", keys, (), |draft, ()| transact::recover(draft, asking)).await?;
        sum.tasks += part.tasks;
        sum.runs += part.runs;
        sum.approvals += part.approvals;
        // Where others were quicker there is nothing left to do.
        if !more || part == RecoveryReport::default() {
            return Ok(sum);
        }
    }
}

/// What seems to be lost, and whether there may be more of it.
async fn lost(pool: &Pool, asking: HolderId) -> Result<(Keys, bool), StoreError> {
    let part = count(PART);
    let steps = vec![
        Step(LOST_TASKS, values![part, asking.to_string()]),
        Step(LOST_RUNS, values![part, asking.to_string()]),
        Step(LOST_APPROVALS, values![part, asking.to_string()]),
        Step(EXPIRED, values![part]),
        Step(OLD_HOLDERS, values![]),
        Step(OLD_MARKS, values![]),
    ];
    let found = ask(pool, steps).await.map_err(Trouble::told)?;
    let [tasks, runs, lost, expired, ..] = &found[..] else { return Ok((Keys::default(), false)) };
    let mut holders = BTreeSet::new();
    for row in tasks.iter().chain(runs).chain(lost) {
        if column::<Option<&str>>(row, 1)?.is_some() {
            holders.insert(id(row, 1)?);
        }
    }
    let keys = Keys {
        tasks: tasks.iter().map(|row| id(row, 0)).collect::<Result<_, _>>()?,
        runs: runs.iter().map(|row| id(row, 0)).collect::<Result<_, _>>()?,
        approvals: lost.iter().chain(expired).map(|row| id(row, 0)).collect::<Result<_, _>>()?,
        holders,
        ..Keys::default()
    };
    Ok((keys, [tasks, runs, lost, expired].iter().any(|rows| rows.len() == PART)))
}

/// Forgets what ended before so long.
pub(super) async fn prune(pool: &Pool, age: Duration) -> Result<usize, StoreError> {
    let session = Session::lend(pool).await.map_err(Trouble::told)?;
    // What fails closes the connection, and with it the transaction.
    let gone = forget(&session, count(age.as_micros())).await.map_err(Trouble::told)?;
    session.give_back();
    Ok(gone)
}

async fn forget(session: &Session, age: i64) -> Result<usize, Trouble> {
    let steps =
        vec![Step("BEGIN", values![]), Step(OLD_RUNS, values![age]), Step(OLD_APPROVALS, values![age]), Step(OLD_TASKS, values![age])];
    let gone = session.pipeline(steps).await?;
    let steps = vec![
        // By statements of their own: events that were added a moment before the run was locked are seen only now.
        Step(EVENTS_OF, values![ids(gone.get(1))?]),
        Step(SNAPSHOTS_OF, values![ids(gone.get(1))?]),
        Step(OLD_CONVERSATIONS, values![age]),
    ];
    let silent = session.pipeline(steps).await?;
    let conversations = ids(silent.last())?;
    let count = gone.iter().map(Vec::<Row>::len).sum::<usize>() + conversations.len();
    session.pipeline(vec![Step(MESSAGES_OF, values![conversations])]).await?;
    crash::reach("prune", crash::BEFORE);
    session.pipeline(vec![Step("COMMIT", values![])]).await?;
    crash::reach("prune", crash::AFTER);
    Ok(count)
}

fn ids(rows: Option<&Vec<Row>>) -> Result<Vec<String>, StoreError> {
    rows.into_iter().flatten().map(|row| column(row, 0)).collect()
}
