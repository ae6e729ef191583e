//! One transaction over the server: rows are locked and loaded, the change is made in memory, and written.
//!
//! That takes two trips, however many rows and callers there are. Several changes can share a transaction, each of which
//! fails alone.

use std::time::Duration;

use deadpool_postgres::Pool;
use helve_core::StoreError;

use super::draft::Draft;
use super::flush;
use super::keys::Keys;
use super::session::{Session, Step, values};
use super::trouble::Trouble;

/// How often a transaction begins again because others were in its way.
const TRIES: u32 = 6;
/// How often one begins again because it needs more rows. No transaction of the record follows so many links.
const LINKS: u32 = 12;

/// What came of each change of a transaction that was committed.
pub(super) type Results<O> = Vec<Result<O, StoreError>>;

/// How far a try came.
enum Tried<O> {
    Over(Results<O>),
    Needs(Keys),
}

/// Runs changes in one transaction. It is committed when this returns well; each change can have failed alone.
pub(super) async fn write<I: Clone, O>(
    pool: &Pool,
    mut keys: Keys,
    changes: &[I],
    change: impl Fn(&mut Draft, I) -> Result<O, StoreError>,
) -> Result<Results<O>, Trouble> {
    let (mut tries, mut links) = (0, 0);
    loop {
        match attempt(pool, &keys, changes, &change).await {
            Ok(Tried::Over(results)) => return Ok(results),
            Ok(Tried::Needs(more)) if links < LINKS => {
                links += 1;
                keys.add(more);
            }
            Ok(Tried::Needs(_)) => return Err(Trouble::Refused(StoreError::Unavailable("a transaction needs too many rows".to_owned()))),
            Err(Trouble::Again(_)) if tries < TRIES => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(1 << tries)).await;
            }
            Err(trouble) => return Err(trouble),
        }
    }
}

/// Runs one change in a transaction of its own.
pub(super) async fn write_one<I: Clone, O>(
    pool: &Pool,
    keys: Keys,
    input: I,
    change: impl Fn(&mut Draft, I) -> Result<O, StoreError>,
) -> Result<O, StoreError> {
    let mut results = write(pool, keys, &[input], change).await.map_err(Trouble::told)?;
    results.pop().unwrap_or_else(|| Err(StoreError::Unavailable("nothing came of it".to_owned())))
}

async fn attempt<I: Clone, O>(
    pool: &Pool,
    keys: &Keys,
    changes: &[I],
    change: &impl Fn(&mut Draft, I) -> Result<O, StoreError>,
) -> Result<Tried<O>, Trouble> {
    let session = Session::lend(pool).await?;
    let tried = inside(&session, keys, changes, change).await;
    let open = !matches!(tried, Ok((Tried::Over(_), Committed::Yes)));
    if !matches!(tried, Err(Trouble::Broken(_))) && (!open || session.pipeline(vec![Step("ROLLBACK", values![])]).await.is_ok()) {
        session.give_back();
    }
    tried.map(|(tried, _)| tried)
}

enum Committed {
    Yes,
    /// There was nothing to commit.
    No,
}

async fn inside<I: Clone, O>(
    session: &Session,
    keys: &Keys,
    changes: &[I],
    change: &impl Fn(&mut Draft, I) -> Result<O, StoreError>,
) -> Result<(Tried<O>, Committed), Trouble> {
    let mut draft = keys.load(session).await?;
    let mut results = Vec::with_capacity(changes.len());
    for input in changes {
        results.push(draft.run(|draft| change(draft, input.clone())));
    }
    if let Some(missing) = draft.missing() {
        return Ok((Tried::Needs(missing), Committed::No));
    }
    let mut steps = flush::steps(&draft)?;
    if steps.is_empty() {
        return Ok((Tried::Over(results), Committed::No));
    }
    steps.push(Step("COMMIT", values![]));
    session.pipeline(steps).await?;
    Ok((Tried::Over(results), Committed::Yes))
}
