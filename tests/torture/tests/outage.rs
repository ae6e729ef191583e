//! PostgreSQL is killed under two processes that work on it: what was promised is there, once.

#![allow(clippy::expect_used, clippy::print_stderr, reason = "a test that goes wrong should stop, one that measures should say what")]

use helve_torture::outage;
use helve_torture::parent::Torture;
use helve_torture::server::known;

#[test]
fn nothing_is_lost_or_done_twice_when_the_server_is_killed() {
    // Whoever has a server for tests has its programs, too.
    if known("nothing_is_lost_or_done_twice_when_the_server_is_killed").is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let torture = Torture { program: env!("CARGO_BIN_EXE_torture").into(), cycles: 5, fault: None, server: None };
    let outages = outage::crash(&torture, folder.path()).expect("a server that can be killed");
    eprintln!("all had found back after {:?}", outages.longest);
    assert_eq!(outages.report.violations, [], "{outages:?}");
    assert!(outages.is_plain(), "nobody was killed, and something broke off: {outages:?}");
    assert!(outages.report.tasks > 100 && outages.report.approvals > 50 && outages.report.events > 50, "something happened: {outages:?}");
}
