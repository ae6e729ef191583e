//! Skipped tests: reported by name, and an error in CI unless the repository allows them.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;

/// Names the file to which skipped tests are appended; `scripts/test` lists them at its end.
const SKIPPED: &str = "HELVE_TEST_SKIPPED";
/// Names the list of tests that CI may skip; set in `.cargo/config.toml`.
const ALLOWED: &str = "HELVE_TEST_MAY_SKIP";

/// Reports that a test, or a part of it, is skipped. The test then returns.
///
/// Writes `test: why` to stderr, and to the file that `HELVE_TEST_SKIPPED` names.
///
/// # Panics
/// Where `CI` is `true` and `.ci/may-skip` does not list the test; also where the report cannot be written.
#[track_caller]
#[expect(clippy::print_stderr, clippy::expect_used, reason = "it reports to whoever runs the tests")]
pub fn skip(test: &str, why: impl Display) {
    let line = format!("{test}: {}", why.to_string().trim().replace('\n', " "));
    eprintln!("SKIPPED {line}");
    if let Some(file) = std::env::var_os(SKIPPED) {
        let file = OpenOptions::new().create(true).append(true).open(file);
        // One write, so that lines of several processes do not mix.
        file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())).expect("the file that HELVE_TEST_SKIPPED names");
    }
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    let may_skip = !in_ci || allows(&allowed(), test);
    assert!(may_skip, "CI must not skip {line}. Provide what is missing, or add the name to .ci/may-skip with a reason");
}

fn allowed() -> String {
    std::env::var_os(ALLOWED).and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default()
}

/// Whether a list has a name: one on each line, followed by `#` and the reason.
fn allows(list: &str, name: &str) -> bool {
    list.lines().any(|line| line.split('#').next().is_some_and(|listed| listed.trim() == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_allows_whole_names_only() {
        let list = "# Reasons.\n\ncargo deny # not installed\nlonger_name#why\n";
        for (name, allowed) in [("cargo deny", true), ("longer_name", true), ("cargo", false), ("longer", false), ("Reasons.", false)] {
            assert_eq!(allows(list, name), allowed, "{name}");
        }
    }
}
