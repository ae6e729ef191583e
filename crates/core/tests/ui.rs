//! Compiler errors for wrong uses of `#[tool]` and `#[tools]`.
//!
//! The texts in `ui/*.stderr` are for people: after `TRYBUILD=overwrite cargo test -p helve-core --test ui`, read them.

#![allow(clippy::expect_used, clippy::print_stderr, reason = "a test that goes wrong should stop, one that is skipped should say so")]

/// The compiler version of the expected messages. Other versions word them differently.
const QUOTED: &str = "rustc 1.95.";

#[test]
fn mistakes_are_explained() {
    let version = std::process::Command::new("rustc").arg("-V").output().expect("rustc runs").stdout;
    let version = String::from_utf8_lossy(&version).into_owned();
    if !version.starts_with(QUOTED) {
        eprintln!("SKIPPED: mistakes_are_explained quotes {QUOTED}x and this is {version}");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
