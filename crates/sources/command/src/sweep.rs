//! Finds and kills processes of a call that left its process group, by the mark in their environment.
//!
//! A program that makes itself a daemon leaves the group and its parent, but keeps the environment it was started
//! with, which Linux shows in `/proc`. One that also cleans its environment is not found: holding that needs a
//! sandbox. Elsewhere than on Linux there is no `/proc` and nothing is swept.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A process may start another while it is looked for, so it is looked again until none is found.
const ROUNDS: usize = 8;
/// All rounds together; on a machine with so many processes that this is short, some may be missed.
const LONGEST: Duration = Duration::from_millis(250);
/// How much of an environment is looked through.
const ENVIRONMENT: u64 = 256 << 10;

/// Kills every process whose environment holds `marker` and says how many there were. Blocks for some milliseconds.
pub(crate) fn kill_marked(marker: &str) -> usize {
    let end = Instant::now() + LONGEST;
    let mut killed = 0;
    for _ in 0..ROUNDS {
        let found = round(marker, end);
        killed += found;
        if found == 0 {
            break;
        }
    }
    killed
}

fn round(marker: &str, end: Instant) -> usize {
    let Ok(entries) = fs::read_dir("/proc") else { return 0 };
    let mut environment = Vec::new();
    let mut killed = 0;
    for entry in entries.flatten() {
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        let Some(process) = number else { continue };
        // A killed process has no environment any more, so it is not found again while it waits to be reaped.
        if holds(&entry.path().join("environ"), marker, &mut environment) && kill_process(process, Signal::KILL).is_ok() {
            killed += 1;
        }
        if Instant::now() >= end {
            break;
        }
    }
    killed
}

/// Whether an environment has an entry. Processes that end meanwhile, or belong to others, have none.
fn holds(environ: &Path, marker: &str, buffer: &mut Vec<u8>) -> bool {
    buffer.clear();
    let read = File::open(environ).and_then(|file| file.take(ENVIRONMENT).read_to_end(buffer));
    read.is_ok() && buffer.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn only_marked_processes_are_killed() {
        let start = |mark: &str| Command::new("sleep").arg("1000").env("HELVE_TEST_SWEEP", mark).spawn().expect("sleep runs");
        let mark = format!("one-{}", std::process::id());
        let (mut marked, mut longer) = (start(&mark), start(&format!("{mark}-more")));
        assert_eq!(kill_marked(&format!("HELVE_TEST_SWEEP={mark}")), 1);
        assert!(!marked.wait().expect("it ends").success());
        assert!(longer.try_wait().expect("a status").is_none(), "another mark, another process");
        longer.kill().expect("killed");
        longer.wait().expect("reaped");
    }
}
