//! How Helve starts the program of a server: its arguments and its environment.

use std::ffi::OsString;
use std::path::PathBuf;

use helve_core::{CallId, Redactor, environment};
use helve_process::{Environment, Scripts};

/// The environment variable that marks every process of one launch.
pub(crate) const MARK: &str = "HELVE_SERVER_ID";
/// Environment variables that programs commonly need and that contain no secrets.
const PLAIN: [&str; 11] = ["HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "XDG_CACHE_HOME"];

/// How Helve starts the program of a server.
#[derive(Debug)]
pub(crate) struct Launch {
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    pub(crate) environment: Environment,
    /// The project folder, in which a program with a `/` in its name is found.
    pub(crate) project: PathBuf,
    /// The working directory of the program.
    pub(crate) folder: PathBuf,
    /// Snapshot of the program's files at the time the definition was loaded.
    pub(crate) scripts: Scripts,
    pub(crate) redactor: Redactor,
}

/// The id of one launch of a program.
pub(crate) struct LaunchId(CallId);

impl LaunchId {
    pub(crate) fn new() -> Self {
        Self(CallId::mint())
    }

    /// Returns the entry in the environment of every process of this launch, unless a process removes it.
    pub(crate) fn marker(&self) -> String {
        format!("{MARK}={}", self.0)
    }

    /// Returns the environment of the program.
    pub(crate) fn variables(&self, launch: &Launch) -> Vec<(OsString, OsString)> {
        let plain = PLAIN.iter().filter_map(|name| Some((OsString::from(name), environment::var_os(name)?)));
        plain.chain(launch.environment.variables()).chain([(MARK.into(), self.0.to_string().into())]).collect()
    }
}
