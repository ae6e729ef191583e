//! Runs a transaction on the server: locks and loads the rows, changes them in memory, and writes them.
//!
//! This takes two round trips, however many rows and callers there are. Several changes can share a transaction, and each can fail
//! separately. If the connection is lost before the response to a commit, Helve reads a mark from the server to find out whether the
//! transaction was committed. So no caller gets an error for a change that was committed.

use std::time::Duration;

use deadpool_postgres::Pool;
use helve_core::{Backoff, HolderId, StoreError};

use super::draft::Draft;
use super::error::TransactionError;
use super::flush;
use super::keys::Keys;
use super::row::column;
use super::session::{Query, Session, query, values};
use crate::crash;

/// Maximum number of retries after a conflict.
const MAX_RETRIES: u32 = 6;
/// Maximum number of times that a transaction is restarted to load more rows. No transaction follows so many references.
const MAX_LOADS: u32 = 12;

/// Timeout for finding out whether a transaction was committed.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(10);
/// The first and the maximum delay between attempts to read the mark of a transaction.
const COMMIT_BACKOFF: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(500)];
/// The first and the maximum delay between retries after a conflict.
const RETRY_BACKOFF: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(64)];
/// Writes a mark that exists if and only if the transaction was committed. The server's own transaction ids are not suitable: after a
/// crash, the server can reuse the id of a lost transaction.
const MARK: &str = "INSERT INTO helve_marks (backend, mark, made) VALUES (pg_backend_pid(), $1, clock_timestamp())
    ON CONFLICT (backend) DO UPDATE SET mark = excluded.mark, made = excluded.made";
/// Reads the mark of a server backend. Waits if a transaction of the backend is still being committed.
const MARKED: &str = "SELECT mark FROM helve_marks WHERE backend = $1 FOR UPDATE";

/// The results of the changes in a committed transaction, in order.
pub(super) type Results<O> = Vec<Result<O, StoreError>>;

/// The result of one attempt to run a transaction.
enum Attempt<O> {
    /// The transaction is committed.
    Committed(Results<O>),
    /// There was nothing to commit.
    Unchanged(Results<O>),
    /// The transaction was rolled back, because it needs these rows as well.
    NeedsRows(Keys),
    /// The connection was lost before the response to the commit.
    Unknown { results: Results<O>, backend: i32, mark: String, error: StoreError },
}

/// Runs changes in one transaction. Returns the result of each change after the transaction was committed; a change that failed has not
/// been written. `name` selects the crash points before and after the commit.
pub(super) async fn write<I: Clone, O>(
    pool: &Pool,
    name: &str,
    mut keys: Keys,
    changes: &[I],
    change: impl Fn(&mut Draft, I) -> Result<O, StoreError>,
) -> Result<Results<O>, TransactionError> {
    let (mut retries, mut loads) = (0..MAX_RETRIES, 0..MAX_LOADS);
    let mut backoff = None;
    loop {
        match attempt(pool, name, &keys, changes, &change).await {
            Ok(Attempt::Committed(results) | Attempt::Unchanged(results)) => return Ok(results),
            Ok(Attempt::Unknown { results, backend, mark, error }) => {
                let committed = is_committed(pool, backend, &mark).await;
                tracing::debug!(%error, committed, "connection lost during a commit");
                return if committed { Ok(results) } else { Err(TransactionError::Disconnected(error)) };
            }
            Ok(Attempt::NeedsRows(more)) => {
                loads.next().ok_or_else(|| StoreError::Unavailable("a transaction needs too many rows".to_owned()))?;
                keys.add(more);
            }
            Err(TransactionError::Conflict(error)) => {
                retries.next().ok_or(TransactionError::Conflict(error))?;
                keys.check_fresh();
                let backoff = backoff.get_or_insert_with(|| Backoff::new(RETRY_BACKOFF[0], RETRY_BACKOFF[1]));
                tokio::time::sleep(backoff.delay()).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Runs one change in its own transaction.
pub(super) async fn write_one<I: Clone, O>(
    pool: &Pool,
    name: &str,
    keys: Keys,
    input: I,
    change: impl Fn(&mut Draft, I) -> Result<O, StoreError>,
) -> Result<O, StoreError> {
    let mut results = write(pool, name, keys, &[input], change).await?;
    results.pop().unwrap_or_else(|| Err(StoreError::Unavailable("the transaction has no result".to_owned())))
}

async fn attempt<I: Clone, O>(
    pool: &Pool,
    name: &str,
    keys: &Keys,
    changes: &[I],
    change: &impl Fn(&mut Draft, I) -> Result<O, StoreError>,
) -> Result<Attempt<O>, TransactionError> {
    let session = Session::take(pool).await?;
    let attempt = inside(&session, name, keys, changes, change).await;
    let usable = match &attempt {
        Ok(Attempt::Committed(_)) => true,
        Ok(Attempt::Unknown { .. }) | Err(TransactionError::Disconnected(_)) => false,
        Ok(Attempt::Unchanged(_) | Attempt::NeedsRows(_)) | Err(_) => session.pipeline(vec![Query("ROLLBACK", values![])]).await.is_ok(),
    };
    if usable {
        session.put_back();
    }
    attempt
}

async fn inside<I: Clone, O>(
    session: &Session,
    name: &str,
    keys: &Keys,
    changes: &[I],
    change: &impl Fn(&mut Draft, I) -> Result<O, StoreError>,
) -> Result<Attempt<O>, TransactionError> {
    let mut draft = keys.load(session).await?;
    let mut results = Vec::with_capacity(changes.len());
    for input in changes {
        results.push(draft.run(|draft| change(draft, input.clone())));
    }
    if let Some(missing) = draft.missing() {
        return Ok(Attempt::NeedsRows(missing));
    }
    let mut queries = flush::queries(&draft)?;
    if queries.is_empty() {
        return Ok(Attempt::Unchanged(results));
    }
    let mark = HolderId::mint().to_string();
    queries.push(Query(MARK, values![mark.clone()]));
    if crash::is_chosen(name, crash::BEFORE) {
        session.pipeline(queries).await?;
        std::process::abort();
    }
    queries.push(Query("COMMIT", values![]));
    match session.pipeline(queries).await {
        Ok(_) => {
            crash::reach(name, crash::AFTER);
            Ok(Attempt::Committed(results))
        }
        Err(TransactionError::Disconnected(error)) => Ok(Attempt::Unknown { results, backend: draft.backend, mark, error }),
        Err(error) => Err(error),
    }
}

/// Returns whether a transaction was committed, after the response to its commit was lost. Retries while the server is unreachable, up
/// to [`COMMIT_TIMEOUT`].
async fn is_committed(pool: &Pool, backend: i32, mark: &str) -> bool {
    let committed = async {
        let mut backoff = Backoff::new(COMMIT_BACKOFF[0], COMMIT_BACKOFF[1]);
        loop {
            if let Ok(rows) = query(pool, MARKED, values![backend]).await {
                return rows.first().is_some_and(|row| column::<&str>(row, 0).is_ok_and(|found| found == mark));
            }
            tokio::time::sleep(backoff.delay()).await;
        }
    };
    tokio::time::timeout(COMMIT_TIMEOUT, committed).await.unwrap_or(false)
}
