//! The program of the torture: parent, and child of itself.

#![allow(clippy::print_stdout, reason = "it says what came of it")]
#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::path::PathBuf;
use std::time::Instant;

use helve_torture::child::Part;
use helve_torture::parent::Torture;
use helve_torture::{Fault, Paths, child, crash};

/// So many kills one record gets.
const ROUND: usize = 250;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["alone", folder] => child::run(&Paths(folder.into()), Part::Alone(None)),
        ["alone", folder, fault] => child::run(&Paths(folder.into()), Part::Alone(Some(Fault::named(fault).expect("a fault")))),
        ["rival", folder] => child::run(&Paths(folder.into()), Part::Rival),
        ["last", folder] => child::run(&Paths(folder.into()), Part::Last),
        ["crash", folder, step] => crash::perform(&Paths(folder.into()), step),
        ["kill", cycles] => kill(cycles.parse().expect("a number of kills")),
        _ => panic!("torture kill CYCLES"),
    }
}

/// Kills children, on a new record after each round.
fn kill(mut cycles: usize) {
    let program: PathBuf = std::env::current_exe().expect("this program");
    while cycles > 0 {
        let round = cycles.min(ROUND);
        cycles -= round;
        let (begun, folder) = (Instant::now(), tempfile::tempdir().expect("a folder"));
        let report = Torture { program: program.clone(), cycles: round, fault: None }.run(folder.path());
        println!("{round} kills in {:.1} s: {report:?}", begun.elapsed().as_secs_f32());
        assert!(report.violations.is_empty(), "the record broke a promise");
    }
}
