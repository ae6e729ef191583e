//! The program of the torture: parent, and child of itself.

#![allow(clippy::print_stdout, reason = "it says what came of it")]
#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use helve_torture::child::Part;
use helve_torture::parent::{Report, Torture};
use helve_torture::server::{Schema, known};
use helve_torture::{Fault, Paths, Place, child, crash, crowd, freeze, outage, soak};

/// So many kills one record gets.
const ROUND: usize = 250;
/// So many records get their workers frozen at a time.
const RECORDS: usize = 4;
/// So many outages one server gets.
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
        ["crash", folder, place, step] => crash::perform(&Paths(folder.into()), &Place::named(place), step),
        ["soak", ref rest @ ..] => soak::run(rest),
        ["crowd", folder, place, ref runs @ ..] => crowd::serve(&Paths(folder.into()), &Place::named(place), runs),
        [part, folder, place, ref more @ ..] => child::run(&Paths(folder.into()), &Place::named(place), read(part, more)),
        _ => panic!("{USAGE}"),
    }
}

/// What a child is told to do.
fn read(part: &str, more: &[&str]) -> Part {
    let lease = |text: &str| Duration::from_millis(text.parse().expect("milliseconds"));
    match (part, more) {
        ("alone", []) => Part::Alone(None),
        ("alone", [fault]) => Part::Alone(Some(Fault::named(fault).expect("a fault"))),
        ("rival", []) => Part::Rival,
        ("beside", [number_of, time]) => Part::Beside { number: number(number_of), lease: lease(time) },
        ("worker", [time]) => Part::Worker(lease(time)),
        ("last", []) => Part::Last,
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
        assert!(report.violations.is_empty(), "the record broke a promise");
    }
}

/// Kills children, on a new record after each round.
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
        println!("all had found back after {:.3} s", outages.longest.as_secs_f32());
        assert!(outages.is_plain(), "nobody was killed, and something broke off: {outages:?}");
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
        println!("all had found back after {:.3} s; {} results were late", outages.longest.as_secs_f32(), outages.late);
        outages.report
    });
}

/// Freezes workers.
fn freeze(times: usize) {
    let (begun, folder, server) = (Instant::now(), tempfile::tempdir().expect("a folder"), known("freeze").expect("a server"));
    for report in freeze::freeze(&torture(times), &server, folder.path(), RECORDS) {
        println!("{report:?}");
        assert!(report.violations.is_empty(), "the record broke a promise");
    }
    println!("{times} times in {:.1} s: every late result was known as late", begun.elapsed().as_secs_f32());
}
