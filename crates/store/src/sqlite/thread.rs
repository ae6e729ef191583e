//! A thread with a connection. The writing one commits once for all jobs that wait at that moment, and answers only then.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use helve_core::StoreError;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use super::known::Known;
use super::log::WriteLog;
use super::rows::{SqliteRows, engine};
use super::schema::VERSION;

/// So many jobs share one commit at most.
const GROUP: usize = 256;

/// A job in a transaction, which may be run again in another one. It keeps its last result until the commit is known.
trait Job: Send {
    fn run(&mut self, rows: &mut SqliteRows<'_>) -> bool;
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Pending<F, T> {
    work: F,
    result: Option<Result<T, StoreError>>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F: Fn(&mut SqliteRows<'_>) -> Result<T, StoreError> + Send> Job for Pending<F, T> {
    fn run(&mut self, rows: &mut SqliteRows<'_>) -> bool {
        let result = (self.work)(rows);
        let fine = result.is_ok();
        self.result = Some(result);
        fine
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let result = self.result.unwrap_or_else(|| Err(gone()));
        // Whoever asked may have given up; the record is as it is.
        let _ = self.answer.send(committed.and(result));
    }
}

/// A thread with a connection of its own.
pub(super) struct Worker(Sender<Box<dyn Job>>);

impl Worker {
    /// A thread that writes.
    pub(super) fn writer(mut connection: Connection) -> Result<Self, StoreError> {
        Self::start("helve-store-write", move |jobs| {
            let (known, mut log) = (Known::default(), WriteLog::of(&connection));
            while let Ok(first) = jobs.recv() {
                write(&mut connection, &known, first, &jobs);
                log.keep_short(&connection);
            }
        })
    }

    /// A thread that reads.
    pub(super) fn reader(connection: Connection) -> Result<Self, StoreError> {
        Self::start("helve-store-read", move |jobs| {
            let known = Known::default();
            while let Ok(mut job) = jobs.recv() {
                job.run(&mut SqliteRows::new(&connection, &known));
                job.answer(Ok(()));
            }
        })
    }

    fn start(name: &str, work: impl FnOnce(Receiver<Box<dyn Job>>) + Send + 'static) -> Result<Self, StoreError> {
        let (sender, jobs) = channel();
        let started = thread::Builder::new().name(name.to_owned()).spawn(move || work(jobs));
        started.map(|_| Self(sender)).map_err(|error| StoreError::Unavailable(format!("no thread for the record: {error}")))
    }

    /// Gives the thread a job. It is done even if nobody waits for its answer.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl Fn(&mut SqliteRows<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send + 'static {
        let (answer, answered) = oneshot::channel();
        let sent = self.0.send(Box::new(Pending { work, result: None, answer }));
        async move {
            sent.map_err(|_| gone())?;
            answered.await.unwrap_or_else(|_| Err(gone()))
        }
    }
}

fn gone() -> StoreError {
    StoreError::Unavailable("the record was closed".to_owned())
}

/// Runs a job and all that wait behind it in one transaction. A job that fails takes only its own changes back.
fn write(connection: &mut Connection, known: &Known, first: Box<dyn Job>, jobs: &Receiver<Box<dyn Job>>) {
    let mut group = Vec::new();
    let committed = match commit(connection, known, first, jobs, &mut group) {
        Ok(Tried::Committed) => Ok(()),
        Ok(Tried::Spoilt) => commit_apart(connection, known, &mut group),
        Err(error) => Err(error),
    };
    for job in group {
        job.answer(committed.clone());
    }
}

/// How far a group came.
enum Tried {
    /// All that went well is in the record.
    Committed,
    /// A job failed after it had changed something. Nothing of the group is in the record.
    Spoilt,
}

/// Runs a group as it comes, without keeping its jobs apart: those that fail do so before they change anything, but for trouble
/// with the file itself, and what it costs to take a change back would be paid by every job.
fn commit(
    connection: &mut Connection,
    known: &Known,
    first: Box<dyn Job>,
    jobs: &Receiver<Box<dyn Job>>,
    group: &mut Vec<Box<dyn Job>>,
) -> Result<Tried, StoreError> {
    let mut next = Some(first);
    let transaction = match begin(connection) {
        Ok(transaction) => transaction,
        Err(error) => {
            group.extend(next);
            return Err(error);
        }
    };
    let mut spoilt = false;
    while let Some(mut job) = next.take() {
        let before = transaction.total_changes();
        let fine = job.run(&mut SqliteRows::new(&transaction, known));
        // Trouble with the file can end the transaction, whatever became of the job.
        spoilt |= transaction.is_autocommit() || (!fine && transaction.total_changes() != before);
        group.push(job);
        if group.len() < GROUP && !spoilt {
            next = jobs.try_recv().ok();
        }
    }
    if spoilt {
        // Where the engine has taken everything back by itself there is nothing left to take back.
        let _ = transaction.rollback();
        return Ok(Tried::Spoilt);
    }
    transaction.commit().map_err(|error| engine(&error))?;
    Ok(Tried::Committed)
}

/// Begins to write, if the tables are still those that this program knows: another one may have brought them up to date.
fn begin(connection: &mut Connection) -> Result<Transaction<'_>, StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|error| engine(&error))?;
    let version = transaction.prepare_cached("PRAGMA user_version").and_then(|mut sql| sql.query_row([], |row| row.get::<_, u32>(0)));
    match version.map_err(|error| engine(&error))? {
        VERSION => Ok(transaction),
        _ => Err(StoreError::Version("another version of Helve has brought it up to date; start this one again".to_owned())),
    }
}

/// Runs a group again, each job behind a point to which its changes can be taken back.
fn commit_apart(connection: &mut Connection, known: &Known, group: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
    let transaction = begin(connection)?;
    let step = |sql: &str| transaction.execute_batch(sql).map_err(|error| engine(&error));
    for job in group {
        step("SAVEPOINT job")?;
        if !job.run(&mut SqliteRows::new(&transaction, known)) {
            step("ROLLBACK TO job")?;
        }
        step("RELEASE job")?;
    }
    transaction.commit().map_err(|error| engine(&error))
}
