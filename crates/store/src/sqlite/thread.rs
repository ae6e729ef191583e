//! A thread with a connection. The writing one commits once for all jobs that wait at that moment, and answers only then.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use helve_core::StoreError;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;

use super::rows::{SqliteRows, engine};

/// So many jobs share one commit at most.
const GROUP: usize = 256;

/// A job in a transaction. It keeps its result until the commit is known.
trait Job: Send {
    fn run(&mut self, rows: &mut SqliteRows<'_>) -> bool;
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Pending<F, T> {
    work: Option<F>,
    result: Option<Result<T, StoreError>>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F: FnOnce(&mut SqliteRows<'_>) -> Result<T, StoreError> + Send> Job for Pending<F, T> {
    fn run(&mut self, rows: &mut SqliteRows<'_>) -> bool {
        let result = match self.work.take() {
            Some(work) => work(rows),
            None => Err(gone()),
        };
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
            while let Ok(first) = jobs.recv() {
                write(&mut connection, first, &jobs);
            }
        })
    }

    /// A thread that reads.
    pub(super) fn reader(connection: Connection) -> Result<Self, StoreError> {
        Self::start("helve-store-read", move |jobs| {
            while let Ok(mut job) = jobs.recv() {
                job.run(&mut SqliteRows::new(&connection));
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
        work: impl FnOnce(&mut SqliteRows<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send + 'static {
        let (answer, answered) = oneshot::channel();
        let sent = self.0.send(Box::new(Pending { work: Some(work), result: None, answer }));
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
fn write(connection: &mut Connection, first: Box<dyn Job>, jobs: &Receiver<Box<dyn Job>>) {
    let mut group = Vec::new();
    let committed = commit(connection, first, jobs, &mut group);
    for job in group {
        job.answer(committed.clone());
    }
}

fn commit(
    connection: &mut Connection,
    first: Box<dyn Job>,
    jobs: &Receiver<Box<dyn Job>>,
    group: &mut Vec<Box<dyn Job>>,
) -> Result<(), StoreError> {
    let mut next = Some(first);
    let transaction = match connection.transaction_with_behavior(TransactionBehavior::Immediate) {
        Ok(transaction) => transaction,
        Err(error) => {
            group.extend(next);
            return Err(engine(&error));
        }
    };
    while let Some(mut job) = next.take() {
        // Statements that are prepared once: they stand around every job.
        let step = |sql: &str| transaction.prepare_cached(sql).and_then(|mut statement| statement.execute([]).map(drop));
        let run = step("SAVEPOINT job").map(|()| job.run(&mut SqliteRows::new(&transaction)));
        group.push(job);
        let kept = run.and_then(|fine| if fine { Ok(()) } else { step("ROLLBACK TO job") }).and_then(|()| step("RELEASE job"));
        kept.map_err(|error| engine(&error))?;
        if group.len() < GROUP {
            next = jobs.try_recv().ok();
        }
    }
    transaction.commit().map_err(|error| engine(&error))
}
