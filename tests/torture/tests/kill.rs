//! Children are killed at any moment, and the store keeps its promises. A store that does not is found out.

#![allow(clippy::expect_used, reason = "a test that goes wrong should stop")]

use helve_torture::Fault;
use helve_torture::parent::Torture;
use helve_torture::server::{Schema, known};

#[test]
fn nothing_is_lost_and_nothing_is_there_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = Torture { program: env!("CARGO_BIN_EXE_torture").into(), cycles: 100, fault: None, server: None }.run(folder.path());
    assert_eq!(report.violations, [], "{report:?}");
    assert!(report.tasks > 100 && report.ran > 100 && report.approvals > 100 && report.events > 100, "something happened: {report:?}");
    assert!(report.open > 300, "requests were open when it was killed: {report:?}");
}

#[test]
fn the_same_holds_on_a_server() {
    let Some(server) = known("the_same_holds_on_a_server") else { return };
    let (folder, schema) = (tempfile::tempdir().expect("a folder"), Schema::new(&server));
    let torture = Torture { program: env!("CARGO_BIN_EXE_torture").into(), cycles: 20, fault: None, server: Some(schema.url()) };
    let report = torture.run(folder.path());
    assert_eq!(report.violations, [], "{report:?}");
    assert!(report.tasks > 10 && report.ran > 10 && report.approvals > 10 && report.events > 10, "something happened: {report:?}");
    assert!(report.open > 20, "requests were open when it was killed: {report:?}");
}

/// Lies are told by chance, and a child may be killed before it tells one: a few rounds are enough for any of them.
fn is_found_out(fault: &'static str) {
    let torture = Torture { program: env!("CARGO_BIN_EXE_torture").into(), cycles: 5, fault: Some(fault), server: None };
    let found = (0..20).any(|_| {
        let folder = tempfile::tempdir().expect("a folder");
        !torture.run(folder.path()).violations.is_empty()
    });
    assert!(found, "{fault}");
}

#[test]
fn a_store_that_lies_is_found_out() {
    for (name, _) in Fault::ALL {
        is_found_out(name);
    }
}
