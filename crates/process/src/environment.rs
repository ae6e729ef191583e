//! The environment of a program: only what its author allows.
//!
//! Helve's own environment holds keys of models and services. A program gets a variable only if its definition names it.

use std::ffi::OsString;

use helve_core::authored::FieldError;
use helve_core::{Redactor, environment, secret};

/// The `PATH` if Helve itself was started without one.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Variables that a definition passes through or sets.
#[derive(Debug, Default)]
pub struct Environment(Vec<Variable>);

#[derive(Debug)]
struct Variable {
    name: String,
    /// `None` if Helve's own value is passed through.
    value: Option<String>,
}

impl Environment {
    /// Reads the field `env`. Names in `own` are reserved for Helve.
    ///
    /// # Errors
    /// Returns an error if an entry is not a variable, is reserved, or occurs twice.
    pub fn read(entries: &[String], own: &[&str], redactor: &Redactor) -> Result<Self, FieldError> {
        let mut variables: Vec<Variable> = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            let wrong = |message: String| FieldError::new(format!("/env/{index}"), message);
            let (name, value) = entry.split_once('=').map_or((entry.as_str(), None), |(name, value)| (name, Some(value)));
            let letters = |character: char| character.is_ascii_alphanumeric() || character == '_';
            if name.is_empty() || !name.chars().all(letters) || name.starts_with(|first: char| first.is_ascii_digit()) {
                let hint = "write `NAME` to pass a variable through, or `NAME=value` to set it; names contain letters, digits and `_`";
                return Err(wrong(format!("`{name}` is not a valid variable name")).hint(hint));
            }
            if own.contains(&name) {
                return Err(wrong(format!("`{name}` is set by Helve")).hint("remove it; every program gets it"));
            }
            if variables.iter().any(|variable| variable.name == name) {
                return Err(wrong(format!("duplicate variable `{name}`")));
            }
            if value.is_some_and(|value| value.contains('\0')) {
                return Err(wrong(format!("the value of `{name}` contains a NUL character")));
            }
            if let Some(value) = value.filter(|_| secret::is_secret_variable(name)) {
                redactor.add_written([value.to_owned().into()]);
            }
            variables.push(Variable { name: name.to_owned(), value: value.map(str::to_owned) });
        }
        Ok(Self(variables))
    }

    /// Returns `PATH` and every variable that has a value.
    #[must_use]
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        let named = self.0.iter().filter_map(|variable| {
            let value = variable.value.as_ref().map(OsString::from).or_else(|| environment::var_os(&variable.name))?;
            Some((variable.name.as_str().into(), value))
        });
        std::iter::once(("PATH".into(), path())).chain(named).collect()
    }
}

/// The `PATH` that programs are found on.
#[must_use]
pub fn path() -> OsString {
    environment::var_os("PATH").filter(|path| !path.is_empty()).unwrap_or_else(|| DEFAULT_PATH.into())
}
