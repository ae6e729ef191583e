//! The process group of a program, which dies with the call whichever way the call ends.

use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process, test_kill_process_group};
use tokio::time::{Instant, sleep};

use crate::environment::Attempt;
use crate::sweep;

/// How often is looked whether a group that was asked to end has done so.
const LOOK: Duration = Duration::from_millis(10);

/// Everything that one attempt started. Dropped before it was ended, it is killed.
#[derive(Debug)]
pub(crate) struct Group {
    /// The first process, whose number is that of the group.
    leader: Pid,
    attempt: Attempt,
    leader_was_reaped: bool,
    is_ended: bool,
}

impl Group {
    pub(crate) fn new(leader: Pid, attempt: Attempt) -> Self {
        Self { leader, attempt, leader_was_reaped: false, is_ended: false }
    }

    /// Remembers that the system may give the leader's number to someone else once the group is empty.
    pub(crate) fn set_leader_reaped(&mut self) {
        self.leader_was_reaped = true;
    }

    pub(crate) fn leader_was_reaped(&self) -> bool {
        self.leader_was_reaped
    }

    /// Sends a signal to all of the group that is left.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.is_ours() {
            // Whoever is gone already needs no signal.
            let _ = kill_process_group(self.leader, signal);
        }
    }

    /// Waits until nothing is left of the group, or the time is over.
    pub(crate) async fn emptied(&self, until: Instant) {
        while self.is_ours() && test_kill_process_group(self.leader).is_ok() && Instant::now() < until {
            sleep(LOOK).await;
        }
    }

    /// Kills all that is left, also what left the group.
    pub(crate) async fn end(&mut self) {
        self.signal(Signal::KILL);
        let marker = self.attempt.marker();
        let swept = tokio::task::spawn_blocking(move || sweep::kill_marked(&marker)).await.unwrap_or_default();
        if swept > 0 {
            tracing::debug!(call_id = %self.attempt.call, swept, "killed what a program left behind");
        }
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
        self.signal(Signal::KILL);
        // Nobody waits here, and the runtime may be about to end: a thread of its own does the rest.
        let marker = self.attempt.marker();
        let _ = std::thread::Builder::new().name("helve-sweep".into()).spawn(move || sweep::kill_marked(&marker));
    }
}
