//! Builds the environment of a program.
//!
//! Helve's own environment contains API keys of models and services. A program gets a variable only if its definition names the variable.

use std::ffi::OsString;

use helve_core::authored::FieldError;
use helve_core::{Redactor, environment, secret};

/// The `PATH` of programs if Helve was started without a `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The environment variables that a definition passes through or sets.
#[derive(Debug, Default)]
pub struct Environment(Vec<Variable>);

#[derive(Debug)]
struct Variable {
    name: String,
    /// The value to set; `None` to pass Helve's own value through.
    value: Option<String>,
}

impl Environment {
    /// Parses the entries of the field `env`. The names in `own` are reserved for Helve. Adds the values of secret variables to `redactor`.
    ///
    /// # Errors
    /// Returns an error if an entry is not a valid variable, or if its name is reserved or occurs twice.
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
                return Err(wrong(format!("`{name}` is set by Helve")).hint("remove it; Helve sets it for every program"));
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

    /// Returns `PATH` and the variables of the definition that have a value.
    #[must_use]
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        let named = self.0.iter().filter_map(|variable| {
            let value = variable.value.as_ref().map(OsString::from).or_else(|| environment::var_os(&variable.name))?;
            Some((variable.name.as_str().into(), value))
        });
        std::iter::once(("PATH".into(), path())).chain(named).collect()
    }
}

/// Returns the `PATH` on which programs are found.
#[must_use]
pub fn path() -> OsString {
    environment::var_os("PATH").filter(|path| !path.is_empty()).unwrap_or_else(|| DEFAULT_PATH.into())
}
