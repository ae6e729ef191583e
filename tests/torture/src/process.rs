//! A child process of the torture. Whatever happens to its parent, it does not outlive it.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

/// A child process. Dropping this kills it.
pub(crate) struct Process(Child);

impl Process {
    /// Starts a child, and waits until it says that it is ready.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = Self(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a child"));
        let mut line = String::new();
        BufReader::new(child.0.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        child
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Kills it. It must be alive.
    pub(crate) fn kill(mut self) {
        self.0.kill().expect("killed");
        assert_eq!(self.wait().signal(), Some(9), "it did not end by itself");
    }

    /// Stops the process (SIGSTOP).
    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Continues the process (SIGCONT).
    pub(crate) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Closes its input.
    pub(crate) fn say_no_more(&mut self) {
        drop(self.0.stdin.take());
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().expect("a child")
    }

    /// How it ends. It can still hear something.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let said = self.0.stdin.take();
        let ended = self.0.wait().expect("an end");
        drop(said);
        ended
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, signal).expect("a signal");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended cannot be killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// This process, a child, dies when its parent does.
pub(crate) fn die_with_the_parent() {
    set_parent_process_death_signal(Some(Signal::KILL)).expect("the signal is set");
}
