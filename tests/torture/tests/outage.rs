//! PostgreSQL is killed under two processes that work on it, or one of them is cut off: what was promised is there, once.

#![allow(clippy::expect_used, clippy::print_stderr, reason = "a test that goes wrong should stop, one that measures should say what")]

use std::time::Duration;

use helve_torture::outage::{self, Outages};
use helve_torture::parent::Torture;
use helve_torture::server::known;

fn torture(cycles: usize) -> Torture {
    Torture { program: env!("CARGO_BIN_EXE_torture").into(), cycles, fault: None, server: None }
}

fn check(outages: &Outages) {
    let report = &outages.report;
    eprintln!("all had recovered after {:?}", outages.longest);
    assert_eq!(report.violations, [], "{outages:?}");
    assert!(report.tasks > 50 && report.approvals > 20 && report.events > 20, "something happened: {outages:?}");
}

#[test]
fn nothing_is_lost_or_done_twice_when_the_server_is_killed() {
    // Where there is a server for tests, its programs are installed too.
    if known("nothing_is_lost_or_done_twice_when_the_server_is_killed").is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let outages = outage::crash(&torture(5), folder.path()).expect("a server that can be killed");
    check(&outages);
    assert!(outages.is_plain(), "no process was killed, and a call was interrupted: {outages:?}");
}

#[test]
fn nothing_is_lost_or_done_twice_when_a_process_is_cut_off() {
    let name = "nothing_is_lost_or_done_twice_when_a_process_is_cut_off";
    if known(name).is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    match outage::partition(&torture(2), folder.path(), Duration::from_secs(3)) {
        Ok(outages) => check(&outages),
        Err(why) => helve_testkit::skip(name, why),
    }
}
