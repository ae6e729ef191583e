//! Background calls in a worker, as its store sees them.

#![allow(clippy::expect_used, reason = "a test that goes wrong should stop")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use helve_core::store::{MemoryStore, RecoveryReport, TaskFilter, TaskState};
use helve_core::{CallContext, CancellationToken, HolderId, ListSource, Mode, Output, Rules, Store, ToolCall};
use helve_testkit::{fake, spec};
use helve_tools::{Catalogue, Executor, StoreHandle, Toolkit, View, Worker};
use serde_json::json;

const CALLS: usize = 50;
/// So many of them hold up a thread of the runtime, as tools must not and do.
const RUDE: usize = 4;
const LEASE: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_call_that_takes_ten_times_its_lease_runs_once() {
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = ran.clone();
    let slow = fake(spec("slow").with_rules(Rules::default().mode(Mode::Background).idempotent(true)), move |_, _| {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            if number < RUDE {
                std::thread::sleep(LONG);
            } else {
                tokio::time::sleep(LONG).await;
            }
            Ok(Output::text("at last"))
        })
    });
    let catalogue = Catalogue::new();
    catalogue.add_source(Arc::new(ListSource::new("tests", [slow])));
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let executor = Executor::default();
    let store = StoreHandle::with_lease(memory.clone(), LEASE);
    executor.use_store(store.clone()).expect("the first");
    let tools = Toolkit::everything(&catalogue.snapshot(&View::default()));
    for _ in 0..CALLS {
        executor.execute(&tools, ToolCall::new("slow", json!({})), &CallContext::default()).await;
    }

    // Another process looks all the time for ones that are gone.
    let (over, other) = (Arc::new(AtomicBool::new(false)), memory.clone());
    let done = over.clone();
    let looking = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let (holder, mut found) = (HolderId::mint(), 0);
        while !done.load(Ordering::Relaxed) {
            let recovered = runtime.block_on(other.recover(holder)).expect("a look");
            found += usize::from(recovered != RecoveryReport::default());
            std::thread::sleep(Duration::from_millis(20));
        }
        found
    });
    let count = Worker::new(store, executor, catalogue, CALLS).run_until_empty(CancellationToken::new()).await.expect("worked");
    over.store(true, Ordering::Relaxed);
    assert_eq!(looking.join().expect("a look"), 0, "nobody was gone");
    assert_eq!((count, ran.load(Ordering::SeqCst)), (CALLS, CALLS));
    let tasks = memory.tasks(TaskFilter::default()).await.expect("tasks");
    assert_eq!(tasks.len(), CALLS);
    assert!(tasks.iter().all(|task| (task.state, task.attempts, task.late) == (TaskState::Done, 1, 0)), "{tasks:?}");
}
