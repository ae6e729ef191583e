//! The load of a soak: as much each second as in the one before.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use helve_core::store::{Claim, Finish, NewRun, NewTask, RunCommit, RunState, TaskEnd, TaskFilter};
use helve_core::{ConversationId, Digest, HolderId, Outcome, Output, RunId, Status, Store, ToolCall};
use rusqlite::{Connection, OpenFlags};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

use crate::fixtures::{notes, step};
use crate::location::StoreLocation;

/// How many clients there are of each kind. A busy machine, too, must keep up with them: else the load grows when it is less busy.
const CLIENTS: usize = 2;
/// How long readers keep a transaction open, in milliseconds.
const HELD: std::ops::Range<u64> = 500..8000;
const PAUSE: std::ops::Range<u64> = 50..2000;
/// Interval of pruning, and the age to prune.
const PRUNE: Duration = Duration::from_secs(5);
const KEPT: Duration = Duration::from_secs(10);
/// What is the same all the time takes so long.
const BEAT: Duration = Duration::from_millis(50);
const LEASE: Duration = Duration::from_mins(1);

/// Clients that run until this is dropped.
pub(super) struct Load {
    done: Arc<Counts>,
    clients: JoinSet<()>,
}

#[derive(Default)]
struct Counts {
    tasks: AtomicU64,
    runs: AtomicU64,
    pruned: AtomicU64,
    held: AtomicU64,
    longest: AtomicU64,
}

/// Counters of what was done, and the longest wait, in milliseconds.
#[derive(Debug)]
pub(super) struct Done {
    tasks: u64,
    runs: u64,
    pruned: u64,
    held: u64,
    longest: u64,
}

impl Done {
    /// Whether something of it was not done at all.
    pub(super) fn is_idle(&self) -> bool {
        self.tasks == 0 || self.runs == 0 || self.held == 0
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tasks, runs, pruned, held, longest } = self;
        write!(f, "{tasks} tasks, {runs} runs, {pruned} forgotten, {held} long reads, longest wait {longest} ms")
    }
}

impl Load {
    pub(super) async fn start(place: &StoreLocation, readers: usize) -> Self {
        let (store, done, mut clients) = (place.open().await, Arc::new(Counts::default()), JoinSet::new());
        for _ in 0..CLIENTS {
            clients.spawn(work(store.clone(), done.clone()));
            clients.spawn(drive(store.clone(), done.clone()));
        }
        clients.spawn(forget(store.clone(), done.clone()));
        clients.spawn(list(store));
        for _ in 0..readers {
            let (place, done) = (place.clone(), done.clone());
            clients.spawn(async move {
                match place {
                    StoreLocation::File(file) => hold_file(file, done).await,
                    StoreLocation::Server(address) => hold_server(address, done).await,
                }
            });
        }
        Self { done, clients }
    }

    /// What was done so far. A client that ended had a reason to.
    pub(super) fn done(&mut self) -> Done {
        if let Some(ended) = self.clients.try_join_next() {
            ended.expect("a client that goes on");
        }
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let Counts { tasks, runs, pruned, held, longest } = &*self.done;
        Done { tasks: count(tasks), runs: count(runs), pruned: count(pruned), held: count(held), longest: count(longest) }
    }
}

fn add(number: &AtomicU64, more: usize) {
    number.fetch_add(more as u64, Ordering::Relaxed);
}

/// Beats of the same length, however long the work takes that is done in them.
fn beats() -> tokio::time::Interval {
    let mut beats = tokio::time::interval(BEAT);
    beats.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    beats
}

/// Accepts, claims and finishes calls, a few at a time.
async fn work(store: Arc<dyn Store>, done: Arc<Counts>) {
    let (holder, mut beats) = (HolderId::mint(), beats());
    for beat in 0_u64.. {
        beats.tick().await;
        if beat.is_multiple_of(100) {
            store.keep(holder, LEASE, &[]).await.expect("a lease");
        }
        for _ in 0..2 {
            let begun = Instant::now();
            store.accept(task()).await.expect("accepted");
            done.longest.fetch_max(u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        let tasks = store.claim(Claim { holder, limit: 4, tools: None }).await.expect("a claim");
        add(&done.tasks, tasks.len());
        let outcome = |id, tool| Outcome { call_id: id, tool, status: Status::Done(Ok(Output::text("fine"))), duration: Duration::ZERO };
        let ended =
            tasks.into_iter().map(|task| Finish { task: task.id, epoch: task.epoch, end: TaskEnd::Over(outcome(task.id, task.tool)) });
        store.finish(ended.collect()).await.expect("recorded");
    }
}

fn task() -> NewTask {
    NewTask::new(ToolCall::new("tool", json!({"text": "x".repeat(fastrand::usize(..2000))})), Digest::of(["tool".as_bytes()]))
}

/// Runs of ten steps, one after the other in a conversation. It has no messages, because messages are not pruned.
async fn drive(store: Arc<dyn Store>, done: Arc<Counts>) {
    let (holder, conversation, mut beats) = (HolderId::mint(), ConversationId::mint(), beats());
    loop {
        store.keep(holder, LEASE, &[]).await.expect("a lease");
        let id = RunId::mint();
        let begin = NewRun { id, conversation, parent: None, agent: None, model: "none".into(), input: "hello".into(), holder };
        let first = RunCommit { begin: Some(begin), events: notes(1), ..step(id, 1, RunState::Running) };
        store.commit_run(first).await.expect("begun");
        for number in 1..=10 {
            beats.tick().await;
            let state = if number < 10 { RunState::Running } else { RunState::Done };
            let commit = RunCommit { events: notes(3), ..step(id, 1, state) };
            store.commit_run(commit).await.expect("recorded");
            store.events(id, 0, 100).await.expect("events");
        }
        add(&done.runs, 1);
    }
}

/// Prunes what ended a while ago.
async fn forget(store: Arc<dyn Store>, done: Arc<Counts>) {
    let holder = HolderId::mint();
    loop {
        tokio::time::sleep(PRUNE).await;
        add(&done.pruned, store.prune(KEPT).await.expect("forgotten"));
        store.recover(holder).await.expect("recovered");
    }
}

/// Lists tasks and runs.
async fn list(store: Arc<dyn Store>) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        store.tasks(TaskFilter::default().limit(1000)).await.expect("a list");
        store.runs(None, 1000).await.expect("a list");
    }
}

async fn hold() {
    tokio::time::sleep(Duration::from_millis(fastrand::u64(HELD))).await;
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(fastrand::u64(PAUSE))).await;
}

/// Reads a file as it was seconds ago, again and again.
async fn hold_file(file: std::path::PathBuf, done: Arc<Counts>) {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("a database");
    loop {
        connection.execute_batch("BEGIN").expect("a moment");
        let tasks = count(&connection);
        hold().await;
        assert_eq!(count(&connection), tasks, "it is still the same moment");
        connection.execute_batch("COMMIT").expect("an end");
        add(&done.held, 1);
        pause().await;
    }
}

fn count(connection: &Connection) -> i64 {
    connection.query_row("SELECT count(*) FROM tasks", [], |row| row.get(0)).expect("a look")
}

/// Like [`hold_file`], on a server.
async fn hold_server(address: String, done: Arc<Counts>) {
    let (client, connection) = tokio_postgres::connect(&address, NoTls).await.expect("the server");
    let speaks = tokio::spawn(connection);
    loop {
        client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await.expect("a moment");
        let sql = "SELECT count(*) FROM helve_tasks";
        let tasks: i64 = client.query_one(sql, &[]).await.expect("a look").get(0);
        hold().await;
        assert_eq!(client.query_one(sql, &[]).await.expect("a look").get::<_, i64>(0), tasks, "it is still the same moment");
        client.batch_execute("COMMIT").await.expect("an end");
        add(&done.held, 1);
        assert!(!speaks.is_finished(), "the server is there");
        pause().await;
    }
}
