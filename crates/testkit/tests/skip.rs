//! A skipped test is reported, and fails in CI unless a list allows it.

#![allow(clippy::expect_used, reason = "a test that goes wrong should stop")]

use std::fs;
use std::process::Command;

/// Set for the child, which skips.
const CHILD: &str = "HELVE_TESTKIT_SKIPS";

#[test]
fn a_skipped_test_is_reported_and_fails_in_ci_unless_it_is_allowed() {
    if std::env::var_os(CHILD).is_some() {
        return helve_testkit::skip("some_test", "nothing is\ninstalled");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (report, list) = (folder.path().join("report"), folder.path().join("list"));
    let passes = |ci: &str, allowed: &str| {
        fs::write(&list, allowed).expect("a list");
        let mut child = Command::new(std::env::current_exe().expect("this program"));
        child.args(["--exact", "a_skipped_test_is_reported_and_fails_in_ci_unless_it_is_allowed"]);
        child.env(CHILD, "1").env("CI", ci).env("HELVE_TEST_SKIPPED", &report).env("HELVE_TEST_MAY_SKIP", &list);
        child.output().expect("a child").status.success()
    };
    assert!(passes("", ""));
    assert!(!passes("true", ""));
    assert!(!passes("true", "# some_test\nsome_test_more # a reason\n"));
    assert!(passes("true", "another # a reason\nsome_test # a reason\n"));
    assert_eq!(fs::read_to_string(&report).expect("a report"), "some_test: nothing is installed\n".repeat(4));
}

/// Nobody knows when to take a name off the list that has no reason.
#[test]
fn everything_that_ci_may_skip_has_a_reason() {
    let list = std::env::var_os("HELVE_TEST_MAY_SKIP").expect("cargo sets it");
    for line in fs::read_to_string(list).expect("a list").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let reason = line.split_once('#').map(|(_, reason)| reason.trim());
        assert!(reason.is_some_and(|reason| !reason.is_empty()), "no reason: {line}");
    }
}
