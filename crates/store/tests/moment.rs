//! Who reads while others write sees the store as it was at one moment.

#![allow(clippy::expect_used, reason = "a test that goes wrong should stop")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use helve_core::store::{Claim, NewTask, Progress};
use helve_core::{Digest, HolderId, Store, ToolCall};
use helve_store::SqliteStore;
use serde_json::json;

/// A large row lies beside its table: it must not be swept up between the two looks that reading it takes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_row_does_not_go_while_it_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(folder.path().join("store.db")).expect("a store");
    let new = NewTask::new(ToolCall::new("a", json!({"text": "x".repeat(100_000)})), Digest::of(["a".as_bytes()]));
    let task = NewTask { idempotent: true, ..new };
    let (id, holder) = (task.call.id, HolderId::mint());
    store.accept(task).await.expect("accepted");
    store.claim(Claim { holder, limit: 1, tools: None }).await.expect("claimed");
    let over = AtomicBool::new(false);
    let change = async {
        for number in 0..150 {
            let progress = Progress { fraction: None, message: format!("step {number}") };
            store.keep(holder, Duration::from_mins(1), &[(id, progress)]).await.expect("kept");
            store.prune(Duration::ZERO).await.expect("swept");
        }
        over.store(true, Ordering::Relaxed);
    };
    let read = async {
        while !over.load(Ordering::Relaxed) {
            assert!(store.task(id).await.expect("a whole row").is_some());
        }
    };
    tokio::join!(change, read);
}
