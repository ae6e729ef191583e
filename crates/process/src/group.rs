//! The process group of a program. Helve kills the whole group when the program's work ends, for whatever reason.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process, test_kill_process_group};
use tokio::process::Child;
use tokio::time::{Instant, sleep};

use crate::sweep;

/// Interval between checks whether a process group is empty.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The leaders of the running groups that this process has started, by marker.
static LIVE: Mutex<BTreeMap<String, Pid>> = Mutex::new(BTreeMap::new());

/// Kills all process groups that this process has started. For a process that must exit without cleaning up. Blocks for some milliseconds.
pub fn end_all() {
    let all = std::mem::take(&mut *LIVE.lock());
    for leader in all.values() {
        // The group may have ended already.
        let _ = kill_process_group(*leader, Signal::KILL);
    }
    for marker in all.keys() {
        sweep::kill_marked(marker);
    }
}

/// The process group of a program. Dropping it kills all processes that are still running.
#[derive(Debug)]
pub struct Group {
    /// The first process; its process id is also the id of the group.
    leader: Pid,
    /// The entry `NAME=value` in the environment of every process of the group, unless a process removes it.
    marker: String,
    leader_was_reaped: bool,
    is_ended: bool,
}

impl Group {
    /// Registers the process group of `child`, which must be the leader of its group and have the unique `marker` in its environment.
    ///
    /// # Errors
    /// Returns an error if the child has already been reaped.
    pub fn of(child: &Child, marker: String) -> io::Result<Self> {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let leader = leader.ok_or_else(|| io::Error::other("the process has no id"))?;
        LIVE.lock().insert(marker.clone(), leader);
        Ok(Self { leader, marker, leader_was_reaped: false, is_ended: false })
    }

    /// Records that the leader was reaped: as soon as the group is empty, the system may reuse its id.
    pub fn set_leader_reaped(&mut self) {
        self.leader_was_reaped = true;
    }

    /// Returns whether the leader has ended and was reaped.
    #[must_use]
    pub fn leader_was_reaped(&self) -> bool {
        self.leader_was_reaped
    }

    /// Sends `SIGTERM` to the group.
    pub fn ask_to_end(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends a signal to the group, unless the group is gone.
    fn signal(&self, signal: Signal) {
        if self.is_ours() {
            // The group may have ended already.
            let _ = kill_process_group(self.leader, signal);
        }
    }

    /// Waits until the group is empty, but not longer than `until`.
    pub async fn emptied(&self, until: Instant) {
        while self.is_ours() && test_kill_process_group(self.leader).is_ok() && Instant::now() < until {
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Kills the group, and the processes with its marker that have left the group.
    pub async fn end(&mut self) {
        self.signal(Signal::KILL);
        let marker = self.marker.clone();
        let swept = tokio::task::spawn_blocking(move || sweep::kill_marked(&marker)).await.unwrap_or_default();
        if swept > 0 {
            tracing::debug!(marker = self.marker, swept, "killed processes that had left their group");
        }
        LIVE.lock().remove(&self.marker);
        self.is_ended = true;
    }

    /// Returns whether the group id still belongs to this group. The system does not reuse an id while a group has it. So if a process with
    /// this id exists after the leader was reaped, the group is gone and the id belongs to another program.
    fn is_ours(&self) -> bool {
        !self.leader_was_reaped || test_kill_process(self.leader) == Err(Errno::SRCH)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.is_ended {
            return;
        }
        LIVE.lock().remove(&self.marker);
        self.signal(Signal::KILL);
        // The whole process may be about to exit, so the sweep blocks. This is rare, and takes milliseconds.
        sweep::kill_marked(&self.marker);
    }
}
