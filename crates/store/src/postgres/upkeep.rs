//! Leases, recovery and pruning. Leases use the server's clock, because the clocks of several machines differ.

use std::collections::BTreeSet;
use std::time::Duration;

use deadpool_postgres::Pool;
use helve_core::store::{Progress, RecoveryReport, Stop, transact};
use helve_core::{CallId, HolderId};
use tokio_postgres::Row;

use super::error::TransactionError;
use super::keys::{Keys, id};
use super::row::column;
use super::session::{Query, Session, execute, query_all, values};
use super::transaction::write_one;
use crate::crash;
use crate::row::{Result, count};

/// Maximum number of rows of each kind that one transaction recovers.
const MAX_BATCH: usize = 256;

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
/// Deletes leases that expired more than a day ago. They have the same effect as no lease.
const OLD_HOLDERS: &str = "DELETE FROM helve_holders WHERE until < clock_timestamp() - interval '1 day'";
const OLD_MARKS: &str = "DELETE FROM helve_marks WHERE made < clock_timestamp() - interval '1 day'";

/// Deletes old runs. Skips locked rows; the next pruning deletes them.
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

/// Renews the lease of a process, stores the progress of its tasks, and returns the tasks and runs that it must stop. Renewing the
/// lease comes first and waits for no lock.
pub(super) async fn keep(pool: &Pool, holder: HolderId, lease: Duration, progress: &[(CallId, Progress)]) -> Result<Stop> {
    // The server limits intervals, so a longer lease lasts a century.
    let lease = count(lease.as_millis()).min(3_155_760_000_000);
    execute(pool, "keep", KEEP, values![holder.to_string(), lease]).await?;
    if !progress.is_empty() {
        let keys = Keys { tasks: progress.iter().map(|(task, _)| *task).collect(), ..Keys::default() };
        write_one(pool, "progress", keys, progress, |draft, progress| transact::progress(draft, holder, progress)).await?;
    }
    let queries = vec![Query(STOP_TASKS, values![holder.to_string()]), Query(STOP_RUNS, values![holder.to_string()])];
    let stops = query_all(pool, queries).await?;
    let [tasks, runs] = &stops[..] else { return Ok(Stop::default()) };
    Ok(Stop {
        tasks: tasks.iter().map(|row| id(row, 0)).collect::<Result<_>>()?,
        runs: runs.iter().map(|row| id(row, 0)).collect::<Result<_>>()?,
    })
}

/// Ends the lease of a process.
pub(super) async fn leave(pool: &Pool, holder: HolderId) -> Result<()> {
    execute(pool, "leave", LEAVE, values![holder.to_string()]).await?;
    Ok(())
}

/// Recovers the tasks, runs and approval requests of processes whose leases have expired. Several processes may do this at once, because
/// the transaction checks each row again after locking it.
pub(super) async fn recover(pool: &Pool, asking: HolderId) -> Result<RecoveryReport> {
    let mut sum = RecoveryReport::default();
    loop {
        let (keys, more) = lost(pool, asking).await?;
        if keys.is_empty() {
            return Ok(sum);
        }
        let batch = write_one(pool, "recover", keys, (), |draft, ()| transact::recover(draft, asking)).await?;
        sum.tasks += batch.tasks;
        sum.runs += batch.runs;
        sum.approvals += batch.approvals;
        // If nothing was recovered, another process has done it in the meantime.
        if !more || batch == RecoveryReport::default() {
            return Ok(sum);
        }
    }
}

/// Returns the keys of tasks, runs and approval requests to recover, and whether there may be more.
async fn lost(pool: &Pool, asking: HolderId) -> Result<(Keys, bool)> {
    let limit = count(MAX_BATCH);
    let queries = vec![
        Query(LOST_TASKS, values![limit, asking.to_string()]),
        Query(LOST_RUNS, values![limit, asking.to_string()]),
        Query(LOST_APPROVALS, values![limit, asking.to_string()]),
        Query(EXPIRED, values![limit]),
        Query(OLD_HOLDERS, values![]),
        Query(OLD_MARKS, values![]),
    ];
    let found = query_all(pool, queries).await?;
    let [tasks, runs, lost, expired, ..] = &found[..] else { return Ok((Keys::default(), false)) };
    let mut holders = BTreeSet::new();
    for row in tasks.iter().chain(runs).chain(lost) {
        if column::<Option<&str>>(row, 1)?.is_some() {
            holders.insert(id(row, 1)?);
        }
    }
    let keys = Keys {
        tasks: tasks.iter().map(|row| id(row, 0)).collect::<Result<_>>()?,
        runs: runs.iter().map(|row| id(row, 0)).collect::<Result<_>>()?,
        approvals: lost.iter().chain(expired).map(|row| id(row, 0)).collect::<Result<_>>()?,
        holders,
        ..Keys::default()
    };
    Ok((keys, [tasks, runs, lost, expired].iter().any(|rows| rows.len() == MAX_BATCH)))
}

/// Deletes ended runs and tasks, decided approval requests and unused conversations that are older than `age`. Returns their number.
pub(super) async fn prune(pool: &Pool, age: Duration) -> Result<usize> {
    let session = Session::take(pool).await?;
    // After an error, dropping the session closes the connection and so rolls back the transaction.
    let deleted = delete_old(&session, count(age.as_micros())).await?;
    session.put_back();
    Ok(deleted)
}

async fn delete_old(session: &Session, age: i64) -> Result<usize, TransactionError> {
    let queries =
        vec![Query("BEGIN", values![]), Query(OLD_RUNS, values![age]), Query(OLD_APPROVALS, values![age]), Query(OLD_TASKS, values![age])];
    let deleted = session.pipeline(queries).await?;
    let queries = vec![
        // In separate statements, which also see events that were added just before the run was locked.
        Query(EVENTS_OF, values![ids(deleted.get(1))?]),
        Query(SNAPSHOTS_OF, values![ids(deleted.get(1))?]),
        Query(OLD_CONVERSATIONS, values![age]),
    ];
    let idle = session.pipeline(queries).await?;
    let conversations = ids(idle.last())?;
    let count = deleted.iter().map(Vec::<Row>::len).sum::<usize>() + conversations.len();
    session.pipeline(vec![Query(MESSAGES_OF, values![conversations])]).await?;
    crash::reach("prune", crash::BEFORE);
    session.pipeline(vec![Query("COMMIT", values![])]).await?;
    crash::reach("prune", crash::AFTER);
    Ok(count)
}

fn ids(rows: Option<&Vec<Row>>) -> Result<Vec<String>> {
    rows.into_iter().flatten().map(|row| column(row, 0)).collect()
}
