//! Finds and kills processes of a program that left its process group, by the mark in their environment.
//!
//! A program that makes itself a daemon leaves the group and its parent, but keeps the environment it was started
//! with, which Linux shows in `/proc`. One that also cleans its environment is not found: holding that needs a
//! sandbox. Elsewhere than on Linux there is no `/proc` and nothing is swept.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long is looked altogether. On a machine with so many processes that this is short, some may be missed.
const LONGEST: Duration = Duration::from_millis(250);
/// How long between two looks, so that what was killed can end.
const PAUSE: Duration = Duration::from_millis(1);
/// How many looks are spent on processes that show no environment; those that never had one would cost them all.
const UNCLEAR: usize = 3;
/// How much of an environment is looked through.
const ENVIRONMENT: u64 = 256 << 10;

/// What one look found.
#[derive(Default)]
struct Look {
    /// Processes that had the mark and were sent the signal, perhaps again.
    marked: Vec<Pid>,
    /// Whether a process just becomes another program, and shows no environment meanwhile.
    is_unclear: bool,
}

/// Kills every process whose environment holds `marker`, and looks again until none is there: a process may start
/// another before it ends. Says how many there were. Blocks for some milliseconds.
pub(crate) fn kill_marked(marker: &str) -> usize {
    let end = Instant::now() + LONGEST;
    let (mut killed, mut unclear) = (HashSet::new(), 0);
    while Instant::now() < end {
        let look = look_through(marker, end);
        if look.marked.is_empty() {
            unclear += 1;
            if !look.is_unclear || unclear > UNCLEAR {
                break;
            }
        }
        killed.extend(look.marked);
        std::thread::sleep(PAUSE);
    }
    killed.len()
}

fn look_through(marker: &str, end: Instant) -> Look {
    let mut look = Look::default();
    let Ok(entries) = fs::read_dir("/proc") else { return look };
    let mut environment = Vec::new();
    for entry in entries.flatten() {
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        let Some(process) = number else { continue };
        // Processes that end meanwhile, or belong to others, show nothing.
        let Ok(()) = read(&entry.path().join("environ"), &mut environment) else { continue };
        if environment.is_empty() {
            // Threads of the system and the dead have none either, but those have no program.
            look.is_unclear |= fs::read_link(entry.path().join("exe")).is_ok();
        } else if environment.split(|byte| *byte == 0).any(|variable| variable == marker.as_bytes())
            && kill_process(process, Signal::KILL).is_ok()
        {
            look.marked.push(process);
        }
        if Instant::now() >= end {
            break;
        }
    }
    look
}

fn read(environ: &Path, into: &mut Vec<u8>) -> io::Result<()> {
    into.clear();
    File::open(environ)?.take(ENVIRONMENT).read_to_end(into).map(drop)
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
        assert!(lives, "another mark, another process");
    }

    /// A process that was just started shows no environment for a moment.
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
