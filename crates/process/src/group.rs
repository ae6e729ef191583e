//! The process group of a program, of which nothing is left whichever way its work ends.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process, test_kill_process_group};
use tokio::process::Child;
use tokio::time::{Instant, sleep};

use crate::sweep;

/// How often is looked whether a group that was asked to end has done so.
const LOOK: Duration = Duration::from_millis(10);

/// The groups of this process that nobody has ended yet, by their markers.
static LIVE: Mutex<BTreeMap<String, Pid>> = Mutex::new(BTreeMap::new());

fn live() -> MutexGuard<'static, BTreeMap<String, Pid>> {
    LIVE.lock()
}

/// Kills everything that this process has started, for one that is told to end and cannot tidy up. Blocks for some milliseconds.
pub fn end_all() {
    let all = std::mem::take(&mut *live());
    for leader in all.values() {
        // Whoever is gone already needs no signal.
        let _ = kill_process_group(*leader, Signal::KILL);
    }
    for marker in all.keys() {
        sweep::kill_marked(marker);
    }
}

/// A program and everything that it started. Dropped before it was ended, it is killed.
#[derive(Debug)]
pub struct Group {
    /// The first process, whose number is that of the group.
    leader: Pid,
    /// An entry `NAME=value` that every process of the program has in its environment, unless it takes care not to.
    marker: String,
    leader_was_reaped: bool,
    is_ended: bool,
}

impl Group {
    /// The group of a child that was started as its leader, with a marker in its environment that no other program has.
    ///
    /// # Errors
    /// Where the child has ended and was reaped.
    pub fn of(child: &Child, marker: String) -> io::Result<Self> {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let leader = leader.ok_or_else(|| io::Error::other("the process has no number"))?;
        live().insert(marker.clone(), leader);
        Ok(Self { leader, marker, leader_was_reaped: false, is_ended: false })
    }

    /// Remembers that the system may give the leader's number to someone else once the group is empty.
    pub fn set_leader_reaped(&mut self) {
        self.leader_was_reaped = true;
    }

    /// Whether the leader has ended and was reaped.
    #[must_use]
    pub fn leader_was_reaped(&self) -> bool {
        self.leader_was_reaped
    }

    /// Asks all that is left of it to end.
    pub fn ask_to_end(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends a signal to all of the group that is left.
    fn signal(&self, signal: Signal) {
        if self.is_ours() {
            // Whoever is gone already needs no signal.
            let _ = kill_process_group(self.leader, signal);
        }
    }

    /// Waits until nothing is left of the group, or the time is over.
    pub async fn emptied(&self, until: Instant) {
        while self.is_ours() && test_kill_process_group(self.leader).is_ok() && Instant::now() < until {
            sleep(LOOK).await;
        }
    }

    /// Kills all that is left, also what left the group.
    pub async fn end(&mut self) {
        self.signal(Signal::KILL);
        let marker = self.marker.clone();
        let swept = tokio::task::spawn_blocking(move || sweep::kill_marked(&marker)).await.unwrap_or_default();
        if swept > 0 {
            tracing::debug!(marker = self.marker, swept, "killed what a program left behind");
        }
        live().remove(&self.marker);
        self.is_ended = true;
    }

    /// A number is not given away while a group has it. So a process of that number, after the leader was reaped,
    /// says that the group is gone and the number is a stranger's.
    fn is_ours(&self) -> bool {
        !self.leader_was_reaped || test_kill_process(self.leader) == Err(Errno::SRCH)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.is_ended {
            return;
        }
        live().remove(&self.marker);
        self.signal(Signal::KILL);
        // Nobody waits here, and the whole process may be about to end, so the rest is done now: it takes milliseconds, and this is rare.
        sweep::kill_marked(&self.marker);
    }
}
