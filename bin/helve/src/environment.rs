//! Hides the environment of this process from the programs that it starts.
//!
//! A program gets only the variables that its file names, but it can read more: `/proc/PID/environ` shows the initial
//! environment of a process to every process of the same user, and to root. So Helve copies its variables, erases all
//! but harmless ones from that memory, and makes its memory unreadable for other processes of the user. Two gaps remain:
//! root can read the memory of any process, and the shell that started Helve has its own environment.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

use helve::internal::environment;
use helve::secret::password_in_url;
use rustix::process::DumpableBehavior;

/// Variables that stay in the environment, because libraries and the system look them up. None of them is secret.
const PLAIN: [&str; 34] = [
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "HELVE_STATE_DIR",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LINES",
    "LLVM_PROFILE_FILE",
    "LOCALDOMAIN",
    "LOGNAME",
    "NO_COLOR",
    "PATH",
    "PWD",
    "RES_OPTIONS",
    "RUST_BACKTRACE",
    "RUST_MIN_STACK",
    "SHELL",
    "SQLITE_TMPDIR",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TEMP",
    "TERM",
    "TERM_PROGRAM",
    "TMP",
    "TMPDIR",
    "TZ",
    "TZDIR",
    "USER",
];

/// Maximum size of the environment, in bytes: more than Linux allows.
const MAX_BYTES: u64 = 64 << 20;

/// Hides the environment variables of this process from other processes. Call this function first: afterwards `std::env` contains only
/// the variables in [`PLAIN`].
///
/// # Errors
/// Returns an error if the system does not report the address of the environment, or denies access. The variables then stay readable.
pub fn hide() -> io::Result<()> {
    environment::install(std::env::vars_os());
    let erased = erase();
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    erased
}

fn erase() -> io::Result<()> {
    let (begin, end) = address_range(&fs::read_to_string("/proc/self/stat")?)
        .ok_or_else(|| io::Error::other("/proc/self/stat does not tell where the environment is"))?;
    // The memory of this process as a file: the only access without unsafe code.
    let memory = File::options().read(true).write(true).open("/proc/self/mem")?;
    let mut block = vec![0; usize::try_from(end - begin).map_err(io::Error::other)?];
    memory.read_exact_at(&mut block, begin)?;
    for entry in block.split_mut(|byte| *byte == 0) {
        if !is_plain(entry) {
            entry.fill(0);
        }
    }
    memory.write_all_at(&block, begin)
}

/// Parses the address range of the environment from `/proc/PID/stat` (`proc_pid_stat(5)`).
fn address_range(stat: &str) -> Option<(u64, u64)> {
    // The second field, the program's name, may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(50 - 3).map(|field| field.parse().ok());
    let (begin, end): (u64, u64) = (fields.next()??, fields.next()??);
    (begin != 0 && begin < end && end - begin <= MAX_BYTES).then_some((begin, end))
}

fn is_plain(entry: &[u8]) -> bool {
    let Some((name, value)) = str::from_utf8(entry).ok().and_then(|entry| entry.split_once('=')) else { return false };
    PLAIN.contains(&name) && password_in_url(value).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_variables_stay() {
        for entry in ["PATH=/bin", "LC_ALL=C", "NO_COLOR="] {
            assert!(is_plain(entry.as_bytes()), "{entry}");
        }
        for entry in [
            "OPENAI_API_KEY=x",
            "PLAIN=x",
            "LC_API_KEY=x",
            "SHELL=https://me:secret@host/",
            "XDG_NOTE=x",
            "LD_FOO=x",
            "RUST_LOG=x",
            "HELVE_STORE=sqlite:x",
            "=odd",
            "odd",
        ] {
            assert!(!is_plain(entry.as_bytes()), "{entry}");
        }
        assert!(!is_plain(b"PATH=\xff"), "what cannot be read is not kept");
    }

    #[test]
    fn the_place_is_found_behind_any_name() {
        let fields = |begin: &str, end: &str| format!("7 (a ) b) S{} {begin} {end} 0\n", " 1".repeat(46));
        assert_eq!(address_range(&fields("1000", "1600")), Some((1000, 1600)));
        for (begin, end) in [("0", "0"), ("0", "5"), ("1600", "1000"), ("1", "99999999999"), ("x", "5")] {
            assert_eq!(address_range(&fields(begin, end)), None, "{begin} {end}");
        }
        assert_eq!(address_range("7 (helve) S 1 1"), None);
    }
}
