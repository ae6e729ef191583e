//! Finds a program when it is to be started, and says why one cannot be.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use helve_core::ToolError;

use crate::environment;

/// The system's number for "this is not in a format that can be run".
const NOT_A_PROGRAM: i32 = 8;

/// Finds a program: with a `/` in its name from the project's folder, otherwise on the `PATH`.
///
/// # Errors
/// `failed` where there is none that can be run.
pub fn find(program: &str, folder: &Path) -> Result<PathBuf, ToolError> {
    if program.contains('/') {
        let path = folder.join(program);
        return match fs::metadata(&path) {
            Ok(facts) if facts.is_dir() => Err(ToolError::failed(format!("the program `{program}` is a folder"))),
            Ok(facts) if facts.permissions().mode() & 0o111 == 0 => Err(ToolError::failed(format!(
                "the program `{program}` may not be executed; its author must run `chmod +x` on it, or name an interpreter before it"
            ))),
            Ok(_) => Ok(path),
            Err(error) => {
                let message = format!("the program `{program}` was not found; it is looked for from the project's folder");
                Err(ToolError::failed(message).caused_by(error))
            }
        };
    }
    on_path(program, &environment::path()).ok_or_else(|| {
        ToolError::failed(format!(
            "the program `{program}` is not installed: it was not found on the PATH. A program in the project's folder is \
             written with a `/`, such as `./{program}`"
        ))
    })
}

fn on_path(program: &str, path: &OsStr) -> Option<PathBuf> {
    let runs = |path: &PathBuf| fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0);
    // A relative entry would mean whatever folder Helve was started in.
    std::env::split_paths(path).filter(|entry| entry.is_absolute()).map(|entry| entry.join(program)).find(runs)
}

/// Says why a program that was found did not start.
#[must_use]
pub fn not_started(program: &str, error: io::Error) -> ToolError {
    let (why, transient) = match error.kind() {
        ErrorKind::ArgumentListTooLong => {
            let message = "the arguments are too long for a command line; send less at once";
            return ToolError::invalid_parameters(message).caused_by(error);
        }
        ErrorKind::NotFound => ("it, or the interpreter in its first line, does not exist", false),
        ErrorKind::PermissionDenied => ("this is not permitted", false),
        ErrorKind::ExecutableFileBusy => ("it is being written to", true),
        ErrorKind::WouldBlock | ErrorKind::OutOfMemory => ("the system has no room for another process now", true),
        _ if error.raw_os_error() == Some(NOT_A_PROGRAM) => ("it is no program; a script needs a first line such as `#!/bin/sh`", false),
        _ => ("the system refused", false),
    };
    ToolError::failed(format!("the program `{program}` could not be started: {why}")).transient(transient).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_entries_of_the_path_count() {
        let relative = "../".repeat(30) + "bin";
        assert!(fs::metadata(&relative).is_ok_and(|facts| facts.is_dir()));
        assert_eq!(on_path("sh", relative.as_ref()), None);
        assert_eq!(on_path("sh", format!("{relative}::/nowhere:/bin").as_ref()), Some("/bin/sh".into()));
        assert_eq!(on_path(".", "/bin".as_ref()), None);
    }

    /// Whether trying again can help is told by the cause.
    #[test]
    fn a_busy_system_is_a_transient_failure() {
        for (kind, transient) in [(ErrorKind::WouldBlock, true), (ErrorKind::ExecutableFileBusy, true), (ErrorKind::NotFound, false)] {
            assert_eq!(not_started("x", kind.into()).is_retryable(), transient, "{kind}");
        }
    }
}
