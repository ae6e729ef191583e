//! PostgreSQL is killed under load, again and again: what was acknowledged is there, and nothing is there twice.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use helve_core::StoreError;
use helve_core::store::{Finished, Stored, TaskState};
use helve_store::PostgresStore;

use crate::scene::*;

/// How often the server is killed; `HELVE_TEST_CRASHES` says otherwise.
const CRASHES: u32 = 3;

/// A server of this test alone.
struct Server {
    url: String,
    folder: PathBuf,
}

fn script(arguments: &[&str]) -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres");
    let output = Command::new(script).args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

impl Server {
    fn start() -> Option<Self> {
        let said = script(&["start"])?;
        let (url, folder) = said.trim().split_once('\n')?;
        Some(Self { url: url.to_owned(), folder: folder.into() })
    }

    fn crash(&self) {
        script(&["crash", &self.folder.to_string_lossy()]).expect("the server is killed, and starts again");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if script(&["stop", &self.folder.to_string_lossy()]).is_none() {
            eprintln!("a server is still there: {}", self.folder.display());
        }
    }
}

/// What the stores told their callers.
#[derive(Default)]
struct History {
    accepted: Mutex<Vec<CallId>>,
    /// How often a task began, and how often a result was told to count.
    begun: Mutex<HashMap<CallId, u32>>,
    recorded: Mutex<HashMap<CallId, u32>>,
    /// No more tasks shall be made, and then: no more will come.
    enough: AtomicBool,
    over: AtomicBool,
}

/// Asks until there is an answer other than that the record cannot be used now.
async fn insist<'a, T>(mut ask: impl FnMut() -> Stored<'a, T>) -> T {
    loop {
        match ask().await {
            Ok(value) => return value,
            Err(StoreError::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(error) => panic!("{error}"),
        }
    }
}

async fn produce(store: Arc<PostgresStore>, history: Arc<History>) {
    while !history.enough.load(Ordering::Relaxed) {
        // A task whose acceptance was not acknowledged is offered again, and is one task.
        let new = NewTask { idempotent: false, ..task("a") };
        insist(|| store.accept(new.clone())).await;
        history.accepted.lock().expect("a lock").push(new.call.id);
    }
}

async fn work(store: Arc<PostgresStore>, worker: HolderId, history: Arc<History>) {
    loop {
        let over = history.over.load(Ordering::Relaxed);
        let tasks = insist(|| store.claim(Claim { holder: worker, limit: 4, tools: None })).await;
        if tasks.is_empty() && over {
            return;
        }
        for task in tasks {
            *history.begun.lock().expect("a lock").entry(task.id).or_default() += 1;
            let ended = || vec![Finish { task: task.id, epoch: task.epoch, end: TaskEnd::Over(good(&task)) }];
            if insist(|| store.finish(ended())).await == [Finished::Recorded] {
                *history.recorded.lock().expect("a lock").entry(task.id).or_default() += 1;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_done_twice_when_the_server_is_killed() {
    if std::env::var_os("HELVE_TEST_POSTGRES").is_none() {
        eprintln!("SKIPPED: nothing_is_lost_or_done_twice_when_the_server_is_killed needs HELVE_TEST_POSTGRES");
        return;
    }
    let server = Server::start().expect("a server that can be killed");
    let crashes = std::env::var("HELVE_TEST_CRASHES").ok().and_then(|text| text.parse().ok()).unwrap_or(CRASHES);
    let history = Arc::new(History::default());
    let (mut workers, mut producers) = (Vec::new(), Vec::new());
    let mut stores = Vec::new();
    for _ in 0..2 {
        let store = Arc::new(PostgresStore::open(&server.url).await.expect("a store"));
        let worker = HolderId::mint();
        store.keep(worker, Duration::from_hours(1), &[]).await.expect("a lease");
        workers.extend((0..8).map(|_| tokio::spawn(work(store.clone(), worker, history.clone()))));
        producers.extend((0..2).map(|_| tokio::spawn(produce(store.clone(), history.clone()))));
        stores.push(store);
    }
    for _ in 0..crashes {
        // So that each crash has work to interrupt.
        let before = history.accepted.lock().expect("a lock").len();
        while history.accepted.lock().expect("a lock").len() < before + 100 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::task::block_in_place(|| server.crash());
    }
    history.enough.store(true, Ordering::Relaxed);
    for producer in producers {
        producer.await.expect("a producer");
    }
    // A worker goes only when it found nothing after the last task had come.
    history.over.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.expect("a worker");
    }
    let accepted = history.accepted.lock().expect("a lock").clone();
    let mut states = BTreeMap::new();
    for id in &accepted {
        *states.entry(find(&*stores[0], *id).await.state.name()).or_insert(0) += 1;
    }
    assert_eq!(states, BTreeMap::from([(TaskState::Done.name(), accepted.len())]), "every accepted task has its result");
    assert_eq!(ids(&*stores[0]).await.len(), accepted.len().min(1000));
    assert!(history.begun.lock().expect("a lock").values().all(|times| *times == 1), "no task began twice");
    let recorded = history.recorded.lock().expect("a lock");
    assert!(recorded.len() == accepted.len() && recorded.values().all(|times| *times == 1), "each result was told once");
}
