//! Finds the program of a command, and explains why a program cannot be started.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use helve_core::ToolError;

use crate::environment;

/// The system error `ENOEXEC`: the file is not in an executable format.
const ENOEXEC: i32 = 8;

/// Finds a program on the `PATH`, or relative to `folder` if its name contains a `/`.
///
/// # Errors
/// Returns an error of the kind `failed` if the program does not exist or is not executable.
pub fn find(program: &str, folder: &Path) -> Result<PathBuf, ToolError> {
    if program.contains('/') {
        let path = folder.join(program);
        return match fs::metadata(&path) {
            Ok(facts) if facts.is_dir() => Err(ToolError::failed(format!("the program `{program}` is a folder"))),
            Ok(facts) if facts.permissions().mode() & 0o111 == 0 => Err(ToolError::failed(format!(
                "the program `{program}` is not executable; run `chmod +x` on it, or name an interpreter before it"
            ))),
            Ok(_) => Ok(path),
            Err(error) => {
                let message = format!("the program `{program}` was not found in the project's folder");
                Err(ToolError::failed(message).caused_by(error))
            }
        };
    }
    on_path(program, &environment::path()).ok_or_else(|| {
        ToolError::failed(format!(
            "the program `{program}` is not installed: it was not found on the PATH. Write a program in the project's folder \
             with a `/`, such as `./{program}`"
        ))
    })
}

fn on_path(program: &str, path: &OsStr) -> Option<PathBuf> {
    let runs = |path: &PathBuf| fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0);
    // Ignores relative entries, because they depend on the working directory of Helve.
    std::env::split_paths(path).filter(|entry| entry.is_absolute()).map(|entry| entry.join(program)).find(runs)
}

/// Creates the error for a program that was found but could not be started.
#[must_use]
pub fn not_started(program: &str, error: io::Error) -> ToolError {
    let (why, transient) = match error.kind() {
        ErrorKind::ArgumentListTooLong => {
            let message = "the arguments are too long for a command line; send less at once";
            return ToolError::invalid_parameters(message).caused_by(error);
        }
        ErrorKind::NotFound => ("it does not exist, or the interpreter in its first line does not exist", false),
        ErrorKind::PermissionDenied => ("permission denied", false),
        ErrorKind::ExecutableFileBusy => ("the file is being written (text file busy)", true),
        ErrorKind::WouldBlock | ErrorKind::OutOfMemory => ("the system cannot start another process now", true),
        _ if error.raw_os_error() == Some(ENOEXEC) => {
            ("it is not in an executable format; a script needs a first line such as `#!/bin/sh`", false)
        }
        _ => ("the system refused to start it", false),
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

    /// The cause decides whether a retry can help.
    #[test]
    fn a_busy_system_is_a_transient_failure() {
        for (kind, transient) in [(ErrorKind::WouldBlock, true), (ErrorKind::ExecutableFileBusy, true), (ErrorKind::NotFound, false)] {
            assert_eq!(not_started("x", kind.into()).is_retryable(), transient, "{kind}");
        }
    }
}
