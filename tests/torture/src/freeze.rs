//! A worker is frozen in the middle of a call for longer than its lease: another one takes over, and the late result does not count.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use helve_core::store::Task;
use helve_core::{CallId, Store};
use tokio::runtime::Runtime;

use crate::child::task;
use crate::location::StoreLocation;
use crate::log::{Log, Paths};
use crate::parent::{DUE, Report, Torture, wait};
use crate::process::Process;
use crate::server::{Schema, ask};
use crate::witness::{WitnessStore, result};

/// The lease of a worker.
const LEASE: Duration = Duration::from_millis(700);
/// Two tools: one whose calls are run again, and one whose calls must not be.
const TOOLS: [&str; 2] = ["slow-again", "slow-once"];

/// Freezes workers `cycles` times, in several stores at once. Returns a report for each store.
#[must_use]
pub fn freeze(torture: &Torture, server: &str, folder: &Path, records: usize) -> Vec<Report> {
    std::thread::scope(|scope| {
        let one = |record: usize| {
            let cycles = torture.cycles / records + usize::from(record < torture.cycles % records);
            let folder = folder.join(record.to_string());
            std::fs::create_dir(&folder).expect("a folder");
            let schema = Schema::new(server);
            Lane::new(Torture { cycles, server: Some(schema.url()), ..torture.clone() }, Paths(folder)).run(record)
        };
        let lanes: Vec<_> = (0..records).map(|record| scope.spawn(move || one(record))).collect();
        lanes.into_iter().map(|lane| lane.join().expect("a store")).collect()
    })
}

/// One record with two workers.
struct Lane {
    torture: Torture,
    paths: Paths,
    address: String,
    workers: Vec<Process>,
    store: Arc<dyn Store>,
    runtime: Runtime,
}

impl Lane {
    fn new(torture: Torture, paths: Paths) -> Self {
        let address = torture.server.clone().expect("a server");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let store = runtime.block_on(StoreLocation::Server(address.clone()).open());
        let store = Arc::new(WitnessStore::new(store, &paths, LEASE));
        let start = |_| {
            let mut command = Command::new(&torture.program);
            command.arg("worker").arg(&paths.0).arg(&address).arg(LEASE.as_millis().to_string());
            Process::start(command)
        };
        Self { workers: (0..2).map(start).collect(), torture, paths, address, store, runtime }
    }

    /// Takes the tools in turn, and begins with this one.
    fn run(mut self, first: usize) -> Report {
        for cycle in 0..self.torture.cycles {
            self.freeze_one(TOOLS[(first + cycle) % TOOLS.len()]);
        }
        self.workers.drain(..).for_each(Process::kill);
        self.torture.end(&self.paths)
    }

    /// Freezes the worker that claims a call of this tool.
    fn freeze_one(&self, tool: &str) {
        let new = task(&self.paths, tool);
        let (call, again) = (new.call.id, new.idempotent);
        self.runtime.block_on(self.store.accept(new)).expect("accepted");
        wait(|| self.began(call).is_some(), "a worker claims the call");
        let first = self.began(call).expect("a worker");
        first.freeze();
        std::thread::sleep(3 * LEASE);
        wait(|| self.hurried(call).state.is_over(), "another takes over");
        let ended = self.look(call);
        assert_eq!(ended.outcome.as_ref().is_some_and(helve_core::Outcome::is_success), again, "done again, or broken off: {ended:?}");
        first.thaw();
        wait(|| Log::read::<CallId>(&self.paths.late()).contains(&call), "the late result is known as late");
        let after = self.look(call);
        let text = |task: &Task| task.outcome.as_ref().map(result);
        assert_eq!((after.state, text(&after)), (ended.state, text(&ended)), "the late result changes nothing");
        assert!(after.late > 0, "it is counted: {after:?}");
    }

    /// Who began a call.
    fn began(&self, call: CallId) -> Option<&Process> {
        let begun = Log::read::<(u32, CallId)>(&self.paths.begun());
        let (first, _) = begun.into_iter().find(|(_, begun)| *begun == call)?;
        self.workers.iter().find(|worker| worker.id() == first)
    }

    fn look(&self, call: CallId) -> Task {
        self.runtime.block_on(self.store.task(call)).expect("readable").expect("a task")
    }

    /// How far a call is, which need not wait for its next try.
    fn hurried(&self, call: CallId) -> Task {
        ask(&self.address, DUE);
        ask(&self.address, "NOTIFY helve");
        self.look(call)
    }
}
