//! The environment variables of this process.
//!
//! The operating system shows the initial environment of a process to other processes of the same user. A program that moves its
//! variables elsewhere for that reason installs them here, and all of Helve reads them from here. By default this is `std::env`. Each
//! read of a variable is traced with its name, never its value.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::OnceLock;

static INSTALLED: OnceLock<BTreeMap<OsString, OsString>> = OnceLock::new();

/// Replaces the environment of this process from now on. Returns false if that was done before.
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
