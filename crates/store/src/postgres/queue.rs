//! The hot path of the queue: tasks are accepted, given out and finished in groups.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use deadpool_postgres::Pool;
use helve_core::store::{AcceptResult, Finish, FinishResult, NewTask, Task, transact};
use helve_core::{HolderId, StoreError};
use parking_lot::{Mutex, MutexGuard};

use super::draft::Draft;
use super::keys::Keys;
use super::record::{self, count};
use super::session::{ask_one, change_one, values};
use super::transaction::{self, Results};
use super::trouble::Trouble;

/// Rows that another worker is about to take are passed by. The time of the server decides what is due.
const CLAIM: &str = "WITH moment AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now),
    next AS MATERIALIZED (SELECT id FROM helve_tasks WHERE state = 'queued' AND due <= (SELECT now FROM moment)
        ORDER BY rank, id LIMIT $2 FOR UPDATE SKIP LOCKED)
    UPDATE helve_tasks AS task SET state = 'running', holder = $1, claim = $3, epoch = epoch + 1,
        attempts = attempts + 1, updated = (SELECT now FROM moment)
    FROM next WHERE task.id = next.id RETURNING body, state, holder, epoch, attempts, updated";
/// The same for a worker that has only some tools.
const CLAIM_SOME: &str = "WITH moment AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now),
    next AS MATERIALIZED (SELECT id FROM helve_tasks WHERE state = 'queued' AND due <= (SELECT now FROM moment)
        AND definition = ANY($4::text[]) ORDER BY rank, id LIMIT $2 FOR UPDATE SKIP LOCKED)
    UPDATE helve_tasks AS task SET state = 'running', holder = $1, claim = $3, epoch = epoch + 1,
        attempts = attempts + 1, updated = (SELECT now FROM moment)
    FROM next WHERE task.id = next.id RETURNING body, state, holder, epoch, attempts, updated";

/// Only columns change, as with a claim: the text is as it was before it.
const GIVE_BACK: &str = "UPDATE helve_tasks SET state = 'queued', holder = NULL, claim = NULL, attempts = attempts - 1,
    updated = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint WHERE state = 'running' AND holder = $1 AND claim = $2";

/// A worker's request, as a lane carries it.
#[derive(Clone)]
pub(super) struct Wish {
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

/// Records what came of tasks in one transaction.
pub(super) async fn finish(pool: Pool, ended: Vec<Vec<Finish>>) -> Results<Vec<FinishResult>> {
    let keys = |ended: &[Vec<Finish>]| Keys { tasks: ended.iter().flatten().map(|finish| finish.task).collect(), ..Keys::default() };
    together(&pool, "finish", ended, keys, |draft, ended| transact::finish(draft, ended)).await
}

/// Gives tasks out.
pub(super) struct Claims {
    pool: Pool,
    /// The mark of each claim begins with it.
    name: HolderId,
    made: AtomicU64,
    /// Claims whose answer was lost with the connection, or could not be read.
    lost: Mutex<Vec<(HolderId, String)>>,
}

impl Claims {
    pub(super) fn new(pool: Pool) -> Self {
        Self { pool, name: HolderId::mint(), made: AtomicU64::new(0), lost: Mutex::default() }
    }

    /// Workers that want the same are served by one statement, in the order in which they came.
    pub(super) async fn claim(self: Arc<Self>, wishes: Vec<Wish>) -> Results<Vec<Task>> {
        if let Err(error) = self.give_back().await {
            return wishes.iter().map(|_| Err(error.clone())).collect();
        }
        let mut results: Vec<Option<Result<Vec<Task>, StoreError>>> = wishes.iter().map(|_| None).collect();
        for first in 0..wishes.len() {
            if results[first].is_some() {
                continue;
            }
            let same = |wish: &Wish| wish.holder == wishes[first].holder && wish.tools == wishes[first].tools;
            let members: Vec<usize> = (first..wishes.len()).filter(|place| same(&wishes[*place])).collect();
            let wanted = members.iter().fold(0usize, |sum, place| sum.saturating_add(wishes[*place].limit));
            let mut got = self.some(&wishes[first], wanted).await.map(Vec::into_iter);
            for place in members {
                results[place] = Some(match &mut got {
                    Ok(tasks) => Ok(tasks.by_ref().take(wishes[place].limit).collect()),
                    Err(error) => Err(error.clone()),
                });
            }
        }
        results.into_iter().flatten().collect()
    }

    async fn some(&self, wish: &Wish, limit: usize) -> Result<Vec<Task>, StoreError> {
        let mark = format!("{}-{}", self.name, self.made.fetch_add(1, Ordering::Relaxed));
        let (holder, limit) = (wish.holder.to_string(), count(limit));
        let rows = match wish.tools.clone() {
            None => change_one(&self.pool, "claim", CLAIM, values![holder, limit, mark.clone()]).await,
            Some(tools) => change_one(&self.pool, "claim", CLAIM_SOME, values![holder, limit, mark.clone(), tools]).await,
        };
        let unsure = matches!(rows, Ok(_) | Err(Trouble::Broken(_)));
        let tasks = rows.map_err(Trouble::told).and_then(|rows| record::tasks(&rows));
        if tasks.is_err() && unsure {
            self.lost().push((wish.holder, mark));
        }
        let mut tasks = tasks?;
        // An update gives its rows in any order.
        tasks.sort_by_key(|task| (task.rank(), task.id));
        Ok(tasks)
    }

    /// Puts back what was claimed without anybody getting to know: its holder lives, so recovery would not touch it.
    async fn give_back(&self) -> Result<(), StoreError> {
        loop {
            let Some((holder, mark)) = self.lost().pop() else { return Ok(()) };
            if let Err(trouble) = ask_one(&self.pool, GIVE_BACK, values![holder.to_string(), mark.clone()]).await {
                self.lost().push((holder, mark));
                return Err(trouble.told());
            }
        }
    }

    fn lost(&self) -> MutexGuard<'_, Vec<(HolderId, String)>> {
        self.lost.lock()
    }
}

/// Makes changes in one transaction; where the server refuses that, each in one of its own, so that only the bad one fails.
async fn together<I: Clone + Send + Sync, O: Send>(
    pool: &Pool,
    name: &str,
    changes: Vec<I>,
    keys: impl Fn(&[I]) -> Keys + Send + Sync,
    change: impl Fn(&mut Draft, I) -> Result<O, StoreError> + Send + Sync,
) -> Results<O> {
    match transaction::write(pool, name, keys(&changes), &changes, &change).await {
        Ok(results) => results,
        Err(Trouble::Refused(_) | Trouble::Again(_)) if changes.len() > 1 => {
            let mut results = Vec::with_capacity(changes.len());
            for one in changes {
                results.push(transaction::write_one(pool, name, keys(std::slice::from_ref(&one)), one, &change).await);
            }
            results
        }
        Err(trouble) => {
            let error = trouble.told();
            changes.iter().map(|_| Err(error.clone())).collect()
        }
    }
}
