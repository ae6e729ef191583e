//! Kills processes that left their process group, which it finds by a marker in their environment.
//!
//! A daemon leaves its group and its parent, but keeps the environment it was started with, which Linux shows in `/proc`. The sweep does
//! not find a process that also clears its environment; that would require a sandbox. On systems without `/proc` the sweep does nothing.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Timeout for all scans together. On a machine with very many processes, some processes may be missed.
const TIMEOUT: Duration = Duration::from_millis(250);
/// Delay between two scans, which lets killed processes end.
const PAUSE: Duration = Duration::from_millis(1);
/// Maximum number of extra scans while a process shows no environment. Limited because some processes never have one.
const MAX_UNCLEAR: usize = 3;
/// Maximum number of bytes to read of a process's environment.
const MAX_ENVIRONMENT: u64 = 256 << 10;

/// The result of one scan.
#[derive(Default)]
struct Scan {
    /// The processes with the marker, to which this scan sent `SIGKILL`. Earlier scans may have found them already.
    marked: Vec<Pid>,
    /// Whether a process with a program shows no environment, as between `fork` and `exec`.
    is_unclear: bool,
}

/// Kills every process whose environment contains `marker`. Repeats the scan until it finds none, because a process may start another one
/// before it ends. Returns the number of killed processes. Blocks for some milliseconds.
pub(crate) fn kill_marked(marker: &str) -> usize {
    let end = Instant::now() + TIMEOUT;
    let (mut killed, mut unclear) = (HashSet::new(), 0);
    while Instant::now() < end {
        let scan = scan(marker, end);
        if scan.marked.is_empty() {
            unclear += 1;
            if !scan.is_unclear || unclear > MAX_UNCLEAR {
                break;
            }
        }
        killed.extend(scan.marked);
        std::thread::sleep(PAUSE);
    }
    killed.len()
}

fn scan(marker: &str, end: Instant) -> Scan {
    let mut scan = Scan::default();
    let Ok(entries) = fs::read_dir("/proc") else { return scan };
    let mut environment = Vec::new();
    for entry in entries.flatten() {
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        let Some(process) = number else { continue };
        // The environment of ended processes, and of those of other users, is not readable.
        let Ok(()) = read(&entry.path().join("environ"), &mut environment) else { continue };
        if environment.is_empty() {
            // Kernel threads and zombies have no environment either, but they also have no program.
            scan.is_unclear |= fs::read_link(entry.path().join("exe")).is_ok();
        } else if environment.split(|byte| *byte == 0).any(|variable| variable == marker.as_bytes())
            && kill_process(process, Signal::KILL).is_ok()
        {
            scan.marked.push(process);
        }
        if Instant::now() >= end {
            break;
        }
    }
    scan
}

fn read(environ: &Path, into: &mut Vec<u8>) -> io::Result<()> {
    into.clear();
    File::open(environ)?.take(MAX_ENVIRONMENT).read_to_end(into).map(drop)
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
        let killed = kill_marked(&format!("HELVE_TEST_SWEEP={mark}"));
        let lives = longer.try_wait().expect("a status").is_none();
        for child in [&mut marked, &mut longer] {
            child.kill().expect("killed");
            child.wait().expect("reaped");
        }
        assert_eq!(killed, 1);
        assert!(lives, "a process with another marker");
    }

    /// A new process shows no environment for a moment.
    #[test]
    fn new_processes_are_not_missed() {
        for number in 0..100 {
            let mark = format!("new-{}-{number}", std::process::id());
            let mut child = Command::new("sleep").arg("1000").env("HELVE_TEST_SWEEP", &mark).spawn().expect("sleep runs");
            let killed = kill_marked(&format!("HELVE_TEST_SWEEP={mark}"));
            child.kill().expect("killed");
            child.wait().expect("reaped");
            assert_eq!(killed, 1, "{number}");
        }
    }
}
