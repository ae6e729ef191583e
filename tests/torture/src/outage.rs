//! The server goes away under load and comes back, again and again: nothing is lost, nothing is done twice, and everybody finds back.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use jiff::Timestamp;

use crate::log::{Log, Paths};
use crate::parent::{Report, Torture, wait};
use crate::process::Process;
use crate::server::{Schema, Server};

/// So many children work beside each other.
const CHILDREN: usize = 2;
/// The lease of what they hold: longer than the server is away.
const LEASE: Duration = Duration::from_secs(30);
/// So much a child's log must grow between two outages, in bytes: about twenty calls.
const GROWTH: u64 = 20 * 17;

/// What came of it.
#[derive(Debug)]
pub struct Outages {
    /// What came of the history.
    pub report: Report,
    /// The longest time from when the server was there again until each child had put a call into the queue.
    pub longest: Duration,
}

impl Outages {
    /// Whether every call ran once and ended well, as it must where no process ended and no lease.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.report.ran == self.report.tasks && self.report.good == self.report.tasks
    }
}

/// Kills the server so many times, while children work on it. The folder must be empty.
#[must_use]
pub fn crash(torture: &Torture, folder: &Path) -> Option<Outages> {
    let server = Server::start()?;
    let schema = Schema::new(server.url());
    let paths = Paths(folder.to_owned());
    let torture = Torture { server: Some(schema.url()), ..torture.clone() };
    let children = (0..CHILDREN).map(|number| beside(Command::new(&torture.program), &paths, &schema.url(), number, LEASE)).collect();
    let backs: Vec<Timestamp> = (0..torture.cycles)
        .map(|_| {
            work_goes_on(&paths);
            server.crash();
            Timestamp::now()
        })
        .collect();
    work_goes_on(&paths);
    stop(children);
    let longest = longest(&paths, &backs);
    Some(Outages { report: torture.end(&paths), longest })
}

/// Starts a child that works beside another one. The command is its program, or what starts it.
pub(crate) fn beside(mut command: Command, paths: &Paths, place: &str, number: usize, lease: Duration) -> Process {
    command.arg("beside").arg(&paths.0).arg(place).arg(number.to_string()).arg(lease.as_millis().to_string());
    Process::start(command)
}

/// Waits until the clients of all children have done something more.
pub(crate) fn work_goes_on(paths: &Paths) {
    let length = |number| fs::metadata(paths.pulse(number)).map_or(0, |file| file.len());
    let before: Vec<u64> = (0..CHILDREN).map(length).collect();
    wait(|| before.iter().enumerate().all(|(number, before)| length(number) >= before + GROWTH), "all find back to the server");
}

/// Tells children to end what is left, and waits for it.
pub(crate) fn stop(mut children: Vec<Process>) {
    for child in &mut children {
        child.say_no_more();
    }
    for mut child in children {
        assert!(child.wait().success(), "a child ends well");
    }
}

/// The longest time from one of these moments to the next success of each child.
pub(crate) fn longest(paths: &Paths, backs: &[Timestamp]) -> Duration {
    let mut longest = 0;
    for number in 0..CHILDREN {
        let mut successes: Vec<i64> = Log::read(&paths.pulse(number));
        successes.sort_unstable();
        for back in backs.iter().map(|back| back.as_microsecond()) {
            let next = successes[successes.partition_point(|success| *success < back)..].first();
            longest = longest.max(next.expect("a success after it") - back);
        }
    }
    Duration::from_micros(longest.unsigned_abs())
}
