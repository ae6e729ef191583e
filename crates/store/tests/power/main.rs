//! Power cuts. A process that writes a store is watched system call by system call; from what it wrote and what it synced come the files
//! as they could be on the disk if the power had been cut there: everything synced, and of the rest any sectors at all. Whatever the
//! process had acknowledged by then must be in them.
//!
//! The same check must find losses if commits are not synced, and damage if nothing is: otherwise it proves nothing.
//! `HELVE_POWER_IMAGES=10000` looks at so many images; a test run looks at a few hundred.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "a test that is skipped should say so, and the watched process speaks")]

mod disk;
mod trace;

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use helve_core::store::{Claim, Finish, NewTask, TaskEnd};
use helve_core::{Digest, HolderId, Outcome, Output, Status, Store, ToolCall};
use helve_store::{Durability, SqliteStore};
use serde_json::json;

use self::disk::{Disk, Verdict};
use self::trace::{Step, read};

const FILE: &str = "HELVE_POWER_FILE";
const SYNC: &str = "HELVE_POWER_SYNC";
/// By so many callers at once the watched process does its jobs.
const CALLERS: usize = 4;
/// Number of ways in which unsynced sectors reach the disk, tried at each moment.
const SUBSETS: usize = 32;

/// The watched process: does nothing unless it is asked to.
#[test]
fn the_watched_process() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let durability = match std::env::var(SYNC).as_deref() {
        Ok("off") => Durability::Off,
        Ok("normal") => Durability::Normal,
        _ => Durability::Full,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store = Arc::new(SqliteStore::open_with(file, durability).expect("a store"));
        let holder = HolderId::mint();
        store.keep(holder, Duration::from_mins(10), &[]).await.expect("a lease");
        let callers = (0..CALLERS).map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                for _ in 0..jobs() / CALLERS {
                    // Large enough that pages move to the database while it runs.
                    let call = ToolCall::new("report", json!({"topic": "bees ".repeat(2000)}));
                    let id = call.id;
                    let task = NewTask::new(call, Digest::of([b"report".as_slice()]));
                    store.accept(task).await.expect("accepted");
                    acknowledge(&format!("{id} queued"));
                    let tasks = store.claim(Claim { holder, limit: 1, tools: None }).await.expect("a claim");
                    for task in tasks {
                        let status = Status::Done(Ok(Output::text("all about bees")));
                        let outcome = Outcome { call_id: task.id, tool: task.tool, status, duration: Duration::ZERO };
                        let finish = Finish { task: task.id, epoch: task.epoch, end: TaskEnd::Over(outcome) };
                        store.finish(vec![finish]).await.expect("recorded");
                        acknowledge(&format!("{} done", task.id));
                    }
                }
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            caller.await.expect("a caller");
        }
    });
}

/// One line in one write, which the watch sees in its place among the others.
fn acknowledge(line: &str) {
    let _ = std::io::stderr().write_all(format!("ack {line}\n").as_bytes());
}

/// Watches one process, and judges the images of its disk.
fn watch(test: &str, durability: &str, images: usize) -> Option<Verdict> {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        helve_testkit::skip(test, "strace is not installed");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (file, log) = (folder.path().join("store.db"), folder.path().join("trace"));
    let this = std::env::current_exe().expect("this program");
    let calls = "trace=write,pwrite64,ftruncate,unlink,fsync,fdatasync";
    let output = Command::new("strace")
        .args(["-f", "-y", "-xx", "-s", "1000000", "-e", calls, "-o"])
        .arg(&log)
        .arg(this)
        .args(["--exact", "the_watched_process", "--nocapture", "--test-threads", "1"])
        .env(FILE, &file)
        .env(SYNC, durability)
        .output()
        .expect("strace");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("ptrace") && !output.status.success() {
        helve_testkit::skip(test, format!("strace may not trace processes here: {said}"));
        return None;
    }
    assert!(output.status.success(), "{said}");
    let steps: Vec<Step> = read(&std::fs::read_to_string(&log).expect("a trace"));
    assert!(steps.iter().filter(|step| matches!(step, Step::Acknowledged(_))).count() >= jobs() * 2, "the watch sees what is acknowledged");
    let verdict = Disk::new(&file).judge(&steps, images, SUBSETS, folder.path());
    println!("{durability}: {verdict:?}");
    Some(verdict)
}

/// How many jobs the watched process does: there must be moments enough to cut the power at.
fn jobs() -> usize {
    (images() / 50).max(120)
}

fn images() -> usize {
    std::env::var("HELVE_POWER_IMAGES").ok().and_then(|count| count.parse().ok()).unwrap_or(400)
}

#[test]
fn a_cut_of_the_power_costs_nothing_that_was_acknowledged() {
    let Some(verdict) = watch("a_cut_of_the_power_costs_nothing_that_was_acknowledged", "full", images()) else { return };
    assert!(verdict.images * 10 >= images() * 9, "{verdict:?}");
    assert_eq!((verdict.lost, verdict.damaged), (0, 0), "{verdict:?}");
}

#[test]
fn the_watch_sees_what_is_lost_without_syncs() {
    let test = "the_watch_sees_what_is_lost_without_syncs";
    let Some(verdict) = watch(test, "normal", 400) else { return };
    assert!(verdict.lost > 0, "{verdict:?}");
    let Some(verdict) = watch(test, "off", 400) else { return };
    assert!(verdict.damaged > 0, "{verdict:?}");
}
