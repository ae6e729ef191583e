//! Starts children on one store and kills them, checks the file after each kill, and checks the history at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use helve_core::store::TaskFilter;
use helve_core::{CallId, EventData, HolderId};
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::history::{FinalApproval, FinalState, FinalTask, Observation, Violation, check};
use crate::location::StoreLocation;
use crate::log::{Log, Paths};
use crate::process::Process;
use crate::server;
use crate::witness::{result, what};

/// Maximum lifetime of a child, in microseconds: with a file, and with a server, where it first connects.
const LONGEST: [u64; 2] = [60_000, 240_000];
/// Timeout for something that must happen.
const PATIENCE: Duration = Duration::from_mins(1);
/// Timeout for what does not wait for a lease: every lease is longer.
const AT_ONCE: Duration = Duration::from_secs(25);
/// After so many kills, tasks that wait for their next try need not wait any longer.
const HURRY: usize = 4;

/// What to torture, and how.
#[derive(Debug, Clone)]
pub struct Torture {
    /// This crate's program.
    pub program: PathBuf,
    /// How many children are killed.
    pub cycles: usize,
    /// The name of a lie that children's stores tell.
    pub fault: Option<&'static str>,
    /// The address of the store where it is on a server; else it is a file.
    pub server: Option<String>,
}

/// The result.
#[derive(Debug, Default)]
pub struct Report {
    /// How many promises were written down.
    pub promises: usize,
    /// How many calls there are.
    pub tasks: usize,
    /// How many of them ended well.
    pub good: usize,
    /// How many times a tool ran.
    pub ran: usize,
    /// How many requests there are.
    pub approvals: usize,
    /// Number of events that the subscriber received.
    pub events: usize,
    /// How many requests were open at the kills, in all.
    pub open: u32,
    /// What must not happen, and did.
    pub violations: Vec<Violation>,
}

impl Torture {
    /// Runs it in a folder, which must be empty.
    #[must_use]
    pub fn run(&self, folder: &Path) -> Report {
        let paths = Paths(folder.to_owned());
        let mut open = 0;
        for cycle in 1..=self.cycles {
            let child = self.start(&paths, "alone");
            let longest = LONGEST[usize::from(self.server.is_some())];
            std::thread::sleep(Duration::from_micros(fastrand::u64(1000..=longest)));
            child.kill();
            open += look(&self.place(&paths), cycle % HURRY == 0, true);
        }
        Report { open, ..self.end(&paths) }
    }

    /// Runs two children at once. The one that gives tasks out is killed, the other takes over, and a new one is started.
    #[must_use]
    pub fn run_rivals(&self, folder: &Path) -> Report {
        let paths = Paths(folder.to_owned());
        let mut first = self.start(&paths, "rival");
        for cycle in 0..self.cycles {
            within(AT_ONCE, || claimers(&paths).len() > cycle, "the one that is left gives tasks out");
            let known: BTreeSet<HolderId> = claims(&paths).into_iter().map(|(holder, _)| holder).collect();
            let second = self.start(&paths, "rival");
            wait(|| claims(&paths).iter().filter(|(holder, _)| !known.contains(holder)).count() > 3, "the other one asks as well");
            first.kill();
            look(&self.place(&paths), false, false);
            first = second;
        }
        first.kill();
        let order = claimers(&paths);
        assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), order.len(), "one after the other: {order:?}");
        self.end(&paths)
    }

    /// Lets the last child finish what is left, and checks the history.
    #[must_use]
    pub fn end(&self, paths: &Paths) -> Report {
        assert!(self.drain(paths).success(), "the last child ends well");
        let (mut told, ran): (Vec<Observation>, Vec<CallId>) = (Log::read(&paths.told()), Log::read(&paths.ran()));
        let promises = told.len();
        told.extend(Log::read::<Observation>(&paths.events()));
        let last = record(&self.place(paths));
        Report {
            promises,
            tasks: last.tasks.len(),
            good: last.tasks.values().filter(|task| task.success).count(),
            ran: ran.len(),
            approvals: last.approvals.len(),
            events: told.len() - promises,
            open: 0,
            violations: check(&told, &ran, &last),
        }
    }

    /// A child that works until nothing is left, with all tasks due. Returns how it ended.
    #[must_use]
    pub fn drain(&self, paths: &Paths) -> ExitStatus {
        let mut child = self.start(paths, "last");
        loop {
            look(&self.place(paths), true, false);
            match child.ended() {
                Some(ended) => break ended,
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// The location of the store.
    fn place(&self, paths: &Paths) -> StoreLocation {
        self.server.clone().map_or_else(|| StoreLocation::File(paths.store_file()), StoreLocation::Server)
    }

    fn start(&self, paths: &Paths, part: &str) -> Process {
        let mut command = Command::new(&self.program);
        command.arg(part).arg(&paths.0).arg(self.place(paths).to_string());
        command.args(self.fault.filter(|_| part == "alone"));
        Process::start(command)
    }
}

/// Which process claimed tasks, and how many it got.
fn claims(paths: &Paths) -> Vec<(HolderId, usize)> {
    Log::read(&paths.claims())
}

/// Who gave tasks out, in order; each once for each time that it began to.
fn claimers(paths: &Paths) -> Vec<HolderId> {
    let mut claimers: Vec<HolderId> = claims(paths).into_iter().filter(|(_, got)| *got > 0).map(|(holder, _)| holder).collect();
    claimers.dedup();
    claimers
}

/// Waits for something that must happen.
pub(crate) fn wait(happened: impl Fn() -> bool, what: &str) {
    within(PATIENCE, happened, what);
}

fn within(limit: Duration, happened: impl Fn() -> bool, what: &str) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < limit, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Looks at the store after a kill, and says how many requests are open in it. Whether everybody is dead is for the caller to say.
fn look(place: &StoreLocation, hurry: bool, dead: bool) -> u32 {
    match place {
        StoreLocation::File(file) => look_at_file(file, hurry),
        StoreLocation::Server(address) => look_at_server(address, hurry, dead),
    }
}

/// Whether the file is sound. Who is dead it knows by itself.
fn look_at_file(file: &Path, hurry: bool) -> u32 {
    let connection = Connection::open(file).expect("a database");
    // The next child shall find the file as the killed one left it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).expect("a setting");
    let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("a look");
    assert_eq!(sound, "ok");
    if hurry {
        // As if the time had come.
        connection.execute("UPDATE tasks SET due = 0 WHERE state = 'queued'", []).expect("a change");
    }
    connection.query_row("SELECT count(*) FROM approvals WHERE state = 'pending'", [], |row| row.get(0)).expect("a count")
}

const SPEAKING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE application_name = current_setting('application_name') AND pid <> pg_backend_pid()";
/// Skips tasks that a worker is claiming.
pub(crate) const DUE: &str = "UPDATE helve_tasks SET due = 0
    WHERE id IN (SELECT id FROM helve_tasks WHERE state = 'queued' AND due > 0 FOR UPDATE SKIP LOCKED)";

fn look_at_server(address: &str, hurry: bool, dead: bool) -> u32 {
    if dead {
        // The server still completes what killed processes had sent. After that, their leases need not expire.
        wait(|| server::ask(address, SPEAKING) == 0, "the server knows that they are dead");
        server::ask(address, "DELETE FROM helve_holders");
    }
    if hurry {
        server::ask(address, DUE);
    }
    server::ask(address, "SELECT count(*) FROM helve_approvals WHERE state = 'pending'")
}

/// What is in the store.
fn record(place: &StoreLocation) -> FinalState {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let store = place.open().await;
        let mut last = FinalState::default();
        for task in store.tasks(TaskFilter::default().limit(usize::MAX)).await.expect("tasks") {
            let outcome = task.outcome.filter(|_| task.state.is_over());
            let success = outcome.as_ref().is_some_and(helve_core::Outcome::is_success);
            last.tasks.insert(task.id, FinalTask { idempotent: task.idempotent, result: outcome.as_ref().map(result), success });
        }
        for approval in store.approvals(None, false, usize::MAX).await.expect("requests") {
            let by = approval.decision.map(|reply| reply.by.to_string());
            last.approvals.insert(approval.request.id, FinalApproval { call: approval.request.call.id, state: approval.state, by });
        }
        let mut events = BTreeMap::new();
        for run in store.runs(None, usize::MAX).await.expect("runs") {
            let all = store.events(run.id, 0, usize::MAX).await.expect("events");
            assert_eq!(all.len() as u64, run.seq, "a run knows how many events it has");
            last.finished.extend(all.iter().filter_map(|event| match &event.data {
                EventData::TaskFinished { call_id, .. } => Some(*call_id),
                _ => None,
            }));
            events.insert(run.id, all.iter().map(|event| (event.seq, what(event))).collect());
        }
        FinalState { events, ..last }
    })
}
