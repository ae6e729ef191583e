//! A store that an earlier version wrote: it opens as it was, whatever interrupts that.

#![allow(clippy::expect_used, reason = "a test that goes wrong should stop")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use helve_core::store::{Claim, Task, TaskFilter, TaskState};
use helve_core::{HolderId, Store};
use helve_store::SqliteStore;
use rusqlite::Connection;

/// What version 1 wrote.
const FIRST: &str = include_str!("fixtures/sqlite-1.sql");
const LATEST: u32 = 3;
/// Names the file that a child of this test opens.
const FILE: &str = "HELVE_TEST_UPGRADE";
const KILLS: u32 = 100;
/// Number of extra tasks, so that an upgrade takes long enough to be killed.
const MANY: u32 = 1000;

fn write(file: &Path, sql: &str) {
    Connection::open(file).and_then(|connection| connection.execute_batch(sql)).expect("a store");
}

async fn tasks(store: &SqliteStore) -> Vec<Task> {
    let mut tasks = store.tasks(TaskFilter::default()).await.expect("tasks");
    tasks.sort_by_key(|task| task.id);
    tasks
}

/// What became of a task, in a few words.
fn fate(task: &Task) -> String {
    let outcome = task.outcome.as_ref().map_or(0, |outcome| serde_json::to_string(outcome).expect("an outcome").len() / 100);
    let (state, tool, progress) = (task.state.name(), &task.tool, task.progress.as_ref().map_or("", |progress| &progress.message));
    let marks = [(task.read, " heard"), (task.cancelling, " stopping"), (task.holder.is_some(), " held")];
    let marks: String = marks.into_iter().filter_map(|(holds, name)| holds.then_some(name)).collect();
    format!("{tool} {state} {}/{} late {} outcome {outcome}{marks} {progress}", task.epoch, task.attempts, task.late)
}

#[tokio::test]
async fn a_record_of_an_earlier_version_opens_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("store.db");
    write(&file, FIRST);
    let store = SqliteStore::open(&file).expect("a store");
    let known = tasks(&store).await;
    let expected = [
        "small done 1/1 late 1 outcome 1 ",
        "large done 1/1 late 0 outcome 701 heard ",
        "flaky queued 1/1 late 0 outcome 0 ",
        "never cancelled 0/0 late 0 outcome 2 ",
        "slow running 1/1 late 0 outcome 0 stopping held half",
        "once running 1/1 late 0 outcome 0 held ",
        "later queued 0/0 late 0 outcome 0 ",
    ];
    assert_eq!(known.iter().map(fate).collect::<Vec<_>>(), expected);
    let large = |task: &&Task| task.call.arguments["text"].as_str().is_some_and(|text| text.len() == 70_000);
    assert_eq!(known.iter().filter(large).map(|task| &*task.tool).collect::<Vec<_>>(), ["large", "slow"]);
    // The times of the queue are where they were, to the millisecond in which they were kept.
    let since = |task: &Task| task.created - jiff::SignedDuration::from_millis(1);
    assert!(known.iter().all(|task| task.due >= since(task) && task.updated >= since(task)));
    let run = store.runs(None, 10).await.expect("runs").pop().expect("a run");
    let seqs: Vec<u64> = store.events(run.id, 0, 100).await.expect("events").iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=7).collect::<Vec<u64>>());
    let unread = store.inbox(run.conversation_id).await.expect("an inbox");
    assert_eq!(unread.iter().map(|task| &*task.tool).collect::<Vec<_>>(), ["small"]);
    assert_eq!(store.conversation(run.conversation_id).await.expect("readable").expect("a conversation").messages.len(), 1);

    // Its process is gone, and the work goes on.
    let here = HolderId::mint();
    store.keep(here, Duration::from_mins(1), &[]).await.expect("a lease");
    assert_eq!(store.recover(here).await.expect("recovered").tasks, 2);
    let states: Vec<TaskState> = tasks(&store).await.iter().map(|task| task.state).collect();
    assert_eq!(states[4..6], [TaskState::Cancelled, TaskState::Failed]);
    let taken = store.claim(Claim { holder: here, limit: 10, tools: None }).await.expect("tasks");
    assert_eq!(taken.iter().map(|task| (&*task.tool, task.attempts)).collect::<Vec<_>>(), [("flaky", 2), ("later", 1)]);
    // Forgetting what no row needs leaves what rows need.
    store.prune(Duration::from_hours(1_000_000)).await.expect("pruned");
    assert_eq!(tasks(&store).await.iter().filter(large).count(), 2);
}

fn version(file: &Path) -> u32 {
    let connection = Connection::open(file).expect("a database");
    let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("a look");
    assert_eq!(sound, "ok");
    let columns = "SELECT (SELECT count(*) FROM pragma_table_info('tasks') WHERE name = 'attempts')
        + (SELECT count(*) FROM pragma_table_info('approvals') WHERE name = 'asker')";
    let new: u32 = connection.query_row(columns, [], |row| row.get(0)).expect("columns");
    let version: u32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).expect("a version");
    assert_eq!(new, version - 1, "the tables are those of the version");
    let count: u32 = connection.query_row("SELECT count(*) FROM tasks", [], |row| row.get(0)).expect("a count");
    assert_eq!(count, MANY + 7, "no task is lost");
    version
}

/// A child that does nothing but open the store.
fn open(file: &Path) -> std::process::Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "a_kill_leaves_the_old_record_or_the_new_one"]).env(FILE, file).stdout(std::process::Stdio::null());
    command.spawn().expect("a child")
}

#[test]
fn a_kill_leaves_the_old_record_or_the_new_one() {
    if let Some(file) = std::env::var_os(FILE) {
        SqliteStore::open(file).expect("a store");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (first, file) = (folder.path().join("first.db"), folder.path().join("store.db"));
    let more = format!(
        "WITH RECURSIVE numbers (number) AS (VALUES (1) UNION ALL SELECT number + 1 FROM numbers WHERE number < {MANY})
        INSERT INTO tasks SELECT 'call_' || number, 'done', 0, 0, definition, conversation, 1, 0, body FROM tasks, numbers
            WHERE id = (SELECT min(id) FROM tasks);"
    );
    write(&first, &format!("{FIRST}{more}"));
    std::fs::copy(&first, &file).expect("a copy");
    let begun = Instant::now();
    assert!(open(&file).wait().expect("an end").success());
    let whole = begun.elapsed();
    assert_eq!(version(&file), LATEST);
    let mut left = [0; LATEST as usize];
    for kill in 0..KILLS {
        for ending in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(folder.path().join(format!("store.db{ending}")));
        }
        std::fs::copy(&first, &file).expect("a copy");
        let mut child = open(&file);
        std::thread::sleep(whole * kill / KILLS);
        child.kill().expect("killed");
        child.wait().expect("an end");
        left[version(&file) as usize - 1] += 1;
        drop(SqliteStore::open(&file).expect("the next one opens it"));
        assert_eq!(version(&file), LATEST);
    }
    assert!(left[0] > 0, "some were killed before the end: {left:?}");
}
