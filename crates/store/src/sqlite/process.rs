//! Whether a process still lives. All processes of a file are on one machine, so that nobody must wait for the lease of one that
//! was killed.

use std::fs;

/// A process, told apart from later ones with the same number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    /// The namespace in which its number counts; containers have their own.
    pub namespace: String,
    pub number: u32,
    /// When it started, in ticks since the machine did.
    pub started: String,
}

impl Process {
    /// This process; nothing where the system does not say.
    pub(super) fn this() -> Option<Self> {
        let number = std::process::id();
        Some(Self { namespace: namespace()?, number, started: started(number)? })
    }

    /// Whether it is surely gone. From another namespace nobody can tell.
    pub(super) fn is_gone(&self) -> bool {
        namespace().is_some_and(|here| here == self.namespace) && started(self.number).is_none_or(|started| started != self.started)
    }
}

fn namespace() -> Option<String> {
    fs::read_link("/proc/self/ns/pid").ok()?.to_str().map(ToOwned::to_owned)
}

/// The 22nd field of `stat`, counted behind the name, which may hold anything. A zombie does nothing any more.
fn started(number: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
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
        let other = Process { number: child.id(), started: started(child.id()).expect("a start"), ..this.clone() };
        assert!(!other.is_gone());
        assert!(Process { started: "1".to_owned(), ..other.clone() }.is_gone(), "another one with its number");
        assert!(!Process { namespace: "elsewhere".to_owned(), started: "1".to_owned(), ..other.clone() }.is_gone(), "nobody can tell");
        child.kill().expect("killed");
        // Nobody has waited for it yet.
        while !other.is_gone() {
            std::thread::yield_now();
        }
        child.wait().expect("dead");
        assert!(other.is_gone());
    }
}
