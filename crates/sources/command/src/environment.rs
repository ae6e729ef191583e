//! What a program knows of its surroundings: `PATH`, the call it serves, and what its author allows. Nothing else.
//!
//! Helve's own environment holds keys of models and services. A program gets a variable only where the tool's file
//! names it.

use std::env;
use std::ffi::OsString;

use helve_core::authored::FieldError;
use helve_core::{CallId, Redactor, secret};

/// Tells the program which call it serves.
const CALL: &str = "HELVE_CALL_ID";
/// Marks every process of one attempt. A retried call keeps its id, so that alone would not tell attempts apart.
const ATTEMPT: &str = "HELVE_ATTEMPT_ID";
/// Where programs are looked for if Helve itself was started without a `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The environment of a tool's processes.
#[derive(Debug)]
pub(crate) struct Environment(Vec<Variable>);

#[derive(Debug)]
struct Variable {
    name: String,
    /// None where Helve's own value is passed through.
    value: Option<String>,
}

/// One start of a program for a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) call: CallId,
    id: CallId,
}

impl Attempt {
    pub(crate) fn of(call: CallId) -> Self {
        Self { call, id: CallId::mint() }
    }

    /// The entry that every process of the attempt has in its environment, unless it takes care not to.
    pub(crate) fn marker(self) -> String {
        format!("{ATTEMPT}={}", self.id)
    }
}

impl Environment {
    /// Reads the field `env`.
    pub(crate) fn read(entries: &[String], redactor: &Redactor) -> Result<Self, FieldError> {
        let mut variables: Vec<Variable> = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            let wrong = |message: String| FieldError::new(format!("/env/{index}"), message);
            let (name, value) = entry.split_once('=').map_or((entry.as_str(), None), |(name, value)| (name, Some(value)));
            let letters = |character: char| character.is_ascii_alphanumeric() || character == '_';
            if name.is_empty() || !name.chars().all(letters) || name.starts_with(|first: char| first.is_ascii_digit()) {
                let hint = "write `NAME` to pass a variable through, or `NAME=value` to set it; names have letters, digits and `_`";
                return Err(wrong(format!("`{name}` is not the name of a variable")).hint(hint));
            }
            if [CALL, ATTEMPT].contains(&name) {
                return Err(wrong(format!("`{name}` is set by Helve")).hint("remove it; every program is given it"));
            }
            if variables.iter().any(|variable| variable.name == name) {
                return Err(wrong(format!("the variable `{name}` is there twice")));
            }
            if value.is_some_and(|value| value.contains('\0')) {
                return Err(wrong(format!("the value of `{name}` holds the character NUL")));
            }
            if let Some(value) = value.filter(|_| secret::is_secret_variable(name)) {
                redactor.add([value.to_owned().into()]);
            }
            variables.push(Variable { name: name.to_owned(), value: value.map(str::to_owned) });
        }
        Ok(Self(variables))
    }

    /// Every variable of one attempt.
    pub(crate) fn of_attempt(&self, attempt: Attempt) -> Vec<(OsString, OsString)> {
        let mut all: Vec<(OsString, OsString)> =
            vec![("PATH".into(), path()), (CALL.into(), attempt.call.to_string().into()), (ATTEMPT.into(), attempt.id.to_string().into())];
        for variable in &self.0 {
            if let Some(value) = variable.value.as_ref().map(OsString::from).or_else(|| env::var_os(&variable.name)) {
                all.push((variable.name.as_str().into(), value));
            }
        }
        all
    }
}

/// Where programs are looked for.
pub(crate) fn path() -> OsString {
    env::var_os("PATH").filter(|path| !path.is_empty()).unwrap_or_else(|| DEFAULT_PATH.into())
}
