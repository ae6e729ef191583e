//! Threads with one database connection each. The writer commits all waiting jobs in one transaction, and then sends their results.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use helve_core::StoreError;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use super::cache::TaskCache;
use super::rows::{SqliteRows, engine};
use super::schema::VERSION;
use super::wal::WriteAheadLog;
use crate::row::Result;

/// Maximum number of jobs in one transaction.
const MAX_GROUP: usize = 256;

/// A job that runs in a transaction. After a rollback it may run again in another one, so it keeps its last result until the commit.
trait Job: Send {
    /// Runs the job. Returns whether it succeeded.
    fn run(&mut self, rows: &mut SqliteRows<'_>) -> bool;

    /// Sends the caller the result of the job, or the error of the commit.
    fn finish(self: Box<Self>, committed: Result<()>);
}

struct PendingJob<F, T> {
    work: F,
    result: Option<Result<T>>,
    caller: oneshot::Sender<Result<T>>,
}

impl<T: Send, F: Fn(&mut SqliteRows<'_>) -> Result<T> + Send> Job for PendingJob<F, T> {
    fn run(&mut self, rows: &mut SqliteRows<'_>) -> bool {
        self.result.insert((self.work)(rows)).is_ok()
    }

    fn finish(self: Box<Self>, committed: Result<()>) {
        let result = self.result.unwrap_or_else(|| Err(closed()));
        // Ignore an error: the caller may have stopped waiting, but the transaction is committed.
        let _ = self.caller.send(committed.and(result));
    }
}

/// A thread that runs jobs on its own database connection.
pub(super) struct DatabaseThread(Sender<Box<dyn Job>>);

impl DatabaseThread {
    pub(super) fn writer(mut connection: Connection) -> Result<Self> {
        Self::start("helve-store-write", move |jobs| {
            let (cache, mut wal) = (TaskCache::default(), WriteAheadLog::of(&connection));
            while let Ok(first) = jobs.recv() {
                write(&mut connection, &cache, first, &jobs);
                wal.keep_short(&connection);
            }
        })
    }

    pub(super) fn reader(connection: Connection) -> Result<Self> {
        Self::start("helve-store-read", move |jobs| {
            let cache = TaskCache::default();
            while let Ok(mut job) = jobs.recv() {
                job.run(&mut SqliteRows(&connection, &cache));
                job.finish(Ok(()));
            }
        })
    }

    fn start(name: &str, work: impl FnOnce(Receiver<Box<dyn Job>>) + Send + 'static) -> Result<Self> {
        let (sender, jobs) = channel();
        let started = thread::Builder::new().name(name.to_owned()).spawn(move || work(jobs));
        started.map(|_| Self(sender)).map_err(|error| StoreError::Unavailable(format!("cannot start a thread: {error}")))
    }

    /// Sends a job to the thread. The job runs even if the returned future is dropped.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl Fn(&mut SqliteRows<'_>) -> Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send + 'static {
        let (caller, result) = oneshot::channel();
        let sent = self.0.send(Box::new(PendingJob { work, result: None, caller }));
        async move {
            sent.map_err(|_| closed())?;
            result.await.unwrap_or_else(|_| Err(closed()))
        }
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".to_owned())
}

/// Runs a job and all waiting jobs in one transaction. A job that fails rolls back only its own changes.
fn write(connection: &mut Connection, cache: &TaskCache, first: Box<dyn Job>, jobs: &Receiver<Box<dyn Job>>) {
    let mut group = Vec::new();
    let committed = match commit(connection, cache, first, jobs, &mut group) {
        Ok(GroupResult::Committed) => Ok(()),
        Ok(GroupResult::RolledBack) => commit_apart(connection, cache, &mut group),
        Err(error) => Err(error),
    };
    for job in group {
        job.finish(committed.clone());
    }
}

/// The result of a group of jobs that share a transaction.
enum GroupResult {
    /// All successful jobs are committed.
    Committed,
    /// A job failed after it had changed something, so the whole group was rolled back.
    RolledBack,
}

/// Runs jobs in one transaction without savepoints, and adds them to `group`. Savepoints would slow down every job, and are rarely
/// needed: except for errors of the file itself, a job that fails has changed nothing.
fn commit(
    connection: &mut Connection,
    cache: &TaskCache,
    first: Box<dyn Job>,
    jobs: &Receiver<Box<dyn Job>>,
    group: &mut Vec<Box<dyn Job>>,
) -> Result<GroupResult> {
    let mut next = Some(first);
    let transaction = match begin(connection) {
        Ok(transaction) => transaction,
        Err(error) => {
            group.extend(next);
            return Err(error);
        }
    };
    let mut must_roll_back = false;
    while let Some(mut job) = next.take() {
        let before = transaction.total_changes();
        let success = job.run(&mut SqliteRows(&transaction, cache));
        // An error of the file can end the transaction, even if the job reports success.
        must_roll_back |= transaction.is_autocommit() || (!success && transaction.total_changes() != before);
        group.push(job);
        if group.len() < MAX_GROUP && !must_roll_back {
            next = jobs.try_recv().ok();
        }
    }
    if must_roll_back {
        // Ignore an error: SQLite may have rolled back the transaction itself.
        let _ = transaction.rollback();
        return Ok(GroupResult::RolledBack);
    }
    transaction.commit().map_err(engine)?;
    Ok(GroupResult::Committed)
}

/// Begins a write transaction. Returns an error if another process has migrated the schema to another version.
fn begin(connection: &mut Connection) -> Result<Transaction<'_>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(engine)?;
    let version = transaction.prepare_cached("PRAGMA user_version").and_then(|mut sql| sql.query_row([], |row| row.get::<_, u32>(0)));
    match version.map_err(engine)? {
        VERSION => Ok(transaction),
        _ => Err(StoreError::Version("another version of Helve has migrated it; restart this process with that version".to_owned())),
    }
}

/// Runs a group of jobs again, with a savepoint for each job.
fn commit_apart(connection: &mut Connection, cache: &TaskCache, group: &mut [Box<dyn Job>]) -> Result<()> {
    let transaction = begin(connection)?;
    let step = |sql: &str| transaction.execute_batch(sql).map_err(engine);
    for job in group {
        step("SAVEPOINT job")?;
        if !job.run(&mut SqliteRows(&transaction, cache)) {
            step("ROLLBACK TO job")?;
        }
        step("RELEASE job")?;
    }
    transaction.commit().map_err(engine)
}
