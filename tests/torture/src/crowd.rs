//! A thousand subscribers at one node, which is killed: at the next node, each resumes after the last event that it received.
//!
//! A node is a process with a store of its own. What a subscriber received is in a log that no node owns.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use helve_core::store::{NewRun, RunCommit, RunState};
use helve_core::{ConversationId, HolderId, RunId, Store};

use crate::fixtures::{notes, step};
use crate::location::StoreLocation;
use crate::log::{Log, Paths};
use crate::parent::wait;
use crate::process::{Process, die_with_the_parent};

/// Number of subscribers of a node.
const SUBSCRIBERS: usize = 1000;
/// Number of runs; each subscriber follows one.
const RUNS: usize = 4;
/// Maximum number of events in one read.
const PAGE: usize = 5;
/// Longest polling interval of a subscriber, in milliseconds: in a file, there are no notifications from other processes.
const LOOK: u64 = 400;
/// Maximum lifetime of a node, in milliseconds.
const LONGEST: u64 = 900;
/// The lease of the parent, which drives the runs.
const LEASE: Duration = Duration::from_mins(10);

/// An event that a subscriber received.
type Delivery = (usize, u64);

/// What to kill.
#[derive(Debug, Clone)]
pub struct Crowd {
    /// This crate's program.
    pub program: PathBuf,
    /// How many nodes are killed.
    pub kills: usize,
    /// The location of the store.
    pub place: StoreLocation,
}

/// The result.
#[derive(Debug, Default)]
pub struct CrowdReport {
    /// How many events the runs have, in all.
    pub events: u64,
    /// Number of events that all subscribers received.
    pub told: usize,
    /// Number of them from nodes that were killed.
    pub told_by_killed: usize,
    /// Subscribers that did not receive 1, 2, 3 and so on to the end, with what they received.
    pub wrong: BTreeMap<usize, Vec<u64>>,
}

impl Crowd {
    /// Adds events to runs and kills nodes, until all subscribers have received everything.
    #[must_use]
    pub fn run(&self, folder: &Path) -> CrowdReport {
        let (paths, runtime) = (Paths(folder.to_owned()), runtime());
        let (store, runs) = runtime.block_on(begin(&self.place));
        let driver = runtime.spawn(drive(store.clone(), runs.clone()));
        let node = || {
            let mut command = Command::new(&self.program);
            command.arg("crowd").arg(folder).arg(self.place.to_string()).args(runs.iter().map(ToString::to_string));
            Process::start(command)
        };
        for _ in 0..self.kills {
            let child = node();
            std::thread::sleep(Duration::from_millis(fastrand::u64(..LONGEST)));
            child.kill();
        }
        let told_by_killed = told(&paths).len();
        driver.abort();
        let last = node();
        let ends: Vec<u64> = runtime.block_on(async {
            let _ = driver.await;
            let mut ends = Vec::new();
            for run in &runs {
                ends.push(store.run(*run).await.expect("readable").expect("a run").seq);
            }
            ends
        });
        let expected: u64 = (0..SUBSCRIBERS).map(|subscriber| ends[subscriber % RUNS]).sum();
        wait(|| told(&paths).len() as u64 >= expected, "all subscribers are told everything");
        last.kill();
        let told = told(&paths);
        CrowdReport { events: ends.iter().sum(), told: told.len(), told_by_killed, wrong: wrong(&told, &ends) }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime")
}

fn told(paths: &Paths) -> Vec<Delivery> {
    Log::read(&paths.events())
}

/// Starts the runs.
async fn begin(place: &StoreLocation) -> (Arc<dyn Store>, Vec<RunId>) {
    let (store, holder) = (place.open().await, HolderId::mint());
    store.keep(holder, LEASE, &[]).await.expect("a lease");
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        let (id, conversation) = (RunId::mint(), ConversationId::mint());
        let begin = NewRun { id, conversation, parent: None, agent: None, model: "none".into(), input: "hello".into(), holder };
        let commit = RunCommit { begin: Some(begin), events: notes(1), ..step(id, 1, RunState::Running) };
        store.commit_run(commit).await.expect("begun");
        runs.push(id);
    }
    (store, runs)
}

/// Adds events to runs forever.
async fn drive(store: Arc<dyn Store>, runs: Vec<RunId>) {
    loop {
        let run = runs[fastrand::usize(..runs.len())];
        let commit = RunCommit { events: notes(fastrand::usize(1..=3)), ..step(run, 1, RunState::Running) };
        store.commit_run(commit).await.expect("recorded");
        tokio::time::sleep(Duration::from_millis(fastrand::u64(20..200))).await;
    }
}

/// The node: all subscribers at once, until it is killed.
pub fn serve(paths: &Paths, place: &StoreLocation, runs: &[&str]) {
    die_with_the_parent();
    let runs: Vec<RunId> = runs.iter().map(|run| run.parse().expect("a run")).collect();
    runtime().block_on(async {
        let (store, log) = (place.open().await, Arc::new(Log::open(&paths.events())));
        let mut places = vec![0; SUBSCRIBERS];
        for (subscriber, seq) in told(paths) {
            places[subscriber] = seq;
        }
        let mut out = std::io::stdout();
        out.write_all(b"ready\n").and_then(|()| out.flush()).expect("a parent that listens");
        let mut subscribers = tokio::task::JoinSet::new();
        for (subscriber, place) in places.into_iter().enumerate() {
            subscribers.spawn(follow(store.clone(), log.clone(), subscriber, runs[subscriber % runs.len()], place));
        }
        if let Some(ended) = subscribers.join_next().await {
            ended.expect("a subscriber that goes on");
        }
    });
}

/// Follows a run from an event on, forever.
async fn follow(store: Arc<dyn Store>, log: Arc<Log>, subscriber: usize, run: RunId, mut place: u64) {
    let mut changes = store.changes();
    loop {
        changes.mark_unchanged();
        loop {
            let events = store.events(run, place, PAGE).await.expect("events");
            for event in &events {
                // The event counts as received when this is written.
                log.add(&(subscriber, event.seq));
                place = event.seq;
            }
            if events.len() < PAGE {
                break;
            }
        }
        let look = tokio::time::sleep(Duration::from_millis(fastrand::u64(LOOK / 2..LOOK)));
        tokio::select! {
            told = changes.changed() => told.expect("a store that is open"),
            () = look => {}
        }
    }
}

/// Returns the subscribers that did not receive 1, 2, 3 and so on to the end of their run.
fn wrong(told: &[Delivery], ends: &[u64]) -> BTreeMap<usize, Vec<u64>> {
    let mut heard: BTreeMap<usize, Vec<u64>> = (0..SUBSCRIBERS).map(|subscriber| (subscriber, Vec::new())).collect();
    for (subscriber, seq) in told {
        heard.entry(*subscriber).or_default().push(*seq);
    }
    heard.retain(|subscriber, seqs| !seqs.iter().copied().eq(1..=ends[subscriber % ends.len()]));
    heard
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_repeats_and_missing_ends_are_seen() {
        let good: Vec<Delivery> = (1..=3).flat_map(|seq| (0..SUBSCRIBERS).map(move |subscriber| (subscriber, seq))).collect();
        assert!(wrong(&good, &[3]).is_empty());
        let without = |told: Delivery| good.iter().copied().filter(|other| *other != told).collect::<Vec<_>>();
        assert_eq!(wrong(&without((7, 2)), &[3]), BTreeMap::from([(7, vec![1, 3])]));
        assert_eq!(wrong(&without((8, 3)), &[3]), BTreeMap::from([(8, vec![1, 2])]));
        assert_eq!(wrong(&[&good[..], &[(9, 3)]].concat(), &[3]), BTreeMap::from([(9, vec![1, 2, 3, 3])]));
    }
}
