//! Keeps the environment of this process from the programs that it starts.
//!
//! A program gets only the variables that its file names, but the system shows it more: `/proc/PID/environ` holds all that
//! Helve was started with, for every process of the same user and for root, whatever Helve does later. So the command
//! starts itself once more, as the same process, with nothing but harmless variables, and takes all of them along in
//! memory. It also closes that memory to other processes of the user. Two things it cannot do: root may read the memory
//! of any process, and the shell that Helve was started from has an environment of its own.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use helve::environment;
use helve::secret::{is_secret_variable, password_in_url};

/// Says, with the number of the process and that of an open file, that it was started again and where its variables are.
/// A process that inherits it has another number, and so nobody can make one start itself for ever.
const MARKER: &str = "HELVE_ENVIRONMENT";

/// Variables that stay where libraries and the system look for them. None of them is a secret.
const PLAIN: [&str; 32] = [
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "GLIBC_TUNABLES",
    "HELVE_STATE_DIR",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LINES",
    "LLVM_PROFILE_FILE",
    "LOCALDOMAIN",
    "LOCPATH",
    "LOGNAME",
    "NO_COLOR",
    "PATH",
    "PWD",
    "RES_OPTIONS",
    "SHELL",
    "SQLITE_TMPDIR",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TEMP",
    "TERM",
    "TERMINFO",
    "TERM_PROGRAM",
    "TMP",
    "TMPDIR",
    "TZ",
    "TZDIR",
    "USER",
];
/// How the names of more such variables begin: of the loader, the C library, Rust, and the desktop's folders.
const PLAIN_BEGINNINGS: [&str; 6] = ["DYLD_", "LC_", "LD_", "MALLOC_", "RUST_", "XDG_"];

type Variable = (OsString, OsString);

/// Takes the variables over, if this process was started again.
///
/// # Errors
/// Where it was, and they cannot be read. They are nowhere else then.
pub fn receive() -> io::Result<()> {
    let Some(number) = handed_over() else { return Ok(()) };
    let mut bytes = Vec::new();
    open_own(number)?.read_to_end(&mut bytes)?;
    nix::unistd::close(number)?;
    environment::install(read(&bytes));
    Ok(())
}

/// Starts this process again with harmless variables only. Comes back where that is done already, or nothing is to be hidden.
///
/// # Errors
/// Where it cannot be started again. It goes on as it is then.
pub fn hide() -> io::Result<()> {
    let started = if handed_over().is_some() { Ok(()) } else { start_again() };
    close_memory()?;
    started
}

fn start_again() -> io::Result<()> {
    let variables: Vec<Variable> = std::env::vars_os().filter(|(name, _)| name != MARKER).collect();
    let plain: Vec<&Variable> = variables.iter().filter(|variable| is_plain(variable)).collect();
    if plain.len() == variables.len() {
        return Ok(());
    }
    let file = keep(&write(&variables))?;
    // The next start reads it in the same way. If that cannot be, nothing must be lost.
    open_own(file.as_raw_fd())?;
    let text = |text: Vec<u8>| CString::new(text).map_err(io::Error::other);
    let program = text(own_program()?.into_os_string().into_vec())?;
    let arguments: Vec<_> = std::env::args_os().map(|argument| text(argument.into_vec())).collect::<Result<_, _>>()?;
    let marker = format!("{MARKER}={}:{}", std::process::id(), file.as_raw_fd());
    let entries = plain.iter().map(|variable| entry(variable)).chain([marker.into_bytes()]);
    let entries: Vec<_> = entries.map(text).collect::<Result<_, _>>()?;
    let Err(error) = nix::unistd::execve(&program, &arguments, &entries);
    Err(error.into())
}

/// The open file with this process's variables, if it was started again.
fn handed_over() -> Option<RawFd> {
    let marker = std::env::var(MARKER).ok()?;
    let (process, file) = marker.split_once(':')?;
    let file = file.parse().ok()?;
    (process.parse() == Ok(std::process::id())).then_some(file)
}

/// The program by its own name, so that it is listed under it; by the system's if it was replaced meanwhile.
fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe().map(|program| if program.exists() { program } else { "/proc/self/exe".into() })
}

fn is_plain((name, value): &Variable) -> bool {
    let Some((name, value)) = name.to_str().zip(value.to_str()) else { return false };
    let is_known = PLAIN.contains(&name) || PLAIN_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
    is_known && !is_secret_variable(name) && password_in_url(value).is_none()
}

fn entry((name, value): &Variable) -> Vec<u8> {
    [name.as_bytes(), b"=", value.as_bytes()].concat()
}

fn write(variables: &[Variable]) -> Vec<u8> {
    variables.iter().flat_map(|variable| [entry(variable), vec![0]].concat()).collect()
}

fn read(bytes: &[u8]) -> Vec<Variable> {
    let own = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    // As everywhere, a name may begin with a `=`.
    let variable = |entry: &[u8]| {
        let end = entry.iter().skip(1).position(|byte| *byte == b'=')? + 1;
        Some((own(&entry[..end]), own(&entry[end + 1..])))
    };
    bytes.split(|byte| *byte == 0).filter_map(variable).collect()
}

#[cfg(target_os = "linux")]
use linux::{close_memory, keep, open_own};
#[cfg(not(target_os = "linux"))]
use other::{close_memory, keep, open_own};

#[cfg(target_os = "linux")]
mod linux {
    use rustix::fs::{MemfdFlags, SealFlags};
    use rustix::process::DumpableBehavior;

    use super::{File, OwnedFd, RawFd, Write, io};

    /// Nobody can change it any more. That is how it is known again, too.
    const SEALED: SealFlags = SealFlags::SEAL.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::WRITE);

    /// A file in memory that outlives the next start.
    pub(super) fn keep(bytes: &[u8]) -> io::Result<OwnedFd> {
        let mut file = File::from(rustix::fs::memfd_create("helve-environment", MemfdFlags::ALLOW_SEALING)?);
        file.write_all(bytes)?;
        rustix::fs::fcntl_add_seals(&file, SEALED)?;
        Ok(file.into())
    }

    pub(super) fn open_own(number: RawFd) -> io::Result<File> {
        let file = File::open(format!("/proc/self/fd/{number}"))?;
        let is_sealed = rustix::fs::fcntl_get_seals(&file).is_ok_and(|seals| seals == SEALED);
        is_sealed.then_some(file).ok_or_else(|| io::Error::other("this is not what Helve has kept"))
    }

    /// Other processes of the user cannot look into this one any more, and it leaves no image of its memory when it crashes.
    pub(super) fn close_memory() -> io::Result<()> {
        Ok(rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::os::unix::fs::FileTypeExt;

    use super::{File, OwnedFd, RawFd, Write, io};

    /// A pipe that outlives the next start. It fails where it does not hold everything.
    pub(super) fn keep(bytes: &[u8]) -> io::Result<OwnedFd> {
        let (reader, mut writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&writer, true)?;
        writer.write_all(bytes)?;
        rustix::io::fcntl_setfd(&reader, rustix::io::FdFlags::empty())?;
        Ok(reader.into())
    }

    pub(super) fn open_own(number: RawFd) -> io::Result<File> {
        let file = File::open(format!("/dev/fd/{number}"))?;
        let is_pipe = file.metadata()?.file_type().is_fifo();
        is_pipe.then_some(file).ok_or_else(|| io::Error::other("this is not what Helve has kept"))
    }

    pub(super) fn close_memory() -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str, value: &str) -> Variable {
        (name.into(), value.into())
    }

    #[test]
    fn only_harmless_variables_stay() {
        for (name, value) in [("PATH", "/bin"), ("LC_ALL", "C"), ("XDG_RUNTIME_DIR", "/run"), ("NO_COLOR", "")] {
            assert!(is_plain(&variable(name, value)), "{name}");
        }
        for (name, value) in [
            ("OPENAI_API_KEY", "x"),
            ("PLAIN", "x"),
            ("LC_API_KEY", "x"),
            ("XDG_SERVER", "https://me:secret@host/"),
            ("HELVE_STORE", "sqlite:x"),
        ] {
            assert!(!is_plain(&variable(name, value)), "{name}");
        }
    }

    #[test]
    fn variables_come_over_as_they_are() {
        let mut variables = vec![variable("A", "1=2"), variable("EMPTY", ""), variable("LINES", "a\nb"), variable("=odd", "x")];
        variables.push(("RAW".into(), OsString::from_vec(vec![0xff, 0xfe])));
        assert_eq!(read(&write(&variables)), variables);
        assert!(read(b"").is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_what_was_kept_is_read() {
        let kept = keep(b"A=1\0").expect("a file");
        let mut text = String::new();
        open_own(kept.as_raw_fd()).and_then(|mut file| file.read_to_string(&mut text)).expect("a text");
        assert_eq!(text, "A=1\0");
        let other = tempfile::tempfile().expect("a file");
        assert!(open_own(other.as_raw_fd()).is_err());
    }
}
