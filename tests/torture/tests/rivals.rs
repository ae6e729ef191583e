//! Two processes on one store, and a call that takes its process down each time.

#![allow(clippy::expect_used, reason = "a test that goes wrong should stop")]

use std::os::unix::process::ExitStatusExt;

use helve_core::Store;
use helve_core::store::{MAX_ATTEMPTS, NewTask, TaskState};
use helve_store::SqliteStore;
use helve_torture::parent::Torture;
use helve_torture::{Paths, child};

const SIGABRT: i32 = 6;

fn torture(cycles: usize) -> Torture {
    Torture { program: env!("CARGO_BIN_EXE_torture").into(), cycles, fault: None, server: None }
}

#[test]
fn one_of_two_processes_gives_tasks_out_and_the_other_takes_over_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = torture(10).run_rivals(folder.path());
    assert_eq!(report.violations, [], "{report:?}");
    assert!(report.tasks > 100 && report.ran > 50, "something happened: {report:?}");
}

#[test]
fn a_call_that_takes_its_process_down_is_given_up_and_the_others_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (paths, torture) = (Paths(folder.path().to_owned()), torture(0));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let store = SqliteStore::open(paths.store_file()).expect("a store");
    let poison = child::task(&paths, "poison");
    let id = poison.call.id;
    assert_eq!(poison.max_attempts, MAX_ATTEMPTS);
    runtime.block_on(async {
        store.accept(poison).await.expect("accepted");
        for _ in 0..30 {
            // Those that run beside it when the process ends lose a try each time.
            store.accept(NewTask { max_attempts: 2 * MAX_ATTEMPTS, ..child::task(&paths, "again") }).await.expect("accepted");
        }
    });
    for _ in 0..MAX_ATTEMPTS {
        assert_eq!(torture.drain(&paths).signal(), Some(SIGABRT), "it takes its process down");
    }
    assert!(torture.drain(&paths).success(), "and then no more");
    runtime.block_on(async {
        let dead = store.task(id).await.expect("readable").expect("a task");
        assert_eq!((dead.state, dead.attempts), (TaskState::Dead, MAX_ATTEMPTS));
        assert!(dead.outcome.is_some_and(|outcome| !outcome.is_success()));
        let all = store.tasks(helve_core::store::TaskFilter::default().limit(100)).await.expect("a list");
        assert_eq!(all.iter().filter(|task| task.state == TaskState::Done).count(), 30);
    });
}
