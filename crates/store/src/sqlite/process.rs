//! Checks whether a process is still alive. All processes that use a file are on one machine, so the tasks of a killed process need not
//! wait until its lease expires.

use std::fs;

/// A process. The start time distinguishes it from later processes with the same id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    /// The PID namespace of the process. Each container has its own.
    pub namespace: String,
    pub pid: u32,
    /// The start time of the process, in clock ticks since boot.
    pub started: String,
}

impl Process {
    /// Returns the current process, or `None` if the operating system does not provide the data.
    pub(super) fn this() -> Option<Self> {
        let pid = std::process::id();
        Some(Self { namespace: namespace()?, pid, started: started(pid)? })
    }

    /// Returns whether the process has certainly ended. Returns `false` for a process in another namespace.
    pub(super) fn is_gone(&self) -> bool {
        namespace().is_some_and(|here| here == self.namespace) && started(self.pid).is_none_or(|started| started != self.started)
    }
}

fn namespace() -> Option<String> {
    fs::read_link("/proc/self/ns/pid").ok()?.to_str().map(ToOwned::to_owned)
}

/// Returns the start time of a process, which is the 22nd field of `/proc/PID/stat`. Returns `None` if the process does not exist or is a
/// zombie. Fields are counted after the program name, which may contain spaces and parentheses.
fn started(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18).map(ToOwned::to_owned) }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_lives_until_it_ends() {
        let this = Process::this().expect("a process");
        assert!(!this.is_gone());
        let mut child = std::process::Command::new("sleep").arg("30").spawn().expect("a child");
        let other = Process { pid: child.id(), started: started(child.id()).expect("a start"), ..this.clone() };
        assert!(!other.is_gone());
        assert!(Process { started: "1".to_owned(), ..other.clone() }.is_gone(), "another process with its id");
        assert!(!Process { namespace: "elsewhere".to_owned(), started: "1".to_owned(), ..other.clone() }.is_gone(), "another namespace");
        child.kill().expect("killed");
        // It is a zombie now.
        while !other.is_gone() {
            std::thread::yield_now();
        }
        child.wait().expect("dead");
        assert!(other.is_gone());
    }
}
