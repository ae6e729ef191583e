//! Several processes on one PostgreSQL server, and connections that break.

use std::collections::HashSet;

use helve_core::StoreError;
use helve_core::store::{FinishResult, RecoveryReport, TaskState};
use helve_store::PostgresStore;

use crate::approvals;
use crate::scene::*;
use crate::server::Schema;

/// Two stores on one schema, as two processes would have them.
async fn two(test: &str) -> Option<(Schema, [Arc<PostgresStore>; 2])> {
    let schema = Schema::new(test).await?;
    let stores = [Arc::new(schema.open().await), Arc::new(schema.open().await)];
    Some((schema, stores))
}

async fn soon(mut seen: impl AsyncFnMut() -> bool, what: &str) {
    let looked = async {
        while !seen().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), looked).await.unwrap_or_else(|_| panic!("{what}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_workers_of_two_processes_never_get_the_same_task() {
    let Some((_schema, stores)) = two("sixteen_workers_of_two_processes_never_get_the_same_task").await else { return };
    let accepted_all = (0..400).map(|_| accepted(&*stores[0], task("a")));
    let wanted: HashSet<CallId> = futures_util::future::join_all(accepted_all).await.into_iter().collect();
    let mut workers = Vec::new();
    for number in 0..16 {
        let store = stores[number % 2].clone();
        workers.push(tokio::spawn(async move {
            let worker = process(&*store).await;
            let mut done = Vec::new();
            loop {
                let tasks = claim(&*store, worker, 1 + number % 3).await;
                if tasks.is_empty() {
                    return done;
                }
                for task in tasks {
                    assert_eq!((task.epoch, task.holder), (1, Some(worker)));
                    assert_eq!(finish(&*store, &task, TaskEnd::Over(good(&task))).await, FinishResult::Recorded);
                    done.push(task.id);
                }
            }
        }));
    }
    let mut done = Vec::new();
    for worker in workers {
        done.extend(worker.await.expect("a worker"));
    }
    assert_eq!(done.len(), 400);
    assert_eq!(done.into_iter().collect::<HashSet<_>>(), wanted);
}

#[tokio::test]
async fn a_change_is_seen_by_the_other_process() {
    let Some((_schema, [one, other])) = two("a_change_is_seen_by_the_other_process").await else { return };
    let mut changes = other.changes();
    let run = started(&*one).await;
    // A notification that came before the other listened is lost, so there is more than one.
    let seen = async {
        changes.mark_unchanged();
        loop {
            accepted(&*one, NewTask { caller: of_run(&run), ..task("a") }).await;
            if tokio::time::timeout(Duration::from_millis(100), changes.changed()).await.is_ok() {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_mins(1), seen).await.expect("the other hears of it");
    let events = other.events(run.run, 0, 100).await.expect("events");
    assert!(events.iter().any(|event| matches!(event.data, EventData::TaskAccepted { .. })));
}

#[tokio::test]
async fn another_record_in_the_same_database_wakes_nobody() {
    let Some((_here, [store, other])) = two("another_record_in_the_same_database_wakes_nobody").await else { return };
    let Some((_there, [stranger, its_other])) = two("another_record_in_the_same_database_wakes_nobody").await else { return };
    let (mut changes, mut theirs) = (other.changes(), its_other.changes());
    changes.mark_unchanged();
    theirs.mark_unchanged();
    accepted(&*stranger, task("a")).await;
    tokio::time::timeout(Duration::from_secs(10), theirs.changed()).await.expect("soon").expect("a change");
    // What was said there would have come here before this one.
    accepted(&*store, task("a")).await;
    tokio::time::timeout(Duration::from_secs(10), changes.changed()).await.expect("soon").expect("a change");
    assert!(tokio::time::timeout(Duration::from_millis(200), changes.changed()).await.is_err(), "only one of them was for this record");
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_may_work_on_one_run_at_once() {
    let Some((_schema, stores)) = two("everybody_may_work_on_one_run_at_once").await else { return };
    let run = Arc::new(started(&*stores[0]).await);
    let mut workers = Vec::new();
    for number in 0..8 {
        let (store, run) = (stores[number % 2].clone(), run.clone());
        workers.push(tokio::spawn(async move {
            let worker = process(&*store).await;
            for _ in 0..15 {
                accepted(&*store, NewTask { caller: of_run(&run), ..task("a") }).await;
                // A worker that looked a moment before a task came can go away empty; it looks again.
                let held = loop {
                    if let Some(held) = claim(&*store, worker, 1).await.pop() {
                        break held;
                    }
                };
                finish(&*store, &held, TaskEnd::Over(good(&held))).await;
                // The run hears of results while others finish theirs.
                let read = store.inbox(run.conversation).await.expect("a list").into_iter().map(|task| task.id).collect();
                let commit = RunCommit { events: vec![note("step")], read, ..step(run.run, 1, RunState::Running) };
                store.commit_run(commit).await.expect("recorded");
                store.cancel_task(held.id).await.expect("too late");
            }
        }));
    }
    for worker in workers {
        worker.await.expect("a worker");
    }
    assert_eq!(seqs(&*stores[0], run.run).await, (1..=1 + 8 * 15 * 3).collect::<Vec<u64>>(), "no gap, nothing twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_processes_may_recover_at_once() {
    let Some((_schema, stores)) = two("several_processes_may_recover_at_once").await else { return };
    let gone = process(&*stores[0]).await;
    let many = (0..300).map(|_| accepted(&*stores[0], task("a")));
    futures_util::future::join_all(many).await;
    assert_eq!(claim(&*stores[0], gone, 300).await.len(), 300);
    let run = started(&*stores[0]).await;
    // A lease of no length is over at once, by the server's clock.
    for holder in [gone, run.holder] {
        stores[0].keep(holder, Duration::ZERO, &[]).await.expect("kept");
    }
    let here = HolderId::mint();
    let recoveries = (0..6).map(|number| stores[number % 2].recover(here));
    let found = futures_util::future::join_all(recoveries).await;
    let sum = found.into_iter().map(|found| found.expect("recovered")).fold(RecoveryReport::default(), |sum, found| RecoveryReport {
        tasks: sum.tasks + found.tasks,
        runs: sum.runs + found.runs,
        approvals: sum.approvals + found.approvals,
    });
    // A process that found others at work may have left the rest to them.
    let rest = stores[0].recover(here).await.expect("recovered");
    assert_eq!((sum.tasks + rest.tasks, sum.runs + rest.runs), (300, 1));
}

#[tokio::test]
async fn the_same_task_from_two_processes_is_accepted_once() {
    let Some((_schema, stores)) = two("the_same_task_from_two_processes_is_accepted_once").await else { return };
    for _ in 0..20 {
        let new = task("a");
        let (one, two) = tokio::join!(stores[0].accept(new.clone()), stores[1].accept(new));
        let answers = [one.expect("accepted"), two.expect("accepted")];
        assert_ne!(answers[0], answers[1], "one of them is new");
    }
    assert_eq!(ids(&*stores[0]).await.len(), 20);
}

#[tokio::test]
async fn a_damaged_task_costs_the_others_of_its_group_nothing() {
    let Some((schema, [store, _])) = two("a_damaged_task_costs_the_others_of_its_group_nothing").await else { return };
    let worker = process(&*store).await;
    for _ in 0..3 {
        accepted(&*store, task("a")).await;
    }
    let held = claim(&*store, worker, 3).await;
    schema.execute(&format!("UPDATE helve_tasks SET body = '{{' WHERE id = '{}'", held[1].id)).await;
    let ended = |task: &Task| vec![Finish { task: task.id, epoch: task.epoch, end: TaskEnd::Over(good(task)) }];
    let answers = futures_util::future::join_all(held.iter().map(|task| store.finish(ended(task)))).await;
    assert!(matches!(&answers[1], Err(StoreError::Damaged(_))), "{answers:?}");
    for place in [0, 2] {
        assert!(matches!(answers[place].as_deref(), Ok([FinishResult::Recorded])), "{answers:?}");
        assert_eq!(find(&*store, held[place].id).await.state, TaskState::Done);
    }
}

#[tokio::test]
async fn what_nobody_waits_for_is_done_all_the_same() {
    let Some((_schema, [store, _])) = two("what_nobody_waits_for_is_done_all_the_same").await else { return };
    let (new, run) = (task("a"), started(&*store).await);
    let id = new.call.id;
    drop(store.accept(new));
    drop(store.commit_run(RunCommit { events: vec![note("two")], ..step(run.run, 1, RunState::Running) }));
    soon(async || store.task(id).await.expect("readable").is_some() && seqs(&*store, run.run).await == [1, 2], "both are recorded").await;
}

#[tokio::test]
async fn many_may_open_it_at_once_but_not_after_a_newer_version() {
    let Some(schema) = Schema::new("many_may_open_it_at_once_but_not_after_a_newer_version").await else { return };
    let opened = futures_util::future::join_all((0..6).map(|_| schema.open())).await;
    assert_eq!(opened.len(), 6);
    schema.execute("UPDATE helve_version SET version = 1000").await;
    assert!(matches!(PostgresStore::open(&schema.url()).await, Err(StoreError::Version(_))));
}

#[tokio::test]
async fn a_record_of_the_first_version_opens_as_it_was() {
    let Some(schema) = Schema::new("a_record_of_the_first_version_opens_as_it_was").await else { return };
    let (run, id) = {
        let store = schema.open().await;
        let run = started(&store).await;
        let asked = approvals::approval(of_run(&run));
        let id = asked.request.id;
        store.commit_run(RunCommit { approvals: vec![asked], ..step(run.run, 1, RunState::Waiting) }).await.expect("asked");
        (run, id)
    };
    schema.execute("ALTER TABLE helve_approvals DROP COLUMN asker, DROP COLUMN conversation").await;
    schema.execute("UPDATE helve_version SET version = 1").await;
    let store = schema.open().await;
    assert_eq!(store.approval(id).await.expect("readable").expect("a request").request.caller.run, Some(run.run));
    // Division by nothing would fail.
    schema.execute("SELECT 1 / count(*) FROM helve_approvals WHERE conversation IS NOT NULL").await;
    assert_eq!(store.prune(Duration::ZERO).await.expect("pruned"), 0, "a request is open");
    assert!(store.conversation(run.conversation).await.expect("readable").is_some());
}

#[tokio::test]
async fn an_address_that_leads_nowhere_is_said_without_its_password() {
    let opened = PostgresStore::open("postgres://ada:hunter2@127.0.0.1:1/none").await;
    let Err(StoreError::Unavailable(why)) = opened else { panic!("there is no server") };
    assert!(!why.contains("hunter2"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_break_are_made_anew() {
    let Some((schema, [store, other])) = two("connections_that_break_are_made_anew").await else { return };
    accepted(&*store, task("a")).await;
    let ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = current_setting('application_name')
        AND pid <> pg_backend_pid()";
    for _ in 0..3 {
        schema.execute(ended).await;
        // A call can come before the break is known; it says so, and the next one is well.
        soon(async || store.accept(task("a")).await.is_ok(), "the store comes back").await;
        let mut changes = other.changes();
        let heard = async || {
            changes.mark_unchanged();
            accepted(&*store, task("a")).await;
            tokio::time::timeout(Duration::from_millis(50), changes.changed()).await.is_ok()
        };
        soon(heard, "and hears of others again").await;
    }
}
