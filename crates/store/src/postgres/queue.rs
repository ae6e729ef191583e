//! The hot path of the queue: accepts, claims and finishes tasks in batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use deadpool_postgres::Pool;
use helve_core::store::{AcceptResult, Finish, FinishResult, NewTask, Task, transact};
use helve_core::{HolderId, StoreError};
use parking_lot::Mutex;

use super::draft::Draft;
use super::error::TransactionError;
use super::keys::Keys;
use super::row;
use super::session::{execute, query, values};
use super::transaction::{self, Results};
use crate::row::count;

/// Claims due tasks of any tool. Skips rows that another worker is claiming; uses the server's clock.
const CLAIM: &str = "WITH moment AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now),
    next AS MATERIALIZED (SELECT id FROM helve_tasks WHERE state = 'queued' AND due <= (SELECT now FROM moment)
        ORDER BY rank, id LIMIT $2 FOR UPDATE SKIP LOCKED)
    UPDATE helve_tasks AS task SET state = 'running', holder = $1, claim = $3, epoch = epoch + 1,
        attempts = attempts + 1, updated = (SELECT now FROM moment)
    FROM next WHERE task.id = next.id RETURNING body, state, holder, epoch, attempts, updated";
/// Claims due tasks like [`CLAIM`], but only of some tools.
const CLAIM_SOME: &str = "WITH moment AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now),
    next AS MATERIALIZED (SELECT id FROM helve_tasks WHERE state = 'queued' AND due <= (SELECT now FROM moment)
        AND definition = ANY($4::text[]) ORDER BY rank, id LIMIT $2 FOR UPDATE SKIP LOCKED)
    UPDATE helve_tasks AS task SET state = 'running', holder = $1, claim = $3, epoch = epoch + 1,
        attempts = attempts + 1, updated = (SELECT now FROM moment)
    FROM next WHERE task.id = next.id RETURNING body, state, holder, epoch, attempts, updated";

/// Returns the tasks of a claim to the queue. Changes only columns, as a claim does.
const GIVE_BACK: &str = "UPDATE helve_tasks SET state = 'queued', holder = NULL, claim = NULL, attempts = attempts - 1,
    updated = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint WHERE state = 'running' AND holder = $1 AND claim = $2";

/// A worker's request for tasks.
#[derive(Clone)]
pub(super) struct ClaimRequest {
    pub(super) holder: HolderId,
    pub(super) limit: usize,
    pub(super) tools: Option<Vec<String>>,
}

/// Accepts tasks in one transaction.
pub(super) async fn accept(pool: Pool, tasks: Vec<NewTask>) -> Results<AcceptResult> {
    let keys = |tasks: &[NewTask]| Keys {
        fresh: tasks.iter().map(|task| task.call.id).collect(),
        runs: tasks.iter().filter_map(|task| task.caller.run).collect(),
        ..Keys::default()
    };
    together(&pool, "accept", tasks, keys, |draft, task| transact::accept(draft, task)).await
}

/// Stores the results of tasks in one transaction.
pub(super) async fn finish(pool: Pool, ended: Vec<Vec<Finish>>) -> Results<Vec<FinishResult>> {
    let keys = |ended: &[Vec<Finish>]| Keys { tasks: ended.iter().flatten().map(|finish| finish.task).collect(), ..Keys::default() };
    together(&pool, "finish", ended, keys, |draft, ended| transact::finish(draft, ended)).await
}

/// The claims of this process. Claims whose result is lost are given back.
pub(super) struct Claims {
    pool: Pool,
    /// Prefix of the marks that identify claims.
    name: HolderId,
    next: AtomicU64,
    /// The claims whose result was lost with the connection or could not be parsed: the holder and the mark of each.
    lost: Mutex<Vec<(HolderId, String)>>,
}

impl Claims {
    pub(super) fn new(pool: Pool) -> Self {
        Self { pool, name: HolderId::mint(), next: AtomicU64::new(0), lost: Mutex::default() }
    }

    /// Claims tasks for workers. Requests of the same worker for the same tools share one statement, and get tasks in order.
    pub(super) async fn claim(self: Arc<Self>, requests: Vec<ClaimRequest>) -> Results<Vec<Task>> {
        if let Err(error) = self.give_back().await {
            return requests.iter().map(|_| Err(error.clone())).collect();
        }
        let mut results: Vec<Option<Result<Vec<Task>, StoreError>>> = requests.iter().map(|_| None).collect();
        for first in 0..requests.len() {
            if results[first].is_some() {
                continue;
            }
            let same = |other: &ClaimRequest| other.holder == requests[first].holder && other.tools == requests[first].tools;
            let members: Vec<usize> = (first..requests.len()).filter(|place| same(&requests[*place])).collect();
            let wanted = members.iter().fold(0usize, |sum, place| sum.saturating_add(requests[*place].limit));
            let mut got = self.claim_some(&requests[first], wanted).await.map(Vec::into_iter);
            for place in members {
                results[place] = Some(match &mut got {
                    Ok(tasks) => Ok(tasks.by_ref().take(requests[place].limit).collect()),
                    Err(error) => Err(error.clone()),
                });
            }
        }
        results.into_iter().flatten().collect()
    }

    async fn claim_some(&self, request: &ClaimRequest, limit: usize) -> Result<Vec<Task>, StoreError> {
        let mark = format!("{}-{}", self.name, self.next.fetch_add(1, Ordering::Relaxed));
        let (holder, limit) = (request.holder.to_string(), count(limit));
        let rows = match request.tools.clone() {
            None => execute(&self.pool, "claim", CLAIM, values![holder, limit, mark.clone()]).await,
            Some(tools) => execute(&self.pool, "claim", CLAIM_SOME, values![holder, limit, mark.clone(), tools]).await,
        };
        let unsure = matches!(rows, Ok(_) | Err(TransactionError::Disconnected(_)));
        let tasks = rows.map_err(StoreError::from).and_then(|rows| row::tasks(&rows));
        if tasks.is_err() && unsure {
            self.lost.lock().push((request.holder, mark));
        }
        let mut tasks = tasks?;
        // An `UPDATE` returns its rows in any order.
        tasks.sort_by_key(|task| (task.rank(), task.id));
        Ok(tasks)
    }

    /// Returns the tasks of lost claims to the queue. Recovery would not do this, because the holder of the claims is alive.
    async fn give_back(&self) -> Result<(), StoreError> {
        loop {
            let Some((holder, mark)) = self.lost.lock().pop() else { return Ok(()) };
            if let Err(error) = query(&self.pool, GIVE_BACK, values![holder.to_string(), mark.clone()]).await {
                self.lost.lock().push((holder, mark));
                return Err(error.into());
            }
        }
    }
}

/// Applies changes in one transaction. If the server rejects it, applies each change in its own transaction, so that only the invalid
/// change fails.
async fn together<I: Clone + Send + Sync, O: Send>(
    pool: &Pool,
    name: &str,
    changes: Vec<I>,
    keys: impl Fn(&[I]) -> Keys + Send + Sync,
    change: impl Fn(&mut Draft, I) -> Result<O, StoreError> + Send + Sync,
) -> Results<O> {
    match transaction::write(pool, name, keys(&changes), &changes, &change).await {
        Ok(results) => results,
        Err(TransactionError::Refused(_) | TransactionError::Conflict(_)) if changes.len() > 1 => {
            let mut results = Vec::with_capacity(changes.len());
            for one in changes {
                results.push(transaction::write_one(pool, name, keys(std::slice::from_ref(&one)), one, &change).await);
            }
            results
        }
        Err(error) => {
            let error = StoreError::from(error);
            changes.iter().map(|_| Err(error.clone())).collect()
        }
    }
}
