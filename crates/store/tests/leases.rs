//! Leases of a store in a file count since the machine started: no change of the time ends one, and no restart leaves one.

#![allow(clippy::expect_used, reason = "a test that goes wrong should stop")]
#![cfg(target_os = "linux")]

use std::time::Duration;

use helve_core::store::{Claim, NewTask, TaskState};
use helve_core::{Digest, HolderId, Store, ToolCall};
use helve_store::SqliteStore;
use rusqlite::Connection;
use serde_json::json;

const LEASE: Duration = Duration::from_hours(1);

/// Milliseconds since the machine started, from another place than the store has them.
fn uptime() -> f64 {
    let text = std::fs::read_to_string("/proc/uptime").expect("the time since the start");
    text.split_whitespace().next().and_then(|seconds| seconds.parse::<f64>().ok()).expect("seconds") * 1000.0
}

#[tokio::test]
async fn a_lease_knows_no_wall_clock() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("store.db");
    let store = SqliteStore::open(&file).expect("a store");
    let (gone, here) = (HolderId::mint(), HolderId::mint());
    let earliest = uptime() - 1000.0;
    store.keep(gone, LEASE, &[]).await.expect("kept");
    let connection = Connection::open(&file).expect("a database");
    let until: f64 = connection.query_row("SELECT CAST(until AS REAL) FROM holders", [], |row| row.get(0)).expect("a lease");
    let lease = LEASE.as_secs_f64() * 1000.0;
    assert!(until >= earliest + lease && until <= uptime() + 1000.0 + lease, "{until} is the time since the start and the lease");
    // The machine has rebooted: its clock starts at zero, and all earlier processes are gone.
    let new = NewTask::new(ToolCall::new("a", json!({})), Digest::of(["a".as_bytes()]));
    let task = NewTask { idempotent: true, ..new };
    let id = task.call.id;
    store.accept(task).await.expect("accepted");
    store.claim(Claim { holder: gone, limit: 1, tools: None }).await.expect("claimed");
    assert_eq!(store.recover(here).await.expect("nothing").tasks, 0, "its lease holds");
    connection.execute("UPDATE holders SET boot = 'an earlier one'", []).expect("a change");
    assert_eq!(store.recover(here).await.expect("recovered").tasks, 1);
    assert_eq!(store.task(id).await.expect("readable").expect("a task").state, TaskState::Queued);
}
