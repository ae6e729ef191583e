//! A disk that is full, and one that fails and can only be read: callers are told, what was accepted before ends afterwards.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that goes wrong should stop, one that is skipped should say so"
)]

mod volume;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use helve_core::store::{TaskFilter, TaskState};
use helve_core::{CallContext, CallId, CancellationToken, ErrorKind, ListSource, Mode, Output, Rules, Status, Store, StoreError, ToolCall};
use helve_store::SqliteStore;
use helve_testkit::{fake, spec};
use helve_tools::{Catalogue, Executor, ExecutorOptions, StoreHandle, Toolkit, View, Worker};
use serde_json::json;

use self::volume::Volume;

/// Timeout for something that must happen.
const PATIENCE: Duration = Duration::from_mins(1);
/// Number of refused calls before the disk works again.
const REFUSALS: usize = 30;

/// Number of times that each call ran.
type Ran = Arc<Mutex<BTreeMap<CallId, u32>>>;

/// One process: a store on the disk, and tools that run in the background.
struct Process {
    store: SqliteStore,
    executor: Executor,
    toolkit: Toolkit,
    catalogue: Catalogue,
}

impl Process {
    fn start(folder: &Path, ran: &Ran) -> Self {
        let tool = |name: &str, idempotent: bool| {
            let ran = ran.clone();
            fake(spec(name).with_rules(Rules::default().mode(Mode::Background).idempotent(idempotent)), move |call, _| {
                *ran.lock().expect("a list").entry(call.id).or_default() += 1;
                Box::pin(async { Ok(Output::text("fine")) })
            })
        };
        let catalogue = Catalogue::new();
        catalogue.add_source(Arc::new(ListSource::new("disk", [tool("once", false), tool("again", true)])));
        let toolkit = Toolkit::everything(&catalogue.snapshot(&View::default()));
        let store = SqliteStore::open(folder.join("store.db")).expect("a store");
        let executor = Executor::new(ExecutorOptions::default().store(StoreHandle::new(Arc::new(store.clone()))));
        Self { store, executor, toolkit, catalogue }
    }

    /// Makes a call. Returns whether it was accepted; the only other result is that it could not be stored.
    async fn call(&self, number: usize) -> (CallId, bool) {
        let tool = ["once", "again"][number % 2];
        let call = ToolCall::new(tool, json!({"text": "x".repeat(4000)}));
        let id = call.id;
        match self.executor.execute(&self.toolkit, call, &CallContext::default()).await.status {
            Status::Accepted => (id, true),
            Status::Done(Err(error)) => {
                assert_eq!(error.kind(), ErrorKind::Storage, "{error}");
                assert!(error.is_retryable(), "it may go well later");
                (id, false)
            }
            other => panic!("neither accepted nor refused: {other:?}"),
        }
    }

    /// Makes calls until so many were refused.
    async fn call_until_refused(&self, calls: &mut Calls) {
        let refused = calls.refused.len();
        for number in 0.. {
            assert!(number < 20_000, "the disk is not full");
            calls.add(self.call(number).await);
            if calls.refused.len() >= refused + REFUSALS {
                return;
            }
            // Those who only look come through.
            if number % 10 == 0 {
                self.look(calls).await;
            }
        }
    }

    async fn look(&self, calls: &Calls) {
        let id = calls.accepted[fastrand::usize(..calls.accepted.len())];
        assert!(self.store.task(id).await.expect("readable").is_some(), "what was accepted is there");
        assert!(!self.store.tasks(TaskFilter::default().limit(10)).await.expect("readable").is_empty());
    }

    /// Waits until every call that was accepted has ended well, and none that was refused is there.
    async fn settle(&self, calls: &Calls, ran: &Ran) {
        let begun = Instant::now();
        for id in &calls.accepted {
            while !self.store.task(*id).await.expect("readable").expect("what was accepted is there").state.is_over() {
                assert!(begun.elapsed() < PATIENCE, "{id} does not end");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let task = self.store.task(*id).await.expect("readable").expect("a task");
            assert_eq!(task.state, TaskState::Done, "{task:?}");
            let ran = ran.lock().expect("a list")[id];
            assert!(ran == 1 || task.idempotent, "{id} ran {ran} times");
        }
        for id in &calls.refused {
            assert!(self.store.task(*id).await.expect("readable").is_none(), "{id} was refused");
            assert!(!ran.lock().expect("a list").contains_key(id), "{id} was refused, and ran");
        }
    }
}

/// What callers were told.
#[derive(Default)]
struct Calls {
    accepted: Vec<CallId>,
    refused: Vec<CallId>,
}

impl Calls {
    fn add(&mut self, (id, accepted): (CallId, bool)) {
        if accepted { self.accepted.push(id) } else { self.refused.push(id) }
    }
}

/// Works on the queue of a process until it is stopped.
fn work(process: &Process) -> (CancellationToken, tokio::task::JoinHandle<()>) {
    let stop = CancellationToken::new();
    let record = process.executor.store().expect("a store").clone();
    let worker = Worker::new(record, process.executor.clone(), process.catalogue.clone(), 8);
    (stop.clone(), tokio::spawn(worker.run(stop)))
}

fn is_sound(folder: &Path) -> bool {
    let connection = rusqlite::Connection::open(folder.join("store.db")).expect("a database");
    connection.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)).expect("a look") == "ok"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_calls_and_loses_none() {
    let Some(volume) = Volume::new("a_full_disk_refuses_calls_and_loses_none") else { return };
    let (ran, mut calls) = (Ran::default(), Calls::default());
    let process = Process::start(&volume.path(), &ran);
    for number in 0..100 {
        calls.add(process.call(number).await);
    }
    assert_eq!(calls.refused, [], "there is room");
    let (stop, worker) = work(&process);
    for _ in 0..3 {
        volume.fill();
        process.call_until_refused(&mut calls).await;
        let said = process.store.put_body(&vec![7; 1 << 20]).await.expect_err("no room");
        assert!(matches!(said, StoreError::Unavailable(_)), "{said}");
        volume.empty();
        let after = process.call(0).await;
        assert!(after.1, "there is room again");
        calls.add(after);
    }
    process.settle(&calls, &ran).await;
    stop.cancel();
    worker.await.expect("a worker");
    assert!(is_sound(&volume.path()));
}

/// The system makes a disk that fails read-only while files on it are open, and only taking it away and bringing it back helps.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fails_refuses_calls_and_the_next_process_ends_what_was_accepted() {
    let Some(volume) = Volume::new("a_disk_that_fails_refuses_calls_and_the_next_process_ends_what_was_accepted") else { return };
    let (ran, mut calls) = (Ran::default(), Calls::default());
    let process = Process::start(&volume.path(), &ran);
    for number in 0..100 {
        calls.add(process.call(number).await);
    }
    assert_eq!(calls.refused, [], "the disk is good");
    volume.fail();
    process.call_until_refused(&mut calls).await;
    process.look(&calls).await;
    drop(process);

    volume.replace_read_only();
    let process = Process::start(&volume.path(), &ran);
    process.look(&calls).await;
    let (id, accepted) = process.call(0).await;
    assert!(!accepted, "{id}: the disk is read-only");
    drop(process);

    volume.replace();
    let process = Process::start(&volume.path(), &ran);
    let (stop, worker) = work(&process);
    calls.add(process.call(0).await);
    process.settle(&calls, &ran).await;
    stop.cancel();
    worker.await.expect("a worker");
    assert!(is_sound(&volume.path()));
}
