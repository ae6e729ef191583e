//! Workers are frozen in the middle of a call for longer than their lease, and come back too late.

#![allow(clippy::expect_used, reason = "a test that goes wrong should stop")]

use helve_torture::freeze::freeze;
use helve_torture::parent::Torture;
use helve_torture::server::known;

#[test]
fn a_result_from_who_was_frozen_comes_too_late() {
    let Some(server) = known("a_result_from_who_was_frozen_comes_too_late") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let torture = Torture { program: env!("CARGO_BIN_EXE_torture").into(), cycles: 10, fault: None, server: None };
    let reports = freeze(&torture, &server, folder.path(), 5);
    assert!(reports.iter().all(|report| report.violations.is_empty()), "{reports:?}");
    assert_eq!(reports.iter().map(|report| report.tasks).sum::<usize>(), 10);
}
