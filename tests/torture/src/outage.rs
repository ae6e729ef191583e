//! The server, or the network to it, fails and recovers under load, again and again: nothing is lost, nothing is done twice, and
//! all clients recover.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use helve_core::CallId;
use jiff::Timestamp;

use crate::log::{Log, Paths};
use crate::network::Network;
use crate::parent::{DUE, Report, Torture, wait};
use crate::process::Process;
use crate::server::{Schema, Server, ask};

/// Number of children that work side by side.
const CHILDREN: usize = 2;
/// Their lease: longer than the outage of a server that crashed.
const LEASE: Duration = Duration::from_secs(30);
/// Their lease when one is cut off: it expires before the network is back.
const SHORT: Duration = Duration::from_millis(900);
/// The shortest time for which one is cut off.
const SHORTEST: Duration = Duration::from_secs(1);
/// Timeout for children to finish what is left.
const END: Duration = Duration::from_mins(2);
/// Minimum growth of a child's log between two outages, in bytes: about twenty calls.
const GROWTH: u64 = 20 * 17;

/// The result.
#[derive(Debug)]
pub struct Outages {
    /// The report of the history.
    pub report: Report,
    /// The longest time from when the server was there again until each child had put a call into the queue.
    pub longest: Duration,
    /// How many results came too late.
    pub late: usize,
}

impl Outages {
    /// Whether every call ran once and succeeded, and no result was late. It must be so if no process ended and no lease expired.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.report.ran == self.report.tasks && self.report.good == self.report.tasks && self.late == 0
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
    let outage = || server.crash();
    Some(outages(&torture, &paths, children, &outage))
}

/// Cuts one of two children off so many times, each time for a second or up to this long. The folder must be empty.
///
/// # Errors
/// Returns the reason if that is not possible here.
pub fn partition(torture: &Torture, folder: &Path, most: Duration) -> Result<Outages, String> {
    let network = Network::new()?;
    let server = Server::start_for(Some(network.here())).ok_or("no server could be started")?;
    let schema = Schema::new(server.url());
    let paths = Paths(folder.to_owned());
    let torture = Torture { server: Some(schema.url()), ..torture.clone() };
    let far = schema.url_on(&server.url().replace("127.0.0.1", network.here()));
    let near = beside(Command::new(&torture.program), &paths, &schema.url(), 0, SHORT);
    let far = beside(network.command(&torture.program), &paths, &far, 1, SHORT);
    let outage = || {
        network.cut();
        std::thread::sleep(Duration::from_millis(fastrand::u64(millis(SHORTEST)..=millis(most.max(SHORTEST)))));
        network.join();
    };
    Ok(outages(&torture, &paths, vec![near, far], &outage))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).expect("a time")
}

/// Repeats an outage, and checks the history.
fn outages(torture: &Torture, paths: &Paths, children: Vec<Process>, outage: &dyn Fn()) -> Outages {
    let one = |_| {
        work_goes_on(paths);
        outage();
        Timestamp::now()
    };
    let backs: Vec<Timestamp> = (0..torture.cycles).map(one).collect();
    work_goes_on(paths);
    stop(children, torture.server.as_deref().expect("a server"));
    let (longest, late) = (longest(paths, &backs), Log::read::<CallId>(&paths.late()).len());
    Outages { report: torture.end(paths), longest, late }
}

/// Starts a child that works beside another one. The command is its program, or starts it.
fn beside(mut command: Command, paths: &Paths, place: &str, number: usize, lease: Duration) -> Process {
    command.arg("beside").arg(&paths.0).arg(place).arg(number.to_string()).arg(lease.as_millis().to_string());
    Process::start(command)
}

/// Waits until the clients of all children have done something more.
fn work_goes_on(paths: &Paths) {
    let length = |number| fs::metadata(paths.pulse(number)).map_or(0, |file| file.len());
    let before: Vec<u64> = (0..CHILDREN).map(length).collect();
    wait(|| before.iter().enumerate().all(|(number, before)| length(number) >= before + GROWTH), "all find back to the server");
}

/// Tells children to finish what is left, and waits for them. All tasks are made due.
fn stop(mut children: Vec<Process>, address: &str) {
    children.iter_mut().for_each(Process::say_no_more);
    let begun = Instant::now();
    for mut child in children {
        let ended = loop {
            match child.ended() {
                Some(ended) => break ended,
                None => std::thread::sleep(Duration::from_millis(50)),
            }
            ask(address, DUE);
            assert!(begun.elapsed() < END, "what is left comes to an end");
        };
        assert!(ended.success(), "a child ends well");
    }
}

/// The longest time from one of these moments to the next success of each child.
fn longest(paths: &Paths, backs: &[Timestamp]) -> Duration {
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
