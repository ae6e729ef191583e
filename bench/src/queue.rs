//! Durable jobs: accepted, claimed and finished by sixteen callers at once, each step acknowledged after its commit. Beside it a
//! bare loop with the same steps and the same group commit, which knows nothing of runs, leases, fences or events.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use helve::id::{CallId, HolderId};
use helve::permission::Digest;
use helve::store::Store;
use helve::store::{Claim, Finish, NewTask, TaskEnd};
use helve::tool::Status;
use helve::{Outcome, Output, ToolCall};
use helve_store::SqliteStore;
use rusqlite::Connection;
use serde_json::json;
use tokio::sync::oneshot;

use crate::cpu;
use crate::report::Report;

const CALLERS: usize = 16;
const JOBS: usize = 4000;
const TRIES: usize = 5;
/// The most jobs in one commit, as in the store.
const GROUP: usize = 256;

pub fn measure(report: &mut Report) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let (mut speed, mut cost) = ((0.0_f64, 0.0_f64), (f64::MAX, f64::MAX));
    // By turns, so that what else the machine does disturbs both alike.
    for _ in 0..TRIES {
        let (fast, cheap) = measured(|| runtime.block_on(bare()));
        (speed.0, cost.0) = (speed.0.max(fast), cost.0.min(cheap));
        let (fast, cheap) = measured(|| runtime.block_on(own()));
        (speed.1, cost.1) = (speed.1.max(fast), cost.1.min(cheap));
    }
    let name = "the same steps by hand, with group commit";
    report.speed("durable jobs in SQLite, 16 callers (wall clock)", speed.1, "jobs/s", (name, speed.0), Some(0.6 * speed.0));
    report.row("a durable job in SQLite", cost.1, "µs", (name, cost.0), None);
}

/// How many jobs a second some work gets done, and the CPU time of one in microseconds.
fn measured(work: impl Fn() -> f64) -> (f64, f64) {
    let before = cpu::of_process();
    let speed = work();
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let jobs = JOBS as f64;
    (speed, cpu::of_process().saturating_sub(before).as_secs_f64() * 1e6 / jobs)
}

/// How many jobs a second sixteen callers get done.
async fn callers<F: Future<Output = ()> + Send + 'static>(work: impl Fn() -> F) -> f64 {
    let begun = Instant::now();
    let callers: Vec<_> = (0..CALLERS).map(|_| tokio::spawn(work())).collect();
    for caller in callers {
        caller.await.expect("a caller");
    }
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let jobs = JOBS as f64;
    jobs / begun.elapsed().as_secs_f64()
}

async fn own() -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(SqliteStore::open(folder.path().join("own.db")).expect("a store"));
    let holder = HolderId::mint();
    store.keep(holder, Duration::from_mins(10), &[]).await.expect("a lease");
    callers(|| {
        let store = store.clone();
        async move {
            for _ in 0..JOBS / CALLERS {
                store.accept(job()).await.expect("accepted");
                let tasks = store.claim(Claim { holder, limit: 1, tools: None }).await.expect("a claim");
                let finish = |task: helve::store::Task| Finish { task: task.id, epoch: task.epoch, end: TaskEnd::Over(done(task.id)) };
                store.finish(tasks.into_iter().map(finish).collect()).await.expect("recorded");
            }
        }
    })
    .await
}

/// A job as both engines get it.
pub fn job() -> NewTask {
    NewTask::new(ToolCall::new("report", json!({"topic": "bees", "pages": 3})), Digest::of([b"report".as_slice()]))
}

/// What came of it.
pub fn done(call_id: CallId) -> Outcome {
    Outcome { call_id, tool: "report".into(), status: Status::Done(Ok(Output::text("all about bees"))), duration: Duration::ZERO }
}

type Job = Box<dyn FnOnce(&Connection) -> Option<i64> + Send>;
type Answer = oneshot::Sender<Option<i64>>;

async fn bare() -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let connection = Connection::open(folder.path().join("bare.db")).expect("a database");
    connection.pragma_update(None, "journal_mode", "wal").expect("WAL");
    connection.pragma_update(None, "synchronous", "full").expect("FULL");
    let table = "CREATE TABLE jobs (id INTEGER PRIMARY KEY, state TEXT NOT NULL, body TEXT NOT NULL, result TEXT);
        CREATE INDEX queued ON jobs (id) WHERE state = 'queued';";
    connection.execute_batch(table).expect("a table");
    let (sender, jobs) = channel::<(Job, Answer)>();
    std::thread::spawn(move || {
        while let Ok(mut next) = jobs.recv() {
            let mut answers = Vec::new();
            connection.execute_batch("BEGIN IMMEDIATE").expect("begun");
            loop {
                answers.push(((next.0)(&connection), next.1));
                match jobs.try_recv() {
                    Ok(job) if answers.len() < GROUP => next = job,
                    _ => break,
                }
            }
            connection.execute_batch("COMMIT").expect("committed");
            for (value, answer) in answers {
                let _ = answer.send(value);
            }
        }
    });
    callers(|| {
        let sender = sender.clone();
        async move {
            let body = json!({"topic": "bees", "pages": 3}).to_string();
            for _ in 0..JOBS / CALLERS {
                let body = body.clone();
                run(&sender, move |db| {
                    let mut insert = db.prepare_cached("INSERT INTO jobs (state, body) VALUES ('queued', ?1)").expect("a statement");
                    insert.insert([body]).ok()
                })
                .await;
                let claim = "UPDATE jobs SET state = 'running' WHERE id = (SELECT id FROM jobs WHERE state = 'queued' ORDER BY id LIMIT 1) RETURNING id";
                let claimed = run(&sender, move |db| db.prepare_cached(claim).expect("a statement").query_row([], |row| row.get(0)).ok()).await;
                let finish = "UPDATE jobs SET state = 'done', result = 'all about bees' WHERE id = ?1 AND state = 'running'";
                run(&sender, move |db| db.prepare_cached(finish).expect("a statement").execute([claimed]).ok().map(|_| 0)).await;
            }
        }
    })
    .await
}

async fn run(sender: &Sender<(Job, Answer)>, job: impl FnOnce(&Connection) -> Option<i64> + Send + 'static) -> Option<i64> {
    let (answer, answered) = oneshot::channel();
    sender.send((Box::new(job), answer)).expect("a writer");
    answered.await.expect("an answer")
}
