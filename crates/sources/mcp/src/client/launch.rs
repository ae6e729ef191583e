//! How a server's program is started: its arguments and its environment.

use std::ffi::OsString;
use std::path::PathBuf;

use helve_core::{CallId, Redactor, environment};
use helve_process::{Environment, Scripts};

/// Marks every process of one launch.
pub(crate) const MARK: &str = "HELVE_SERVER_ID";
/// Variables that programs commonly need and that hold no secrets.
const PLAIN: [&str; 11] = ["HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "XDG_CACHE_HOME"];

/// How a server's program is started.
#[derive(Debug)]
pub(crate) struct Launch {
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    pub(crate) environment: Environment,
    /// The project's folder, in which the program is found.
    pub(crate) project: PathBuf,
    /// The working directory.
    pub(crate) folder: PathBuf,
    /// The program's files as they were when a person could review them.
    pub(crate) scripts: Scripts,
    pub(crate) redactor: Redactor,
}

/// Identifies one launch.
pub(crate) struct LaunchId(CallId);

impl LaunchId {
    pub(crate) fn new() -> Self {
        Self(CallId::mint())
    }

    /// The environment entry of every process of this launch, unless a process removes it.
    pub(crate) fn marker(&self) -> String {
        format!("{MARK}={}", self.0)
    }

    /// The program's environment.
    pub(crate) fn variables(&self, launch: &Launch) -> Vec<(OsString, OsString)> {
        let plain = PLAIN.iter().filter_map(|name| Some((OsString::from(name), environment::var_os(name)?)));
        plain.chain(launch.environment.variables()).chain([(MARK.into(), self.0.to_string().into())]).collect()
    }
}
