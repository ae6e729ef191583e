//! How long an event takes to another process: from the moment its commit is acknowledged here to the moment it is read there, after a
//! wake-up. Two stores on one server are like two processes: they share nothing.
//!
//!     HELVE_TEST_POSTGRES=postgres://… cargo run --release -p helve-store --example latency

#![allow(clippy::print_stdout, reason = "the figures are the result")]
#![allow(clippy::expect_used, reason = "a benchmark that goes wrong should stop")]

use std::time::{Duration, Instant};

use helve_core::store::{NewRun, RunCommit, RunState};
use helve_core::{ConversationId, EventData, HolderId, RunId, Store, Timestamp};
use helve_store::PostgresStore;

const EVENTS: usize = 500;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let url = std::env::var("HELVE_TEST_POSTGRES").expect("HELVE_TEST_POSTGRES names a server");
    let (here, there) = (PostgresStore::open(&url).await.expect("a store"), PostgresStore::open(&url).await.expect("a store"));
    let (run, holder) = (RunId::mint(), HolderId::mint());
    here.keep(holder, Duration::from_mins(10), &[]).await.expect("a lease");
    let begin =
        NewRun { id: run, conversation: ConversationId::mint(), parent: None, agent: None, model: "none".into(), input: "".into(), holder };
    here.commit_run(RunCommit { begin: Some(begin), ..step(run) }).await.expect("begun");
    let mut changes = there.changes();
    let mut times = Vec::with_capacity(EVENTS);
    for seq in 2..=EVENTS as u64 + 1 {
        here.commit_run(step(run)).await.expect("recorded");
        let committed = Instant::now();
        loop {
            let _ = tokio::time::timeout(Duration::from_secs(1), changes.changed()).await;
            if !there.events(run, seq - 1, 1).await.expect("events").is_empty() {
                break;
            }
        }
        times.push(committed.elapsed());
        // The next one must not profit from the wake-up of this one.
        tokio::time::sleep(Duration::from_millis(10)).await;
        changes.mark_unchanged();
    }
    times.sort_unstable();
    println!("median {:?}, 99 of 100 within {:?}, longest {:?}", times[EVENTS / 2], times[EVENTS * 99 / 100], times[EVENTS - 1]);
}

fn step(run: RunId) -> RunCommit {
    let events = vec![(Timestamp::now(), EventData::Notification { message: "one".to_owned() })];
    RunCommit { events, ..RunCommit::new(run, 1, RunState::Running) }
}
