//! One transaction over the server: rows are locked and loaded, the change is made in memory, and written.
//!
//! That takes two trips, however many rows and callers there are. Several changes can share a transaction, each of which
//! fails alone. Where the connection breaks before the answer to a commit, the server is asked what became of it: nobody is told
//! that something failed which did not.

use std::time::Duration;

use deadpool_postgres::Pool;
use helve_core::{HolderId, StoreError};

use super::draft::Draft;
use super::flush;
use super::keys::Keys;
use super::record::column;
use super::session::{Session, Step, ask_one, values};
use super::trouble::Trouble;
use crate::crash;

/// How often a transaction begins again because others were in its way.
const TRIES: u32 = 6;
/// How often one begins again because it needs more rows. No transaction of the record follows so many links.
const LINKS: u32 = 12;

/// How long the server may be away before a commit stays unknown.
const AWAY: Duration = Duration::from_secs(10);
/// Leaves a mark that is there if and only if the transaction is. The server's own numbers of transactions do not serve: after
/// a crash one that was lost can be given to another.
const MARK: &str = "INSERT INTO helve_marks (backend, mark, made) VALUES (pg_backend_pid(), $1, clock_timestamp())
    ON CONFLICT (backend) DO UPDATE SET mark = excluded.mark, made = excluded.made";
/// Waits for a transaction that is still being committed.
const MARKED: &str = "SELECT mark FROM helve_marks WHERE backend = $1 FOR UPDATE";

/// What came of each change of a transaction that was committed.
pub(super) type Results<O> = Vec<Result<O, StoreError>>;

/// How far a try came.
enum Tried<O> {
    /// It is committed.
    Committed(Results<O>),
    /// There was nothing to commit.
    Unchanged(Results<O>),
    /// It needs more rows.
    Needs(Keys),
    /// The connection broke before the answer to the commit.
    Unheard { results: Results<O>, backend: i32, mark: String, error: StoreError },
}

/// Runs changes in one transaction. It is committed when this returns well; each change can have failed alone. Its name is for tests
/// that let the process die beside its commit.
pub(super) async fn write<I: Clone, O>(
    pool: &Pool,
    name: &str,
    mut keys: Keys,
    changes: &[I],
    change: impl Fn(&mut Draft, I) -> Result<O, StoreError>,
) -> Result<Results<O>, Trouble> {
    let (mut tries, mut links) = (0, 0);
    loop {
        match attempt(pool, name, &keys, changes, &change).await {
            Ok(Tried::Committed(results) | Tried::Unchanged(results)) => return Ok(results),
            Ok(Tried::Unheard { results, backend, mark, error }) => {
                let committed = is_committed(pool, backend, &mark).await;
                tracing::debug!(%error, committed, "the connection broke at a commit");
                return if committed { Ok(results) } else { Err(Trouble::Broken(error)) };
            }
            Ok(Tried::Needs(more)) if links < LINKS => {
                links += 1;
                keys.add(more);
            }
            Ok(Tried::Needs(_)) => return Err(Trouble::Refused(StoreError::Unavailable("a transaction needs too many rows".to_owned()))),
            Err(Trouble::Again(_)) if tries < TRIES => {
                tries += 1;
                keys.look();
                tokio::time::sleep(Duration::from_millis(1 << tries)).await;
            }
            Err(trouble) => return Err(trouble),
        }
    }
}

/// Runs one change in a transaction of its own.
pub(super) async fn write_one<I: Clone, O>(
    pool: &Pool,
    name: &str,
    keys: Keys,
    input: I,
    change: impl Fn(&mut Draft, I) -> Result<O, StoreError>,
) -> Result<O, StoreError> {
    let mut results = write(pool, name, keys, &[input], change).await.map_err(Trouble::told)?;
    results.pop().unwrap_or_else(|| Err(StoreError::Unavailable("nothing came of it".to_owned())))
}

async fn attempt<I: Clone, O>(
    pool: &Pool,
    name: &str,
    keys: &Keys,
    changes: &[I],
    change: &impl Fn(&mut Draft, I) -> Result<O, StoreError>,
) -> Result<Tried<O>, Trouble> {
    let session = Session::lend(pool).await?;
    let tried = inside(&session, name, keys, changes, change).await;
    let whole = match &tried {
        Ok(Tried::Committed(_)) => true,
        Ok(Tried::Unheard { .. }) | Err(Trouble::Broken(_)) => false,
        Ok(Tried::Unchanged(_) | Tried::Needs(_)) | Err(_) => session.pipeline(vec![Step("ROLLBACK", values![])]).await.is_ok(),
    };
    if whole {
        session.give_back();
    }
    tried
}

async fn inside<I: Clone, O>(
    session: &Session,
    name: &str,
    keys: &Keys,
    changes: &[I],
    change: &impl Fn(&mut Draft, I) -> Result<O, StoreError>,
) -> Result<Tried<O>, Trouble> {
    let mut draft = keys.load(session).await?;
    let mut results = Vec::with_capacity(changes.len());
    for input in changes {
        results.push(draft.run(|draft| change(draft, input.clone())));
    }
    if let Some(missing) = draft.missing() {
        return Ok(Tried::Needs(missing));
    }
    let mut steps = flush::steps(&draft)?;
    if steps.is_empty() {
        return Ok(Tried::Unchanged(results));
    }
    let mark = HolderId::mint().to_string();
    steps.push(Step(MARK, values![mark.clone()]));
    if crash::is_chosen(name, crash::BEFORE) {
        session.pipeline(steps).await?;
        std::process::abort();
    }
    steps.push(Step("COMMIT", values![]));
    match session.pipeline(steps).await {
        Ok(_) => {
            crash::reach(name, crash::AFTER);
            Ok(Tried::Committed(results))
        }
        Err(Trouble::Broken(error)) => Ok(Tried::Unheard { results, backend: draft.backend, mark, error }),
        Err(trouble) => Err(trouble),
    }
}

/// Whether a transaction was committed whose answer is lost. Waits while the server is away.
async fn is_committed(pool: &Pool, backend: i32, mark: &str) -> bool {
    let asked = async {
        let mut pause = Duration::from_millis(20);
        loop {
            if let Ok(rows) = ask_one(pool, MARKED, values![backend]).await {
                return rows.first().is_some_and(|row| column::<&str>(row, 0).is_ok_and(|found| found == mark));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(500));
        }
    };
    tokio::time::timeout(AWAY, asked).await.unwrap_or(false)
}
