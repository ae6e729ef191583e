//! The record in PostgreSQL: jobs through its queue beside a bare loop, and an event on its way to another process. Needs a server, which
//! `HELVE_TEST_POSTGRES` names; wall clock, because most of the work is the server's.

mod bare;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use helve::event::EventData;
use helve::id::{ConversationId, HolderId, RunId, Timestamp};
use helve::store::Store;
use helve::store::{Claim, Finish, NewRun, RunCommit, RunState, Task, TaskEnd};
use helve_store::PostgresStore;
use tokio_postgres::{Client, NoTls};

use crate::queue::{done, job};
use crate::report::Report;

const SERVER: &str = "HELVE_TEST_POSTGRES";
const WORKERS: usize = 16;
const TRIES: usize = 3;
const EVENTS: usize = 500;

pub fn measure(report: &mut Report) {
    let Ok(server) = std::env::var(SERVER) else {
        return report.left_out("the record in PostgreSQL", &format!("{SERVER} names no server; `scripts/postgres start` starts one"));
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let admin = connect(&server).await;
        admin.batch_execute("DROP SCHEMA IF EXISTS helve_bench CASCADE; CREATE SCHEMA helve_bench").await.expect("a schema");
        let url = format!("{server}?options=-c%20search_path%3Dhelve_bench");
        for (jobs, rounds) in [(1, 150), (16, 40)] {
            queue(report, &url, jobs, rounds).await;
        }
        let median = latency(&url).await.as_secs_f64() * 1e3;
        report.row("an event on another node, the median (wall clock)", median, "ms", ("after its commit", 0.0), Some(20.0));
        admin.batch_execute("DROP SCHEMA helve_bench CASCADE").await.expect("gone");
    });
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the server");
    tokio::spawn(connection);
    client.batch_execute("SET enable_seqscan = off; SET jit = off").await.expect("settings");
    client
}

/// What all workers of a measurement share. One that looked a moment before a job came can go away empty, so all go on until all
/// jobs are done.
struct Race {
    rounds: usize,
    jobs: usize,
    done: AtomicUsize,
}

impl Race {
    fn new(rounds: usize, jobs: usize) -> Arc<Self> {
        Arc::new(Self { rounds, jobs, done: AtomicUsize::new(0) })
    }

    fn all(&self) -> usize {
        WORKERS * self.rounds * self.jobs
    }

    fn is_over(&self, round: usize) -> bool {
        round >= self.rounds && self.done.load(Ordering::Relaxed) >= self.all()
    }

    fn ended(&self, count: usize) {
        self.done.fetch_add(count, Ordering::Relaxed);
    }
}

/// How many jobs a second workers get done.
async fn timed<F: Future<Output = ()> + Send + 'static>(race: &Race, workers: Vec<F>) -> f64 {
    let begun = Instant::now();
    let workers = workers.into_iter().map(tokio::spawn).collect::<Vec<_>>();
    join_all(workers).await.into_iter().for_each(|worker| worker.expect("a worker"));
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    let jobs = race.all() as f64;
    jobs / begun.elapsed().as_secs_f64()
}

async fn queue(report: &mut Report, url: &str, jobs: usize, rounds: usize) {
    let store = PostgresStore::open(url).await.expect("a store");
    let client = connect(url).await;
    let bare = bare::Bare::prepare(&store, &client, url).await;
    let mut best = (0.0_f64, 0.0_f64);
    for _ in 0..TRIES {
        client.batch_execute("TRUNCATE helve_tasks, bare_tasks").await.expect("empty");
        let worker = HolderId::mint();
        store.keep(worker, Duration::from_hours(1), &[]).await.expect("a lease");
        let race = Race::new(rounds, jobs);
        let own = timed(&race, (0..WORKERS).map(|_| through_the_store(store.clone(), worker, race.clone())).collect()).await;
        let race = Race::new(rounds, jobs);
        let hand = timed(&race, bare.workers(&race).await).await;
        best = (best.0.max(own), best.1.max(hand));
        for table in ["helve_tasks", "bare_tasks"] {
            let sql = format!("SELECT count(*) FROM {table} WHERE state = 'done'");
            let done: i64 = client.query_one(&sql, &[]).await.expect("a number").get(0);
            assert_eq!(usize::try_from(done), Ok(race.all()), "every job of {table} is done");
        }
    }
    let what = format!("durable jobs in PostgreSQL, {WORKERS} workers with {jobs} at once (wall clock)");
    report.speed(&what, best.0, "jobs/s", ("bare statements, batched, with SKIP LOCKED", best.1), Some(0.6 * best.1));
}

/// One worker's rounds through the store.
async fn through_the_store(store: PostgresStore, worker: HolderId, race: Arc<Race>) {
    for round in 0.. {
        if race.is_over(round) {
            return;
        }
        if round < race.rounds {
            let accepted = join_all((0..race.jobs).map(|_| store.accept(job()))).await;
            assert!(accepted.iter().all(Result::is_ok), "{accepted:?}");
        }
        let tasks = store.claim(Claim { holder: worker, limit: race.jobs, tools: None }).await.expect("a claim");
        if tasks.is_empty() {
            continue;
        }
        let ended = |task: &Task| Finish { task: task.id, epoch: task.epoch, end: TaskEnd::Over(done(task.id)) };
        store.finish(tasks.iter().map(ended).collect()).await.expect("recorded");
        race.ended(tasks.len());
    }
}

/// From the moment that a commit is acknowledged here to the moment that its event is read there, after a wake-up. Two stores on
/// one server are like two processes: they share nothing.
async fn latency(url: &str) -> Duration {
    let (here, there) = (PostgresStore::open(url).await.expect("a store"), PostgresStore::open(url).await.expect("a store"));
    let (run, holder, conversation) = (RunId::mint(), HolderId::mint(), ConversationId::mint());
    here.keep(holder, Duration::from_mins(10), &[]).await.expect("a lease");
    let begin = NewRun { id: run, conversation, parent: None, agent: None, model: "none".into(), input: "".into(), holder };
    let step = || {
        let events = vec![(Timestamp::now(), EventData::Notification { message: "one".to_owned() })];
        RunCommit { events, ..RunCommit::new(run, 1, RunState::Running) }
    };
    here.commit_run(RunCommit { begin: Some(begin), ..step() }).await.expect("begun");
    let mut changes = there.changes();
    let mut times = Vec::with_capacity(EVENTS);
    for seq in 2..=EVENTS as u64 + 1 {
        here.commit_run(step()).await.expect("recorded");
        let committed = Instant::now();
        loop {
            let _ = tokio::time::timeout(Duration::from_secs(1), changes.changed()).await;
            if !there.events(run, seq - 1, 1).await.expect("events").is_empty() {
                break;
            }
        }
        times.push(committed.elapsed());
        // The next one must not profit from the wake-up of this one.
        tokio::time::sleep(Duration::from_millis(10)).await;
        changes.mark_unchanged();
    }
    times.sort_unstable();
    times[EVENTS / 2]
}
