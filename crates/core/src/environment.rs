//! The environment variables of this process, wherever they are kept.
//!
//! The system shows the environment that a process was started with to other processes of its user, and to root. A
//! program that keeps its variables elsewhere for that reason installs them here, and all of Helve finds them. Where
//! nothing is installed, this is `std::env`. Each variable that is read by its name is traced, never with its value, so
//! that an operator or a test can see which ones a command looks at.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::OnceLock;

static INSTALLED: OnceLock<BTreeMap<OsString, OsString>> = OnceLock::new();

/// Takes these variables for the environment of this process from now on, in place of those of `std::env`. Returns
/// whether it did: they can be installed only once.
pub fn install(variables: impl IntoIterator<Item = (OsString, OsString)>) -> bool {
    INSTALLED.set(variables.into_iter().collect()).is_ok()
}

/// The value of a variable.
#[must_use]
pub fn var_os(name: impl AsRef<OsStr>) -> Option<OsString> {
    tracing::trace!(name = ?name.as_ref(), "environment variable read");
    match INSTALLED.get() {
        Some(variables) => variables.get(name.as_ref()).cloned(),
        None => std::env::var_os(name),
    }
}

/// The value of a variable, if it is UTF-8.
#[must_use]
pub fn var(name: impl AsRef<OsStr>) -> Option<String> {
    var_os(name)?.into_string().ok()
}

/// All variables.
#[must_use]
pub fn vars_os() -> Vec<(OsString, OsString)> {
    match INSTALLED.get() {
        Some(variables) => variables.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        None => std::env::vars_os().collect(),
    }
}
