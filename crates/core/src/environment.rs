//! The environment variables of this process, as Helve reads them.
//!
//! The operating system shows the initial environment of a process to other processes of the same user. A program that clears its
//! environment for that reason calls [`install`] with the variables, and Helve reads those. Otherwise Helve reads `std::env`. Each read of
//! a variable is traced with its name, never its value.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::OnceLock;

static INSTALLED: OnceLock<BTreeMap<OsString, OsString>> = OnceLock::new();

/// Makes Helve read these variables instead of `std::env` from now on. Returns false, without effect, if variables are already installed.
pub fn install(variables: impl IntoIterator<Item = (OsString, OsString)>) -> bool {
    INSTALLED.set(variables.into_iter().collect()).is_ok()
}

/// Returns the value of a variable; `None` if the variable is not set.
#[must_use]
pub fn var_os(name: impl AsRef<OsStr>) -> Option<OsString> {
    tracing::trace!(name = ?name.as_ref(), "environment variable read");
    match INSTALLED.get() {
        Some(variables) => variables.get(name.as_ref()).cloned(),
        None => std::env::var_os(name),
    }
}

/// Returns the value of a variable; `None` if the variable is not set or not UTF-8.
#[must_use]
pub fn var(name: impl AsRef<OsStr>) -> Option<String> {
    var_os(name)?.into_string().ok()
}

/// Returns all variables.
#[must_use]
pub fn vars_os() -> Vec<(OsString, OsString)> {
    match INSTALLED.get() {
        Some(variables) => variables.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        None => std::env::vars_os().collect(),
    }
}
