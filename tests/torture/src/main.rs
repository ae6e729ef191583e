//! The program of the torture: parent, and child of itself.

#![allow(clippy::print_stdout, reason = "it says what came of it")]
#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use helve_torture::child::Role;
use helve_torture::parent::{Report, Torture};
use helve_torture::server::{Schema, known};
use helve_torture::{Fault, Paths, StoreLocation, child, crash, crowd, freeze, outage, soak};

/// Number of kills for each store.
const ROUND: usize = 250;
/// Number of stores whose workers are frozen at the same time.
const RECORDS: usize = 4;
/// Number of outages for each server.
const OUTAGES: usize = 25;

/// What the program says where something cannot be tried here.
const SKIPPED: i32 = 77;

const USAGE: &str = "torture kill TIMES [--postgres]
torture crash-server TIMES
torture freeze TIMES
torture partition TIMES SECONDS
torture soak MINUTES [--postgres] [--readers N]";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["kill", times] => kill(number(times), None),
        ["kill", times, "--postgres"] => kill(number(times), Some(&known("kill").expect("a server"))),
        ["freeze", times] => freeze(number(times)),
        ["partition", times, seconds] => partition(number(times), Duration::from_secs(seconds.parse().expect("seconds"))),
        ["crash-server", times] => crash_server(number(times)),
        ["crash", folder, place, step] => crash::perform(&Paths(folder.into()), &StoreLocation::named(place), step),
        ["soak", ref rest @ ..] => soak::run(rest),
        ["crowd", folder, place, ref runs @ ..] => crowd::serve(&Paths(folder.into()), &StoreLocation::named(place), runs),
        [part, folder, place, ref more @ ..] => child::run(&Paths(folder.into()), &StoreLocation::named(place), read(part, more)),
        _ => panic!("{USAGE}"),
    }
}

/// The role of a child.
fn read(part: &str, more: &[&str]) -> Role {
    let lease = |text: &str| Duration::from_millis(text.parse().expect("milliseconds"));
    match (part, more) {
        ("alone", []) => Role::Alone(None),
        ("alone", [fault]) => Role::Alone(Some(Fault::named(fault).expect("a fault"))),
        ("rival", []) => Role::Rival,
        ("beside", [number_of, time]) => Role::Beside { number: number(number_of), lease: lease(time) },
        ("worker", [time]) => Role::Worker(lease(time)),
        ("last", []) => Role::Last,
        _ => panic!("{USAGE}"),
    }
}

fn number(text: &str) -> usize {
    text.parse().expect("a number")
}

/// A torture of so many times.
fn torture(cycles: usize) -> Torture {
    let program: PathBuf = std::env::current_exe().expect("this program");
    Torture { program, cycles, fault: None, server: None }
}

/// Does something so many times, in parts.
fn in_parts(mut times: usize, most: usize, mut part: impl FnMut(usize) -> Report) {
    while times > 0 {
        let round = times.min(most);
        times -= round;
        let begun = Instant::now();
        let report = part(round);
        println!("{round} times in {:.1} s: {report:?}", begun.elapsed().as_secs_f32());
        assert!(report.violations.is_empty(), "the store broke a promise");
    }
}

/// Kills children, on a new store after each round.
fn kill(times: usize, server: Option<&str>) {
    in_parts(times, ROUND, |round| {
        let folder = tempfile::tempdir().expect("a folder");
        let schema = server.map(Schema::new);
        Torture { server: schema.as_ref().map(Schema::url), ..torture(round) }.run(folder.path())
    });
}

/// Kills servers under children.
fn crash_server(times: usize) {
    in_parts(times, OUTAGES, |round| {
        let folder = tempfile::tempdir().expect("a folder");
        let outages = outage::crash(&torture(round), folder.path()).expect("a server that can be killed");
        println!("all had recovered after {:.3} s", outages.longest.as_secs_f32());
        assert!(outages.is_plain(), "no process was killed, and a call was interrupted: {outages:?}");
        outages.report
    });
}

/// Cuts children off, each time for so long at most.
fn partition(times: usize, most: Duration) {
    in_parts(times, OUTAGES, |round| {
        let folder = tempfile::tempdir().expect("a folder");
        let outages = outage::partition(&torture(round), folder.path(), most).unwrap_or_else(|why| {
            println!("SKIPPED: partition: {why}");
            std::process::exit(SKIPPED)
        });
        println!("all had recovered after {:.3} s; {} results were late", outages.longest.as_secs_f32(), outages.late);
        outages.report
    });
}

/// Freezes workers.
fn freeze(times: usize) {
    let (begun, folder, server) = (Instant::now(), tempfile::tempdir().expect("a folder"), known("freeze").expect("a server"));
    for report in freeze::freeze(&torture(times), &server, folder.path(), RECORDS) {
        println!("{report:?}");
        assert!(report.violations.is_empty(), "the store broke a promise");
    }
    println!("{times} times in {:.1} s: every late result was known as late", begun.elapsed().as_secs_f32());
}
