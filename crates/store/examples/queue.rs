//! Jobs in a second through the queue of the PostgreSQL engine, beside a bare loop of batched statements.
//!
//! Both put jobs in, take them with `SKIP LOCKED` and write down their ends, by 16 workers in the same database. The bare loop
//! has a table with the same columns and indexes, ready-made texts and nothing to decide: no transitions, no fences, no JSON.
//!
//! `HELVE_TEST_POSTGRES=… cargo run --release -p helve-store --example queue -- [ROUNDS]`

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a measurement that goes wrong should stop, and says what it found")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use helve_core::store::{Claim, Finish, MAX_ATTEMPTS, NewTask, Task, TaskEnd};
use helve_core::{CallId, Caller, Digest, HolderId, Outcome, Output, Status, Store, ToolCall};
use helve_store::PostgresStore;
use serde_json::json;
use tokio_postgres::{Client, NoTls};

const WORKERS: usize = 16;
const PUT: &str = "INSERT INTO bare_tasks (id, state, rank, due, definition, epoch, attempts, cancelling, heard, updated, body)
    SELECT id, 'queued', 1, 1, 'd', 0, 0, false, false, 1, $2 FROM unnest($1::text[]) AS new (id)";
const TAKE: &str = "WITH next AS MATERIALIZED (SELECT id FROM bare_tasks WHERE state = 'queued' AND due <= 2 ORDER BY rank, id LIMIT $1
    FOR UPDATE SKIP LOCKED) UPDATE bare_tasks AS task SET state = 'running', epoch = epoch + 1 FROM next WHERE task.id = next.id
    RETURNING task.id, task.body";
const END: &str = "UPDATE bare_tasks SET state = 'done', body = $2 WHERE id = ANY($1::text[])";

fn job() -> NewTask {
    NewTask {
        call: ToolCall::new("work", json!({"n": 1})),
        tool: "work".into(),
        definition: Digest::of([b"work".as_slice()]),
        caller: Caller::default(),
        idempotent: true,
        priority: 0,
        delay: Duration::ZERO,
        max_attempts: MAX_ATTEMPTS,
    }
}

/// What all workers of a measurement share. A worker that looked a moment before a job came can go away empty, so all go on
/// until all jobs are done.
struct Race {
    rounds: usize,
    jobs: usize,
    done: AtomicUsize,
}

impl Race {
    fn is_over(&self, round: usize) -> bool {
        round >= self.rounds && self.done.load(Ordering::Relaxed) >= WORKERS * self.rounds * self.jobs
    }
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
        let ended = |task: &Task| {
            let status = Status::Done(Ok(Output::text("fine")));
            let outcome = Outcome { call_id: task.id, tool: task.tool.clone(), status, duration: Duration::ZERO };
            Finish { task: task.id, epoch: task.epoch, end: TaskEnd::Over(outcome) }
        };
        store.finish(tasks.iter().map(ended).collect()).await.expect("recorded");
        race.done.fetch_add(tasks.len(), Ordering::Relaxed);
    }
}

/// The same with bare statements on a connection of its own.
async fn bare(client: Client, text: Arc<str>, race: Arc<Race>) {
    let put = client.prepare(PUT).await.expect("a statement");
    let take = client.prepare(TAKE).await.expect("a statement");
    let end = client.prepare(END).await.expect("a statement");
    let limit = i64::try_from(race.jobs).expect("a few");
    for round in 0.. {
        if race.is_over(round) {
            return;
        }
        if round < race.rounds {
            let ids: Vec<String> = (0..race.jobs).map(|_| CallId::mint().to_string()).collect();
            client.execute(&put, &[&ids, &&*text]).await.expect("put");
        }
        let taken = client.query(&take, &[&limit]).await.expect("taken");
        if taken.is_empty() {
            continue;
        }
        let ids: Vec<&str> = taken.iter().map(|row| row.get(0)).collect();
        client.execute(&end, &[&ids, &&*text]).await.expect("ended");
        race.done.fetch_add(taken.len(), Ordering::Relaxed);
    }
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the server");
    tokio::spawn(connection);
    client.batch_execute("SET enable_seqscan = off; SET jit = off").await.expect("settings");
    client
}

async fn commits(client: &Client) -> i64 {
    // The statistics of other connections come a moment late.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let row = client.query_one("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()", &[]).await;
    row.expect("a number").get(0)
}

#[tokio::main]
async fn main() {
    let server = std::env::var("HELVE_TEST_POSTGRES").expect("HELVE_TEST_POSTGRES names a server; see scripts/postgres");
    let rounds: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100);
    let admin = connect(&server).await;
    admin.batch_execute("DROP SCHEMA IF EXISTS queue_bench CASCADE; CREATE SCHEMA queue_bench").await.expect("a schema");
    let url = format!("{server}?options=-c%20search_path%3Dqueue_bench");
    let store = PostgresStore::open(&url).await.expect("a store");
    let client = connect(&url).await;
    client.batch_execute("CREATE TABLE bare_tasks (LIKE helve_tasks INCLUDING ALL)").await.expect("a table");
    let text: Arc<str> = sample(&store, &client).await;
    println!("| jobs at once by each of {WORKERS} workers | through the store | bare loop | ratio | commits a job, store | bare |");
    println!("|---|---|---|---|---|---|");
    for jobs in [1, 4, 16] {
        let (mut ratios, mut best) = (Vec::new(), (0.0_f64, 0.0_f64));
        let mut made = (0, 0);
        for _ in 0..3 {
            client.batch_execute("TRUNCATE helve_tasks, bare_tasks").await.expect("empty");
            let before = commits(&client).await;
            let worker = HolderId::mint();
            store.keep(worker, Duration::from_hours(1), &[]).await.expect("a lease");
            let race = Arc::new(Race { rounds, jobs, done: AtomicUsize::new(0) });
            let began = Instant::now();
            let workers = (0..WORKERS).map(|_| tokio::spawn(through_the_store(store.clone(), worker, race.clone())));
            join_all(workers).await.into_iter().for_each(|worker| worker.expect("a worker"));
            let ours = began.elapsed();
            let between = commits(&client).await;
            let mut clients = Vec::new();
            for _ in 0..WORKERS {
                clients.push(connect(&url).await);
            }
            let race = Arc::new(Race { rounds, jobs, done: AtomicUsize::new(0) });
            let began = Instant::now();
            let workers = clients.into_iter().map(|client| tokio::spawn(bare(client, text.clone(), race.clone())));
            join_all(workers).await.into_iter().for_each(|worker| worker.expect("a worker"));
            let theirs = began.elapsed();
            let after = commits(&client).await;
            for table in ["helve_tasks", "bare_tasks"] {
                let sql = format!("SELECT count(*) FROM {table} WHERE state = 'done'");
                let done: i64 = client.query_one(&sql, &[]).await.expect("a number").get(0);
                assert_eq!(usize::try_from(done), Ok(WORKERS * rounds * jobs), "every job of {table} is done");
            }
            let all = f64::from(u32::try_from(WORKERS * rounds * jobs).expect("not so many"));
            let speeds = (all / ours.as_secs_f64(), all / theirs.as_secs_f64());
            best = (best.0.max(speeds.0), best.1.max(speeds.1));
            ratios.push(speeds.0 / speeds.1);
            made = (between - before, after - between);
        }
        ratios.sort_by(f64::total_cmp);
        let all = WORKERS * rounds * jobs;
        #[allow(clippy::cast_precision_loss, reason = "these are small")]
        let each = |number: i64| number as f64 / all as f64;
        println!("| {jobs} | {:.0} jobs/s | {:.0} jobs/s | {:.2} | {:.2} | {:.2} |", best.0, best.1, ratios[1], each(made.0), each(made.1));
    }
    admin.batch_execute("DROP SCHEMA queue_bench CASCADE").await.expect("gone");
}

/// What a task is as text, so that both write as much.
async fn sample(store: &PostgresStore, client: &Client) -> Arc<str> {
    store.accept(job()).await.expect("accepted");
    let row = client.query_one("SELECT body FROM helve_tasks", &[]).await.expect("a task");
    row.get::<_, String>(0).into()
}
