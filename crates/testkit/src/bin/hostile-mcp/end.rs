//! Ways not to exit.

use std::process::{Command, ExitCode, Stdio};

/// What a mode does at the end of its input.
pub fn leave(mode: &str) -> ExitCode {
    match mode {
        "lives-on" => crate::sleep_forever(),
        "forks" => scatter(),
        _ => {}
    }
    if mode == "dies" { ExitCode::from(3) } else { ExitCode::SUCCESS }
}

/// Leaves processes behind: one in its own group, one in its own session, one orphan, and one that holds the pipes.
pub fn scatter() {
    for script in ["setsid sleep 1000 &", "(setsid sh -c 'sleep 1000 & sleep 1000' &) &", "trap '' TERM HUP; sleep 1000 &"] {
        let quiet = || Stdio::null();
        // Without a shell, nothing is left behind.
        let _ = Command::new("sh").args(["-c", script]).stdin(quiet()).stdout(quiet()).stderr(quiet()).status();
    }
    let _ = Command::new("setsid").args(["sleep", "1000"]).spawn();
}
