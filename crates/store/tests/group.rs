//! Steps that share a commit: one that fails takes only its own changes back, and what was not committed was not promised.

#![allow(clippy::expect_used, reason = "a test that goes wrong should stop")]

use helve_core::store::{NewRun, NewTask, RunCommit, RunState};
use helve_core::{ConversationId, Digest, EventData, HolderId, RunId, Store, StoreError, Timestamp, ToolCall};
use helve_store::SqliteStore;
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

const STEPS: usize = 40;

/// A run that begins. Where it is bad, the last thing that it writes is refused.
fn begin(bad: bool) -> RunCommit {
    let (run, conversation) = (RunId::mint(), ConversationId::mint());
    let holder = HolderId::mint();
    let begin = NewRun { id: run, conversation, parent: None, agent: None, model: "none".into(), input: "hello".into(), holder };
    RunCommit {
        begin: Some(begin),
        snapshot: Some(json!({"bad": bad})),
        events: vec![(Timestamp::now(), EventData::Notification { message: "begun".to_owned() })],
        ..RunCommit::new(run, 1, RunState::Running)
    }
}

/// Lets a table refuse rows whose text has a word in it, and what becomes of the transaction then. A store runs no triggers.
fn refuse(connection: &Connection, table: &str, word: &str, then: &str) {
    let column = format!("refused INTEGER GENERATED ALWAYS AS (nullif(instr(body, '{word}') = 0, 0)) VIRTUAL NOT NULL ON CONFLICT {then}");
    connection.execute_batch(&format!("ALTER TABLE {table} ADD COLUMN {column}")).expect("a column");
}

/// A store that refuses bad runs in this way, and a second way into its file.
fn record(then: &str) -> (TempDir, SqliteStore, Connection) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("store.db");
    let store = SqliteStore::open(&file).expect("a store");
    let connection = Connection::open(&file).expect("a database");
    refuse(&connection, "snapshots", "true", then);
    (folder, store, connection)
}

/// Begins runs, all of which wait for the same commit. Gives them with whether they were bad and what was said of them.
async fn together(store: &SqliteStore, connection: &Connection) -> Vec<(RunId, bool, Result<u64, StoreError>)> {
    let commits: Vec<_> = (0..STEPS).map(|number| begin(number % 4 == 3)).collect();
    connection.execute_batch("BEGIN IMMEDIATE").expect("the file is ours");
    // A step stands in line as soon as it is asked for.
    let steps: Vec<_> = commits.iter().map(|commit| store.commit_run(commit.clone())).collect();
    connection.execute_batch("COMMIT").expect("the file is free");
    let mut all = Vec::new();
    for (commit, (number, step)) in commits.iter().zip(steps.into_iter().enumerate()) {
        all.push((commit.run, number % 4 == 3, step.await));
    }
    all
}

async fn is_there(store: &SqliteStore, run: RunId) -> bool {
    let there = store.run(run).await.expect("readable").is_some();
    assert_eq!(!store.events(run, 0, 10).await.expect("events").is_empty(), there, "as a whole or not at all");
    there
}

#[tokio::test]
async fn a_step_that_fails_takes_only_its_own_changes_back() {
    let (_folder, store, connection) = record("ABORT");
    for (run, bad, said) in together(&store, &connection).await {
        assert_eq!(said.is_ok(), !bad, "{said:?}");
        assert_eq!(is_there(&store, run).await, !bad);
    }
}

/// As when the disk is full: the engine takes back the whole transaction.
#[tokio::test]
async fn what_was_not_committed_was_not_promised() {
    let (_folder, store, connection) = record("ROLLBACK");
    let mut refused = 0;
    for (run, bad, said) in together(&store, &connection).await {
        assert_eq!(is_there(&store, run).await, said.is_ok(), "bad: {bad}, {said:?}");
        assert!(!(bad && said.is_ok()));
        refused += usize::from(said.is_err());
    }
    assert!(refused > STEPS / 4, "those that shared a commit with a bad one too");
    let good = begin(false);
    let run = good.run;
    store.commit_run(good).await.expect("it goes on");
    assert!(is_there(&store, run).await);
}

/// The first statement of a job fails: the jobs after it must not be committed one by one.
#[tokio::test]
async fn nothing_is_written_outside_a_transaction() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("store.db");
    let store = SqliteStore::open(&file).expect("a store");
    let connection = Connection::open(&file).expect("a database");
    refuse(&connection, "tasks", "bad", "ROLLBACK");
    let offered: Vec<NewTask> = (0..STEPS).map(|number| task(if number % 4 == 3 { "bad" } else { "good" })).collect();
    connection.execute_batch("BEGIN IMMEDIATE").expect("the file is ours");
    let accepting: Vec<_> = offered.iter().map(|task| store.accept(task.clone())).collect();
    connection.execute_batch("COMMIT").expect("the file is free");
    let mut refused = 0;
    for (task, accepted) in offered.iter().zip(accepting) {
        let accepted = accepted.await;
        let there = store.task(task.call.id).await.expect("readable").is_some();
        assert_eq!(there, accepted.is_ok(), "{accepted:?}");
        refused += usize::from(!there);
    }
    assert!(refused > STEPS / 4, "those that shared a commit with a bad one too");
}

fn task(tool: &str) -> NewTask {
    NewTask::new(ToolCall::new(tool, json!({})), Digest::of([tool.as_bytes()]))
}
