//! How the program of a server is started: by its arguments, with an environment of its own.

use std::ffi::OsString;
use std::path::PathBuf;

use helve_core::{CallId, Redactor, environment};
use helve_process::{Environment, Scripts};

/// Marks every process of one start.
pub(crate) const MARK: &str = "HELVE_SERVER_ID";
/// What programs may need to find their way on this machine, and which says nothing about anyone's keys.
const PLAIN: [&str; 11] = ["HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "XDG_CACHE_HOME"];

/// How the program of a server is started.
#[derive(Debug)]
pub(crate) struct Launch {
    /// The program, then its arguments.
    pub(crate) command: Vec<String>,
    pub(crate) environment: Environment,
    /// The project's folder, from which the program is found.
    pub(crate) project: PathBuf,
    /// The folder it runs in.
    pub(crate) folder: PathBuf,
    /// What its program was when a person could look at it.
    pub(crate) scripts: Scripts,
    pub(crate) redactor: Redactor,
}

/// One start of it.
pub(crate) struct Start(CallId);

impl Start {
    pub(crate) fn new() -> Self {
        Self(CallId::mint())
    }

    /// The entry that every process of this start has in its environment, unless it takes care not to.
    pub(crate) fn marker(&self) -> String {
        format!("{MARK}={}", self.0)
    }

    /// Every variable of the program.
    pub(crate) fn variables(&self, launch: &Launch) -> Vec<(OsString, OsString)> {
        let plain = PLAIN.iter().filter_map(|name| Some((OsString::from(name), environment::var_os(name)?)));
        plain.chain(launch.environment.variables()).chain([(MARK.into(), self.0.to_string().into())]).collect()
    }
}
